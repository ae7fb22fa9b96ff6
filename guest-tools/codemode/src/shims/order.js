// `Intl.Collator` and `localeCompare`: the order of the Unicode Collation Algorithm's root, for ASCII and Latin letters as
// CLDR has it. Other letters come after these, in the order of their code points.
(native, shared) => {
  const { pick, called, method, supported, locale } = shared;
  // Languages that have the root's order for all letters of theirs.
  const KNOWN = ["en-US", "en-GB", "en-CA", "und", "de", "de-DE", "fr", "fr-FR", "it", "it-IT", "nl", "nl-NL", "pt", "pt-BR", "pt-PT"];
  const SIGNS = "\t\n\v\f\r\u0085\u2028\u2029 _-–—,;:!¡?¿.…·'‘’\"“”«»()[]{}§¶@*/\\&#%†‡•`´^¯¨¸°©®+±÷×<=>¬|¦~¤¢$£€¥";
  const LETTERS = "abcdeəfghiıjkĸlmnŋopqrstŧuvwxyzþ";
  // Letters that the standard takes apart though their normal form does not, and letters that are two with a difference.
  const APART = { đ: "d\u0335", ð: "d\u0336", ħ: "h\u0335", ł: "l\u0335", ŀ: "l\u0336", ø: "o\u0338", ſ: "s", ª: "a", º: "o", "¹": "1", "²": "2", "³": "3" };
  const TWO = { æ: "ae", œ: "oe", ß: "ss", ĳ: "ij" };
  const MARK = /^\p{M}$/u;
  const BASE = 1000;

  const rank = new Map();
  [...SIGNS].forEach((sign, at) => rank.set(sign, at + 1));
  [..."0123456789"].forEach((digit, at) => rank.set(digit, 200 + at));
  [...LETTERS].forEach((letter, at) => rank.set(letter, 300 + at));
  // In the order of accents that the standard has.
  const ACCENTS = ["\u0301", "\u0300", "\u0306", "\u0302", "\u030c", "\u030a", "\u0308", "\u030b", "\u0303", "\u0307", "\u0335", "\u0336", "\u0338", "\u0327", "\u0328", "\u0304"];
  const accent = (mark) => {
    const at = ACCENTS.indexOf(mark);
    return at < 0 ? 100 + mark.codePointAt(0) : at + 1;
  };

  // What each letter of a text is worth: as a letter, by its accents, and by its case.
  const weights = (text, ignoresSigns) => {
    const letters = [];
    const accents = [];
    const cases = [];
    const variants = [];
    const add = (letter, isUpper, variant, marks) => {
      letters.push(rank.get(letter) ?? BASE + letter.codePointAt(0));
      accents.push(marks);
      cases.push(isUpper ? 1 : 0);
      variants.push(2 * variant + (isUpper ? 1 : 0));
    };
    for (const character of text.normalize("NFD")) {
      if (MARK.test(character)) {
        if (accents.length > 0) accents[accents.length - 1] = [...accents.at(-1), accent(character)];
        continue;
      }
      const lower = character.toLowerCase();
      const isUpper = lower !== character;
      const plain = lower.normalize("NFKD");
      const known = Object.hasOwn(APART, lower) ? APART[lower] : undefined;
      // Control characters are not there.
      if (/^[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad]$/.test(character)) continue;
      if (ignoresSigns && (rank.get(character) ?? BASE) < 200) continue;
      if (known !== undefined) {
        add(known[0], isUpper, known.length > 1 ? 0 : 1, [...known.slice(1)].map(accent));
      } else if (plain !== lower && [...plain].length === 1) {
        add(plain, isUpper, 1, []);
      } else if (Object.hasOwn(TWO, lower)) {
        // Two letters, and more than them.
        const [first, second] = TWO[lower];
        add(first, isUpper, lower === "ß" ? 1 : 0, lower === "ß" ? [] : [90]);
        add(second, isUpper, 1, []);
      } else {
        add(lower, isUpper, 0, []);
      }
    }
    return { letters, accents, cases, variants };
  };
  const difference = (a, b) => {
    for (let at = 0; at < Math.min(a.length, b.length); at += 1) if (a[at] !== b[at]) return a[at] < b[at] ? -1 : 1;
    return Math.sign(a.length - b.length);
  };
  const ofLists = (a, b) => {
    for (let at = 0; at < Math.min(a.length, b.length); at += 1) {
      const found = difference(a[at], b[at]);
      if (found !== 0) return found;
    }
    return 0;
  };
  const ZERO = 200;
  const isDigit = (weight) => weight >= ZERO && weight < ZERO + 10;
  // Numbers by their worth: how many digits there are, and then the digits.
  const withNumbers = (letters) => {
    const made = [];
    for (let at = 0; at < letters.length; at += 1) {
      if (!isDigit(letters[at])) {
        made.push(letters[at]);
        continue;
      }
      let end = at;
      while (end < letters.length && isDigit(letters[end])) end += 1;
      let begin = at;
      while (begin < end - 1 && letters[begin] === ZERO) begin += 1;
      made.push(ZERO, end - begin, ...letters.slice(begin, end));
      at = end - 1;
    }
    return made;
  };
  const isAscii = /^[\t\n\r -~]*$/;
  const codes = Array.from({ length: 127 }, (_, code) => rank.get(String.fromCharCode(code).toLowerCase()) ?? 0);
  const isUpper = (code) => code >= 65 && code <= 90;
  // Most of what is sorted, with as little work as there can be.
  const ofAscii = (one, other, depth, upperFirst) => {
    const length = Math.min(one.length, other.length);
    let cases = 0;
    for (let at = 0; at < length; at += 1) {
      const [a, b] = [one.charCodeAt(at), other.charCodeAt(at)];
      if (a === b) continue;
      if (codes[a] !== codes[b]) return codes[a] < codes[b] ? -1 : 1;
      if (cases === 0) cases = isUpper(a) === upperFirst ? -1 : 1;
    }
    if (one.length !== other.length) return one.length < other.length ? -1 : 1;
    return depth === "base" || depth === "accent" ? 0 : cases;
  };

  class Collator {
    #o;
    constructor(locales, options) {
      this.#o = {
        locale: locale(locales, KNOWN),
        usage: pick(options, "usage", ["sort", "search"], "sort"),
        sensitivity: pick(options, "sensitivity", ["base", "accent", "case", "variant"], "variant"),
        ignorePunctuation: Boolean(options?.ignorePunctuation),
        collation: "default",
        numeric: Boolean(options?.numeric),
        caseFirst: pick(options, "caseFirst", ["upper", "lower", "false"], "false"),
      };
    }
    compare = (left, right) => {
      const [one, other] = [String(left), String(right)];
      if (one === other) return 0;
      const { numeric, sensitivity, caseFirst, ignorePunctuation } = this.#o;
      if (!numeric && !ignorePunctuation && isAscii.test(one) && isAscii.test(other)) {
        return ofAscii(one, other, sensitivity, caseFirst === "upper");
      }
      const [a, b] = [weights(one, ignorePunctuation), weights(other, ignorePunctuation)];
      const letters = numeric ? difference(withNumbers(a.letters), withNumbers(b.letters)) : difference(a.letters, b.letters);
      if (letters !== 0 || sensitivity === "base") return letters;
      const marks = sensitivity === "case" ? 0 : ofLists(a.accents, b.accents);
      if (marks !== 0 || sensitivity === "accent") return marks;
      const upper = caseFirst === "upper" ? -1 : 1;
      if (sensitivity === "case" || caseFirst !== "false") {
        const cases = difference(a.cases, b.cases) * upper;
        if (cases !== 0 || sensitivity === "case") return cases;
      }
      return difference(a.variants, b.variants);
    };
    resolvedOptions() { return { ...this.#o }; }
    static supportedLocalesOf = supported(KNOWN);
  }
  Intl.Collator = called(Collator);

  const usual = new Collator();
  const text = String.prototype.toString;
  method(String.prototype, "localeCompare", { localeCompare(that, locales, options) {
    const order = locales === undefined && options === undefined ? usual : new Collator(locales, options);
    return order.compare(text.call(this), that);
  } }.localeCompare);
}
