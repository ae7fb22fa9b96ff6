// Calls of the host. An error of one names the line of the script that made the call.
const native = globalThis.__native;
delete globalThis.__native;

/** An error of the host, with the stable code of its kind. */
export class HostError extends Error {
  constructor({ code, message, ...rest }, at) {
    super(message);
    this.name = "HostError";
    this.code = code;
    Object.assign(this, rest);
    if (at) this.stack = at;
  }
}

const read = ([json, bytes], at) => {
  const said = JSON.parse(json);
  if (said.error) throw new HostError(said.error, at);
  return bytes === undefined ? said.done : { data: said.done, bytes };
};

let numbers = 0;

/** Does something that may have to be waited for. `signal` ends it. */
export async function call(name, value = {}, { bytes, signal } = {}) {
  const at = new Error().stack;
  signal?.throwIfAborted();
  const number = signal ? ++numbers : 0;
  const stop = () => native.stop(number);
  signal?.addEventListener("abort", stop);
  try {
    return read(await native.call(name, JSON.stringify(value), number, bytes), at);
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/** Does something before the script goes on. */
export const now = (name, value = {}, bytes = undefined) =>
  read(native.now(name, JSON.stringify(value), bytes), new Error().stack);

export const serve = (ask, prepare) => native.serve(ask, prepare);

const told = new Set();

/** Says once that something is accepted and has no effect here. */
export const without_effect = (what) => {
  if (told.has(what)) return;
  told.add(what);
  console.warn(`${what} has no effect in this host: it has no terminal interface of its own`);
};

/** What is called in its place fails, and says why. */
export const not_here = (what) => () => {
  throw new HostError({ code: "unsupported-contract", message: `${what} is not part of this host` });
};
