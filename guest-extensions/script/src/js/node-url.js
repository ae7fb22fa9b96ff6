// File URLs, beside those of the engine.
const { URL, URLSearchParams } = globalThis;
export const fileURLToPath = (url) => {
  const { protocol, pathname } = typeof url === "string" ? new URL(url) : (url ?? {});
  if (protocol !== "file:") throw new TypeError("a file URL is needed; a script of this host does not know where it lies");
  return decodeURIComponent(pathname);
};
export const pathToFileURL = (path) => new URL(`file://${encodeURI(path)}`);
export { URL, URLSearchParams };
export default { URL, URLSearchParams, fileURLToPath, pathToFileURL };
