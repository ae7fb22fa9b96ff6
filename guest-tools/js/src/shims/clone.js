// Deep copies, with what they have in common and with cycles.
() => {
  const refuse = (what) => {
    throw new DOMException(`${what} can not be cloned`, "DataCloneError");
  };
  const ERRORS = { Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };

  const clone = (value, seen) => {
    if (typeof value === "function") refuse(`the function ${value.name || "(anonymous)"}`);
    if (typeof value === "symbol") refuse("a symbol");
    if (typeof value !== "object" || value === null) return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (copy) => {
      seen.set(value, copy);
      return copy;
    };
    if (value instanceof Date) return keep(new Date(value.getTime()));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof Boolean || value instanceof Number || value instanceof String) return keep(Object(value.valueOf()));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) {
      const length = value instanceof DataView ? value.byteLength : value.length;
      return keep(new value.constructor(clone(value.buffer, seen), value.byteOffset, length));
    }
    if (value instanceof Map) {
      const copy = keep(new Map());
      for (const [key, item] of [...value]) copy.set(clone(key, seen), clone(item, seen));
      return copy;
    }
    if (value instanceof Set) {
      const copy = keep(new Set());
      for (const item of [...value]) copy.add(clone(item, seen));
      return copy;
    }
    if (value instanceof Error) {
      const copy = keep(new (ERRORS[value.name] ?? Error)(value.message));
      for (const key of ["stack", "cause"]) {
        if (Object.hasOwn(value, key)) {
          Object.defineProperty(copy, key, { value: clone(value[key], seen), writable: true, configurable: true });
        }
      }
      return copy;
    }
    if (value instanceof Promise || value instanceof WeakMap || value instanceof WeakSet || value instanceof WeakRef) {
      refuse(`a ${value.constructor.name}`);
    }
    const copy = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) {
      Object.defineProperty(copy, key, { value: clone(value[key], seen), writable: true, enumerable: true, configurable: true });
    }
    return copy;
  };

  globalThis.structuredClone = (value, options) => {
    if (options?.transfer?.length > 0) refuse("what is to be transferred");
    return clone(value, new Map());
  };
}
