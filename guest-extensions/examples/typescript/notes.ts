/* atoll
description = "Keeps notes from one session to the next: /note adds one, /notes shows them."

[store]
reason = "keeps your notes"

[ui]
reason = "asks for a note, and shows them"
*/

export default async function (atoll: any) {
  const read = async (): Promise<string[]> => (await atoll.store.get("notes")) ?? [];

  atoll.registerCommand("note", {
    description: "Adds a note.",
    handler: async (text: string, ctx: any) => {
      // Without a person, `input` answers undefined.
      const note = text || (await ctx.ui.input("What is to be noted?"));
      if (!note) return ctx.ui.notify("nothing noted", "warning");
      await atoll.store.set("notes", [...(await read()), note]);
      ctx.ui.notify(`noted: ${note}`);
    },
  });

  atoll.registerCommand("notes", {
    description: "Shows the notes.",
    handler: async (_: string, ctx: any) => {
      const notes = await read();
      ctx.ui.notify(notes.length === 0 ? "there are no notes" : notes.map((note, at) => `${at + 1}. ${note}`).join("\n"));
    },
  });
}
