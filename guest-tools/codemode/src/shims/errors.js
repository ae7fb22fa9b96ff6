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

  // Where the script is now: what fails after an `await` has no place of its own.
  shared.here = () => new Error("").stack;
  // Gives an error the place where the script asked for what failed.
  shared.from = (stack, error) => {
    // A script can have its own idea of what a stack is.
    if (typeof stack !== "string") return error;
    const own = stack.split("\n").filter((line) => !line.includes("(atoll:")).join("\n");
    return Object.defineProperty(error, "stack", { value: own, writable: true, configurable: true });
  };

  shared.kind = (value) => {
    if (value === null) return "null";
    if (Array.isArray(value)) return "a list";
    if (typeof value === "object") return "an object";
    return typeof value === "undefined" ? "undefined" : `a ${typeof value}`;
  };
}
