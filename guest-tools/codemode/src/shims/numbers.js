// `Intl` for numbers and lists, and what is written with it: English, and no data beyond that.
(native, shared) => {
  const pick = (options, key, values, otherwise) => {
    const value = options?.[key];
    if (value === undefined) return otherwise;
    if (!values.includes(String(value))) throw new RangeError(`${key} can be ${values.join(", ")}, not ${value}`);
    return String(value);
  };
  const digits = (options, key, least, most) => {
    const value = options?.[key];
    if (value === undefined) return undefined;
    const number = Number(value);
    if (!(number >= least && number <= most)) throw new RangeError(`${key} is from ${least} to ${most}, not ${value}`);
    return Math.floor(number);
  };
  const locale = (locales) => {
    for (const one of [locales ?? []].flat()) {
      if (typeof one !== "string" && typeof one !== "object") throw new TypeError("a locale is a text such as en-US");
      if (!/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(String(one))) throw new RangeError(`${one} is no locale`);
    }
    return "en-US";
  };
  Object.assign(shared, { pick, digits, locale });

  const SYMBOLS = { USD: "$", EUR: "€", GBP: "£", JPY: "¥", CNY: "CN¥", INR: "₹", KRW: "₩", BRL: "R$", MXN: "MX$", CAD: "CA$", AUD: "A$", NZD: "NZ$", ILS: "₪", VND: "₫", TWD: "NT$", HKD: "HK$", PHP: "₱" };
  const WITHOUT_CENTS = ["JPY", "KRW", "VND", "CLP", "ISK"];
  const UNITS = { byte: "byte", kilobyte: "kB", megabyte: "MB", gigabyte: "GB", terabyte: "TB", bit: "bit", percent: "%", second: "sec", minute: "min", hour: "hr", day: "day", week: "wk", month: "mth", year: "yr", millisecond: "ms", meter: "m", kilometer: "km", centimeter: "cm", millimeter: "mm", mile: "mi", foot: "ft", inch: "in", gram: "g", kilogram: "kg", pound: "lb", ounce: "oz", liter: "L", milliliter: "mL", celsius: "°C", fahrenheit: "°F", degree: "deg" };
  const WITHOUT_SPACE = ["percent", "celsius", "fahrenheit"];
  const PLURAL = ["day", "week", "month", "year"];
  const COMPACT = [["K", " thousand"], ["M", " million"], ["B", " billion"], ["T", " trillion"]];

  // A finite number as it is written: its digits, and how many of them are before the point.
  const decimal = (value) => {
    const isNegative = value < 0 || Object.is(value, -0);
    const [mantissa, exponent = "0"] = String(value).replace("-", "").split("e");
    const [whole, part = ""] = mantissa.split(".");
    const all = whole + part;
    const zeros = /^0*/.exec(all)[0].length;
    const digits = all.slice(zeros);
    return { isNegative, digits, point: digits === "" ? 1 : whole.length - zeros + Number(exponent) };
  };
  // So many digits of it, rounded half away from zero.
  const kept = ({ isNegative, digits, point }, count) => {
    if (count >= digits.length) return { isNegative, digits, point };
    if (count < 0) return { isNegative, digits: "", point: 1 };
    if (digits[count] < "5") return { isNegative, digits: digits.slice(0, count), point };
    const up = String(BigInt(digits.slice(0, count) || "0") + 1n).padStart(count, "0");
    return { isNegative, digits: up, point: point + (up.length > count ? 1 : 0) };
  };
  const written = ({ digits, point }, least) => {
    const padded = point > 0 ? digits.padEnd(point, "0") : "0".repeat(1 - point) + digits;
    const at = Math.max(point, 1);
    const part = padded.slice(at).replace(/0+$/, "");
    return [padded.slice(0, at), part.padEnd(least, "0")];
  };
  const grouped = (whole, grouping) =>
    grouping === "false" || (grouping === "min2" && whole.length < 5) ? whole : whole.replace(/\B(?=(\d{3})+$)/g, ",");

  class NumberFormat {
    #o;
    constructor(locales, options) {
      const style = pick(options, "style", ["decimal", "percent", "currency", "unit"], "decimal");
      const notation = pick(options, "notation", ["standard", "compact", "scientific", "engineering"], "standard");
      const currency = options?.currency === undefined ? undefined : String(options.currency).toUpperCase();
      if (style === "currency" && currency === undefined) throw new TypeError("a currency has to be named");
      if (currency !== undefined && !/^[A-Z]{3}$/.test(currency)) throw new RangeError(`${options.currency} is no currency`);
      const unit = options?.unit === undefined ? undefined : String(options.unit);
      if (style === "unit" && unit === undefined) throw new TypeError("a unit has to be named");
      if (style === "unit" && !unit.split("-per-").every((one) => one in UNITS)) throw new RangeError(`the unit ${unit} is not known here`);
      const cents = style === "currency" ? (WITHOUT_CENTS.includes(currency) ? 0 : 2) : 0;
      const usual = style === "currency" ? cents : style === "percent" || notation === "compact" ? 0 : 3;
      const least = digits(options, "minimumFractionDigits", 0, 100);
      const most = digits(options, "maximumFractionDigits", 0, 100);
      if (least !== undefined && most !== undefined && least > most) throw new RangeError("minimumFractionDigits is more than maximumFractionDigits");
      const leastSignificant = digits(options, "minimumSignificantDigits", 1, 21);
      const mostSignificant = digits(options, "maximumSignificantDigits", 1, 21);
      const wanted = options?.useGrouping;
      this.#o = {
        locale: locale(locales), numberingSystem: "latn", style, notation, currency, unit,
        currencyDisplay: pick(options, "currencyDisplay", ["symbol", "narrowSymbol", "code", "name"], "symbol"),
        unitDisplay: pick(options, "unitDisplay", ["short", "narrow", "long"], "short"),
        compactDisplay: pick(options, "compactDisplay", ["short", "long"], "short"),
        signDisplay: pick(options, "signDisplay", ["auto", "always", "never", "exceptZero", "negative"], "auto"),
        useGrouping: wanted === false || wanted === "false" ? "false" : wanted === "min2" || (wanted === undefined && notation === "compact") ? "min2" : "auto",
        minimumIntegerDigits: digits(options, "minimumIntegerDigits", 1, 21) ?? 1,
        minimumFractionDigits: least ?? Math.min(cents, most ?? cents),
        maximumFractionDigits: most ?? Math.max(usual, least ?? 0),
        leastSignificant: leastSignificant ?? (mostSignificant === undefined ? undefined : 1),
        mostSignificant: mostSignificant ?? (leastSignificant === undefined ? undefined : 21),
        isPlainCompact: notation === "compact" && least === undefined && most === undefined && leastSignificant === undefined && mostSignificant === undefined,
      };
    }
    format = (value) => this.#parts(typeof value === "bigint" ? value : Number(value));
    formatToParts(value) { return [{ type: "literal", value: this.format(value) }]; }
    formatRange(from, to) { return `${this.format(from)}–${this.format(to)}`; }
    // Rounded as the options say.
    #rounded(number) {
      const o = this.#o;
      if (o.mostSignificant !== undefined) return kept(number, o.mostSignificant);
      if (o.isPlainCompact) return kept(number, Math.max(number.point, 2));
      return kept(number, number.point + o.maximumFractionDigits);
    }
    // How many digits there are behind the point at least.
    #least(number) {
      const o = this.#o;
      if (o.leastSignificant !== undefined) return Math.max(o.leastSignificant - number.point, 0);
      return o.isPlainCompact ? 0 : o.minimumFractionDigits;
    }
    // Rounded after the point has moved by a step that depends on how large it is, which rounding may change.
    #stepped(number, step) {
      for (let { point } = number; ; point += 1) {
        const by = step(point);
        const found = this.#rounded({ ...number, point: number.point - by });
        if (found.digits === "" || step(found.point + by) === by) return [found, by];
      }
    }
    #parts(value) {
      const o = this.#o;
      const isFinite = typeof value === "bigint" || Number.isFinite(value);
      let { isNegative } = isFinite ? decimal(value) : { isNegative: value < 0 };
      let text = Number.isNaN(value) ? "NaN" : "∞";
      let suffix = "";
      let isZero = Number.isNaN(value);
      if (isFinite) {
        let number = decimal(value);
        if (o.style === "percent" && number.digits !== "") number.point += 2;
        let exponent = "";
        if (o.notation === "compact") {
          const [found, by] = this.#stepped(number, (point) => Math.min(Math.max(Math.floor((point - 1) / 3), 0), 4) * 3);
          number = found;
          suffix = by === 0 ? "" : COMPACT[by / 3 - 1][o.compactDisplay === "long" ? 1 : 0];
        } else if (o.notation !== "standard") {
          const every = o.notation === "engineering" ? 3 : 1;
          const [found, by] = number.digits === "" ? [number, 0] : this.#stepped(number, (point) => Math.floor((point - 1) / every) * every);
          number = found;
          exponent = `E${by}`;
        } else {
          number = this.#rounded(number);
        }
        isZero = /^0*$/.test(number.digits);
        const [whole, part] = written(number, this.#least(number));
        text = grouped(whole.padStart(o.minimumIntegerDigits, "0"), o.useGrouping) + (part === "" ? "" : `.${part}`) + exponent;
      }
      const minus = isNegative ? "-" : "";
      const sign = { auto: minus, always: minus || "+", never: "", exceptZero: isZero ? "" : minus || "+", negative: isZero ? "" : minus };
      return sign[o.signDisplay] + this.#unit(text, suffix);
    }
    #unit(number, suffix) {
      const o = this.#o;
      const text = number + suffix;
      const isOne = text === "1";
      if (o.style === "percent") return `${text}%`;
      if (o.style === "currency") {
        const space = /^\d/.test(text) ? "\u00a0" : "";
        if (o.currencyDisplay === "code" || !(o.currency in SYMBOLS)) return o.currency + space + text;
        if (o.currencyDisplay === "name") return `${text} ${o.currency}`;
        const symbol = SYMBOLS[o.currency];
        return (o.currencyDisplay === "narrowSymbol" ? symbol.replace(/^[A-Z]+(?=\W)/, "") : symbol) + text;
      }
      if (o.style !== "unit") return text;
      const [unit, per] = o.unit.split("-per-");
      if (o.unitDisplay === "long") {
        const many = { foot: "feet", inch: "inches", celsius: "degrees Celsius", fahrenheit: "degrees Fahrenheit", percent: "percent" };
        const name = isOne ? unit : many[unit] ?? `${unit}s`;
        return `${text} ${name}${per ? ` per ${per}` : ""}`;
      }
      const name = UNITS[unit] + (!isOne && PLURAL.includes(unit) ? "s" : "");
      const below = per ? `/${{ second: "s", hour: "h", minute: "min" }[per] ?? UNITS[per]}` : "";
      return `${text}${WITHOUT_SPACE.includes(unit) || o.unitDisplay === "narrow" ? "" : " "}${name}${below}`;
    }
    resolvedOptions() {
      const { leastSignificant, mostSignificant, isPlainCompact, ...shown } = this.#o;
      return Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== undefined));
    }
    static supportedLocalesOf(locales) { return [locales ?? []].flat().filter((one) => /^en\b/.test(String(one))); }
  }

  class PluralRules {
    #type;
    constructor(locales, options) {
      locale(locales);
      this.#type = pick(options, "type", ["cardinal", "ordinal"], "cardinal");
    }
    select(value) {
      const number = Number(value);
      if (this.#type === "cardinal") return number === 1 ? "one" : "other";
      const [last, two] = [number % 10, number % 100];
      if (last === 1 && two !== 11) return "one";
      if (last === 2 && two !== 12) return "two";
      if (last === 3 && two !== 13) return "few";
      return "other";
    }
    resolvedOptions() { return { locale: "en-US", type: this.#type }; }
  }

  class ListFormat {
    #o;
    constructor(locales, options) {
      locale(locales);
      this.#o = {
        type: pick(options, "type", ["conjunction", "disjunction", "unit"], "conjunction"),
        style: pick(options, "style", ["long", "short", "narrow"], "long"),
      };
    }
    format(list) {
      const all = [...list];
      for (const one of all) if (typeof one !== "string") throw new TypeError("a list of texts is needed");
      if (all.length < 2) return all.join("");
      const { type, style } = this.#o;
      if (type === "unit") return all.join(style === "narrow" ? " " : ", ");
      const word = type === "disjunction" ? "or" : style === "short" ? "&" : style === "narrow" ? "" : "and";
      const last = all.pop();
      if (word === "") return `${all.join(", ")}, ${last}`;
      return all.length === 1 ? `${all[0]} ${word} ${last}` : `${all.join(", ")}, ${word} ${last}`;
    }
    resolvedOptions() { return { locale: "en-US", ...this.#o }; }
  }

  const SPANS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
  const WORDS = { "day 0": "today", "day 1": "tomorrow", "day -1": "yesterday", "second 0": "now" };
  class RelativeTimeFormat {
    #numeric;
    constructor(locales, options) {
      locale(locales);
      this.#numeric = pick(options, "numeric", ["always", "auto"], "always");
    }
    format(value, unit) {
      const span = String(unit).replace(/s$/, "");
      if (!SPANS.includes(span)) throw new RangeError(`${unit} is no span of time`);
      const number = Number(value);
      if (!Number.isFinite(number)) throw new RangeError("a finite number is needed");
      if (this.#numeric === "auto") {
        const word = WORDS[`${span} ${number}`];
        if (word) return word;
        if (number === 0) return `this ${span}`;
        if (Math.abs(number) === 1 && !["second", "minute", "hour"].includes(span)) return `${number > 0 ? "next" : "last"} ${span}`;
      }
      const shown = `${new NumberFormat().format(Math.abs(number))} ${span}${Math.abs(number) === 1 ? "" : "s"}`;
      return number < 0 || Object.is(number, -0) ? `${shown} ago` : `in ${shown}`;
    }
    resolvedOptions() { return { locale: "en-US", numeric: this.#numeric, style: "long" }; }
  }

  class Collator {
    #numeric;
    #base;
    constructor(locales, options) {
      locale(locales);
      this.#numeric = Boolean(options?.numeric);
      this.#base = ["base", "accent"].includes(options?.sensitivity);
    }
    compare = (left, right) => {
      const key = (text) => (this.#base ? String(text).toLowerCase() : String(text));
      if (!this.#numeric) return key(left).localeCompare(key(right));
      const pieces = (text) => key(text).match(/\d+|\D+/g) ?? [];
      const [a, b] = [pieces(left), pieces(right)];
      for (let at = 0; at < Math.min(a.length, b.length); at += 1) {
        const both = /^\d/.test(a[at]) && /^\d/.test(b[at]);
        const order = both ? Number(a[at]) - Number(b[at]) : a[at].localeCompare(b[at]);
        if (order !== 0) return order < 0 ? -1 : 1;
      }
      return Math.sign(a.length - b.length);
    };
    resolvedOptions() { return { locale: "en-US", numeric: this.#numeric }; }
  }

  const called = (Class) => new Proxy(Class, { apply: (_, __, values) => new Class(...values) });
  globalThis.Intl = {
    NumberFormat: called(NumberFormat), PluralRules, ListFormat, RelativeTimeFormat, Collator: called(Collator),
    getCanonicalLocales: (locales) => [locales ?? []].flat().map(String),
  };
  Object.defineProperty(Intl, Symbol.toStringTag, { value: "Intl", configurable: true });
  shared.called = called;
  const method = (prototype, name, value) =>
    Object.defineProperty(prototype, name, { value, writable: true, configurable: true, enumerable: false });
  shared.method = method;
  const isNumber = Number.prototype.valueOf;
  const isBigInt = BigInt.prototype.valueOf;
  method(Number.prototype, "toLocaleString", { toLocaleString(locales, options) {
    return new NumberFormat(locales, options).format(isNumber.call(this));
  } }.toLocaleString);
  method(BigInt.prototype, "toLocaleString", { toLocaleString(locales, options) {
    return new NumberFormat(locales, options).format(isBigInt.call(this));
  } }.toLocaleString);
}
