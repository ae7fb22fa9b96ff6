// UTF-8, and reading what older programs write: UTF-16, and the one byte for each character that the web calls windows-1252.
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

  const NAMES = {
    "utf-8": ["utf-8", "utf8", "unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "x-unicode20utf8"],
    "utf-16le": ["utf-16le", "utf-16", "unicode", "ucs-2", "iso-10646-ucs-2", "csunicode", "unicodefeff"],
    "utf-16be": ["utf-16be", "unicodefffe"],
    "windows-1252": ["windows-1252", "cp1252", "x-cp1252", "latin1", "latin-1", "l1", "iso-8859-1", "iso8859-1", "iso88591", "iso_8859-1", "cp819", "ibm819", "ascii", "us-ascii", "ansi_x3.4-1968"],
  };
  const HIGH = "€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ";
  const PIECE = 8192;
  const written = (units) => {
    let text = "";
    for (let at = 0; at < units.length; at += PIECE) text += String.fromCharCode(...units.slice(at, at + PIECE));
    return text;
  };
  const wide = (bytes, isLittle) => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const text = written(Array.from({ length: bytes.length >> 1 }, (_, at) => view.getUint16(2 * at, isLittle)));
    return bytes.length % 2 === 0 ? text : `${text}\ufffd`;
  };
  const narrow = (bytes) => written(Array.from(bytes, (byte) => (byte >= 0x80 && byte < 0xA0 ? HIGH.charCodeAt(byte - 0x80) : byte)));
  // How many bytes at the end of a piece of UTF-16 are the beginning of a character.
  const openUnits = (bytes, isLittle) => {
    const odd = bytes.length % 2;
    const last = bytes.length - odd - 2;
    if (last < 0) return odd;
    const first = bytes[isLittle ? last + 1 : last];
    return first >= 0xD8 && first < 0xDC ? odd + 2 : odd;
  };

  globalThis.TextDecoder = class TextDecoder {
    #name;
    #fatal;
    #ignoreBOM;
    #rest = new Uint8Array();
    #begun = false;
    constructor(label = "utf-8", { fatal = false, ignoreBOM = false } = {}) {
      const wanted = String(label).trim().toLowerCase();
      this.#name = Object.keys(NAMES).find((name) => NAMES[name].includes(wanted));
      if (!this.#name) throw new RangeError(`${label} can not be decoded, only ${Object.keys(NAMES).join(", ")}`);
      this.#fatal = Boolean(fatal);
      this.#ignoreBOM = Boolean(ignoreBOM);
    }
    get encoding() { return this.#name; }
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
      const name = this.#name;
      const isLittle = name === "utf-16le";
      const open = name === "utf-8" ? openBytes : name === "windows-1252" ? () => 0 : openUnits;
      const cut = stream ? bytes.length - open(bytes, isLittle) : bytes.length;
      this.#rest = bytes.slice(cut);
      const now = bytes.slice(0, cut);
      let text;
      if (name === "utf-8") {
        text = native.decode(now, this.#fatal);
      } else {
        const all = name === "windows-1252" ? narrow(now) : wide(now, isLittle);
        const isWhole = all.isWellFormed() && (name === "windows-1252" || now.length % 2 === 0);
        text = isWhole ? all : this.#fatal ? undefined : all.toWellFormed();
      }
      if (typeof text !== "string") {
        this.#rest = new Uint8Array();
        this.#begun = false;
        throw new TypeError(`the bytes are not ${name.toUpperCase()}`);
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
