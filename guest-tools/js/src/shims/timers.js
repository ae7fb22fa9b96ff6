// Timers over sleeps of the host.
(native) => {
  // What a callback throws nobody can catch.
  const guarded = (what, run, values) => () => {
    try {
      run(...values);
    } catch (error) {
      native.uncaught(what, error);
    }
  };
  const start = (repeat) => (run, delay = 0, ...values) => {
    if (typeof run !== "function") throw new TypeError("a timer needs a function to call");
    const id = native.startTimer(guarded("a timer", run, values), Number(delay) || 0, repeat);
    if (id === 0) throw new RangeError(`there are ${native.mostTimers} timers, and no more at once`);
    return id;
  };
  const stop = (id) => {
    if (Number.isInteger(id) && id > 0) native.stopTimer(id);
  };
  globalThis.setTimeout = start(false);
  globalThis.setInterval = start(true);
  globalThis.clearTimeout = stop;
  globalThis.clearInterval = stop;
  const queue = globalThis.queueMicrotask;
  globalThis.queueMicrotask = { queueMicrotask(run) {
    if (typeof run !== "function") throw new TypeError("a microtask needs a function to call");
    queue(guarded("a microtask", run, []));
  } }.queueMicrotask;
}
