//! The threat model names tests. A name that is no test's would promise what nothing shows.

use std::{collections::BTreeSet, fs, path::Path};

use crate::common::plugins::workspace_root;

/// The names of all tests in the sources below a folder.
fn tests_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name().into_string().unwrap();
        if path.is_dir() {
            if !["target", "snapshots", "fixtures", "seeds"].contains(&name.as_str()) {
                tests_below(&path, found);
            }
        } else if name.ends_with(".rs") {
            // A test is a function that follows `#[test]`, or stands in `proptest!` after it.
            let text = fs::read_to_string(&path).unwrap();
            for after in text.split("#[test]").chain(text.split("#[tokio::test]")).skip(1) {
                if let Some((_, function)) = after.split_once("fn ") {
                    found.insert(function.split(['(', '<']).next().unwrap_or_default().trim().to_owned());
                }
            }
        }
    }
}

#[test]
fn every_promise_of_the_threat_model_names_tests_that_are_there() {
    let root = workspace_root();
    let mut known = BTreeSet::new();
    tests_below(&root.join("tests"), &mut known);
    tests_below(&root.join("host"), &mut known);
    tests_below(&root.join("guest-tools"), &mut known);
    let text = fs::read_to_string(root.join("host/README.md")).unwrap();
    let (_, model) = text.split_once("## Threat model").unwrap();
    let rows: Vec<&str> = model.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert!(rows.len() > 20, "the table is not where it was looked for");
    for row in rows {
        let shown_by = row.trim_end_matches(['|', ' ']).rsplit('|').next().unwrap();
        let names: Vec<&str> = shown_by.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "no test shows it: {row}");
        for name in names {
            assert!(known.contains(name), "there is no test {name}; the threat model says that it shows: {row}");
        }
    }
}
