//! The skills that ship with Atoll: what they tell models to do works.

use crate::common::{Sandbox, plugins::workspace_root};

/// The code blocks of a language in a text.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let start = format!("```{language}\n");
    text.split(&start).skip(1).map(|rest| rest.split_once("```\n").unwrap().0.to_owned()).collect()
}

#[test]
fn every_script_in_the_skill_on_scripts_runs_and_gives_what_it_is_for() {
    let path = workspace_root().join("skills/codemode/SKILL.md");
    let scripts = blocks(&std::fs::read_to_string(path).unwrap(), "js");
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha");
    sandbox.file("b.txt", "beta");
    let line = |at: usize| match at % 90 {
        0 => format!("{at}: an error\n"),
        45 => format!("{at}: a warning\n"),
        _ => format!("{at}: fine\n"),
    };
    sandbox.file("build.log", (1..=500).map(line).collect::<String>());
    let expected = [
        vec!["a.txt: 5 characters", "b.txt: 4 characters", "missing.txt: "],
        vec!["\"count\": 5", "90: an error"],
        vec!["alpha"],
        vec!["45: a warning", "135: a warning", "225: a warning"],
        vec!["a.txt", "build.log"],
    ];
    assert_eq!(scripts.len(), expected.len(), "a script of the skill has no test");
    for (script, expected) in scripts.iter().zip(expected) {
        sandbox.file("script.js", script);
        let done = sandbox.atoll().args(["codemode", "run", "script.js"]).run().ok();
        for text in expected {
            assert!(done.stdout.contains(text), "{script}\n{done:#?}");
        }
    }
}
