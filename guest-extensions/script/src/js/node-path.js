// Paths, as on every system this host runs on.
const parts = (path) => path.split("/").filter((part) => part !== "" && part !== ".");

export const sep = "/";
export const delimiter = ":";
export const isAbsolute = (path) => path.startsWith("/");
export const normalize = (path) => {
  if (path === "") return ".";
  const absolute = isAbsolute(path);
  const kept = [];
  for (const part of parts(path)) {
    if (part !== "..") kept.push(part);
    else if (kept.length > 0 && kept.at(-1) !== "..") kept.pop();
    else if (!absolute) kept.push("..");
  }
  const text = (absolute ? "/" : "") + kept.join("/") + (path.endsWith("/") && kept.length > 0 ? "/" : "");
  return text === "" ? "." : text;
};
export const join = (...names) => normalize(names.filter((name) => name !== "").join("/"));
export const resolve = (...names) => {
  let path = "";
  for (const name of names.toReversed()) {
    if (name === "") continue;
    path = path === "" ? name : `${name}/${path}`;
    if (isAbsolute(name)) break;
  }
  if (!isAbsolute(path)) path = `${globalThis.process.cwd()}/${path}`;
  const plain = normalize(path);
  return plain.length > 1 && plain.endsWith("/") ? plain.slice(0, -1) : plain;
};
export const dirname = (path) => {
  const plain = path.length > 1 ? path.replace(/\/+$/, "") : path;
  const at = plain.lastIndexOf("/");
  return at < 0 ? "." : at === 0 ? "/" : plain.slice(0, at).replace(/\/+$/, "") || "/";
};
export const basename = (path, ending = "") => {
  const name = path.replace(/\/+$/, "").split("/").at(-1) ?? "";
  return ending !== "" && name !== ending && name.endsWith(ending) ? name.slice(0, -ending.length) : name;
};
export const extname = (path) => {
  const name = basename(path);
  const at = name.lastIndexOf(".");
  return at <= 0 ? "" : name.slice(at);
};
export const relative = (from, to) => {
  const [one, other] = [parts(resolve(from)), parts(resolve(to))];
  let same = 0;
  while (same < one.length && same < other.length && one[same] === other[same]) same += 1;
  return [...one.slice(same).map(() => ".."), ...other.slice(same)].join("/");
};
export const parse = (path) => {
  const base = basename(path);
  const ext = extname(path);
  return { root: isAbsolute(path) ? "/" : "", dir: path.includes("/") ? dirname(path) : "", base, ext, name: basename(base, ext) };
};
export const format = ({ dir, root = "", base, name = "", ext = "" }) => {
  const last = base ?? name + ext;
  return dir ? (dir === root ? dir + last : `${dir}/${last}`) : root + last;
};
export const toNamespacedPath = (path) => path;

const path = {
  sep, delimiter, isAbsolute, normalize, join, resolve, dirname, basename, extname, relative, parse, format, toNamespacedPath,
};
path.posix = path;
export const posix = path;
export default path;
