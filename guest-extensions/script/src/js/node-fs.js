// Files, through the capability `files`: what answers at once, and the same with callbacks.
import { now, not_here } from "atoll:native";

const CODES = { "not-found": "ENOENT", denied: "EACCES", "invalid-arguments": "EINVAL", stale: "EEXIST", limit: "EFBIG" };

/** An error as Node has it, with the words of the host. */
export const node_error = (error, name, path) => {
  if (CODES[error?.code]) {
    error.errno = error.code;
    error.code = CODES[error.code];
    error.syscall = name;
    error.path = String(path);
  }
  return error;
};

/** The path that a path or a URL stands for. */
export const named = (path) => {
  if (typeof path === "string") return path;
  if (path?.protocol === "file:") return decodeURIComponent(path.pathname);
  throw new TypeError("a file is named by a text or a file URL");
};

const encoding_of = (options) => (typeof options === "string" ? options : options?.encoding);

export const bytes_of = (data, options) => {
  if (typeof data === "string") return Buffer.from(data, encoding_of(options) ?? "utf8");
  return data instanceof Uint8Array ? data : new Uint8Array(data.buffer ?? data, data.byteOffset ?? 0, data.byteLength);
};

export const decoded = (bytes, options) => {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const encoding = encoding_of(options);
  return encoding ? buffer.toString(encoding) : buffer;
};

export class Stats {
  #kind;
  constructor({ kind, size, modified }) {
    this.#kind = kind;
    this.size = size;
    this.mtimeMs = modified ?? 0;
    this.mtime = new Date(this.mtimeMs);
    this.mode = kind === "directory" ? 0o40755 : 0o100644;
  }
  isFile() {
    return this.#kind === "file";
  }
  isDirectory() {
    return this.#kind === "directory";
  }
  isSymbolicLink() {
    return this.#kind === "symlink";
  }
}

export class Dirent extends Stats {
  constructor(entry, folder) {
    super(entry);
    this.name = entry.name;
    this.parentPath = this.path = folder;
  }
}

const run = (name, operation, path, value = {}, bytes = undefined) => {
  try {
    return now(operation, { path: named(path), ...value }, bytes);
  } catch (error) {
    throw node_error(error, name, path);
  }
};

export const readFileSync = (path, options) => decoded(run("open", "files.read", path).bytes, options);
export const writeFileSync = (path, data, options) =>
  void run("open", "files.write", path, { exclusive: options?.flag?.includes("x") === true }, bytes_of(data, options));
export const appendFileSync = (path, data, options) => {
  const before = existsSync(path) ? readFileSync(path) : new Uint8Array();
  writeFileSync(path, Buffer.concat([before, bytes_of(data, options)]));
};
export const statSync = (path, options) => {
  try {
    return new Stats(run("stat", "files.stat", path));
  } catch (error) {
    if (options?.throwIfNoEntry === false && error.code === "ENOENT") return undefined;
    throw error;
  }
};
export const lstatSync = statSync;
export const existsSync = (path) => {
  try {
    return statSync(path) !== undefined;
  } catch (error) {
    // Nobody is told that something is not there which they may not look at.
    if (error.code === "EACCES") console.warn(error.message);
    return false;
  }
};
export const accessSync = (path) => void statSync(path);
export const readdirSync = (path, options) => {
  const entries = run("scandir", "files.list", path);
  return options?.withFileTypes ? entries.map((entry) => new Dirent(entry, named(path))) : entries.map(({ name }) => name);
};
export const unlinkSync = (path) => void run("unlink", "files.remove", path);
export const rmdirSync = unlinkSync;
// Folders come with the files in them.
export const mkdirSync = () => undefined;
export const mkdtempSync = (prefix) => prefix + globalThis.crypto.randomUUID().slice(0, 6);
export const rmSync = (path, { recursive = false, force = false } = {}) => {
  try {
    if (recursive && statSync(path).isDirectory()) {
      for (const name of readdirSync(path)) rmSync(`${named(path)}/${name}`, { recursive });
    }
    unlinkSync(path);
  } catch (error) {
    if (!(force && error.code === "ENOENT")) throw error;
  }
};
export const copyFileSync = (from, to) => writeFileSync(to, readFileSync(from));
export const renameSync = (from, to) => {
  copyFileSync(from, to);
  unlinkSync(from);
};
export const realpathSync = (path) => named(path);

const called_back = (work) => (...values) => {
  const done = values.pop();
  let result;
  try {
    result = work(...values);
  } catch (error) {
    queueMicrotask(() => done(error));
    return;
  }
  queueMicrotask(() => done(null, result));
};
export const readFile = called_back(readFileSync);
export const writeFile = called_back(writeFileSync);
export const appendFile = called_back(appendFileSync);
export const stat = called_back(statSync);
export const access = called_back(accessSync);
export const readdir = called_back(readdirSync);
export const unlink = called_back(unlinkSync);
export const mkdir = called_back(mkdirSync);
export const exists = (path, done) => queueMicrotask(() => done(existsSync(path)));
export const watch = not_here("fs.watch");
export const watchFile = not_here("fs.watchFile");
export const unwatchFile = not_here("fs.unwatchFile");
export const createReadStream = not_here("fs.createReadStream");
export const createWriteStream = not_here("fs.createWriteStream");
export const openSync = not_here("fs.openSync");
export const constants = { F_OK: 0, R_OK: 4, W_OK: 2, X_OK: 1 };

const fs = {
  Stats, Dirent, readFileSync, writeFileSync, appendFileSync, statSync, lstatSync, existsSync, accessSync, readdirSync,
  unlinkSync, rmdirSync, mkdirSync, mkdtempSync, rmSync, copyFileSync, renameSync, realpathSync, readFile, writeFile, appendFile, stat,
  access, readdir, unlink, mkdir, exists, watch, watchFile, unwatchFile, createReadStream, createWriteStream, openSync,
  constants,
  get promises() {
    return promises;
  },
};
let promises;
export { promises };
import("atoll:fs-promises").then((module) => {
  promises = module.default;
});
export default fs;
