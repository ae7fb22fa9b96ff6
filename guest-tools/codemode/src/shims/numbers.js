// `Intl` for numbers and lists, and what is written with it: English of three countries, and no data beyond that. What is not
// known is refused: nothing is written in another way than was asked for.
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
  const ENGLISH = ["en-US", "en-GB", "en-CA"];
  // The first of these locales that is known.
  const locale = (locales, known = ENGLISH) => {
    const wanted = typeof locales === "string" || locales === undefined || locales === null ? [locales ?? "en-US"].flat() : Array.from(locales);
    for (const one of wanted) {
      if (typeof one !== "string") throw new TypeError("a locale is a text such as en-US");
      if (!/^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$/.test(one)) throw new RangeError(`${one} is no locale`);
      const found = one.toLowerCase() === "en" ? "en-US" : known.find((it) => it.toLowerCase() === one.toLowerCase());
      if (found) return found;
    }
    if (wanted.length === 0) return "en-US";
    throw new RangeError(`the locale ${wanted.join(", ")} is not known here; there are ${known.join(", ")}`);
  };
  const supported = (known) => (locales) => [locales ?? []].flat().filter((one) => {
    try {
      return Boolean(locale(one, known));
    } catch {
      return false;
    }
  });
  // Options that would change what is written, and that nothing is written for here.
  const only = (options, usual) => {
    for (const [key, values] of Object.entries(usual)) {
      const value = options?.[key];
      if (value !== undefined && !values.includes(value)) throw new RangeError(`the option ${key}: ${value} is not known here`);
    }
  };
  const joined = (parts) => parts.map((part) => part.value).join("");
  Object.assign(shared, { pick, digits, locale, supported, only, joined });

  const SYMBOLS = { USD: "$", EUR: "€", GBP: "£", JPY: "¥", CNY: "CN¥", INR: "₹", KRW: "₩", BRL: "R$", MXN: "MX$", CAD: "CA$", AUD: "A$", NZD: "NZ$", ILS: "₪", VND: "₫", TWD: "NT$", HKD: "HK$", PHP: "₱" };
  // What is a currency's own sign in one country is another's in the next.
  const ELSEWHERE = { "en-US": {}, "en-GB": { USD: "US$", JPY: "JP¥" }, "en-CA": { USD: "US$", JPY: "JP¥", CAD: "$" } };
  const WITHOUT_CENTS = ["JPY", "KRW", "VND", "CLP", "ISK"];
  const UNITS = { byte: "byte", kilobyte: "kB", megabyte: "MB", gigabyte: "GB", terabyte: "TB", bit: "bit", percent: "%", second: "sec", minute: "min", hour: "hr", day: "day", week: "wk", month: "mth", year: "yr", millisecond: "ms", meter: "m", kilometer: "km", centimeter: "cm", millimeter: "mm", mile: "mi", foot: "ft", inch: "in", gram: "g", kilogram: "kg", pound: "lb", ounce: "oz", liter: "L", milliliter: "mL", celsius: "°C", fahrenheit: "°F", degree: "deg" };
  const NARROW = { byte: "B", second: "s", minute: "m", hour: "h", day: "d", week: "w", month: "m", year: "y", foot: "′", inch: "″", pound: "#", fahrenheit: "°", degree: "°" };
  const WITHOUT_SPACE = ["percent", "celsius", "fahrenheit"];
  const PLURAL = ["day", "week", "month", "year"];
  const COMPACT = [["K", "thousand", "k"], ["M", "million", "m"], ["B", "billion", "bn"], ["T", "trillion", "tn"]];

  // A finite number as it is written: its digits, and how many of them are before the point.
  const decimal = (value) => {
    const isNegative = value < 0 || Object.is(value, -0);
    const [mantissa, exponent = "0"] = String(value).replace(/^-/, "").split("e");
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
    grouping === "false" || (grouping === "min2" && whole.length < 5) ? [whole] : whole.split(/\B(?=(?:\d{3})+$)/);

  class NumberFormat {
    #o;
    constructor(locales, options) {
      const style = pick(options, "style", ["decimal", "percent", "currency", "unit"], "decimal");
      const notation = pick(options, "notation", ["standard", "compact", "scientific", "engineering"], "standard");
      const currency = options?.currency === undefined ? undefined : String(options.currency).toUpperCase();
      if (style === "currency" && currency === undefined) throw new TypeError("a currency has to be named");
      if (currency !== undefined && !/^[A-Z]{3}$/.test(currency)) throw new RangeError(`${options.currency} is no currency`);
      const unit = options?.unit === undefined ? undefined : String(options.unit);
      only(options, {
        numberingSystem: ["latn"], roundingMode: ["halfExpand"], roundingIncrement: [1], roundingPriority: ["auto"],
        trailingZeroDisplay: ["auto"], currencySign: ["standard"], currencyDisplay: ["symbol", "narrowSymbol", "code"],
      });
      const where = locale(locales);
      if (style === "unit" && where !== "en-US") throw new RangeError(`units are not known here for ${where}, only for en-US`);
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
        locale: where, numberingSystem: "latn", style, notation, currency, unit,
        currencyDisplay: pick(options, "currencyDisplay", ["symbol", "narrowSymbol", "code"], "symbol"),
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
    format = (value) => joined(this.formatToParts(value));
    formatToParts(value) { return this.#parts(typeof value === "bigint" ? value : Number(value)); }
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
      const parts = [Number.isNaN(value) ? { type: "nan", value: "NaN" } : { type: "infinity", value: "∞" }];
      let isZero = Number.isNaN(value);
      if (isFinite) {
        let number = decimal(value);
        let step = 0;
        if (o.style === "percent" && number.digits !== "") number.point += 2;
        if (o.notation === "compact") {
          [number, step] = this.#stepped(number, (point) => Math.min(Math.max(Math.floor((point - 1) / 3), 0), 4) * 3);
        } else if (o.notation !== "standard") {
          const every = o.notation === "engineering" ? 3 : 1;
          if (number.digits !== "") [number, step] = this.#stepped(number, (point) => Math.floor((point - 1) / every) * every);
        } else {
          number = this.#rounded(number);
        }
        isZero = /^0*$/.test(number.digits);
        const [whole, part] = written(number, this.#least(number));
        const groups = grouped(whole.padStart(o.minimumIntegerDigits, "0"), o.useGrouping);
        parts.length = 0;
        groups.forEach((group, at) => {
          if (at > 0) parts.push({ type: "group", value: "," });
          parts.push({ type: "integer", value: group });
        });
        if (part !== "") parts.push({ type: "decimal", value: "." }, { type: "fraction", value: part });
        if (o.notation === "compact" && step > 0) {
          const [short, long, british] = COMPACT[step / 3 - 1];
          const isLong = o.compactDisplay === "long";
          if (isLong) parts.push({ type: "literal", value: " " });
          parts.push({ type: "compact", value: isLong ? long : o.locale === "en-GB" ? british : short });
        } else if (o.notation === "scientific" || o.notation === "engineering") {
          parts.push({ type: "exponentSeparator", value: "E" });
          if (step < 0) parts.push({ type: "exponentMinusSign", value: "-" });
          parts.push({ type: "exponentInteger", value: String(Math.abs(step)) });
        }
      }
      const minus = isNegative ? "-" : "";
      const sign = { auto: minus, always: minus || "+", never: "", exceptZero: isZero ? "" : minus || "+", negative: isZero ? "" : minus }[o.signDisplay];
      const all = this.#unit(parts);
      if (sign !== "") all.unshift({ type: sign === "-" ? "minusSign" : "plusSign", value: sign });
      return all;
    }
    // With what is counted.
    #unit(parts) {
      const o = this.#o;
      const isOne = joined(parts) === "1";
      if (o.style === "percent") return [...parts, { type: "percentSign", value: "%" }];
      if (o.style === "currency") {
        const own = { ...SYMBOLS, ...ELSEWHERE[o.locale] };
        const isWord = o.currencyDisplay === "code" || !Object.hasOwn(own, o.currency);
        const sign = isWord ? o.currency : o.currencyDisplay === "narrowSymbol" ? own[o.currency].replace(/^[A-Z]+(?=\W)/, "") : own[o.currency];
        const currency = { type: "currency", value: sign };
        return isWord && parts[0].type === "integer" ? [currency, { type: "literal", value: "\u00a0" }, ...parts] : [currency, ...parts];
      }
      if (o.style !== "unit") return parts;
      const [unit, per] = o.unit.split("-per-");
      if (o.unitDisplay === "long") {
        const many = { foot: "feet", inch: "inches", celsius: "degrees Celsius", fahrenheit: "degrees Fahrenheit", percent: "percent" };
        const one = { celsius: "degree Celsius", fahrenheit: "degree Fahrenheit" };
        const name = isOne ? one[unit] ?? unit : many[unit] ?? `${unit}s`;
        return [...parts, { type: "literal", value: " " }, { type: "unit", value: `${name}${per ? ` per ${per}` : ""}` }];
      }
      const isNarrow = o.unitDisplay === "narrow";
      const short = UNITS[unit] + (!isOne && PLURAL.includes(unit) ? "s" : "");
      const name = isNarrow ? NARROW[unit] ?? UNITS[unit] : short;
      const below = per ? `/${{ second: "s", hour: "h", minute: "min" }[per] ?? UNITS[per]}` : "";
      const whole = { type: "unit", value: o.unit === "mile-per-hour" ? "mph" : name + below };
      return WITHOUT_SPACE.includes(unit) || isNarrow ? [...parts, whole] : [...parts, { type: "literal", value: " " }, whole];
    }
    resolvedOptions() {
      const { leastSignificant, mostSignificant, isPlainCompact, ...shown } = this.#o;
      return Object.fromEntries(Object.entries(shown).filter(([, value]) => value !== undefined));
    }
    static supportedLocalesOf = supported();
  }

  class PluralRules {
    #type;
    #locale;
    constructor(locales, options) {
      this.#locale = locale(locales);
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
    resolvedOptions() { return { locale: this.#locale, type: this.#type }; }
    static supportedLocalesOf = supported();
  }

  class ListFormat {
    #o;
    constructor(locales, options) {
      this.#o = {
        locale: locale(locales),
        type: pick(options, "type", ["conjunction", "disjunction", "unit"], "conjunction"),
        style: pick(options, "style", ["long", "short", "narrow"], "long"),
      };
    }
    format(list) { return joined(this.formatToParts(list)); }
    formatToParts(list) {
      const all = [...list];
      for (const one of all) if (typeof one !== "string") throw new TypeError("a list of texts is needed");
      const { locale: where, type, style } = this.#o;
      const isUs = where === "en-US";
      const and = style === "short" && isUs ? "&" : "and";
      const word = type === "disjunction" ? "or" : type === "unit" || style === "narrow" ? "" : and;
      const plain = type === "unit" && style === "narrow" ? " " : ", ";
      // A comma before the last word is an American's.
      const last = word === "" ? plain : all.length === 2 || !isUs ? ` ${word} ` : `, ${word} `;
      return all.flatMap((value, at) => {
        const element = { type: "element", value };
        return at === 0 ? [element] : [{ type: "literal", value: at === all.length - 1 ? last : plain }, element];
      });
    }
    resolvedOptions() { return { ...this.#o }; }
    static supportedLocalesOf = supported();
  }

  const SPANS = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];
  const WORDS = { "day 0": "today", "day 1": "tomorrow", "day -1": "yesterday", "second 0": "now" };
  class RelativeTimeFormat {
    #numeric;
    #locale;
    constructor(locales, options) {
      this.#locale = locale(locales);
      this.#numeric = pick(options, "numeric", ["always", "auto"], "always");
      only(options, { style: ["long"], numberingSystem: ["latn"] });
    }
    format(value, unit) { return joined(this.formatToParts(value, unit)); }
    formatToParts(value, unit) {
      const span = String(unit).replace(/s$/, "");
      if (!SPANS.includes(span)) throw new RangeError(`${unit} is no span of time`);
      const number = Number(value);
      if (!Number.isFinite(number)) throw new RangeError("a finite number is needed");
      if (this.#numeric === "auto") {
        const isSoon = Math.abs(number) === 1 && !["second", "minute", "hour"].includes(span);
        const word = WORDS[`${span} ${number}`] ?? (number === 0 ? `this ${span}` : isSoon ? `${number > 0 ? "next" : "last"} ${span}` : undefined);
        if (word) return [{ type: "literal", value: word }];
      }
      const parts = new NumberFormat().formatToParts(Math.abs(number)).map((part) => ({ ...part, unit: span }));
      const after = ` ${span}${Math.abs(number) === 1 ? "" : "s"}`;
      return number < 0 || Object.is(number, -0)
        ? [...parts, { type: "literal", value: `${after} ago` }]
        : [{ type: "literal", value: "in " }, ...parts, { type: "literal", value: after }];
    }
    resolvedOptions() { return { locale: this.#locale, numeric: this.#numeric, style: "long", numberingSystem: "latn" }; }
    static supportedLocalesOf = supported();
  }

  const called = (Class) => new Proxy(Class, { apply: (_, __, values) => new Class(...values) });
  globalThis.Intl = {
    NumberFormat: called(NumberFormat), PluralRules, ListFormat, RelativeTimeFormat,
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
