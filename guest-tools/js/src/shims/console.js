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
    if (value instanceof Promise) return "[promise; `await` gives its value]";
    if (value instanceof URL) return `URL ${value.href}`;
    const tag = value[Symbol.toStringTag];
    if (typeof tag === "string" && /(Iterator|Generator|Iterator Helper)$/.test(tag) && typeof value.next === "function") {
      return `[${tag}; [...it] gives what is in it]`;
    }
    if (above.includes(value)) return "[circular]";
    if (depth >= DEPTH) return Array.isArray(value) ? "[array]" : "[object]";
    const inside = [...above, value];
    const list = (items, open, close) => {
      const shown = items.slice(0, ITEMS);
      if (items.length > ITEMS) shown.push(`… ${items.length - ITEMS} more`);
      return shown.length === 0 ? open + close : `${open} ${shown.join(", ")} ${close}`;
    };
    const one = (item) => show(item, depth + 1, inside);
    if (value instanceof URLSearchParams) return `URLSearchParams ${list([...value].map(([k, v]) => `${one(k)} => ${one(v)}`), "{", "}")}`;
    if (Array.isArray(value) || ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
      const kind = Array.isArray(value) ? "" : `${value.constructor.name} `;
      const all = value instanceof DataView ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
        : value instanceof ArrayBuffer ? new Uint8Array(value) : value;
      const items = Array.from(Array.isArray(all) ? all.slice(0, ITEMS) : all.subarray(0, ITEMS), one);
      if (all.length > ITEMS) items.push(`… ${all.length - ITEMS} more`);
      return kind + (items.length === 0 ? "[]" : `[ ${items.join(", ")} ]`);
    }
    if (value instanceof Map) return `Map ${list([...value].map(([k, v]) => `${one(k)} => ${one(v)}`), "{", "}")}`;
    if (value instanceof Set) return `Set ${list([...value].map(one), "{", "}")}`;
    const name = value.constructor?.name;
    const key = (text) => (/^[A-Za-z_$][\w$]*$/.test(text) ? text : JSON.stringify(text));
    const entries = Object.keys(value).map((text) => `${key(text)}: ${one(value[text])}`);
    return (name && name !== "Object" ? `${name} ` : "") + list(entries, "{", "}");
  };

  const whole = (value) => {
    try {
      return show(value, 0, []);
    } catch {
      return "[a value that can not be shown]";
    }
  };
  const number = (value, read) => (typeof value === "bigint" ? `${value}n` : typeof value === "symbol" ? "NaN" : String(read(value)));
  const DIRECTIVES = {
    s: whole,
    d: (value) => number(value, Number),
    i: (value) => number(value, parseInt),
    f: (value) => number(value, parseFloat),
    j: (value) => {
      try {
        return String(JSON.stringify(value));
      } catch {
        return whole(value);
      }
    },
    o: (value) => show(value, 1, []),
    O: (value) => show(value, 1, []),
    c: () => "",
  };
  // What stands for a value in the first text has that value in its place.
  const placed = (values) => {
    const [first, ...rest] = values;
    if (typeof first !== "string" || rest.length === 0 || !first.includes("%")) return values;
    let at = 0;
    const text = first.replace(/%([sdifjoOc%])/g, (directive, kind) => {
      if (kind === "%") return "%";
      if (at >= rest.length) return directive;
      const value = rest[at];
      at += 1;
      try {
        return DIRECTIVES[kind](value);
      } catch {
        return "[a value that can not be shown]";
      }
    });
    return [text, ...rest.slice(at)];
  };
  let indent = "";
  const line = (values) => {
    const text = placed(values).map(whole).join(" ").toWellFormed();
    return indent === "" ? text : text.split("\n").map((part) => indent + part).join("\n");
  };

  globalThis.__atoll = { show: (value) => show(value, 0, []), hidden: [] };

  const at = (level) => (...values) => native.console(level, line(values));
  globalThis.console = {
    debug: at(0),
    trace: at(0),
    log: at(1),
    info: at(1),
    dir: at(1),
    warn: at(2),
    error: at(3),
    group: (...values) => {
      if (values.length > 0) native.console(1, line(values));
      if (indent.length < 40) indent += "  ";
    },
    groupEnd: () => {
      indent = indent.slice(2);
    },
    assert: (condition, ...values) => {
      if (!condition) native.console(3, line(["assertion failed:", ...values]));
    },
  };
}
