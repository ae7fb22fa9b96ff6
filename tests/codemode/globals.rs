//! What scripts have beyond the language.

use super::{give, hold, run, said};

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

#[test]
fn locales_are_written_as_they_are_or_refused() {
    give(&[
        (
            "return [1e-7, -1e-7, 1.5e-10].map((n) => n.toLocaleString('en', { maximumFractionDigits: 10 })).join(' ')",
            "0.0000001 -0.0000001 0.0000000002",
        ),
        ("return [(1e-7).toLocaleString(), (1e-7).toLocaleString('en', { style: 'percent' })].join()", "0,0%"),
        (
            "const d = new Date(Date.UTC(2026, 8, 5, 15, 4, 9)); return ['en-US', 'en-GB', 'en-CA', 'sv-SE'].map((l) => d.toLocaleString(l)).join(' | ')",
            "9/5/2026, 3:04:09 PM | 05/09/2026, 15:04:09 | 2026-09-05, 3:04:09 p.m. | 2026-09-05 15:04:09",
        ),
        (
            "const d = new Date(Date.UTC(2026, 8, 5)); return ['en-GB', 'en-CA', 'sv-SE'].map((l) => d.toLocaleDateString(l)).join()",
            "05/09/2026,2026-09-05,2026-09-05",
        ),
        ("return new Date(Date.UTC(2026, 8, 5)).toLocaleDateString('en-GB', { dateStyle: 'medium' })", "5 Sept 2026"),
        ("return (1234.5).toLocaleString('en-GB', { style: 'currency', currency: 'USD' })", "US$1,234.50"),
        (
            "return new Intl.NumberFormat('en').formatToParts(-1234.5).map((p) => `${p.type}:${p.value}`).join(' ')",
            "minusSign:- integer:1 group:, integer:234 decimal:. fraction:5",
        ),
        (
            "return new Intl.DateTimeFormat('en').formatToParts(0).map((p) => `${p.type}:${p.value}`).join(' ')",
            "month:1 literal:/ day:1 literal:/ year:1970",
        ),
        ("return new Intl.ListFormat('en-GB').format(['a', 'b', 'c'])", "a, b and c"),
        ("return Intl.DateTimeFormat.supportedLocalesOf(['de', 'en-GB', 'sv-SE']).join()", "en-GB,sv-SE"),
        (
            "return ['de-DE', 'en-GB'].map((l) => { try { return new Intl.NumberFormat(l).format(0.5) } catch (e) { return e.name } }).join()",
            "RangeError,0.5",
        ),
    ]);
    hold(&[
        (
            "new Date().toLocaleDateString('de-DE')",
            true,
            &["RangeError", "de-DE is not known here; there are en-US, en-GB, en-CA, sv-SE"],
        ),
        ("(1).toLocaleString('sv-SE')", true, &["RangeError", "en-US, en-GB, en-CA"]),
        ("new Date().toLocaleDateString('sv-SE', { month: 'long' })", true, &["RangeError", "Swedish"]),
        ("(1).toLocaleString('en', { roundingMode: 'floor' })", true, &["RangeError", "roundingMode"]),
    ]);
}

#[test]
fn texts_are_in_the_order_of_a_dictionary() {
    give(&[
        (
            "return ['b', 'a', 'ä', 'B', 'A', 'z', 'Ä', 'æ'].sort((a, b) => a.localeCompare(b)).join()",
            "a,A,ä,Ä,æ,b,B,z",
        ),
        (
            "return ['_b', 'a1', '-a', 'a', '1', 'A b', '$'].sort((a, b) => a.localeCompare(b)).join()",
            "_b,-a,$,1,a,A b,a1",
        ),
        (
            "return ['a10', 'a2', 'a02'].sort((a, b) => a.localeCompare(b, 'en', { numeric: true })).join()",
            "a2,a02,a10",
        ),
        (
            "return ['a', 'A', 'á'].map((b) => ['base', 'accent', 'case', 'variant'].map((sensitivity) => 'a'.localeCompare(b, undefined, { sensitivity })).join('')).join()",
            "0000,00-1-1,0-10-1",
        ),
        ("return ['a', 'A', 'b'].sort(new Intl.Collator('en', { caseFirst: 'upper' }).compare).join()", "A,a,b"),
        ("return 'résumé'.localeCompare('resume', 'de', { sensitivity: 'base' })", "0"),
    ]);
    hold(&[("'a'.localeCompare('b', 'sv')", true, &["RangeError", "sv is not known here"])]);
}

#[test]
fn what_is_shown_of_values_of_the_platform() {
    give(&[
        ("return new Map([[1, 2]]).keys()", "[Map Iterator; [...it] gives what is in it]"),
        ("return [(function* () {})()]", "[\n  \"[Generator; [...it] gives what is in it]\"\n]"),
        ("return new URLSearchParams('a=1&b')", "URLSearchParams { \"a\" => \"1\", \"b\" => \"\" }"),
        ("return new DataView(new ArrayBuffer(2))", "DataView [ 0, 0 ]"),
        ("return { f() {} }", "{ f: [function f] }"),
        ("return {}", "{}"),
        (
            "console.log(new URL('http://a/b'), '%s'); console.log('%s is %d%%', 'x', '5', { a: 1 })",
            "--- console ---\nURL http://a/b %s\nx is 5% { a: 1 }",
        ),
        (
            "console.group('g'); console.log('a\\nb'); console.groupEnd(); console.log('c')",
            "--- console ---\ng\n  a\n  b\nc",
        ),
    ]);
    let text = said(&run(&["text(tools)"])[0]);
    assert!(text.starts_with("{ ") && text.contains("echo: [function echo]"), "{text}");
}

#[test]
fn urls_can_be_changed_and_old_bytes_read() {
    give(&[
        (
            "const u = new URL('https://u:p@h:8080/a?b#c'); u.protocol = 'http'; u.host = 'o.com:99'; u.username = 'x y'; u.password = ''; u.port = '80'; return u.href",
            "http://x%20y@o.com/a?b#c",
        ),
        (
            "const u = new URL('https://h/'); u.hostname = 'a b'; u.protocol = 'mailto'; u.port = 'x'; return u.href",
            "https://h/",
        ),
        (
            "return new TextDecoder('utf-16le').decode(new Uint8Array([0xff, 0xfe, 0x41, 0, 0x3d, 0xd8, 0, 0xde]))",
            "A😀",
        ),
        (
            "return new TextDecoder('latin1').decode(new Uint8Array([0x41, 0xe9, 0x80])) + new TextDecoder('ascii').encoding",
            "Aé€windows-1252",
        ),
        (
            "const d = new TextDecoder('utf-16be'); return d.decode(new Uint8Array([0xd8, 0x3d, 0xde]), { stream: true }) + d.decode(new Uint8Array([0]))",
            "😀",
        ),
    ]);
    hold(&[
        ("new TextDecoder('utf-16le', { fatal: true }).decode(new Uint8Array([0, 0xd8]))", true, &["not UTF-16LE"]),
        ("new TextDecoder('shift_jis')", true, &["RangeError", "shift_jis can not be decoded"]),
    ]);
}
