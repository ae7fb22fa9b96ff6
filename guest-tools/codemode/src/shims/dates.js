// `Intl.DateTimeFormat`: English of three countries, the numbers of Swedish dates, which are those of ISO 8601, and no time
// zone but UTC.
(native, shared) => {
  const { pick, digits, locale, called, method, supported, only, joined } = shared;
  const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  const TEXTS = ["narrow", "short", "long"];
  const NUMBERS = ["numeric", "2-digit"];
  const HALVES = ["h11", "h12"];
  // How each writes numbers of days, what stands between a day and a time, and the halves of a day.
  const WAYS = {
    "en-US": { order: "Mdy", by: "/", between: ", ", long: " at ", halves: ["AM", "PM"], cycle: "h12" },
    "en-GB": { order: "dMy", by: "/", between: ", ", long: " at ", halves: ["am", "pm"], cycle: "h23" },
    "en-CA": { order: "yMd", by: "-", between: ", ", long: " at ", halves: ["a.m.", "p.m."], cycle: "h12" },
    "sv-SE": { order: "yMd", by: "-", between: " ", long: " ", halves: ["fm", "em"], cycle: "h23" },
  };
  const KNOWN = Object.keys(WAYS);
  const two = (number) => String(number).padStart(2, "0");
  const isZone = (zone) => ["utc", "gmt", "etc/utc", "etc/gmt", "+00:00", "-00:00"].includes(zone.toLowerCase());
  const refuse = (what) => {
    throw new RangeError(`${what} can not be written here`);
  };

  const DATE = {
    full: { weekday: "long", month: "long", day: "numeric", year: "numeric" },
    long: { month: "long", day: "numeric", year: "numeric" },
    medium: { month: "short", day: "numeric", year: "numeric" },
    short: { month: "numeric", day: "numeric", year: "2-digit" },
  };
  const TIME = {
    full: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "long" },
    long: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" },
    medium: { hour: "numeric", minute: "2-digit", second: "2-digit" },
    short: { hour: "numeric", minute: "2-digit" },
  };
  const literal = (value) => ({ type: "literal", value });
  const between = (lists, by) => lists.flatMap((parts, at) => (at === 0 ? parts : [literal(by), ...parts]));

  class DateTimeFormat {
    #o;
    constructor(locales, options, usual = "date") {
      const zone = options?.timeZone === undefined ? "UTC" : String(options.timeZone);
      if (!isZone(zone)) throw new RangeError(`the time zone ${zone} is not known here, only UTC`);
      only(options, { calendar: ["gregory", "iso8601"], numberingSystem: ["latn"], dayPeriod: [], era: [] });
      const where = locale(locales, KNOWN);
      const dateStyle = pick(options, "dateStyle", Object.keys(DATE), undefined);
      const timeStyle = pick(options, "timeStyle", Object.keys(TIME), undefined);
      const fields = {
        weekday: pick(options, "weekday", TEXTS, undefined),
        year: pick(options, "year", NUMBERS, undefined),
        month: pick(options, "month", [...NUMBERS, ...TEXTS], undefined),
        day: pick(options, "day", NUMBERS, undefined),
        hour: pick(options, "hour", NUMBERS, undefined),
        minute: pick(options, "minute", NUMBERS, undefined),
        second: pick(options, "second", NUMBERS, undefined),
        fractionalSecondDigits: digits(options, "fractionalSecondDigits", 1, 3),
        timeZoneName: pick(options, "timeZoneName", ["short", "long", "shortOffset", "longOffset"], undefined),
      };
      const hasDate = fields.weekday ?? fields.year ?? fields.month ?? fields.day;
      const hasTime = fields.hour ?? fields.minute ?? fields.second ?? fields.fractionalSecondDigits;
      if ((dateStyle ?? timeStyle) !== undefined) {
        if ((hasDate ?? hasTime ?? fields.timeZoneName) !== undefined) throw new TypeError("styles and single fields can not be mixed");
        Object.assign(fields, dateStyle && DATE[dateStyle], timeStyle && TIME[timeStyle]);
        if (dateStyle === "short" && where !== "en-US") fields.year = "numeric";
      } else {
        if (usual !== "time" && (usual === "date" || usual === "both") && hasDate === undefined && hasTime === undefined) {
          Object.assign(fields, { year: "numeric", month: "numeric", day: "numeric" });
        } else if (usual === "dates" && hasDate === undefined) {
          Object.assign(fields, { year: "numeric", month: "numeric", day: "numeric" });
        }
        if ((usual === "both" && hasDate === undefined && hasTime === undefined) || (usual === "time" && hasTime === undefined)) {
          Object.assign(fields, { hour: "numeric", minute: "2-digit", second: "2-digit" });
        }
      }
      if (fields.fractionalSecondDigits !== undefined && fields.minute !== undefined) fields.second ??= "2-digit";
      // What engines write for these is no date that anybody writes.
      const { weekday, year, month, day, hour, minute, second } = fields;
      if (year !== undefined && month === undefined && (day ?? weekday) !== undefined) refuse("a year with a day and without its month");
      if (weekday !== undefined && month !== undefined && day === undefined) refuse("a weekday with a month and without its day");
      if (hour !== undefined && (second ?? fields.fractionalSecondDigits) !== undefined && minute === undefined) refuse("an hour with seconds and without its minutes");
      const isWordy = TEXTS.includes(month) || weekday !== undefined || fields.timeZoneName === "long";
      if (where === "sv-SE" && isWordy) refuse("the names of days and months in Swedish");
      const wished = pick(options, "hourCycle", ["h11", "h12", "h23", "h24"], WAYS[where].cycle);
      // Without the halves of a day, midnight is 0: so the standard has it now; older engines say 24.
      const hourCycle = options?.hour12 === undefined ? wished : options.hour12 ? "h12" : "h23";
      // Who has no halves of a day writes hours in two digits, but for one that was asked for with its minutes.
      const isAsked = options?.hour !== undefined && minute !== undefined;
      const isWide = where === "en-US" || where === "en-CA" || !isAsked;
      const pads = timeStyle !== undefined && WAYS[where].cycle === "h23" ? true : isWide && !HALVES.includes(hourCycle);
      this.#o = { locale: where, pads, calendar: "gregory", numberingSystem: "latn", timeZone: "UTC", hourCycle, dateStyle, timeStyle, fields };
    }
    format = (value) => joined(this.formatToParts(value));
    formatToParts(value) {
      const time = value === undefined ? Date.now() : Number(value);
      if (Number.isNaN(time) || Math.abs(time) > 8.64e15) throw new RangeError("it is no valid date");
      return this.#write(new Date(time));
    }
    formatRange(from, to) {
      const [begins, ends] = [this.format(from), this.format(to)];
      return begins === ends ? begins : `${begins} – ${ends}`;
    }
    #write(date) {
      const { fields, dateStyle, locale: where } = this.#o;
      const day = this.#date(fields, date);
      const time = this.#time(fields, date);
      if (day.length === 0 || time.length === 0) return [...day, ...time];
      const isLong = dateStyle === "full" || dateStyle === "long" || (dateStyle === undefined && fields.month === "long");
      if (day.length === 1 && day[0].type === "weekday") return between([day, time], " ");
      return between([day, time], isLong ? WAYS[where].long : WAYS[where].between);
    }
    #date({ weekday, year, month, day }, date) {
      const where = this.#o.locale;
      const { order, by } = WAYS[where];
      const name = (names, at, how) => (how === "long" ? names[at] : how === "short" ? names[at].slice(0, 3) : names[at].slice(0, 1));
      const full = date.getUTCFullYear();
      const shown = full > 0 ? full : 1 - full;
      const years = year === undefined ? [] : [{ type: "year", value: year === "2-digit" ? two(shown % 100) : String(shown) }];
      const wordy = TEXTS.includes(month);
      // Where one is not asked for two digits, it has them in numbers that are no American's, if the other is not either.
      const isWide = where !== "en-US" && !wordy && (
        weekday !== undefined ? where !== "sv-SE" :
        day === undefined ? year !== undefined :
        month === "numeric" && day === "numeric" && (year !== undefined || where !== "sv-SE")
      );
      const number = (how, value) => (how === "2-digit" || isWide ? two(value) : String(value));
      const isAlone = month === undefined;
      const days = day === undefined ? [] : [{ type: "day", value: isAlone && day === "numeric" ? String(date.getUTCDate()) : number(day, date.getUTCDate()) }];
      const names = weekday === undefined ? [] : [{ type: "weekday", value: name(DAYS, date.getUTCDay(), weekday) }];
      let body;
      if (wordy) {
        const isSept = where === "en-GB" && month === "short" && date.getUTCMonth() === 8;
        const months = [{ type: "month", value: isSept ? "Sept" : name(MONTHS, date.getUTCMonth(), month) }];
        const both = between((where === "en-GB" ? [days, months] : [months, days]).filter((one) => one.length > 0), " ");
        body = years.length === 0 ? both : between([both, years], day === undefined || where === "en-GB" ? " " : ", ");
      } else {
        const months = isAlone ? [] : [{ type: "month", value: number(month, date.getUTCMonth() + 1) }];
        const parts = { y: years, M: months, d: days };
        // A day of a month alone is Swedish the other way round.
        const [way, sign] = where === "sv-SE" && year === undefined ? ["dM", "/"] : [order, by];
        body = between([...way].map((one) => parts[one]).filter((one) => one.length > 0), sign);
      }
      if (names.length === 0 || body.length === 0) return [...names, ...body];
      if (isAlone) return where === "en-US" ? between([body, names], " ") : between([names, body], " ");
      return between([names, body], where === "en-GB" && year === undefined ? " " : ", ");
    }
    #time({ hour, minute, second, fractionalSecondDigits, timeZoneName }, date) {
      const { hourCycle, pads, locale: where } = this.#o;
      const is12 = HALVES.includes(hourCycle);
      const pieces = [];
      if (hour !== undefined) {
        const hours = date.getUTCHours();
        const shown = { h11: hours % 12, h12: hours % 12 || 12, h23: hours, h24: hours || 24 }[hourCycle];
        pieces.push([{ type: "hour", value: hour === "2-digit" || pads ? two(shown) : String(shown) }]);
      }
      if (minute !== undefined) {
        const isAlone = hour === undefined && second === undefined;
        pieces.push([{ type: "minute", value: isAlone ? String(date.getUTCMinutes()) : two(date.getUTCMinutes()) }]);
      }
      const part = fractionalSecondDigits === undefined ? [] : [{ type: "fractionalSecond", value: two(date.getUTCMilliseconds()).padStart(3, "0").slice(0, fractionalSecondDigits) }];
      if (second !== undefined) {
        const seconds = { type: "second", value: minute === undefined ? String(date.getUTCSeconds()) : two(date.getUTCSeconds()) };
        pieces.push(part.length > 0 ? [seconds, literal(where === "sv-SE" ? "," : "."), ...part] : [seconds]);
      } else if (part.length > 0) {
        pieces.push(part);
      }
      const parts = between(pieces, ":");
      if (hour !== undefined && is12) parts.push(literal(" "), { type: "dayPeriod", value: WAYS[where].halves[date.getUTCHours() < 12 ? 0 : 1] });
      if (timeZoneName !== undefined) {
        const zone = timeZoneName === "long" ? "Coordinated Universal Time" : timeZoneName.endsWith("Offset") ? "GMT" : "UTC";
        if (parts.length > 0) parts.push(literal(" "));
        parts.push({ type: "timeZoneName", value: zone });
      }
      return parts;
    }
    resolvedOptions() {
      const { fields, hourCycle, pads, ...shown } = this.#o;
      const all = { ...shown, ...(fields.hour === undefined ? {} : { hour12: HALVES.includes(hourCycle), hourCycle }), ...fields };
      return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    }
    static supportedLocalesOf = supported(KNOWN);
  }

  Intl.DateTimeFormat = called(DateTimeFormat);
  const time = Date.prototype.getTime;
  const written = (usual) => function (locales, options) {
    const value = time.call(this);
    return Number.isNaN(value) ? "Invalid Date" : new DateTimeFormat(locales, options, usual).format(value);
  };
  method(Date.prototype, "toLocaleString", written("both"));
  method(Date.prototype, "toLocaleDateString", written("dates"));
  method(Date.prototype, "toLocaleTimeString", written("time"));
}
