// Time: the engine's own begins with the engine, which is long before the script.
(native) => {
  const began = Symbol("began");
  const state = { [began]: undefined };
  const performance = {
    now: () => native.now(),
    get timeOrigin() { return (state[began] ??= Date.now() - native.now()); },
    mark: () => {},
    measure: () => {},
    toJSON() { return { timeOrigin: this.timeOrigin }; },
  };
  Object.defineProperty(globalThis, "performance", { value: performance, writable: true, enumerable: true, configurable: true });
  const { setTimeout, clearTimeout } = globalThis;
  globalThis.setImmediate = (run, ...values) => setTimeout(run, 0, ...values);
  globalThis.clearImmediate = (id) => clearTimeout(id);
}
