// The helpers of Pi's own package that extensions call.
import { not_here } from "atoll:native";
import { Text } from "atoll:pi-tui";

export const isToolCallEventType = (name, event) => event.toolName === name;
const result_of = (name) => (event) => event.toolName === name;
export const isBashToolResult = result_of("bash");
export const isReadToolResult = result_of("read");
export const isEditToolResult = result_of("edit");
export const isWriteToolResult = result_of("write");
export const isGrepToolResult = result_of("grep");
export const isFindToolResult = result_of("find");
export const isLsToolResult = result_of("ls");
export const defineTool = (tool) => tool;

export const DEFAULT_MAX_BYTES = 50 * 1024;
export const DEFAULT_MAX_LINES = 2000;

export const formatSize = (bytes) =>
  bytes < 1024 ? `${bytes}B` : bytes < 1024 ** 2 ? `${(bytes / 1024).toFixed(1)}KB` : `${(bytes / 1024 ** 2).toFixed(1)}MB`;

const size = (text) => new TextEncoder().encode(text).length;

const truncate = (from_end) => (content, { maxLines = DEFAULT_MAX_LINES, maxBytes = DEFAULT_MAX_BYTES } = {}) => {
  const lines = content.split("\n");
  const total = { totalLines: lines.length, totalBytes: size(content), maxLines, maxBytes };
  const order = from_end ? lines.toReversed() : lines;
  const kept = [];
  let bytes = 0;
  let truncatedBy = null;
  for (const line of order) {
    const more = size(line) + (kept.length > 0 ? 1 : 0);
    if (kept.length === maxLines) truncatedBy = "lines";
    else if (bytes + more > maxBytes) truncatedBy = "bytes";
    if (truncatedBy) break;
    kept.push(line);
    bytes += more;
  }
  const text = (from_end ? kept.toReversed() : kept).join("\n");
  return {
    content: text, truncated: truncatedBy !== null, truncatedBy, ...total,
    outputLines: kept.length, outputBytes: bytes, lastLinePartial: false, firstLineExceedsLimit: kept.length === 0,
  };
};
export const truncateHead = truncate(false);
export const truncateTail = truncate(true);
export const truncateLine = (line, most = 500) =>
  line.length <= most ? { text: line, wasTruncated: false } : { text: `${line.slice(0, most)}... [truncated]`, wasTruncated: true };

export const getMarkdownTheme = () => ({});
export const getSettingsListTheme = () => ({});
export const getSelectListTheme = () => ({});
export const keyHint = (_, text) => text;
export const rawKeyHint = (_, text) => text;
export const keyText = (name) => name;
export const highlightCode = (code) => code.split("\n");
export const getLanguageFromPath = () => undefined;
export const renderDiff = (diff) => diff;
export const getAgentDir = () => "~/.atoll";
export const VERSION = "0.0.0";
export class DynamicBorder extends Text {}
export class BorderedLoader extends Text {}
export class CustomEditor extends Text {}

export const convertToLlm = (messages) => messages;
export const serializeConversation = (messages) =>
  messages.map(({ role, content }) => {
    const text = typeof content === "string" ? content : (content ?? []).map((piece) => piece.text ?? "").join("\n");
    return `[${role}]: ${text}`;
  }).join("\n\n");
export const parseFrontmatter = (text) => {
  const match = /^---\r?\n([\s\S]*?)\r?\n---\r?\n?([\s\S]*)$/.exec(text);
  if (!match) return { frontmatter: {}, body: text };
  const pairs = match[1].split(/\r?\n/).map((line) => /^([\w-]+):\s*(.*)$/.exec(line)).filter(Boolean);
  const plain = (value) => value.replace(/^(["'])(.*)\1$/, "$2");
  return { frontmatter: Object.fromEntries(pairs.map(([, key, value]) => [key, plain(value)])), body: match[2] };
};

// What runs parts of Pi itself has no counterpart here.
const absent = (name) => not_here(`${name} of pi-coding-agent`);
export const createBashTool = absent("createBashTool");
export const createReadTool = absent("createReadTool");
export const createEditTool = absent("createEditTool");
export const createWriteTool = absent("createWriteTool");
export const createGrepTool = absent("createGrepTool");
export const createFindTool = absent("createFindTool");
export const createLsTool = absent("createLsTool");
export const createAgentSession = absent("createAgentSession");
export const createLocalBashOperations = absent("createLocalBashOperations");
export const compact = absent("compact");
export const withFileMutationQueue = async (_, run) => run();
export const SessionManager = { open: absent("SessionManager"), create: absent("SessionManager"), list: absent("SessionManager") };
export const SettingsManager = { create: absent("SettingsManager") };
