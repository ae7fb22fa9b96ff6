// The errors of calls.
(native, shared) => {
  const named = (prototype, value) => Object.defineProperty(prototype, "name", { value, writable: true, configurable: true });

  globalThis.ToolError = class ToolError extends Error {
    constructor(message, tool, code, details) {
      super(message);
      this.tool = tool;
      this.code = code;
      if (details !== undefined && details !== null) this.details = details;
    }
  };
  named(ToolError.prototype, "ToolError");

  class NotFoundError extends ToolError {}
  named(NotFoundError.prototype, "NotFoundError");
  shared.NotFoundError = NotFoundError;
  shared.hidden.push(NotFoundError);

  // Where the script is now: what fails after an `await` has no place of its own.
  shared.here = () => new Error("").stack;
  // Gives an error the place where the script asked for what failed.
  shared.from = (stack, error) => {
    // A script can have its own idea of what a stack is.
    if (typeof stack !== "string") return error;
    const own = stack.split("\n").filter((line) => !line.includes("(atoll:")).join("\n");
    return Object.defineProperty(error, "stack", { value: own, writable: true, configurable: true });
  };

  // What of these values JSON has no form for, where it is, and what to write instead; none if all of it has one. Only
  // what there is of it is looked at: nothing of the script runs for it. Every call of a tool comes through here, so the way
  // to what is found is put together on the way back, and only then.
  const LOOKED_AT = 10000;
  const DEEPEST = 100;
  const step = (inside, key) => {
    if (Array.isArray(inside)) return `[${key}]`;
    return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  };
  const look = (value, state) => {
    if (typeof value === "bigint") {
      return state.all ? { way: "", what: "a BigInt: `Number(…)` or `String(…)` makes it JSON" } : undefined;
    }
    if (typeof value !== "object" || value === null || (state.left -= 1) < 0) return undefined;
    const { above } = state;
    if (above.length > DEEPEST) return undefined;
    if (value instanceof Promise) return { way: "", what: "a promise: put `await` before it" };
    const isAbove = above.includes(value);
    if (state.all) {
      if (value instanceof Map) return { way: "", what: "a Map: `Object.fromEntries(…)` or `[...map]` makes it JSON" };
      if (value instanceof Set) return { way: "", what: "a Set: `[...set]` makes it JSON" };
      if (isAbove) return { way: "", what: "one of the objects that it is in: leave it out" };
    }
    if (isAbove || "toJSON" in value || ArrayBuffer.isView(value)) return undefined;
    above.push(value);
    const keys = Object.keys(value);
    for (let at = 0; at < keys.length; at += 1) {
      const property = Object.getOwnPropertyDescriptor(value, keys[at]);
      // What is asked for as it is, not by an accessor.
      if (!property || !("value" in property)) continue;
      const found = look(property.value, state);
      if (found) {
        found.way = step(value, keys[at]) + found.way;
        return found;
      }
    }
    above.pop();
    return undefined;
  };
  const found = (all) => (value, path) => {
    try {
      const found = look(value, { all, left: LOOKED_AT, above: [] });
      return found && `${path}${found.way} is ${found.what}`;
    } catch {
      // What the script throws while it is looked at is no better than what it throws as JSON is made of it.
      return undefined;
    }
  };
  shared.culprit = found(true);
  shared.promiseIn = found(false);

  shared.kind = (value) => {
    if (value === null) return "null";
    if (Array.isArray(value)) return "a list";
    if (value instanceof Map) return "a Map";
    if (value instanceof Set) return "a Set";
    if (value instanceof Promise) return "a promise: put `await` before it";
    if (typeof value === "object") return "an object";
    return typeof value === "undefined" ? "undefined" : `a ${typeof value}`;
  };
}
