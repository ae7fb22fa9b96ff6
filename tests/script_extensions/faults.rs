//! Scripts that do what they must not, or can not be read: each is named, with the place, and the session goes on.

use serde_json::{Value, json};

use super::{first_result, fixture, placed, with_script};
use crate::common::{
    Sandbox,
    puppets::{no_call, one_call},
};

/// What is said of a script that can not be started.
#[track_caller]
fn refused(text: &str) -> String {
    let sandbox = Sandbox::new();
    let run = with_script(&sandbox, text, &no_call()).arg("go").run().code(1);
    assert!(run.stdout.is_empty(), "{run:#?}");
    run.stderr
}

#[test]
fn a_script_that_can_not_be_started_is_refused_with_the_place_in_its_file() {
    for (text, expected) in [
        ("export default (a: any) => {\n  const x = ;\n}", "it.ts:2:13"),
        ("\n\nthrow new Error('at the top');", "it.ts:3:11: Error: at the top"),
        ("const a: number = 1;\nexport default () => {\n  a.b.c();\n};", "it.ts:3:"),
        ("import x from 'left-pad';\nexport default () => x;", "it.ts can not import `left-pad`"),
        ("import x from './not-there';\nexport default () => x;", "it.ts can not import `./not-there`"),
        ("import { nothing } from 'node:path';\nexport default () => nothing;", "nothing"),
        ("export const a = 1;", "it.ts has no default export"),
        ("/* atoll\n\n[uii]\nreason = 'x'\n*/\nexport default () => {};", "it.ts:3:"),
        ("export default async () => { await Promise.reject(new TypeError('later')); };", "TypeError: later"),
        ("export default a => { a.registerTool({name: 'x', description: 'd'}); };", "no function `execute`"),
        ("export default a => { a.registerTool({name: 'a b', description: 'd', execute() {}}); };", "a b"),
    ] {
        let said = refused(text);
        assert!(said.contains(expected), "{text}\n  said {said}");
    }
}

/// A run in which the model calls a tool, with a script that is to fail in it.
#[track_caller]
fn run_with(text: &str, limits: &Value) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"limits": {"it": limits}}));
    let model = one_call("bash", &json!({"command": "echo ran > ran.txt"}));
    let run = with_script(&sandbox, text, &model).arg("go").run().ok();
    assert_eq!(run.stdout, "done\n", "{run:#?}");
    (sandbox, run.stderr)
}

#[test]
fn a_handler_that_throws_is_named_with_its_place_and_the_run_goes_on() {
    let text = "export default (a: any) => {\n  a.on('turn_start', () => {});\n  a.on('context', (e: any) => {\n    e.nothing.at.all;\n  });\n};";
    let (_, said) = run_with(text, &json!({}));
    assert!(said.contains("the extension it failed at context") && said.contains("it.ts:4:"), "{said}");
    assert_eq!(said.matches("it.ts:4:").count(), 1, "it is said once: {said}");
}

#[test]
fn a_gate_that_fails_in_whatever_way_blocks_the_call() {
    for (handler, limits, expected) in [
        ("() => { throw new Error('broken gate'); }", json!({}), "broken gate"),
        ("async () => { await null; throw new Error('broken later'); }", json!({}), "broken later"),
        ("() => { for (;;); }", json!({"cpu-ms": 300}), "cpu-ms"),
        ("() => new Promise(() => {})", json!({"event-ms": 300}), "event-ms"),
        ("() => { const all = []; for (;;) all.push(new Array(10000).fill(1)); }", json!({"cpu-ms": 60000}), "memory"),
        ("() => { const f = () => f() + 1; f(); }", json!({}), "RangeError: Maximum call stack size exceeded"),
        ("() => ({block: true, reason: {}})", json!({}), "reason"),
    ] {
        let text = format!("export default (a: any) => a.on('tool_call', {handler});");
        let (sandbox, _) = run_with(&text, &limits);
        let read = first_result(&sandbox);
        assert!(read.contains(expected), "{handler}: {read}");
        assert!(!sandbox.work().join("ran.txt").exists(), "{handler}");
    }
}

/// In wasm, where it is the instance's stack that has to last: run natively, the same proves nothing of it.
#[test]
fn whatever_recurses_too_deep_is_an_error_that_the_script_can_catch() {
    let sandbox = Sandbox::new();
    let cases = [
        ("plain", "const f = n => f(n + 1) + 1; f(0)"),
        ("two", "const f = n => g(n) + 1, g = n => f(n) + 1; f(0)"),
        ("async", "const f = async n => (await 0, 0) + n; const g = n => { g(n); f(n); }; g(0)"),
        ("getter", "const o = { get x() { return this.x; } }; o.x"),
        ("text", "const o = { toString() { return `${this}`; } }; String(o)"),
        ("value", "const o = { valueOf() { return +this; } }; +o"),
        ("toJSON", "const o = { toJSON() { return JSON.stringify(o); } }; JSON.stringify(o)"),
        ("proxy", "let p = {}; for (let n = 0; n < 100000; n++) p = new Proxy(p, {}); p.x"),
        ("sort", "const f = () => [2, 1].sort(f); f()"),
        ("parse", "JSON.parse('['.repeat(200000))"),
        ("regexp", "new RegExp('('.repeat(100000))"),
        ("generator", "const f = function* () { yield* f(); }; f().next()"),
        ("source", "new Function('('.repeat(100000))"),
        ("functions", "new Function('()=>'.repeat(50000) + '1')"),
        ("spread", "const f = (...a) => f(...a, 1); f()"),
        ("replace", "const f = () => 'a'.replace(/a/, f); f()"),
        ("reviver", "const f = () => JSON.parse('[1]', f); f()"),
        ("class", "class A { constructor() { new A(); } } new A()"),
        ("flat", "let a = []; for (let n = 0; n < 100000; n++) a = [a]; a.flat(Infinity)"),
        ("bus", "atoll.events.on('self', () => atoll.events.emit('self')); atoll.events.emit('self')"),
    ];
    for (name, code) in cases {
        let tried = format!("try {{ {code}; return 'no error'; }} catch (error) {{ return error.name; }}");
        let sandbox = Sandbox::new();
        let (gave, run) = super::done(&sandbox, &[&tried, "return 'alive'"], &[]);
        let caught = gave[0].as_str().unwrap_or_default();
        assert!(
            ["RangeError", "SyntaxError", "InternalError", "HostError"].contains(&caught),
            "{name}: {gave:?} {run:#?}"
        );
        assert_eq!(gave[1], "alive", "{name}: {run:#?}");
    }
    // What is not too deep is done.
    let deep = "const f = n => (n === 0 ? 0 : 1 + f(n - 1)); return f(2000)";
    let parsed =
        "let a = JSON.parse('['.repeat(1000) + ']'.repeat(1000)), n = 0; while (a) { a = a[0]; n++; } return n";
    let (gave, run) = super::done(&sandbox, &[deep, parsed], &[]);
    assert_eq!(gave, [json!(2000), json!(1000)], "{run:#?}");
}

#[test]
fn a_script_that_died_is_started_again_with_what_it_kept() {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"limits": {"it": {"cpu-ms": 300}}}));
    let text = "export default async a => {
      const born = ((await a.store.get('born')) ?? 0) + 1;
      await a.store.set('born', born);
      a.on('context', () => { if (born === 1) for (;;); });
      a.on('tool_result', () => ({content: 'life ' + born}));
    };";
    let model = one_call("bash", &json!({"command": "sleep 1"}));
    let run = with_script(&sandbox, text, &model).arg("go").run().ok();
    assert!(run.stderr.contains("cpu-ms"), "{run:#?}");
    assert_eq!(first_result(&sandbox), "life 2");
}

#[test]
fn a_promise_that_nobody_waits_for_is_in_the_log() {
    let sandbox = Sandbox::new();
    let text = "export default a => {\n  Promise.reject(new Error('lost'));\n  const late = Promise.reject(new Error('caught'));\n  late.catch(() => {});\n  console.log('a line');\n};";
    let run = with_script(&sandbox, text, &no_call()).env("ATOLL_LOG", "plugin=info").arg("go").run().ok();
    assert!(run.stderr.contains("it.ts:2:") && run.stderr.contains("lost"), "{run:#?}");
    assert!(run.stderr.contains("a line") && !run.stderr.contains("caught"), "{run:#?}");
}

#[test]
fn floods_are_bounded() {
    let many = "export default a => { for (let n = 0; n < 20000; n++) a.registerTool({name: 't' + n, description: 'd', execute() {}}); };";
    let said = refused(many);
    assert!(said.contains("tools") && said.contains("it"), "{said}");
    let text = "export default a => a.on('session_start', () => { for (let n = 0; n < 10500; n++) console.log('line ' + n); });";
    let sandbox = Sandbox::new();
    let run = with_script(&sandbox, text, &no_call()).env("ATOLL_LOG", "plugin=info").arg("go").run().ok();
    let lines = run.stderr.lines().filter(|line| line.contains("line ")).count();
    assert!((9_000..=10_000).contains(&lines), "{lines} lines");
    assert_eq!(run.stderr.matches("it logs too much").count(), 1);
    let text = "export default a => a.on('session_start', (_, ctx) => { for (let n = 0; n < 5000; n++) ctx.ui.notify('note ' + n); });";
    let sandbox = Sandbox::new();
    let run = with_script(&sandbox, text, &no_call()).arg("go").run().ok();
    assert_eq!(run.stderr.matches("note ").count(), 100);
    assert_eq!(run.stderr.matches("it says too much").count(), 1);
    let sandbox = Sandbox::new();
    let text = "export default a => a.registerTool({name: 'emit', description: 'd', execute: async () => { \
        try { for (let n = 0; n < 100000; n++) a.events.emit('topic', n); } catch (e) { return e.code; } return 'all'; }});";
    let listener = placed(&sandbox, "listener.ts", "export default a => a.events.on('topic', () => {});");
    let run = with_script(&sandbox, text, &one_call("emit", &json!({}))).arg("-e").arg(listener).arg("go").run().ok();
    assert_eq!(first_result(&sandbox), "limit", "{run:#?}");
}

#[test]
fn what_a_script_says_in_a_terminal_is_harmless() {
    let sandbox = Sandbox::new();
    let text =
        "export default a => a.on('turn_start', (_, ctx) => ctx.ui.notify('\\u001b]0;owned\\u0007 red', 'info'));";
    let run = with_script(&sandbox, text, &no_call()).arg("go").run().ok();
    assert!(!run.stderr.contains('\u{1b}') && run.stderr.contains("red"), "{run:#?}");
}

#[test]
fn a_script_named_like_a_built_in_plugin_or_twice_is_refused() {
    let sandbox = Sandbox::new();
    let script = placed(&sandbox, "script.ts", "export default () => {};");
    let run = sandbox.atoll().arg("-e").arg(script).args(["tool", "list"]).run().code(1);
    assert!(run.stderr.contains("`script` is the name of a built-in plugin"), "{run:#?}");
    let (one, two) = (fixture(&sandbox, "run.ts"), placed(&sandbox, "other/run.ts", "export default () => {};"));
    let run = sandbox.atoll().arg("-e").arg(one).arg("-e").arg(two).args(["tool", "list"]).run().code(1);
    assert!(run.stderr.contains("both the plugin run"), "{run:#?}");
    let run = sandbox.atoll().args(["-e", "not-there.ts", "tool", "list"]).run().code(1);
    assert!(run.stderr.contains("not-there.ts does not exist"), "{run:#?}");
}
