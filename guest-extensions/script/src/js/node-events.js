// Node's EventEmitter.
export class EventEmitter {
  #listeners = new Map();
  on(name, listener) {
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), { listener, run: listener }]);
    return this;
  }
  once(name, listener) {
    const run = (...values) => {
      this.off(name, listener);
      listener.apply(this, values);
    };
    this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), { listener, run }]);
    return this;
  }
  off(name, listener) {
    const all = this.#listeners.get(name) ?? [];
    const at = all.findLastIndex((known) => known.listener === listener);
    if (at >= 0) this.#listeners.set(name, all.toSpliced(at, 1));
    return this;
  }
  emit(name, ...values) {
    const all = this.#listeners.get(name) ?? [];
    if (all.length === 0 && name === "error") throw values[0];
    for (const { run } of all) run.apply(this, values);
    return all.length > 0;
  }
  removeAllListeners(name) {
    if (name === undefined) this.#listeners.clear();
    else this.#listeners.delete(name);
    return this;
  }
  listenerCount(name) {
    return (this.#listeners.get(name) ?? []).length;
  }
  listeners(name) {
    return (this.#listeners.get(name) ?? []).map(({ listener }) => listener);
  }
  setMaxListeners() {
    return this;
  }
}
// The other names of the same, which a frozen prototype has to have of its own.
Object.assign(EventEmitter.prototype, {
  addListener: EventEmitter.prototype.on,
  removeListener: EventEmitter.prototype.off,
});
EventEmitter.EventEmitter = EventEmitter;
export const once = (emitter, name) =>
  new Promise((resolve, reject) => {
    emitter.once(name, (...values) => resolve(values));
    if (name !== "error") emitter.once("error", reject);
  });
export default EventEmitter;
