// Node's Buffer, as far as texts and bytes go.
const HEX = /^(?:[0-9a-f]{2})*/i;

const from_text = (text, encoding = "utf8") => {
  switch (encoding) {
    case "hex":
      return Uint8Array.from(HEX.exec(text)[0].match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
    case "base64":
    case "base64url": {
      const plain = text.replaceAll("-", "+").replaceAll("_", "/").replace(/[^A-Za-z0-9+/]/g, "");
      return Uint8Array.from(atob(plain + "=".repeat((4 - (plain.length % 4)) % 4)), (letter) => letter.charCodeAt(0));
    }
    case "latin1":
    case "binary":
    case "ascii":
      return Uint8Array.from(text, (letter) => letter.charCodeAt(0) & 0xff);
    default:
      return new TextEncoder().encode(text);
  }
};

const letters = (bytes) => {
  let text = "";
  for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096));
  return text;
};

export class Buffer extends Uint8Array {
  static from(value, encoding, length) {
    if (typeof value === "string") {
      const bytes = from_text(value, encoding);
      return new Buffer(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    }
    if (value instanceof ArrayBuffer) return new Buffer(value, encoding ?? 0, length ?? value.byteLength - (encoding ?? 0));
    const bytes = new Buffer(value.length);
    bytes.set(value);
    return bytes;
  }
  static alloc(length, fill = 0) {
    return new Buffer(length).fill(fill);
  }
  static allocUnsafe(length) {
    return new Buffer(length);
  }
  static isBuffer(value) {
    return value instanceof Buffer;
  }
  static byteLength(value, encoding) {
    return typeof value === "string" ? from_text(value, encoding).length : value.byteLength;
  }
  static concat(list, length = list.reduce((sum, one) => sum + one.length, 0)) {
    const all = new Buffer(length);
    let at = 0;
    for (const one of list) {
      all.set(one.subarray(0, Math.max(0, length - at)), at);
      at += one.length;
      if (at >= length) break;
    }
    return all;
  }
  toString(encoding = "utf8", start = 0, end = this.length) {
    const bytes = this.subarray(start, end);
    switch (encoding) {
      case "hex":
        return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
      case "base64":
        return btoa(letters(bytes));
      case "base64url":
        return btoa(letters(bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
      case "latin1":
      case "binary":
      case "ascii":
        return letters(bytes);
      default:
        return new TextDecoder().decode(bytes);
    }
  }
  toJSON() {
    return { type: "Buffer", data: [...this] };
  }
  equals(other) {
    return this.length === other.length && this.every((byte, at) => byte === other[at]);
  }
}

export default { Buffer };
