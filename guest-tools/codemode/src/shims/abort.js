// AbortController. Calls of tools take no signal; this is for what scripts make of promises themselves.
(native) => {
  const OWN = Symbol("own");
  const aborted = () => new DOMException("it was aborted", "AbortError");
  const { setTimeout } = globalThis;

  class AbortSignal {
    #listeners = [];
    #reason = undefined;
    #aborted = false;
    onabort = null;
    constructor(own) {
      if (own !== OWN) throw new TypeError("make an AbortController, and take its signal");
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    throwIfAborted() { if (this.#aborted) throw this.#reason; }
    addEventListener(type, run) { if (type === "abort" && typeof run === "function") this.#listeners.push(run); }
    removeEventListener(type, run) { this.#listeners = this.#listeners.filter((known) => known !== run); }
    static abort(reason = aborted()) { return AbortSignal.#done(new AbortSignal(OWN), reason); }
    static timeout(milliseconds) {
      const signal = new AbortSignal(OWN);
      setTimeout(() => AbortSignal.#done(signal, new DOMException("it took too long", "TimeoutError")), milliseconds);
      return signal;
    }
    static any(signals) {
      const all = [...signals];
      const signal = new AbortSignal(OWN);
      const first = all.find((one) => one.aborted);
      if (first) return AbortSignal.#done(signal, first.reason);
      for (const one of all) one.addEventListener("abort", () => AbortSignal.#done(signal, one.reason));
      return signal;
    }
    static #done(signal, reason) {
      if (signal.#aborted) return signal;
      signal.#aborted = true;
      signal.#reason = reason;
      const event = { type: "abort", target: signal };
      for (const run of [signal.onabort, ...signal.#listeners]) if (typeof run === "function") run.call(signal, event);
      return signal;
    }
    static [OWN] = (signal, reason) => AbortSignal.#done(signal, reason);
  }
  const done = AbortSignal[OWN];
  delete AbortSignal[OWN];
  globalThis.AbortSignal = AbortSignal;
  globalThis.AbortController = class AbortController {
    #signal = new AbortSignal(OWN);
    get signal() { return this.#signal; }
    abort(reason = aborted()) { done(this.#signal, reason); }
  };
}
