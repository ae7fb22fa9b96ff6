// URL and URLSearchParams, as the URL standard has them, but for the names of hosts: these are ASCII here, as there is
// no table of Unicode's for the others.
() => {
  const PORTS = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21", "file:": "" };
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();
  const percent = (text, unsafe) => text.toWellFormed().replace(unsafe, (character) => Array.from(
    encoder.encode(character),
    (byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`,
  ).join(""));
  const FRAGMENT = /[^\x21\x23-\x3B\x3D\x3F-\x5F\x61-\x7E]/gu;
  const QUERY = /[^\x21\x24-\x26\x28-\x3B\x3D\x3F-\x7E]/gu;
  const OPAQUE_QUERY = /[^\x21\x24-\x3B\x3D\x3F-\x7E]/gu;
  const PATH = /[^\x21\x24-\x3B\x3D\x40-\x5D\x5F\x61-\x7A\x7C\x7E]/gu;
  const OPAQUE = /[^\x20-\x7E]/gu;
  const USER = /[^\x21\x24-\x2E\x30-\x39\x41-\x5A\x5F\x61-\x7A\x7E%]/gu;
  const refuse = (text) => {
    throw new TypeError(`not a URL: ${text}`);
  };

  const ipv4 = (host, text) => {
    const parts = host.replace(/\.$/, "").split(".");
    if (!/^(\d+|0x[\da-f]*)$/.test(parts.at(-1))) return host;
    if (parts.length > 4) refuse(text);
    const numbers = parts.map((part) => {
      if (/^0x[\da-f]*$/.test(part)) return parseInt(part.slice(2) || "0", 16);
      if (/^0[0-7]+$/.test(part)) return parseInt(part, 8);
      return /^\d+$/.test(part) && !/^0\d/.test(part) ? Number(part) : refuse(text);
    });
    const last = numbers.pop();
    if (numbers.some((number) => number > 255) || last >= 256 ** (4 - numbers.length)) refuse(text);
    const value = numbers.reduce((sum, number, at) => sum + number * 256 ** (3 - at), last);
    return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
  };

  const ipv6 = (inside, text) => {
    let source = inside.toLowerCase();
    const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(source);
    if (dotted) {
      const [a, b, c, d] = dotted.slice(2).map(Number);
      if ([a, b, c, d].some((number) => number > 255)) refuse(text);
      source = `${dotted[1]}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
    }
    const halves = source.split("::");
    const pieces = (half) => (half === "" ? [] : half.split(":"));
    const head = pieces(halves[0]);
    const tail = halves.length === 2 ? pieces(halves[1]) : [];
    const missing = 8 - head.length - tail.length;
    if (halves.length > 2 || (halves.length === 2 ? missing < 1 : missing !== 0)) refuse(text);
    const all = [...head, ...Array(halves.length === 2 ? missing : 0).fill("0"), ...tail];
    if (!all.every((piece) => /^[\da-f]{1,4}$/.test(piece))) refuse(text);
    const shown = all.map((piece) => parseInt(piece, 16).toString(16));
    // The longest run of two zeros or more is left out; of equally long ones the first.
    let best = [0, 1];
    for (let from = 0; from < 8; from += 1) {
      let to = from;
      while (shown[to] === "0") to += 1;
      if (to - from > best[1]) best = [from, to - from];
    }
    if (best[1] < 2) return `[${shown.join(":")}]`;
    return `[${shown.slice(0, best[0]).join(":")}::${shown.slice(best[0] + best[1]).join(":")}]`;
  };

  const hostOf = (host, special, text) => {
    if (host.startsWith("[")) return host.endsWith("]") ? ipv6(host.slice(1, -1), text) : refuse(text);
    if (!special) return /[\0\t\n\r #/:<>?@[\\\]^|]/.test(host) ? refuse(text) : percent(host, OPAQUE);
    let plain;
    try {
      plain = decodeURIComponent(host).toLowerCase();
    } catch {
      refuse(text);
    }
    if (plain === "" || /[^\x21-\x7E]|[#%/:<>?@[\\\]^|]/.test(plain)) refuse(text);
    return ipv4(plain, text);
  };

  // The path without `.` and `..`, which may be percent-encoded.
  const pathOf = (path, special, base = []) => {
    const segments = [...base];
    const parts = path.split(special ? /[/\\]/ : "/");
    parts.forEach((part, at) => {
      const last = at === parts.length - 1;
      const dots = part.replace(/%2e/gi, ".");
      if (dots === "..") {
        segments.pop();
        if (last) segments.push("");
      } else if (dots === ".") {
        if (last) segments.push("");
      } else {
        segments.push(percent(part, PATH));
      }
    });
    return segments;
  };

  const parse = (input, base) => {
    const text = String(input).replace(/^[\0-\x20]+|[\0-\x20]+$/g, "").replace(/[\t\n\r]/g, "");
    const [, scheme, afterScheme] = /^([a-zA-Z][a-zA-Z\d+.-]*:)?([^]*)$/.exec(text);
    const [, body, query, fragment] = /^([^?#]*)(\?[^#]*)?(#[^]*)?$/.exec(afterScheme);
    const url = { protocol: "", username: "", password: "", hostname: null, port: "", path: [], opaque: null };
    url.hash = fragment === undefined ? null : percent(fragment.slice(1), FRAGMENT);
    const queryOf = (special) => (query === undefined ? null : percent(query.slice(1), special ? QUERY : OPAQUE_QUERY));

    const protocol = scheme?.toLowerCase();
    const special = Object.hasOwn(PORTS, protocol ?? base?.protocol ?? "");
    const slashes = special ? /^[/\\]{2}/ : /^\/\//;
    const relative = protocol === undefined || (special && protocol === base?.protocol && !/^[/\\]/.test(body));
    if (protocol === undefined && !base) refuse(text);
    url.protocol = protocol ?? base.protocol;
    url.search = queryOf(special);

    if (relative && !slashes.test(body)) {
      if (base.opaque !== null) {
        if (body !== "" || query !== undefined || fragment === undefined) refuse(text);
        return { ...base, hash: url.hash };
      }
      const { username, password, hostname, port } = base;
      Object.assign(url, { username, password, hostname, port });
      if (body === "") {
        url.path = [...base.path];
        if (query === undefined) url.search = base.search;
      } else if (/^\//.test(body) || (special && body.startsWith("\\"))) {
        url.path = pathOf(body.slice(1), special);
      } else {
        url.path = pathOf(body, special, base.path.slice(0, -1));
      }
      return url;
    }
    let rest = body;
    if (slashes.test(rest) || (special && url.protocol !== "file:")) {
      rest = rest.replace(special && url.protocol !== "file:" ? /^[/\\]*/ : slashes, "");
      const end = rest.search(special ? /[/\\]/ : /\//);
      const authority = end < 0 ? rest : rest.slice(0, end);
      rest = end < 0 ? "" : rest.slice(end);
      const at = authority.lastIndexOf("@");
      const address = authority.slice(at + 1);
      if (at >= 0) {
        const [, user, password = ""] = /^([^:]*)(?::([^]*))?$/.exec(authority.slice(0, at));
        url.username = percent(user, USER);
        url.password = percent(password, USER);
      }
      const [, host, port = ""] = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(address) ?? refuse(text);
      if (port !== "" && Number(port) > 65535) refuse(text);
      url.port = port === "" || String(Number(port)) === PORTS[url.protocol] ? "" : String(Number(port));
      url.hostname = host === "" && (!special || url.protocol === "file:") ? "" : hostOf(host, special, text);
      if (url.protocol === "file:" && url.hostname === "localhost") url.hostname = "";
      if (url.hostname === "" && (at >= 0 || port !== "")) refuse(text);
    } else if (url.protocol === "file:") {
      url.hostname = "";
    } else if (!rest.startsWith("/")) {
      url.opaque = percent(rest, OPAQUE);
      return url;
    }
    url.path = rest === "" ? (special ? [""] : []) : pathOf(rest.replace(special ? /^[/\\]/ : /^\//, ""), special);
    return url;
  };

  const formBytes = (text) => {
    const raw = encoder.encode(text.replaceAll("+", " ").toWellFormed());
    const bytes = [];
    for (let at = 0; at < raw.length; at += 1) {
      const digits = raw[at] === 0x25 ? String.fromCharCode(raw[at + 1] ?? 0, raw[at + 2] ?? 0) : "";
      if (/^[\da-fA-F]{2}$/.test(digits)) {
        bytes.push(parseInt(digits, 16));
        at += 2;
      } else {
        bytes.push(raw[at]);
      }
    }
    return decoder.decode(new Uint8Array(bytes));
  };
  const form = (text) => percent(text, /[^*\-.\w ]/gu).replaceAll(" ", "+");
  const pairsOf = (text) => text.split("&").filter((part) => part !== "").map((part) => {
    const at = part.indexOf("=");
    return at < 0 ? [formBytes(part), ""] : [formBytes(part.slice(0, at)), formBytes(part.slice(at + 1))];
  });

  // Tells a URL that its parameters have changed.
  const owners = new WeakMap();

  class URLSearchParams {
    #pairs = [];
    constructor(init = "") {
      if (typeof init === "object" && init !== null) {
        const pairs = typeof init[Symbol.iterator] === "function" ? [...init] : Object.entries(init);
        this.#pairs = pairs.map((pair) => {
          const [name, value, ...more] = pair;
          if (value === undefined || more.length > 0) throw new TypeError("a parameter is a pair of name and value");
          return [String(name).toWellFormed(), String(value).toWellFormed()];
        });
      } else {
        this.#pairs = pairsOf(String(init).replace(/^\?/, ""));
      }
    }
    #changed() { owners.get(this)?.(this.toString()); }
    get size() { return this.#pairs.length; }
    append(name, value) { this.#pairs.push([String(name), String(value)]); this.#changed(); }
    delete(name, value) {
      this.#pairs = this.#pairs.filter(([key, own]) => key !== String(name) || (value !== undefined && own !== String(value)));
      this.#changed();
    }
    get(name) { return this.#pairs.find(([key]) => key === String(name))?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value); }
    has(name, value) {
      return this.#pairs.some(([key, own]) => key === String(name) && (value === undefined || own === String(value)));
    }
    set(name, value) {
      const first = this.#pairs.findIndex(([key]) => key === String(name));
      if (first < 0) {
        this.#pairs.push([String(name), String(value)]);
      } else {
        this.#pairs = this.#pairs.filter(([key], at) => at <= first || key !== String(name));
        this.#pairs[first][1] = String(value);
      }
      this.#changed();
    }
    sort() { this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#changed(); }
    forEach(each, self) { for (const [name, value] of this) each.call(self, value, name, this); }
    *entries() { for (const [name, value] of this.#pairs) yield [name, value]; }
    *keys() { for (const [name] of this.#pairs) yield name; }
    *values() { for (const [, value] of this.#pairs) yield value; }
    [Symbol.iterator]() { return this.entries(); }
    toString() { return this.#pairs.map(([name, value]) => `${form(name)}=${form(value)}`).join("&"); }
  }

  class URL {
    #url;
    #params;
    constructor(url, base) {
      this.#url = parse(url, base === undefined ? undefined : parse(base));
      this.#renew();
    }
    static canParse(url, base) {
      return URL.parse(url, base) !== null;
    }
    static parse(url, base) {
      try {
        return new URL(url, base);
      } catch {
        return null;
      }
    }
    #renew() {
      this.#params = new URLSearchParams(this.#url.search ?? "");
      owners.set(this.#params, (text) => {
        this.#url.search = text === "" ? null : text;
      });
    }
    get href() {
      const { protocol, username, password, hostname, search, hash } = this.#url;
      const user = username || password ? `${username}${password && `:${password}`}@` : "";
      const authority = hostname === null ? (this.pathname.startsWith("//") ? "/." : "") : `//${user}${this.host}`;
      return `${protocol}${authority}${this.pathname}${search === null ? "" : `?${search}`}${hash === null ? "" : `#${hash}`}`;
    }
    set href(value) { this.#url = parse(value); this.#renew(); }
    get origin() {
      const { protocol } = this.#url;
      return Object.hasOwn(PORTS, protocol) && protocol !== "file:" ? `${protocol}//${this.host}` : "null";
    }
    get protocol() { return this.#url.protocol; }
    set protocol(value) {
      const [, scheme] = /^([a-zA-Z][a-zA-Z\d+.-]*):?/.exec(String(value)) ?? [];
      if (scheme === undefined) return;
      const protocol = `${scheme.toLowerCase()}:`;
      const isSpecial = (one) => Object.hasOwn(PORTS, one);
      const { protocol: own, username, password, port, hostname } = this.#url;
      if (isSpecial(protocol) !== isSpecial(own)) return;
      if (protocol === "file:" && (username || password || port)) return;
      if (own === "file:" && hostname === "") return;
      this.#url.protocol = protocol;
      if (port === PORTS[protocol]) this.#url.port = "";
    }
    // Without a host there is nobody to be, and no port.
    get #isBare() { return !this.#url.hostname || this.#url.protocol === "file:"; }
    get username() { return this.#url.username; }
    set username(value) { if (!this.#isBare) this.#url.username = percent(String(value), USER); }
    get password() { return this.#url.password; }
    set password(value) { if (!this.#isBare) this.#url.password = percent(String(value), USER); }
    get host() { return (this.#url.hostname ?? "") + (this.#url.port && `:${this.#url.port}`); }
    set host(value) {
      if (this.#url.opaque !== null) return;
      const [, host, port] = /^(\[[^\]]*\]|[^:/?#\\]*)(?::(\d*))?/.exec(String(value));
      if (this.#takeHost(host) && port !== undefined && port !== "" && !this.#isBare) this.port = port;
    }
    get hostname() { return this.#url.hostname ?? ""; }
    set hostname(value) {
      if (this.#url.opaque !== null) return;
      const [host] = /^(\[[^\]]*\]|[^:/?#\\]*)/.exec(String(value));
      if (String(value)[host.length] !== ":") this.#takeHost(host);
    }
    // What is no host leaves the one that is there.
    #takeHost(host) {
      const special = Object.hasOwn(PORTS, this.#url.protocol);
      const { username, password, port, protocol } = this.#url;
      if (host === "" && ((special && protocol !== "file:") || username || password || port)) return false;
      try {
        const found = host === "" ? "" : hostOf(host, special, host);
        this.#url.hostname = protocol === "file:" && found === "localhost" ? "" : found;
        return true;
      } catch {
        return false;
      }
    }
    get port() { return this.#url.port; }
    set port(value) {
      if (this.#isBare) return;
      const text = String(value);
      const [digits] = /^\d*/.exec(text);
      if (text !== "" && digits === "") return;
      if (digits !== "" && Number(digits) > 65535) return;
      this.#url.port = digits === "" || String(Number(digits)) === PORTS[this.#url.protocol] ? "" : String(Number(digits));
    }
    get pathname() {
      const { opaque, path } = this.#url;
      return opaque ?? path.map((segment) => `/${segment}`).join("");
    }
    set pathname(value) {
      if (this.#url.opaque !== null) return;
      const special = Object.hasOwn(PORTS, this.#url.protocol);
      this.#url.path = pathOf(String(value).replace(special ? /^[/\\]/ : /^\//, "").replace(/[?#]/g, encodeURIComponent), special);
    }
    get search() { return this.#url.search ? `?${this.#url.search}` : ""; }
    set search(value) {
      const text = String(value).replace(/^\?/, "");
      this.#url.search = text === "" ? null : percent(text, /[^\x21\x24-\x26\x28-\x3B\x3D\x3F-\x7E]/gu);
      this.#renew();
    }
    get searchParams() { return this.#params; }
    get hash() { return this.#url.hash ? `#${this.#url.hash}` : ""; }
    set hash(value) {
      const text = String(value).replace(/^#/, "");
      this.#url.hash = text === "" ? null : percent(text, FRAGMENT);
    }
    toString() { return this.href; }
    toJSON() { return this.href; }
  }
  globalThis.URL = URL;
  globalThis.URLSearchParams = URLSearchParams;
}
