// Timers over sleeps of the host.
(native) => {
  const start = (repeat) => (run, delay = 0, ...values) => {
    if (typeof run !== "function") throw new TypeError("a timer needs a function to call");
    return native.startTimer(() => void run(...values), Number(delay) || 0, repeat);
  };
  const stop = (id) => {
    if (Number.isInteger(id) && id > 0) native.stopTimer(id);
  };
  globalThis.setTimeout = start(false);
  globalThis.setInterval = start(true);
  globalThis.clearTimeout = stop;
  globalThis.clearInterval = stop;
}
