//! What scripts have beyond the language.

use super::{give, hold};

#[test]
fn numbers_and_dates_are_written_as_in_english() {
    give(&[
        (
            "return [1234567.891, 0.1, -5, 1e21, NaN, 12345.6785].map((n) => n.toLocaleString()).join(' ')",
            "1,234,567.891 0.1 -5 1,000,000,000,000,000,000,000 NaN 12,345.679",
        ),
        ("return (1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })", "$1,234.50"),
        ("return (-1234.5).toLocaleString('en', { style: 'currency', currency: 'JPY' })", "-¥1,235"),
        ("return [0.256, 1].map((n) => n.toLocaleString('en', { style: 'percent' })).join()", "26%,100%"),
        (
            "return [999, 1234, 15300, 1.25e6, 2e9].map((n) => n.toLocaleString('en', { notation: 'compact' })).join()",
            "999,1.2K,15K,1.3M,2B",
        ),
        ("return (5).toLocaleString('en', { style: 'unit', unit: 'kilometer-per-hour' })", "5 km/h"),
        ("return (1234567n).toLocaleString()", "1,234,567"),
        ("return new Intl.NumberFormat('en', { minimumFractionDigits: 2 }).format(1.005)", "1.005"),
        ("return new Intl.NumberFormat('en', { maximumSignificantDigits: 3 }).format(123456)", "123,000"),
        ("return new Date(Date.UTC(2026, 0, 5, 15, 4, 9)).toLocaleString('en-US')", "1/5/2026, 3:04:09 PM"),
        (
            "return new Date(0).toLocaleDateString('en', { weekday: 'long', month: 'long', day: 'numeric', year: 'numeric' })",
            "Thursday, January 1, 1970",
        ),
        ("return new Date(0).toLocaleDateString('en', { dateStyle: 'medium' })", "Jan 1, 1970"),
        (
            "return ['h11', 'h12', 'h23', 'h24'].map((hourCycle) => new Date(0).toLocaleTimeString('en', { hourCycle })).join()",
            "0:00:00 AM,12:00:00 AM,00:00:00,24:00:00",
        ),
        (
            "return [0, 12, 13].map((h) => new Date(h * 3600000).toLocaleTimeString('en', { hour12: false, timeStyle: 'short' })).join()",
            "00:00,12:00,13:00",
        ),
        (
            "const { hour12, hourCycle } = new Intl.DateTimeFormat('en', { hour: '2-digit', hour12: false, hourCycle: 'h12' }).resolvedOptions(); return [hour12, hourCycle].join()",
            "false,h23",
        ),
        ("return new Date(NaN).toLocaleString()", "Invalid Date"),
        ("return new Intl.PluralRules('en', { type: 'ordinal' }).select(22)", "two"),
        ("return new Intl.ListFormat('en').format(['a', 'b', 'c'])", "a, b, and c"),
        ("return new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(-1, 'day')", "yesterday"),
        ("return ['a10', 'a2'].sort(new Intl.Collator('en', { numeric: true }).compare).join()", "a2,a10"),
    ]);
    hold(&[
        ("new Date().toLocaleString('en', { timeZone: 'Europe/Berlin' })", true, &["RangeError", "only UTC"]),
        ("(1).toLocaleString('no locale')", true, &["RangeError"]),
    ]);
}

#[test]
fn time_and_what_belongs_to_it() {
    give(&[
        (
            "const a = performance.now(); await new Promise((d) => setTimeout(d, 20)); const b = performance.now() - a; return b >= 19 && b < 10000 && a < 10000",
            "true",
        ),
        ("return Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 2000", "true"),
        (
            "const seen = []; setTimeout(() => seen.push(2), 5); setImmediate(() => seen.push(1)); queueMicrotask(() => seen.push(0)); await new Promise((d) => setTimeout(d, 30)); return seen.join()",
            "0,1,2",
        ),
        (
            "const c = new AbortController(); let why; c.signal.addEventListener('abort', () => { why = c.signal.reason.name }); c.abort(); return why + c.signal.aborted",
            "AbortErrortrue",
        ),
        (
            "const s = AbortSignal.timeout(5); await new Promise((d) => setTimeout(d, 20)); return s.reason.name",
            "TimeoutError",
        ),
        (
            "console.count(); console.count(); console.table([{ a: 1 }, { a: 2 }]); console.time('t')",
            "--- console ---\ndefault: 1\ndefault: 2\n | a |\n0 | 1 |\n1 | 2 |",
        ),
    ]);
}

#[test]
fn what_can_be_asked_of_text_and_bytes() {
    give(&[
        ("return new URL('../b?x=1', 'https://h/a/c').href", "https://h/b?x=1"),
        ("return btoa('abc') + new TextDecoder().decode(new TextEncoder().encode('é'))", "YWJjé"),
        ("return /^[0-9a-f-]{36}$/.test(crypto.randomUUID())", "true"),
        ("const a = structuredClone({ m: new Map([[1, { b: 2 }]]) }); return a.m.get(1).b", "2"),
    ]);
}
