// `Intl.DateTimeFormat`: English, and no time zone but UTC.
(native, shared) => {
  const { pick, locale, called, method } = shared;
  const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  const TEXTS = ["narrow", "short", "long"];
  const NUMBERS = ["numeric", "2-digit"];
  const HALVES = ["h11", "h12"];
  const two = (number) => String(number).padStart(2, "0");
  const isZone = (zone) => ["utc", "gmt", "etc/utc", "etc/gmt", "+00:00", "-00:00"].includes(zone.toLowerCase());

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

  class DateTimeFormat {
    #o;
    constructor(locales, options, usual = "date") {
      const zone = options?.timeZone === undefined ? "UTC" : String(options.timeZone);
      if (!isZone(zone)) throw new RangeError(`the time zone ${zone} is not known here, only UTC`);
      const dateStyle = pick(options, "dateStyle", Object.keys(DATE), undefined);
      const timeStyle = pick(options, "timeStyle", Object.keys(TIME), undefined);
      const fields = {
        weekday: pick(options, "weekday", TEXTS, undefined),
        era: pick(options, "era", TEXTS, undefined),
        year: pick(options, "year", NUMBERS, undefined),
        month: pick(options, "month", [...NUMBERS, ...TEXTS], undefined),
        day: pick(options, "day", NUMBERS, undefined),
        hour: pick(options, "hour", NUMBERS, undefined),
        minute: pick(options, "minute", NUMBERS, undefined),
        second: pick(options, "second", NUMBERS, undefined),
        fractionalSecondDigits: options?.fractionalSecondDigits,
        timeZoneName: pick(options, "timeZoneName", ["short", "long", "shortOffset", "longOffset"], undefined),
      };
      const hasDate = fields.weekday ?? fields.year ?? fields.month ?? fields.day;
      const hasTime = fields.hour ?? fields.minute ?? fields.second ?? fields.fractionalSecondDigits;
      if ((dateStyle ?? timeStyle) !== undefined) {
        if ((hasDate ?? hasTime) !== undefined) throw new TypeError("styles and single fields can not be mixed");
        Object.assign(fields, dateStyle && DATE[dateStyle], timeStyle && TIME[timeStyle]);
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
      const wished = pick(options, "hourCycle", ["h11", "h12", "h23", "h24"], "h12");
      // Without the halves of a day, midnight is 0: so the standard has it now; older engines say 24.
      const hourCycle = options?.hour12 === undefined ? wished : options.hour12 ? "h12" : "h23";
      this.#o = { locale: locale(locales), calendar: "gregory", numberingSystem: "latn", timeZone: "UTC", hourCycle, dateStyle, timeStyle, fields };
    }
    format = (value) => {
      const time = value === undefined ? Date.now() : Number(value);
      if (Number.isNaN(time) || Math.abs(time) > 8.64e15) throw new RangeError("it is no valid date");
      return this.#write(new Date(time));
    };
    formatToParts(value) { return [{ type: "literal", value: this.format(value) }]; }
    formatRange(from, to) { return `${this.format(from)} – ${this.format(to)}`; }
    #write(date) {
      const { fields, dateStyle, timeStyle } = this.#o;
      const day = this.#date(fields, date);
      const time = this.#time(fields, date);
      if (day === "" || time === "") return day + time;
      const isLong = dateStyle === "full" || dateStyle === "long" || (dateStyle === undefined && fields.month === "long");
      return isLong ? `${day} at ${time}` : `${day}, ${time}`;
    }
    #date({ weekday, year, month, day, era }, date) {
      const text = (names, at, how) => (how === "long" ? names[at] : how === "short" ? names[at].slice(0, 3) : names[at].slice(0, 1));
      const full = date.getUTCFullYear();
      const shownYear = full > 0 ? full : 1 - full;
      const years = year === undefined ? "" : year === "2-digit" ? two(shownYear % 100) : String(shownYear);
      const days = day === undefined ? "" : day === "2-digit" ? two(date.getUTCDate()) : String(date.getUTCDate());
      const name = weekday === undefined ? "" : text(DAYS, date.getUTCDay(), weekday);
      const wordy = TEXTS.includes(month);
      let body;
      if (wordy) {
        const months = text(MONTHS, date.getUTCMonth(), month);
        body = days === "" ? `${months} ${years}`.trim() : years === "" ? `${months} ${days}` : `${months} ${days}, ${years}`;
      } else {
        const months = month === undefined ? "" : month === "2-digit" ? two(date.getUTCMonth() + 1) : String(date.getUTCMonth() + 1);
        body = [months, days, years].filter((one) => one !== "").join("/");
      }
      if (era !== undefined) body += full > 0 ? " AD" : " BC";
      if (name === "") return body;
      return body === "" ? name : month === undefined && year === undefined ? `${body} ${name}` : `${name}, ${body}`;
    }
    #time({ hour, minute, second, fractionalSecondDigits, timeZoneName }, date) {
      const { hourCycle } = this.#o;
      const is12 = HALVES.includes(hourCycle);
      const pieces = [];
      if (hour !== undefined) {
        const hours = date.getUTCHours();
        const shown = { h11: hours % 12, h12: hours % 12 || 12, h23: hours, h24: hours || 24 }[hourCycle];
        pieces.push(hour === "2-digit" || !is12 ? two(shown) : String(shown));
      }
      if (minute !== undefined) pieces.push(hour === undefined && second === undefined && minute === "numeric" ? String(date.getUTCMinutes()) : two(date.getUTCMinutes()));
      if (second !== undefined || fractionalSecondDigits !== undefined) {
        const part = fractionalSecondDigits === undefined ? "" : `.${String(date.getUTCMilliseconds()).padStart(3, "0").slice(0, Number(fractionalSecondDigits))}`;
        const seconds = minute === undefined && hour === undefined && second !== "2-digit" ? String(date.getUTCSeconds()) : two(date.getUTCSeconds());
        pieces.push(seconds + part);
      }
      let text = pieces.join(":");
      if (hour !== undefined && is12) text += date.getUTCHours() < 12 ? " AM" : " PM";
      if (timeZoneName !== undefined) {
        const zone = timeZoneName === "long" ? "Coordinated Universal Time" : timeZoneName.endsWith("Offset") ? "GMT" : "UTC";
        text = text === "" ? zone : `${text} ${zone}`;
      }
      return text;
    }
    resolvedOptions() {
      const { fields, hourCycle, ...shown } = this.#o;
      const all = { ...shown, ...(fields.hour === undefined ? {} : { hour12: HALVES.includes(hourCycle), hourCycle }), ...fields };
      return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
    }
    static supportedLocalesOf(locales) { return [locales ?? []].flat().filter((one) => /^en\b/.test(String(one))); }
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
