/* atoll
description = "A tool that lists the headings of a Markdown file."

[table]
reason = "adds its tool"

[[files]]
root = "$workspace"
access = "read"
reason = "reads the file you ask about"
*/

// Files reach outside, so they have to be granted: `atoll plugin grant outline.ts --all`, or an answer when it asks.
import { readFile } from "node:fs/promises";
import { Type } from "typebox";

export default function (atoll: any) {
  atoll.registerTool({
    name: "outline",
    label: "Outline",
    description: "Lists the headings of a Markdown file with their line numbers.",
    parameters: Type.Object({ path: Type.String({ description: "The file." }) }),
    annotations: { readOnlyHint: true },
    async execute(_id: string, { path }: { path: string }) {
      const lines = (await readFile(path, "utf8")).split("\n");
      const headings = lines
        .map((text, at) => ({ text, line: at + 1 }))
        .filter(({ text }) => /^#{1,6} /.test(text));
      const text = headings.map(({ text, line }) => `${line}: ${text}`).join("\n");
      // `content` is what the model reads, `structuredContent` what scripts get.
      return { content: [{ type: "text", text: text || "no headings" }], structuredContent: headings };
    },
  });
}
