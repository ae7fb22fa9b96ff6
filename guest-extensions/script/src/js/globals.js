// Globals that scripts of Node expect beside those of the engine.
import { call } from "atoll:native";

class AbortError extends Error {
  constructor(message = "This operation was aborted") {
    super(message);
    this.name = "AbortError";
    this.code = "ABORT_ERR";
  }
}

class EventTarget {
  #listeners = new Map();
  addEventListener(type, listener, options) {
    const all = this.#listeners.get(type) ?? [];
    if (!all.some((known) => known.listener === listener)) all.push({ listener, once: options?.once === true });
    this.#listeners.set(type, all);
  }
  removeEventListener(type, listener) {
    this.#listeners.set(type, (this.#listeners.get(type) ?? []).filter((known) => known.listener !== listener));
  }
  dispatchEvent(event) {
    for (const { listener, once } of [...(this.#listeners.get(event.type) ?? [])]) {
      if (once) this.removeEventListener(event.type, listener);
      if (typeof listener === "function") listener.call(this, event);
      else listener.handleEvent(event);
    }
    return true;
  }
}

class Event {
  constructor(type) {
    this.type = type;
  }
}

let inside = false;

class AbortSignal extends EventTarget {
  constructor() {
    if (!inside) throw new TypeError("a signal comes from an AbortController");
    super();
    this.aborted = false;
    this.reason = undefined;
    this.onabort = null;
  }
  throwIfAborted() {
    if (this.aborted) throw this.reason;
  }
  static abort(reason) {
    const controller = new AbortController();
    controller.abort(reason);
    return controller.signal;
  }
  static timeout(milliseconds) {
    const controller = new AbortController();
    const late = new AbortError("The operation timed out");
    late.name = "TimeoutError";
    setTimeout(() => controller.abort(late), milliseconds);
    return controller.signal;
  }
  static any(signals) {
    const controller = new AbortController();
    for (const signal of signals) {
      if (signal.aborted) controller.abort(signal.reason);
      else signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
    }
    return controller.signal;
  }
}

class AbortController {
  constructor() {
    inside = true;
    this.signal = new AbortSignal();
    inside = false;
  }
  abort(reason = new AbortError()) {
    const { signal } = this;
    if (signal.aborted) return;
    signal.aborted = true;
    signal.reason = reason;
    const event = new Event("abort");
    signal.onabort?.(event);
    signal.dispatchEvent(event);
  }
}

class Headers {
  #all = new Map();
  constructor(init = {}) {
    const pairs = init instanceof Headers || Array.isArray(init) ? init : Object.entries(init ?? {});
    for (const [name, value] of pairs) this.append(name, value);
  }
  append(name, value) {
    const key = String(name).toLowerCase();
    this.#all.set(key, this.#all.has(key) ? `${this.#all.get(key)}, ${value}` : String(value));
  }
  set(name, value) {
    this.#all.set(String(name).toLowerCase(), String(value));
  }
  get(name) {
    return this.#all.get(String(name).toLowerCase()) ?? null;
  }
  has(name) {
    return this.#all.has(String(name).toLowerCase());
  }
  delete(name) {
    this.#all.delete(String(name).toLowerCase());
  }
  forEach(run) {
    for (const [name, value] of this.#all) run(value, name, this);
  }
  keys() {
    return this.#all.keys();
  }
  values() {
    return this.#all.values();
  }
  entries() {
    return this.#all.entries();
  }
  [Symbol.iterator]() {
    return this.#all.entries();
  }
}

class Response {
  #bytes;
  constructor(body = null, { status = 200, statusText = "", headers = {}, url = "" } = {}) {
    this.#bytes = typeof body === "string" ? new TextEncoder().encode(body) : (body ?? new Uint8Array());
    this.status = status;
    this.statusText = statusText;
    this.ok = status >= 200 && status < 300;
    this.url = url;
    this.headers = new Headers(headers);
    this.bodyUsed = false;
  }
  async bytes() {
    if (this.bodyUsed) throw new TypeError("the body was read already");
    this.bodyUsed = true;
    return this.#bytes;
  }
  async arrayBuffer() {
    const bytes = await this.bytes();
    return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  }
  async text() {
    return new TextDecoder().decode(await this.bytes());
  }
  async json() {
    return JSON.parse(await this.text());
  }
}

const REDIRECTS = 10;

async function fetch(where, { method = "GET", headers = {}, body, signal, redirect = "follow" } = {}) {
  const all = new Headers(headers);
  let bytes;
  if (typeof body === "string") bytes = new TextEncoder().encode(body);
  else if (body instanceof ArrayBuffer) bytes = new Uint8Array(body);
  else if (ArrayBuffer.isView(body)) bytes = new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  else if (body instanceof URLSearchParams) {
    bytes = new TextEncoder().encode(String(body));
    if (!all.has("content-type")) all.set("content-type", "application/x-www-form-urlencoded");
  } else if (body !== undefined && body !== null) {
    throw new TypeError("fetch sends text, bytes and URLSearchParams");
  }
  const request = {
    method: String(method).toUpperCase(),
    url: String(where?.href ?? where),
    headers: [...all],
    redirects: redirect === "follow" ? REDIRECTS : 0,
  };
  const answer = await call("http.fetch", request, { bytes, signal });
  const { status, url, headers: received } = answer.data;
  return new Response(answer.bytes, { status, url, headers: received });
}

Object.assign(globalThis, { AbortController, AbortSignal, EventTarget, Event, Headers, Response, fetch });
globalThis.global = globalThis;
globalThis.setImmediate = (run, ...values) => setTimeout(run, 0, ...values);
globalThis.clearImmediate = clearTimeout;

// What needs the globals above is there before the script runs.
const { default: process } = await import("atoll:process");
const { Buffer } = await import("atoll:buffer");
Object.assign(globalThis, { process, Buffer });
