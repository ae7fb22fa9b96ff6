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
  // what there is of it is looked at: nothing of the script runs for it.
  const LOOKED_AT = 10000;
  const DEEPEST = 100;
  const look = (value, path, above, left, isWanted) => {
    if (typeof value === "bigint" && isWanted(value)) return `${path} is a BigInt: \`Number(…)\` or \`String(…)\` makes it JSON`;
    if (typeof value !== "object" || value === null || (left.count -= 1) < 0 || above.length > DEEPEST) return undefined;
    if (value instanceof Promise) return `${path} is a promise: put \`await\` before it`;
    if (isWanted(value)) {
      if (value instanceof Map) return `${path} is a Map: \`Object.fromEntries(…)\` or \`[...map]\` makes it JSON`;
      if (value instanceof Set) return `${path} is a Set: \`[...set]\` makes it JSON`;
      if (above.includes(value)) return `${path} is one of the objects that it is in: leave it out`;
    } else if (above.includes(value)) {
      return undefined;
    }
    if ("toJSON" in value || ArrayBuffer.isView(value)) return undefined;
    const inside = [...above, value];
    for (const key of Object.keys(value)) {
      const property = Object.getOwnPropertyDescriptor(value, key);
      if (!property || !("value" in property)) continue;
      const own = Array.isArray(value) ? `${path}[${key}]` : /^[A-Za-z_$][\w$]*$/.test(key) ? `${path}.${key}` : `${path}[${JSON.stringify(key)}]`;
      const found = look(property.value, own, inside, left, isWanted);
      if (found) return found;
    }
    return undefined;
  };
  const found = (isWanted) => (value, path) => {
    try {
      return look(value, path, [], { count: LOOKED_AT }, isWanted);
    } catch {
      // What the script throws while it is looked at is no better than what it throws as JSON is made of it.
      return undefined;
    }
  };
  shared.culprit = found(() => true);
  shared.promiseIn = found(() => false);

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
