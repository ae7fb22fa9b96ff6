// Files, through the capability `files`.
import { call } from "atoll:native";
import {
  Stats, Dirent, bytes_of, check_read, decoded, flag_of_copy, named, node_error, removal_of, removal_of_directory, way_of,
} from "atoll:fs";

const run = async (name, operation, path, options) => {
  try {
    return await call(operation, { path: named(path), ...options?.value }, { bytes: options?.bytes, signal: options?.signal });
  } catch (error) {
    throw node_error(error, name, path);
  }
};

export const readFile = async (path, options) => {
  check_read(options);
  const { bytes } = await run("open", "files.read", path, { signal: options?.signal });
  return decoded(bytes, options);
};
export const writeFile = async (path, data, options) => {
  const [operation, value] = way_of(options, "w");
  await run("open", operation, path, { value, bytes: bytes_of(data, options), signal: options?.signal });
};
export const appendFile = async (path, data, options) => {
  const [operation, value] = way_of(options, "a");
  await run("open", operation, path, { value, bytes: bytes_of(data, options) });
};
export const stat = async (path) => new Stats(await run("stat", "files.stat", path));
export const lstat = async (path) => new Stats(await run("lstat", "files.lstat", path));
export const access = async (path) => void (await stat(path));
export const readdir = async (path, options) => {
  const entries = await run("scandir", "files.list", path);
  return options?.withFileTypes ? entries.map((entry) => new Dirent(entry, named(path))) : entries.map(({ name }) => name);
};
export const unlink = async (path) => void (await run("unlink", "files.remove-file", path));
export const rmdir = async (path, options) => void (await run("rmdir", removal_of_directory(options), path));
// Folders come with the files in them.
export const mkdir = async () => undefined;
export const mkdtemp = async (prefix) => prefix + globalThis.crypto.randomUUID().slice(0, 6);
export const rm = async (path, options) => {
  try {
    await run("rm", removal_of(options), path);
  } catch (error) {
    if (!(options?.force && error.code === "ENOENT")) throw error;
  }
};
export const copyFile = async (from, to, mode) => {
  const options = flag_of_copy(mode);
  await writeFile(to, await readFile(from), options);
};
export const rename = async (from, to) =>
  void (await run("rename", "files.rename", from, { value: { from: named(from), to: named(to) } }));
export const realpath = async (path) => named(path);

export default {
  readFile, writeFile, appendFile, stat, lstat, access, readdir, unlink, rmdir, mkdir, mkdtemp, rm, copyFile, rename, realpath,
};
