// The parts of Node's `crypto` that need no cryptography of the script's own.
import { not_here } from "atoll:native";

export const randomUUID = () => globalThis.crypto.randomUUID();
export const randomBytes = (length) => Buffer.from(globalThis.crypto.getRandomValues(new Uint8Array(length)).buffer);
export const randomInt = (low, high) => {
  const [from, to] = high === undefined ? [0, low] : [low, high];
  const [value] = globalThis.crypto.getRandomValues(new Uint32Array(1));
  return from + Math.floor((value / 2 ** 32) * (to - from));
};
export const createHash = not_here("crypto.createHash");
export const createHmac = not_here("crypto.createHmac");
export const webcrypto = globalThis.crypto;
export default { randomUUID, randomBytes, randomInt, createHash, createHmac, webcrypto };
