// A gate: an extension that looks at every command line before it runs, and stops those that delete whole trees.
//
// It asks for nothing: watching and blocking need no grant. It fails closed: what is thrown blocks the call.
//
// What it can not catch: it reads the line and does not run it. `rm $FLAGS`, a script that is written first and run then,
// `find -delete`, `git clean -fdx` or another program that deletes are all beyond it. It keeps a model from a mistake, not an
// attacker from a goal. It would rather stop too much: `echo rm -rf` is stopped as well.

// The model reads this, so it says what to do instead.
const REASON = "Deleting whole trees (rm -rf) is not allowed here. Name the files to delete.";

export const extension = {
  async start(reason) {
    // Only what is named here is sent: all else costs nothing.
    return { events: ["tool-call"], topics: [], commands: [], flags: [], shortcuts: [] };
  },

  async onEvent(id, event) {
    if (event.tag !== "tool-call" || event.val.tool !== "bash") return { tag: "pass" };
    const { command } = JSON.parse(event.val.arguments);
    return deletesATree(command) ? { tag: "block", val: { reason: REASON, terminate: false } } : { tag: "pass" };
  },

  async runCommand(id, name, args) {},

  async completeCommand(name, args) {
    return [];
  },

  async stop() {},
};

// Whether a line has `rm` with both of its options in one command, however they are spelled.
function deletesATree(line) {
  // Quotes and backslashes do not change what a shell runs: `\rm`, `r"m"`, `sh -c 'rm -rf x'`.
  const plain = line.replaceAll("\\\n", " ").replace(/['"\\]/g, "");
  return plain.split(/[;|&\n(){}`]/).some((command) => {
    const words = command.split(/\s+/);
    // Anywhere in the command, because of `sudo rm`, `xargs rm` and `env A=1 /bin/rm`.
    const at = words.findIndex((word) => word === "rm" || word.endsWith("/rm"));
    if (at < 0) return false;
    let recursive = false;
    let force = false;
    for (const option of words.slice(at + 1)) {
      if (option === "--") break; // After it there are only names.
      if (option.startsWith("--")) {
        // Long options may be cut short as long as they stay unique.
        recursive ||= "--recursive".startsWith(option);
        force ||= "--force".startsWith(option);
      } else if (option.startsWith("-")) {
        recursive ||= /r/i.test(option);
        force ||= option.includes("f");
      }
    }
    return recursive && force;
  });
}
