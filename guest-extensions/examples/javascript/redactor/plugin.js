// A redactor: an extension that takes keys and tokens out of results, before a model reads them and before they are kept in
// the session.
//
// It asks for nothing: changing a result needs no grant.
//
// What it can not catch: it knows tokens by how they begin. A password of its own kind, a token that is encoded or split over
// two lines, and pictures pass. Nor does it see what a tool shows while it runs, only what it gives in the end.

// How tokens of well-known services begin, and at least 16 more characters. Not inside a word: `task-…` holds no `sk-…`. In
// JSON a line break is `\n`, whose `n` is not part of a word.
const TOKEN =
  /(?:(?<![A-Za-z0-9_-])|(?<=\\[a-z]))(?:sk-|gh[po]_|github_pat_|glpat-|xox[bp]-|AKIA)[A-Za-z0-9_-]{16,}/g;

export const extension = {
  async start(reason) {
    return { events: ["tool-result"], topics: [], commands: [], flags: [], shortcuts: [] };
  },

  async onEvent(id, event) {
    if (event.tag !== "tool-result") return { tag: "pass" };
    let changed = false;
    const redacted = (text) => {
      const clean = text?.replace(TOKEN, "[redacted]");
      changed ||= clean !== text;
      return clean;
    };
    const content = event.val.content.map((piece) =>
      piece.tag === "text" ? { tag: "text", val: redacted(piece.val) } : piece,
    );
    // The same may stand in the data that scripts and whoever shows the call get. Tokens have no character that JSON would
    // escape, so its text can be treated as any other.
    const details = redacted(event.val.details);
    const structured = redacted(event.val.structured);
    return changed ? { tag: "patch", val: { content, details, structured } } : { tag: "pass" };
  },

  async runCommand(id, name, args) {},

  async completeCommand(name, args) {
    return [];
  },

  async stop() {},
};
