// Random numbers of the host.
(native) => {
  const { randomNumber } = native;
  Math.random = { random() { return randomNumber(); } }.random;
  const MOST = 65536;
  globalThis.crypto = {
    getRandomValues(array) {
      if (!ArrayBuffer.isView(array) || array instanceof DataView || /^Float/.test(array.constructor.name)) {
        throw new TypeError("getRandomValues fills an array of integers");
      }
      if (array.byteLength > MOST) {
        throw new DOMException(`getRandomValues fills at most ${MOST} bytes at once`, "QuotaExceededError");
      }
      new Uint8Array(array.buffer, array.byteOffset, array.byteLength).set(native.random(array.byteLength));
      return array;
    },
    randomUUID() {
      const bytes = native.random(16);
      bytes[6] = (bytes[6] & 0x0F) | 0x40;
      bytes[8] = (bytes[8] & 0x3F) | 0x80;
      const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
      return [[0, 8], [8, 12], [12, 16], [16, 20], [20, 32]].map(([from, to]) => digits.slice(from, to)).join("-");
    },
  };
}
