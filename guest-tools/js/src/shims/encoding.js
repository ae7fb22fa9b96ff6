// UTF-8, the one encoding that every script needs.
(native) => {
  const bytesOf = (data) => {
    if (data === undefined) return new Uint8Array();
    if (data instanceof ArrayBuffer) return new Uint8Array(data);
    if (ArrayBuffer.isView(data)) return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    throw new TypeError("only an ArrayBuffer or a view of one can be decoded");
  };

  globalThis.TextEncoder = class TextEncoder {
    get encoding() { return "utf-8"; }
    encode(text = "") { return native.encode(String(text).toWellFormed()); }
    encodeInto(text, target) {
      let read = 0;
      let written = 0;
      for (const character of String(text).toWellFormed()) {
        const bytes = native.encode(character);
        if (written + bytes.length > target.length) break;
        target.set(bytes, written);
        written += bytes.length;
        read += character.length;
      }
      return { read, written };
    }
  };

  globalThis.TextDecoder = class TextDecoder {
    #fatal;
    #ignoreBOM;
    #rest = new Uint8Array();
    #begun = false;
    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
      if (!["utf-8", "utf8", "unicode-1-1-utf-8"].includes(String(label).trim().toLowerCase())) {
        throw new RangeError(`only UTF-8 can be decoded, not ${label}`);
      }
      this.#fatal = Boolean(fatal);
      this.#ignoreBOM = Boolean(ignoreBOM);
    }
    get encoding() { return "utf-8"; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBOM; }
    decode(data, { stream = false } = {}) {
      let bytes = bytesOf(data);
      if (this.#rest.length > 0) {
        const joined = new Uint8Array(this.#rest.length + bytes.length);
        joined.set(this.#rest);
        joined.set(bytes, this.#rest.length);
        bytes = joined;
      }
      // A character that goes on in the next piece is kept for it.
      const cut = stream ? bytes.length - openBytes(bytes) : bytes.length;
      this.#rest = bytes.slice(cut);
      let text = native.decode(bytes.slice(0, cut), this.#fatal);
      if (typeof text !== "string") {
        this.#rest = new Uint8Array();
        this.#begun = false;
        throw new TypeError("the bytes are not UTF-8");
      }
      if (!this.#begun && !this.#ignoreBOM && text.startsWith("\uFEFF")) text = text.slice(1);
      this.#begun = stream && (this.#begun || cut > 0);
      return text;
    }
  };

  // How many bytes at the end are the beginning of a character.
  const openBytes = (bytes) => {
    for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
      const byte = bytes[bytes.length - back];
      if (byte >= 0xC0) return back < (byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2) ? back : 0;
      if (byte < 0x80) return 0;
    }
    return 0;
  };
}
