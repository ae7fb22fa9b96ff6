// What stays from script to script.
(native, shared) => {
  const { stringify, parse } = JSON;
  const { kind } = shared;
  const key = (value, what) => {
    if (typeof value !== "string") throw new TypeError(`${what} takes a text as its key, not ${kind(value)}`);
    return value.toWellFormed();
  };
  globalThis.store = (name, value) => {
    const own = key(name, "store");
    if (value instanceof Promise) throw new TypeError("store takes a value; it is a promise: put `await` before it");
    const json = value === undefined ? undefined : stringify(value);
    if (value !== undefined && json === undefined) throw new TypeError(`store keeps JSON, and ${kind(value)} has no such form`);
    const wrong = native.store(own, json);
    if (wrong) throw new RangeError(wrong);
  };
  globalThis.load = (name) => {
    const json = native.load(key(name, "load"));
    return typeof json === "string" ? parse(json) : undefined;
  };
}
