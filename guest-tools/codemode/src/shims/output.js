// What a script says: text, pictures, and the end.
(native, shared) => {
  const { show } = shared;
  const { stringify } = JSON;
  const INDENTED = 2000;
  const AWAIT = "it is a promise: put `await` before it";

  class Waiting extends TypeError {}
  const plainly = (value) => {
    try {
      return show(value);
    } catch (error) {
      return "[a value that can not be shown]";
    }
  };
  // These are nothing as JSON, or not what they are.
  const isSpecial = (value) =>
    value instanceof Error || value instanceof Map || value instanceof Set || value instanceof RegExp || value instanceof Date ||
    value instanceof ArrayBuffer || ArrayBuffer.isView(value) || value instanceof URLSearchParams || isIterator(value);
  const isIterator = (value) => {
    const tag = value[Symbol.toStringTag];
    return typeof tag === "string" && /(Iterator|Generator|Iterator Helper)$/.test(tag) && typeof value.next === "function";
  };
  // It is empty as JSON, and not for the reason that nothing is in it.
  const hides = (value) => {
    const prototype = Object.getPrototypeOf(value);
    return Object.keys(value).length > 0 || (prototype !== Object.prototype && prototype !== null);
  };
  const inside = (_, value) => {
    if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof Promise) throw new Waiting(AWAIT);
    return isSpecial(value) ? plainly(value) : value;
  };

  shared.shown = (value) => {
    if (typeof value === "string") return value.toWellFormed();
    if (typeof value !== "object" || value === null) return plainly(value);
    if (value instanceof Promise) throw new TypeError(AWAIT);
    if (isSpecial(value)) return plainly(value);
    try {
      const compact = stringify(value, inside);
      if (compact === undefined || (compact === "{}" && (value === tools || hides(value)))) return plainly(value);
      if (compact.length > INDENTED) return compact;
      const indented = stringify(value, inside, 2);
      return indented.length > INDENTED ? compact : indented;
    } catch (error) {
      if (error instanceof Waiting) throw new TypeError(shared.promiseIn(value, "value") ?? AWAIT);
      return plainly(value);
    }
  };

  const isPicture = (value) => {
    try {
      return typeof value === "object" && value !== null && value.type === "image" && typeof value.data === "string" && typeof value.mimeType === "string";
    } catch {
      return false;
    }
  };
  // Shows what is a picture, or a list of them, as one, and gives what else there is to say; nothing if that was all.
  shared.said = (value) => {
    const isList = Array.isArray(value) && value.length > 0 && value.length <= 100 && value.every(isPicture);
    if (!isList && !isPicture(value)) return shared.shown(value);
    const all = isList ? value : [value];
    for (const one of all) for (const picture of Array.isArray(one.images) ? one.images : [one]) image(picture);
    const texts = all.map((one) => one.text).filter((text) => typeof text === "string" && text !== "");
    return texts.length > 0 ? texts.join("\n").toWellFormed() : undefined;
  };

  globalThis.text = { text(value) {
    const said = shared.said(value);
    if (said !== undefined) native.text(said);
  } }.text;
  globalThis.exit = { exit() { native.exit(); } }.exit;

  const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
  const refuse = (why) => {
    throw new TypeError(`image() ${why}`);
  };
  const fromUrl = (url) => {
    const match = /^data:([a-z]+\/[a-z0-9.+-]+);base64,/i.exec(url.slice(0, 100));
    if (match) return [match[1].toLowerCase(), url.slice(match[0].length)];
    if (/^https?:/i.test(url)) refuse("can not fetch a URL: there is no network here; pass a data URL or what a tool gave");
    refuse("takes a data URL such as data:image/png;base64,…");
  };
  const parts = (value) => {
    if (typeof value === "string") return fromUrl(value);
    if (typeof value !== "object" || value === null) refuse(`takes a data URL or a picture, not ${shared.kind(value)}`);
    if (value instanceof Promise) refuse(`takes a picture; ${AWAIT}`);
    if (value.type === "image" && typeof value.data === "string") return [String(value.mimeType), value.data];
    const url = value.image_url?.url ?? value.image_url;
    if (typeof url === "string") return fromUrl(url);
    refuse("takes a data URL, {image_url}, or {type: \"image\", data, mimeType}");
  };
  globalThis.image = { image(value) {
    const [type, data] = parts(value);
    if (!TYPES.includes(type)) refuse(`shows ${TYPES.join(", ")}, not ${type}`);
    const wrong = native.image(data.toWellFormed());
    if (wrong) refuse(`can not show it: ${wrong}`);
  } }.image;

  // More of the console.
  const { log, debug } = console;
  console.groupCollapsed = console.group;
  const counts = new Map();
  console.count = (label = "default") => {
    counts.set(label, (counts.get(label) ?? 0) + 1);
    log(`${label}: ${counts.get(label)}`);
  };
  console.countReset = (label = "default") => void counts.delete(label);
  const times = new Map();
  const took = (label, values) => {
    if (times.has(label)) log(`${label}: ${(native.now() - times.get(label)).toFixed(3)} ms`, ...values);
  };
  console.time = (label = "default") => void times.set(label, native.now());
  console.timeLog = (label = "default", ...values) => took(label, values);
  console.timeEnd = (label = "default") => {
    took(label, []);
    times.delete(label);
  };
  console.table = (rows) => {
    if (typeof rows !== "object" || rows === null) return log(rows);
    const list = Object.entries(rows).slice(0, 1000);
    const isRow = (row) => typeof row === "object" && row !== null;
    const columns = [...new Set(list.flatMap(([, row]) => (isRow(row) ? Object.keys(row) : [])))];
    const cell = (value) => plainly(value).replaceAll("\n", " ");
    const lines = list.map(([key, row]) =>
      [key, ...columns.map((column) => (isRow(row) && column in row ? cell(row[column]) : "")), isRow(row) ? "" : cell(row)]);
    log([["", ...columns, ""], ...lines].map((line) => line.join(" | ").trimEnd()).join("\n"));
  };
  console.dirxml = log;
  console.profile = debug;
}
