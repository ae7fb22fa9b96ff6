//! The conformance suite of the language, test262, on the engine of scripts.
//!
//! The suite is not part of this repository: `cargo xtask test262` and `cargo xtask test` fetch it. Every test runs in an
//! instance of its own of `plugins/es-conformance`, which has the engine of codemode with built-in objects that can be
//! changed, because many tests change them. What is known to fail is in `test262-known.txt`: what fails beyond that is a
//! failure, and so is what is listed and passes.

mod engine;
mod suite;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use crate::common::{plugins::workspace_root, skipped};
use engine::{Outcome, Runner, run_all};
use suite::{Case, Suite};

/// The share of the sample that has to pass, in each group but one and in all, in percent.
const LEAST: usize = 95;

fn known_file(name: &str) -> PathBuf {
    workspace_root().join("tests").join(name)
}

/// The lines of a list of known failures, without their reasons.
fn known(name: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(known_file(name)).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split("  ").next().unwrap_or(line).to_owned()).collect()
}

const HEADING: &str = "# Tests of test262 that are known to fail: path and mode, then the beginning of what was said.\n\
     # Made anew by `ATOLL_UPDATE=1 cargo xtask test262 --full`.\n";

/// What runs the tests says whether they pass: a test of that itself.
#[test]
fn a_test_that_fails_is_seen_to_fail() {
    let Some(suite) = suite() else { return };
    for runner in [Runner::Loose, Runner::AsItIs] {
        let sources = [
            ("assert.sameValue(1, 1);", "", true),
            ("assert.sameValue(1, 2);", "", false),
            ("syntax error", "", false),
            ("syntax error", "negative: {phase: parse, type: SyntaxError}", true),
            ("assert(true);", "negative: {phase: runtime, type: Test262Error}", false),
            ("assert(false);", "negative: {phase: runtime, type: Test262Error}", true),
            ("null.x;", "negative: {phase: runtime, type: RangeError}", false),
            ("Promise.resolve().then(() => assert(true)).then($DONE, $DONE);", "flags: [async]", true),
            ("Promise.resolve().then(() => assert(false)).then($DONE, $DONE);", "flags: [async]", false),
            ("var unused;", "flags: [async]", false),
        ];
        let cases: Vec<Case> = sources.iter().flat_map(|(source, about, _)| suite.made_up(about, source)).collect();
        let outcomes = run_all(runner, &suite, cases);
        for ((source, about, passes), both) in sources.iter().zip(outcomes.chunks(2)) {
            assert!(both.iter().all(|(_, outcome)| outcome.is_ok() == *passes), "{source} {about}: {:?}", both[0].1);
        }
    }
}

/// How many of a group ran, and how many passed.
#[derive(Default, Clone, Copy)]
struct Count {
    ran: usize,
    passed: usize,
}

impl Count {
    fn add(&mut self, passed: bool) {
        self.ran += 1;
        self.passed += usize::from(passed);
    }

    fn is_enough(self) -> bool {
        self.passed * 100 >= self.ran * LEAST
    }
}

/// Compares what ran with what is known, and shows the figures. `of_all` says that only the whole has to have its share.
fn judge(list: &str, outcomes: &[(Case, Outcome)], is_whole: bool, of_all: bool) {
    let mut groups: BTreeMap<&str, Count> = BTreeMap::new();
    let mut all = Count::default();
    let mut failed = BTreeMap::new();
    let mut passed = BTreeSet::new();
    for (case, outcome) in outcomes {
        let is_passed = outcome.is_ok();
        groups.entry(case.group).or_default().add(is_passed);
        all.add(is_passed);
        match outcome {
            Ok(()) => passed.insert(case.name()),
            Err(said) => failed.insert(case.name(), said.clone()).is_none(),
        };
    }
    #[allow(clippy::cast_precision_loss, reason = "these are a few thousand")]
    let percent = |count: Count| count.passed as f64 * 100.0 / count.ran.max(1) as f64;
    for (group, count) in &groups {
        eprintln!("{group:<45} {:>6} of {:>6} {:>7.2} %", count.passed, count.ran, percent(*count));
    }
    eprintln!("{:<45} {:>6} of {:>6} {:>7.2} %", "all", all.passed, all.ran, percent(all));
    if std::env::var_os("ATOLL_UPDATE").is_some() {
        // What did not run keeps its line.
        let file = known_file(list);
        let before = fs::read_to_string(&file).unwrap_or_default();
        let ran = |line: &str| {
            let name = line.split("  ").next().unwrap_or(line);
            line.starts_with('#') || line.is_empty() || passed.contains(name) || failed.contains_key(name) || is_whole
        };
        let mut lines: BTreeSet<String> = before.lines().filter(|line| !ran(line)).map(str::to_owned).collect();
        lines.extend(failed.iter().map(|(name, said)| format!("{name}  {said}")));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(file, format!("{HEADING}{text}")).unwrap();
        return;
    }
    let known = known(list);
    let fresh: Vec<String> = failed
        .iter()
        .filter(|(name, _)| !known.contains(*name))
        .map(|(name, said)| format!("fails: {name}: {said}"))
        .collect();
    let mended: Vec<String> = passed.intersection(&known).map(|name| format!("is listed and passes: {name}")).collect();
    let wrong: Vec<String> = fresh.into_iter().chain(mended).collect();
    assert!(wrong.is_empty(), "{} differ from tests/{list}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(all.is_enough(), "{} of {} pass", all.passed, all.ran);
    for (group, count) in groups.into_iter().filter(|(group, _)| !of_all && *group != suite::OF_ANOTHER_UNICODE) {
        assert!(count.is_enough(), "{group}: {} of {} pass", count.passed, count.ran);
    }
}

fn suite() -> Option<Suite> {
    let Some(folder) = std::env::var_os("ATOLL_TEST262_DIR") else {
        skipped("test262 is not there; run the tests with `cargo xtask test`, which fetches it");
        return None;
    };
    Some(Suite::open(folder.into()))
}

/// Only these directories, if `cargo xtask test262` was told so.
fn chosen() -> Vec<String> {
    let chosen = std::env::var("ATOLL_TEST262_ONLY").unwrap_or_default();
    chosen.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_language_is_as_its_conformance_suite_says() {
    let Some(suite) = suite() else { return };
    let is_full = std::env::var_os("ATOLL_TEST262_FULL").is_some();
    let chosen = chosen();
    let cases = suite.cases(is_full, &chosen);
    assert!(cases.len() > 3_000 || !chosen.is_empty(), "only {} cases: {}", cases.len(), suite.folder.display());
    judge("test262-known.txt", &run_all(Runner::Loose, &suite, cases), is_full && chosen.is_empty(), false);
}

/// Tests of the syntax change few built-in objects, so that they can be put to the tool itself. Those that do change them fail
/// there, as they have to.
#[test]
fn scripts_of_the_tool_have_the_language_too() {
    let Some(suite) = suite() else { return };
    let is_full = std::env::var_os("ATOLL_TEST262_FULL").is_some();
    let chosen = chosen();
    let mut cases = suite.cases(is_full, &chosen);
    cases.retain(|case| case.group.starts_with("language/"));
    assert!(cases.len() > 1_000 || !chosen.is_empty(), "only {} cases: {}", cases.len(), suite.folder.display());
    judge("test262-codemode-known.txt", &run_all(Runner::AsItIs, &suite, cases), is_full && chosen.is_empty(), true);
}
