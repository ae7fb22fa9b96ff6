// Freezes the built-in objects. Scripts share them, and one must not change what another one calls.
() => {
  const own = globalThis.__atoll?.hidden ?? [];
  delete globalThis.__atoll;
  // It would hand out every function on the stack, and with them what built-in objects keep for themselves.
  if (!delete Error.prepareStackTrace) Object.defineProperty(Error, "prepareStackTrace", { value: undefined });

  // An object can not get a property that its frozen prototype has, unless that is an accessor. Scripts do give
  // their errors a `name` and their objects a `toString`, so these become accessors.
  const OVERRIDDEN = ["constructor", "toString", "toLocaleString", "valueOf", "name", "message", "toJSON", "hasOwnProperty"];
  const define = Object.defineProperty;
  const overridable = (prototype) => {
    for (const key of OVERRIDDEN) {
      const property = Object.getOwnPropertyDescriptor(prototype, key);
      if (!property?.configurable || !("value" in property)) continue;
      const { value } = property;
      const get = () => value;
      const { set } = {
        set(own) {
          if (this === prototype) throw new TypeError(`built-in objects can not be changed: ${key}`);
          define(this, key, { value: own, writable: true, enumerable: true, configurable: true });
        },
      };
      // Whoever is frozen already is not looked at again.
      Object.freeze(get);
      Object.freeze(set);
      define(prototype, key, { configurable: false, enumerable: property.enumerable, get, set });
    }
  };

  const seen = new Set([globalThis]);
  const freeze = (value) => {
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) return;
    seen.add(value);
    if (typeof value === "function" && typeof value.prototype === "object" && value.prototype !== null) {
      overridable(value.prototype);
    }
    for (const key of Reflect.ownKeys(value)) {
      const property = Object.getOwnPropertyDescriptor(value, key);
      freeze(property.value);
      freeze(property.get);
      freeze(property.set);
    }
    Object.freeze(value);
    freeze(Object.getPrototypeOf(value));
  };

  const hidden = [
    Object.getPrototypeOf(async () => {}),
    Object.getPrototypeOf(function* () {}),
    Object.getPrototypeOf(async function* () {}),
    Object.getPrototypeOf([][Symbol.iterator]()),
    Object.getPrototypeOf(new Map()[Symbol.iterator]()),
    Object.getPrototypeOf(new Set()[Symbol.iterator]()),
    Object.getPrototypeOf(""[Symbol.iterator]()),
    Object.getPrototypeOf("".matchAll(/a/g)),
    Object.getPrototypeOf([].values().map(() => 0)),
    Object.getPrototypeOf(Iterator.from({ next() {} })),
    ...own,
  ];
  for (const key of Reflect.ownKeys(globalThis)) {
    const property = Object.getOwnPropertyDescriptor(globalThis, key);
    if (key === "globalThis") continue;
    freeze(property.value);
    freeze(property.get);
    freeze(property.set);
    if (property.configurable && "value" in property) {
      define(globalThis, key, { ...property, writable: false, configurable: false });
    }
  }
  hidden.forEach(freeze);
}
