// The tool `count_words`: counts the words of a text file.

// Modules of Node are there as far as the grants of this plugin reach.
import { readFile } from "node:fs/promises";

export default function (atoll: any) {
  atoll.registerTool({
    name: "count_words",
    label: "Count words",
    description: "Counts the words of a text file.",
    parameters: {
      type: "object",
      properties: { path: { type: "string", description: "The file." } },
      required: ["path"],
    },
    async execute(_id: string, { path }: { path: string }) {
      // What is thrown is what the model reads.
      const text: string = await readFile(path, "utf8");
      const words = text.split(/\s+/).filter((word) => word !== "").length;
      // `content` is what the model reads, `structuredContent` what scripts get.
      return { content: [{ type: "text", text: `${words} words` }], structuredContent: { words } };
    },
  });
}
