// Lines of the console: text as it is, everything else as a person would write it down.
(native) => {
  const DEPTH = 4;
  const ITEMS = 100;
  const ERRORS = 5;

  const error = (value, depth, above) => {
    const own = `${value.name}: ${value.message}`;
    if (depth >= DEPTH || above.includes(value)) return own;
    const one = (other) => show(other, depth + 1, [...above, value]);
    const lines = [own];
    if (value.stack) lines.push(value.stack.trimEnd());
    if (value.cause !== undefined) lines.push(`  caused by ${one(value.cause)}`);
    if (Array.isArray(value.errors)) {
      lines.push(...value.errors.slice(0, ERRORS).map((other) => `  of ${one(other)}`));
      if (value.errors.length > ERRORS) lines.push(`  and ${value.errors.length - ERRORS} more`);
    }
    return lines.join("\n");
  };

  const show = (value, depth, above) => {
    if (typeof value === "string") return depth === 0 ? value : JSON.stringify(value);
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value === "symbol") return value.toString();
    if (typeof value === "function") return `[function ${value.name || "(anonymous)"}]`;
    if (typeof value !== "object" || value === null) return String(value);
    if (value instanceof Error) return error(value, depth, above);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
    if (value instanceof RegExp) return String(value);
    if (above.includes(value)) return "[circular]";
    if (depth >= DEPTH) return Array.isArray(value) ? "[array]" : "[object]";
    const inside = [...above, value];
    const list = (items, open, close) => {
      const shown = items.slice(0, ITEMS);
      if (items.length > ITEMS) shown.push(`… ${items.length - ITEMS} more`);
      return shown.length === 0 ? open + close : `${open} ${shown.join(", ")} ${close}`;
    };
    const one = (item) => show(item, depth + 1, inside);
    if (Array.isArray(value) || ArrayBuffer.isView(value)) {
      const kind = Array.isArray(value) ? "" : `${value.constructor.name} `;
      const items = Array.from(Array.isArray(value) ? value.slice(0, ITEMS) : value.subarray?.(0, ITEMS) ?? [], one);
      if (value.length > ITEMS) items.push(`… ${value.length - ITEMS} more`);
      return kind + (items.length === 0 ? "[]" : `[ ${items.join(", ")} ]`);
    }
    if (value instanceof Map) return `Map ${list([...value].map(([k, v]) => `${one(k)} => ${one(v)}`), "{", "}")}`;
    if (value instanceof Set) return `Set ${list([...value].map(one), "{", "}")}`;
    const name = value.constructor?.name;
    const key = (text) => (/^[A-Za-z_$][\w$]*$/.test(text) ? text : JSON.stringify(text));
    const entries = Object.keys(value).map((text) => `${key(text)}: ${one(value[text])}`);
    return (name && name !== "Object" ? `${name} ` : "") + list(entries, "{", "}");
  };

  const line = (values) => values.map((value) => {
    try {
      return show(value, 0, []);
    } catch {
      return "[a value that can not be shown]";
    }
  }).join(" ").toWellFormed();

  globalThis.__atoll = { show: (value) => show(value, 0, []) };

  const at = (level) => (...values) => native.console(level, line(values));
  globalThis.console = {
    debug: at(0),
    trace: at(0),
    log: at(1),
    info: at(1),
    dir: at(1),
    warn: at(2),
    error: at(3),
    assert: (condition, ...values) => {
      if (!condition) native.console(3, line(["assertion failed:", ...values]));
    },
  };
}
