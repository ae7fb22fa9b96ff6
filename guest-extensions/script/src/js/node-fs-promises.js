// Files, through the capability `files`.
import { call } from "atoll:native";
import { Stats, Dirent, bytes_of, decoded, named, node_error } from "atoll:fs";

const run = async (name, operation, path, options) => {
  try {
    return await call(operation, { path: named(path), ...options?.value }, { bytes: options?.bytes, signal: options?.signal });
  } catch (error) {
    throw node_error(error, name, path);
  }
};

export const readFile = async (path, options) => {
  const { bytes } = await run("open", "files.read", path, { signal: options?.signal });
  return decoded(bytes, options);
};
export const writeFile = async (path, data, options) => {
  const value = { exclusive: typeof options === "object" && options?.flag?.includes("x") === true };
  await run("open", "files.write", path, { value, bytes: bytes_of(data, options) });
};
export const appendFile = async (path, data, options) => {
  let before = new Uint8Array();
  try {
    before = (await call("files.read", { path: named(path) })).bytes;
  } catch (error) {
    if (error.code !== "not-found") throw node_error(error, "open", path);
  }
  await writeFile(path, Buffer.concat([before, bytes_of(data, options)]));
};
export const stat = async (path) => new Stats(await run("stat", "files.stat", path));
export const lstat = stat;
export const access = async (path) => void (await stat(path));
export const readdir = async (path, options) => {
  const entries = await run("scandir", "files.list", path);
  return options?.withFileTypes ? entries.map((entry) => new Dirent(entry, named(path))) : entries.map(({ name }) => name);
};
export const unlink = async (path) => void (await run("unlink", "files.remove", path));
export const rmdir = unlink;
// Folders come with the files in them.
export const mkdir = async () => undefined;
export const mkdtemp = async (prefix) => prefix + globalThis.crypto.randomUUID().slice(0, 6);
export const rm = async (path, { recursive = false, force = false } = {}) => {
  try {
    if (recursive && (await stat(path)).isDirectory()) {
      for (const name of await readdir(path)) await rm(`${named(path)}/${name}`, { recursive });
    }
    await unlink(path);
  } catch (error) {
    if (!(force && error.code === "ENOENT")) throw error;
  }
};
export const copyFile = async (from, to) => writeFile(to, await readFile(from));
export const rename = async (from, to) => {
  await copyFile(from, to);
  await unlink(from);
};
export const realpath = async (path) => named(path);

export default {
  readFile, writeFile, appendFile, stat, lstat, access, readdir, unlink, rmdir, mkdir, mkdtemp, rm, copyFile, rename, realpath,
};
