/* atoll
description = "Stops commands that delete whole trees, and asks before others that are hard to take back."

[ui]
reason = "asks you about commands that are hard to take back"
*/

// Run it with `atoll -e gate.ts`. A gate that fails, or that does not answer in time, blocks the call: nothing passes by
// an accident.

interface Call {
  toolName: string;
  input: { command?: string };
}

const NEVER = [/\brm\s+(-[a-z]*\s+)*-[a-z]*r[a-z]*f|\brm\s+(-[a-z]*\s+)*-[a-z]*f[a-z]*r/i, /\bmkfs\b/];
const ASK = [/\bgit\s+push\s+.*--force/, /\bgit\s+reset\s+--hard/, /\bsudo\b/];

export default function (atoll: any) {
  atoll.on("tool_call", async (event: Call, ctx: any) => {
    if (event.toolName !== "bash") return;
    const command = event.input.command ?? "";

    if (NEVER.some((pattern) => pattern.test(command))) {
      // The model reads the reason, so say what it can do instead.
      return { block: true, reason: "Whole trees are not deleted here. Name the files that have to go." };
    }
    if (ASK.some((pattern) => pattern.test(command))) {
      // Without a person the answer is no.
      const allowed = await ctx.ui.confirm("Run this command?", command);
      if (!allowed) return { block: true, reason: "The user did not allow this command." };
    }
  });
}
