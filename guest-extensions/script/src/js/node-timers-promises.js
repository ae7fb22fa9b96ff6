// Timers that are waited for.
const later = (milliseconds = 0, value = undefined, { signal } = {}) =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timer = globalThis.setTimeout(() => resolve(value), milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
export { later as setTimeout };
export const setImmediate = (value) => later(0, value);
export default { setTimeout: later, setImmediate };
