// An extension that looks at command lines before they run, and stops those that overwrite what others have pushed.

interface Call {
  toolName: string;
  input: { command?: string };
}

export default function (atoll: any) {
  // What is thrown here blocks the call: a gate that can not look lets nothing pass.
  atoll.on("tool_call", (event: Call) => {
    if (event.toolName !== "bash" || !isForcedPush(event.input.command ?? "")) return;
    // The model reads the reason, so it says what to do instead.
    return { block: true, reason: "Pushing by force is not allowed here. Push to a branch of your own." };
  });
}

function isForcedPush(line: string): boolean {
  const words = line.trim().split(/\s+/);
  const isPush = words.some((word, at) => word === "git" && words[at + 1] === "push");
  return isPush && words.some((word) => word === "--force" || word === "-f");
}
