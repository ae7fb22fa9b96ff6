//! The ends of scripts that do not end: each is named, and what was said before is shown.

use serde_json::json;

use super::{hold, hold_in, run, run_in, said, text_of, with_tools};

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
        scripts.iter().map(|script| (script.as_str(), true, ["\nbefore\n", "`timeout` (300 ms"].as_slice())).collect();
    hold(&cases);
    let result = &run(&[&after("await Promise.all([tools.sleep({ ms: 60000 }), tools.sleep({ ms: 60000 })])")])[0];
    assert_eq!(result["details"]["limit"], "timeout");
    assert!(said(result).contains("running at that time: sleep, sleep"), "{result:#}");
    assert_eq!(result["details"]["calls"][1]["status"], "stopped");
}

/// What was said is there after an end that the script has no part in.
#[test]
fn what_the_host_ends_leaves_what_was_said() {
    let sandbox = with_tools();
    let scripts =
        ["await tools.echo({}); text('before'); 'a'.repeat(1 << 26).replaceAll('a', 'bb'.repeat(100)).length"];
    for (script, result) in scripts.iter().zip(run_in(&sandbox, &scripts)) {
        let text = text_of(&result["content"]);
        assert_eq!(result["isError"], true, "{script}\n{text:.3000}");
        assert!(text.lines().any(|line| line == "before"), "{script}\n{text:.3000}");
        assert!(text.contains("memory"), "{script}\n{text:.3000}");
    }
}

#[test]
fn a_command_that_has_less_time_than_the_script_names_the_one_that_was_given() {
    let sandbox = with_tools();
    sandbox.file("script", "await new Promise((done) => setTimeout(done, 60000))");
    let ended = sandbox.atoll().args(["codemode", "run", "script", "--timeout", "2"]).run().code(1);
    assert!(ended.stderr.contains("the limit `timeout` that it was started with"), "{ended:#?}");
}

#[test]
fn a_script_that_fails_of_a_call_has_the_code_of_that_call() {
    let sandbox = with_tools();
    let denied = sandbox.home_file("secret.txt", "secret");
    let scripts = [
        "await tools.refuse({})".to_owned(),
        "await tools['fail-me']({})".to_owned(),
        "await tools.nothing({})".to_owned(),
        format!("await tools.read({{ path: {:?} }})", denied.to_str().unwrap()),
        "try { await tools.refuse({}) } catch {} throw new Error('mine')".to_owned(),
        format!("{SOON}for (;;);"),
    ];
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let codes: Vec<serde_json::Value> =
        run_in(&sandbox, &scripts).iter().map(|result| result["details"]["error"]["code"].clone()).collect();
    assert_eq!(codes, ["unavailable", "failed", "not-found", "denied", "failed", "timeout"]);
    sandbox.file("script", "await tools.bash({ command: 'true' })");
    let refused = sandbox.atoll().args(["codemode", "run", "script", "--allow", "read"]).run().code(3);
    assert!(refused.stderr.contains("--allow bash"), "{refused:#?}");
}

#[test]
fn computing_without_end_is_ended_and_the_limit_is_named() {
    let sandbox = with_tools();
    sandbox.settings(&json!({"limits": {"codemode": {"cpu-ms": 700}}}));
    hold_in(
        &sandbox,
        &[
            ("text('before'); while (true) {}", true, &["\nbefore\n", "limit `cpu-ms`"]),
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
        ("text('before'); await new Promise(() => {})", true, &["\nbefore\n", "nothing is left to settle"]),
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
            &["\nbefore\n", "limit `memory`"],
        ),
        (
            "let n = 0; try { const a = []; for (;;) a.push(new Array(1e5).fill(n++)) } catch (e) { text(e.name) } return n > 10",
            false,
            &["InternalError", "true"],
        ),
        (
            "text('before'); const m = new Map(); for (let i = 0; ; i += 1) m.set(i, { i })",
            true,
            &["\nbefore\n", "limit `memory`"],
        ),
        ("text('before'); const a = []; for (;;) a.push(() => {})", true, &["\nbefore\n", "limit `memory`"]),
        ("throw null", true, &["something that is no error: null"]),
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
            "text('before'); const picture = `R0lGODlh${'A'.repeat(20 << 20)}`; for (let i = 0; i < 40; i += 1) image({ type: 'image', mimeType: 'image/gif', data: picture })",
            true,
            &["\nbefore\n", "limit `output`"],
        ),
        ("text('before'); throw new Error('x'.repeat(1e8))", true, &["\nbefore\n", "\nError: xxx", "x…\n"]),
        ("text('before'); throw 'x'.repeat(1e8)", true, &["\nbefore\n", "no error: xxx"]),
        ("Promise.reject(new Error('x'.repeat(2e7))); text('on')", false, &["\non\n", "A promise failed", "x…\n"]),
        (
            "let n = 0; try { for (;;) { setTimeout(() => {}, 60000); n += 1 } } catch (e) { return `${n} ${e.name}` }",
            false,
            &["10000 RangeError"],
        ),
        (
            "let o = {}; for (let i = 0; i < 130; i += 1) o = { o }; text('said'); return o",
            false,
            &["\nsaid\n", "{\"o\":"],
        ),
        (
            "let failed = 0; const all = []; for (let i = 0; i < 10010; i += 1) all.push(tools.say({}).catch((e) => { failed += 1; text(e.code) })); await Promise.all(all.slice(10000)); text(`${failed} refused`); exit()",
            false,
            &["limit", "10 refused"],
        ),
    ]);
}
