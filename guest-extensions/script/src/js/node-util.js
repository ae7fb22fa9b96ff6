// The parts of Node's `util` that scripts use.
const custom = Symbol.for("nodejs.util.promisify.custom");

export const promisify = (work) =>
  work[custom] ??
  ((...values) =>
    new Promise((resolve, reject) => {
      work(...values, (error, result) => (error ? reject(error) : resolve(result)));
    }));
promisify.custom = custom;

export const inspect = (value) => {
  if (typeof value === "string") return value;
  if (value instanceof Error) return value.stack ?? String(value);
  const seen = new Set();
  const text = JSON.stringify(value, (_, one) => {
    if (typeof one === "bigint") return `${one}n`;
    if (typeof one !== "object" || one === null) return one;
    if (seen.has(one)) return "[circular]";
    seen.add(one);
    return one;
  });
  return text ?? String(value);
};

export const format = (first, ...rest) => {
  if (typeof first !== "string") return [first, ...rest].map(inspect).join(" ");
  const text = first.replace(/%[sdifjoO%]/g, (mark) => {
    if (mark === "%%") return "%";
    if (rest.length === 0) return mark;
    const value = rest.shift();
    return mark === "%s" ? String(value) : "di".includes(mark[1]) ? String(Math.trunc(Number(value))) : inspect(value);
  });
  return [text, ...rest.map(inspect)].join(" ");
};

export const stripVTControlCharacters = (text) => text.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "");
export const isDeepStrictEqual = (one, other) => JSON.stringify(one) === JSON.stringify(other);
export const deprecate = (work) => work;
const { TextEncoder, TextDecoder } = globalThis;
export { TextEncoder, TextDecoder };
export default { promisify, inspect, format, stripVTControlCharacters, isDeepStrictEqual, deprecate, TextEncoder, TextDecoder };
