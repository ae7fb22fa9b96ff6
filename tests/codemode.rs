//! Scripts of the tool `codemode`, through the program.
//!
//! Those of one test run in one process, one after the other, so that each also shows that the ones before it left nothing
//! behind.

mod calls;
mod cases;
mod globals;
mod hostile;
mod image;
mod isolation;
mod limits;
mod mistakes;
mod reach;
mod surroundings;

use serde_json::{Value, json};

use crate::common::{Sandbox, plugins::test_plugin};

const TOOLS_TOML: &str = include_str!("plugins/script-tools/plugin.toml");

/// A sandbox with tools for scripts.
fn with_tools() -> Sandbox {
    let sandbox = Sandbox::new();
    let component = test_plugin("script_tools");
    sandbox.plugin("script-tools", &component, Some(TOOLS_TOML));
    sandbox.grant("script-tools", &component, "all = true");
    sandbox
}

/// Runs scripts in one session, and gives their results.
#[track_caller]
fn run_in(sandbox: &Sandbox, scripts: &[&str]) -> Vec<Value> {
    let turn = |code: &&str| json!({"calls": [{"tool": "codemode", "arguments": {"code": code}}]});
    let turns: Vec<Value> = scripts.iter().map(turn).chain([json!({"text": "done"})]).collect();
    sandbox.scripted(&json!({"turns": turns})).args(["--tools", "+codemode"]).arg("go").longest(120).run().ok();
    let results = sandbox.results();
    assert_eq!(results.len(), scripts.len(), "{results:#?}");
    results
}

#[track_caller]
fn run(scripts: &[&str]) -> Vec<Value> {
    run_in(&with_tools(), scripts)
}

/// The pieces of a result, each on lines of its own.
fn text_of(content: &Value) -> String {
    let pieces = content.as_array().unwrap().iter().filter_map(|piece| piece["text"].as_str());
    pieces.collect::<Vec<_>>().join("\n")
}

/// What the model reads of a script, without the first line, which has the time in it.
#[track_caller]
fn said(result: &Value) -> String {
    let text = text_of(&result["content"]);
    let (status, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let expected = if result["isError"] == true { "Failed after " } else { "Completed in " };
    assert!(status.starts_with(expected) || rest.is_empty(), "{text}");
    if status.starts_with(expected) { rest.to_owned() } else { text }
}

/// Runs scripts that have to give these texts.
#[track_caller]
fn give(cases: &[(&str, &str)]) {
    let scripts: Vec<&str> = cases.iter().map(|(script, _)| *script).collect();
    for ((script, expected), result) in cases.iter().zip(run(&scripts)) {
        assert_eq!(said(&result), *expected, "{script}\n{result:#}");
        assert_eq!(result["isError"], false, "{script}\n{result:#}");
    }
}

/// Runs scripts each of which has to end in failure or not, with all of these in what is said. The last one that is run
/// shows that those before left nothing behind.
#[track_caller]
fn hold_in(sandbox: &Sandbox, cases: &[(&str, bool, &[&str])]) {
    let scripts: Vec<&str> =
        cases.iter().map(|(script, ..)| *script).chain(["return await tools.echo({ a: 1 })"]).collect();
    let results = run_in(sandbox, &scripts);
    for ((script, fails, says), result) in cases.iter().zip(&results) {
        let script: String = script.chars().take(300).collect();
        let text = text_of(&result["content"]);
        assert_eq!(result["isError"], *fails, "{script}\n{text:.3000}");
        for part in *says {
            assert!(text.contains(part), "no {part:?}: {script}\n{text:.3000}");
        }
    }
    assert_eq!(said(results.last().unwrap()), "{\n  \"a\": 1\n}");
}

#[track_caller]
fn hold(cases: &[(&str, bool, &[&str])]) {
    hold_in(&with_tools(), cases);
}
