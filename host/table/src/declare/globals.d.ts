/** The tools, by the names that scripts write; `tools["raw-name"]` works for every one. A call that fails rejects with a ToolError. */
declare const tools: Tools;
interface Tools {}

/** How a call of a tool failed. */
declare class ToolError extends Error {
  /** The tool's name. */
  tool: string;
  /** Such as "not-found", "denied", "invalid-arguments", "timeout" or "failed". */
  code: string;
  details?: unknown;
}

/** A picture, as tools give it and as `image` takes it. */
interface ImageResult {
  type: "image";
  /** In base64. */
  data: string;
  mimeType: string;
}

/** Adds to the output: strings as they are, everything else as JSON. */
declare function text(value: unknown): void;
/** Adds a picture to the output: a data URL, or a picture that a tool gave. */
declare function image(value: string | ImageResult | { image_url: string | { url: string } }): void;
/** Ends the script successfully, with the output so far. */
declare function exit(): never;

/** Keeps a value for later scripts of this session, if this one succeeds; `undefined` forgets it. */
declare function store(key: string, value: unknown): void;
/** What an earlier script kept, or this one. */
declare function load(key: string): any;

/** Every tool that can be called now. */
declare const ALL_TOOLS: readonly { readonly name: string; readonly id: string; readonly description: string }[];
interface FoundTool {
  name: string;
  id: string;
  description: string;
  /** In TypeScript. */
  declaration: string;
}
/** Tools that fit words, best first. */
declare function searchTools(query: string, options?: { limit?: number; namespace?: string }): Promise<FoundTool[]>;
declare function describeTool(name: string): Promise<FoundTool>;
declare function describeNamespace(
  name: string,
): Promise<{ name: string; description?: string; instructions?: string; tools: string[] }>;
