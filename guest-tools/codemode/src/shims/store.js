// What stays from script to script.
(native, shared) => {
  const { stringify, parse } = JSON;
  const { kind, culprit } = shared;
  const key = (value, what) => {
    if (typeof value !== "string") throw new TypeError(`${what} takes a text as its key, not ${kind(value)}`);
    return value.toWellFormed();
  };
  globalThis.store = (name, value) => {
    const own = key(name, "store");
    const found = culprit(value, "value");
    if (found) throw new TypeError(`store can not keep ${stringify(own)} as JSON: ${found}`);
    const json = value === undefined ? undefined : stringify(value);
    if (value !== undefined && json === undefined) throw new TypeError(`store can not keep ${stringify(own)}: ${kind(value)} has no form as JSON`);
    const wrong = native.store(own, json);
    if (wrong) throw new RangeError(`store can not keep ${stringify(own.slice(0, 100))}: ${wrong}`);
  };
  globalThis.load = (name) => {
    const json = native.load(key(name, "load"));
    return typeof json === "string" ? parse(json) : undefined;
  };
}
