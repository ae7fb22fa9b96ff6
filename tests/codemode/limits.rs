//! The ends of scripts that do not end: each is named, and what was said before is shown.

use serde_json::json;

use super::{hold, hold_in, run, said, with_tools};

const SOON: &str = "// @options: {\"timeout_ms\": 300}\n";

#[test]
fn a_script_that_takes_too_long_is_ended_with_what_it_said() {
    let after = |script: &str| format!("{SOON}text('before'); {script}");
    let scripts = [
        "while (true) {}",
        "for (;;) { try { for (;;); } catch {} finally { for (;;); } }",
        "await 0; while (true) {}",
        "(async () => { await 0; for (;;); })(); await new Promise(() => {})",
        "const again = () => Promise.resolve().then(again); await again()",
        "function* f() { try { for (;;) yield 1 } finally { for (;;); } } for (const x of f());",
        "await new Promise((d) => setTimeout(d, 60000))",
        "await tools.sleep({ ms: 60000 })",
        "setInterval(() => {}, 0); await new Promise(() => {})",
        "return /^(a+)+$/.test('a'.repeat(32) + '!')",
        "[...Array(1e6).keys()].sort(() => { for (;;); })",
        "JSON.stringify({ toJSON() { for (;;); } })",
    ];
    let scripts: Vec<String> = scripts.iter().map(|script| after(script)).collect();
    let cases: Vec<(&str, bool, &[&str])> =
        scripts.iter().map(|script| (script.as_str(), true, ["before", "`timeout` (300 ms"].as_slice())).collect();
    hold(&cases);
    let result = &run(&[&after("await Promise.all([tools.sleep({ ms: 60000 }), tools.sleep({ ms: 60000 })])")])[0];
    assert_eq!(result["details"]["limit"], "timeout");
    assert!(said(result).contains("running at that time: sleep, sleep"), "{result:#}");
    assert_eq!(result["details"]["calls"][1]["status"], "stopped");
}

#[test]
fn computing_without_end_is_ended_and_the_limit_is_named() {
    let sandbox = with_tools();
    sandbox.settings(&json!({"limits": {"codemode": {"cpu-ms": 700}}}));
    hold_in(
        &sandbox,
        &[
            ("text('before'); while (true) {}", true, &["before", "limit `cpu-ms`"]),
            ("[].indexOf.call({ length: 2 ** 53 - 1 }, 1)", true, &["cpu-ms"]),
            ("return /^(a+)+$/.test('a'.repeat(40) + '!')", true, &["cpu-ms"]),
        ],
    );
}

#[test]
fn scripts_of_models_that_have_no_end_are_given_one() {
    let soon = |script: &str| format!("{SOON}{script}");
    // Polls for what never changes, collects what it never lets go, and checks what it can not.
    let poll =
        "let status = 'pending';\nwhile (status !== 'ready') {\n  if (status === 'failed') break;\n}\nreturn status";
    let collect = "const pages = [];\nfor (let page = 0; ; page += 1) pages.push(`${page}`.padEnd(1 << 20, '.'))";
    let check = "const isList = /^(\\w+\\s?)*$/;\nreturn isList.test('word '.repeat(12) + '!'.repeat(3))";
    hold(&[
        (&soon(poll), true, &["`timeout` (300 ms"]),
        (collect, true, &["limit `memory`"]),
        (&soon(check), true, &["`timeout` (300 ms"]),
    ]);
}

#[test]
fn what_can_never_come_is_not_waited_for() {
    hold(&[
        ("text('before'); await new Promise(() => {})", true, &["before", "nothing is left to settle"]),
        ("await tools.echo({}); await new Promise(() => {})", true, &["nothing is left to settle", "1 call was made"]),
        ("setTimeout(() => {}, 5); await new Promise(() => {})", true, &["nothing is left to settle"]),
    ]);
}

#[test]
fn memory_and_stack_have_an_end() {
    hold(&[
        (
            "text('before'); const a = []; for (;;) a.push('y'.repeat(1 << 20) + a.length)",
            true,
            &["before", "limit `memory`"],
        ),
        (
            "let n = 0; try { const a = []; for (;;) a.push(new Array(1e5).fill(n++)) } catch (e) { text(e.name) } return n > 10",
            false,
            &["InternalError", "true"],
        ),
        ("const f = (n) => n === 0 ? 0 : 1 + f(n - 1); return f(2000)", false, &["2000"]),
        ("const f = () => f() + 1; f()", true, &["limit `stack`"]),
        ("const f = () => f() + 1; try { f() } catch (e) { return e.name }", false, &["RangeError"]),
    ]);
}

/// Whatever recurses, on whichever stack, can be caught.
#[test]
fn all_recursion_ends_in_an_error_that_can_be_caught() {
    let ways = [
        "const f = async () => { await f(); }; await f()",
        "const o = { get a() { return o.a } }; o.a",
        "const o = { toString() { return `${o}` } }; `${o}`",
        "const o = { valueOf() { return +o } }; +o",
        "const o = { toJSON() { return JSON.stringify(o) } }; JSON.stringify(o)",
        "const p = new Proxy({}, { get(t, k, r) { return r[k] } }); p.a",
        "let p = {}; for (let i = 0; i < 1e5; i += 1) p = new Proxy(p, {}); p.a",
        "const f = () => [2, 1].sort(f); f()",
        "JSON.parse('['.repeat(1e6))",
        "new RegExp('('.repeat(1e6))",
        "eval('('.repeat(1e5) + ')'.repeat(1e5))",
        "function* f() { yield* f() } [...f()]",
        "const f = () => [1].map(f); f()",
        "class A { constructor() { return new A() } } new A()",
        "const f = (...a) => f.apply(null, a); f(1)",
        "let o = {}; for (let i = 0; i < 1e5; i += 1) o = { o }; JSON.stringify(o)",
        "let o = {}; for (let i = 0; i < 1e5; i += 1) o = { o }; structuredClone(o)",
        "'a'.replace(/a/, function f() { return 'a'.replace(/a/, f) })",
    ];
    let scripts: Vec<String> = ways
        .iter()
        .map(|way| format!("try {{ {way}; text('no error') }} catch (e) {{ text('caught ' + e.name) }}"))
        .collect();
    let cases: Vec<(&str, bool, &[&str])> =
        scripts.iter().map(|script| (script.as_str(), false, ["caught "].as_slice())).collect();
    hold(&cases);
}

#[test]
fn output_and_calls_have_an_end() {
    hold(&[
        ("for (let i = 0; i < 1e6; i += 1) text('')", true, &["limit `output`"]),
        ("text('a'.repeat(9 << 20)); text('b'.repeat(9 << 20))", true, &["limit `output`"]),
        ("for (;;) console.log('x')", true, &["limit `output`"]),
        (
            "let failed = 0; const all = []; for (let i = 0; i < 10010; i += 1) all.push(tools.say({}).catch((e) => { failed += 1; text(e.code) })); await Promise.all(all.slice(10000)); text(`${failed} refused`); exit()",
            false,
            &["limit", "10 refused"],
        ),
    ]);
}
