//! Two scripts share nothing.

use serde_json::json;

use super::{give, run, run_in, said, text_of, with_tools};

#[test]
fn a_script_finds_nothing_of_the_one_before() {
    give(&[
        (
            "globalThis.left = 1; globalThis[Symbol.for('left')] = 1; Error.stackTraceLimit = 3; setTimeout(() => {}, 1); return globalThis.left",
            "1",
        ),
        (
            "return [typeof left, Object.keys(globalThis).includes('left'), typeof globalThis[Symbol.for('left')], Error.stackTraceLimit === 3].join()",
            "undefined,false,undefined,false",
        ),
        (
            "const fill = []; for (let i = 0; i < 32; i += 1) fill.push(new Uint8Array(1 << 20).fill(0xA7)); return fill.length",
            "32",
        ),
        (
            "let found = 0; for (let i = 0; i < 64; i += 1) if (new Uint8Array(1 << 20).some((b) => b !== 0)) found += 1; return found",
            "0",
        ),
    ]);
}

#[test]
fn random_numbers_are_not_those_of_another_script() {
    let script = "return [Math.random(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(4))].join()].join(' ')";
    let results = run(&[script, script, script]);
    let mut seen: Vec<String> =
        results.iter().flat_map(|result| said(result).split(' ').map(str::to_owned).collect::<Vec<_>>()).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 12, "{seen:?}");
}

#[test]
fn many_scripts_at_once_each_have_their_own() {
    let sandbox = with_tools();
    let call = |at: usize| {
        let code = format!(
            "globalThis.mine = {at}; const r = await tools.echo({{ at: {at} }}); await new Promise((d) => setTimeout(d, 20)); return `${{mine}} ${{r.at}}`"
        );
        json!({"tool": "codemode", "arguments": {"code": code}})
    };
    let calls: Vec<_> = (0..100).map(call).collect();
    let script = json!({"turns": [{"calls": calls}, {"text": "done"}]});
    sandbox.scripted(&script).args(["--tools", "+codemode"]).arg("go").longest(120).run().ok();
    let results = sandbox.results();
    assert_eq!(results.len(), 100);
    for (at, result) in results.iter().enumerate() {
        assert!(text_of(&result["content"]).ends_with(&format!("\n{at} {at}")), "{result:#}");
    }
}

#[test]
fn a_script_that_a_trap_ends_harms_no_other() {
    let sandbox = with_tools();
    sandbox.settings(&json!({"limits": {"codemode": {"memory-mib": 48}}}));
    let results = run_in(&sandbox, &["const a = []; for (;;) a.push(new Uint8Array(1 << 20))", "return 'fine'"]);
    assert_eq!(results[0]["isError"], true, "{results:#?}");
    assert_eq!(said(&results[1]), "fine");
}
