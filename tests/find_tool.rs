//! The tool `find`.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::common::Sandbox;

/// What is found, as data.
#[track_caller]
fn found(sandbox: &Sandbox, arguments: &Value) -> Vec<String> {
    let record = sandbox.call("find", arguments);
    assert_eq!(record["isError"], false, "{record:#}");
    let paths = record["structuredContent"]["paths"].as_array().unwrap();
    paths.iter().map(|path| path.as_str().unwrap().to_owned()).collect()
}

#[track_caller]
fn matching(sandbox: &Sandbox, pattern: &str) -> Vec<String> {
    found(sandbox, &json!({"pattern": pattern}))
}

fn tree() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in
        ["README.md", "src/main.rs", "src/deep/mod.rs", "modules/nixos/a/b.nix", "modules/c.nix", ".hidden/x.rs"]
    {
        sandbox.file(name, "");
    }
    sandbox
}

#[test]
fn a_pattern_without_a_slash_is_about_names_pi_12066() {
    let sandbox = tree();
    assert_eq!(matching(&sandbox, "*.rs"), [".hidden/x.rs", "src/deep/mod.rs", "src/main.rs"]);
    assert_eq!(matching(&sandbox, "deep"), ["src/deep/"]);
    assert_eq!(matching(&sandbox, "m*"), ["modules/", "src/deep/mod.rs", "src/main.rs"]);
}

#[test]
fn a_pattern_with_a_slash_starts_at_the_searched_directory_pi_12066() {
    let sandbox = tree();
    assert_eq!(matching(&sandbox, "src/*.rs"), ["src/main.rs"]);
    assert_eq!(matching(&sandbox, "deep/*.rs"), [] as [&str; 0]);
    assert_eq!(matching(&sandbox, "**/deep/*.rs"), ["src/deep/mod.rs"]);
    assert_eq!(matching(&sandbox, "src/**/*.rs"), ["src/deep/mod.rs", "src/main.rs"]);
    assert_eq!(found(&sandbox, &json!({"pattern": "deep/*.rs", "path": "src"})), ["deep/mod.rs"]);
    let absolute = format!("{}/src/*.rs", sandbox.work().display());
    assert_eq!(matching(&sandbox, &absolute), ["src/main.rs"]);
}

#[test]
fn a_dot_and_a_slash_before_a_pattern_change_nothing_pi_12020() {
    let sandbox = tree();
    assert_eq!(matching(&sandbox, "./src/*.rs"), ["src/main.rs"]);
    assert_eq!(matching(&sandbox, "./*.md"), ["README.md"]);
}

#[test]
fn two_stars_stand_for_any_directories_oh_my_pi_4706() {
    let sandbox = tree();
    assert_eq!(matching(&sandbox, "modules/**/*.nix"), ["modules/c.nix", "modules/nixos/a/b.nix"]);
    assert_eq!(matching(&sandbox, "**/*.nix"), ["modules/c.nix", "modules/nixos/a/b.nix"]);
    assert_eq!(
        matching(&sandbox, "modules/**"),
        ["modules/c.nix", "modules/nixos/", "modules/nixos/a/", "modules/nixos/a/b.nix"]
    );
}

#[test]
fn small_letters_stand_for_capitals_too() {
    let sandbox = tree();
    assert_eq!(matching(&sandbox, "readme*"), ["README.md"]);
    assert_eq!(matching(&sandbox, "README*"), ["README.md"]);
    assert_eq!(matching(&sandbox, "Readme*"), [] as [&str; 0]);
}

#[test]
fn what_is_ignored_is_left_out_unless_it_is_named_opencode_31994() {
    let sandbox = tree();
    sandbox.file(".gitignore", "/out/\n*.tmp\n!keep.tmp\n");
    sandbox.file("src/.gitignore", "deep/\n");
    for name in ["out/a/b.js", "x.tmp", "keep.tmp", ".git/config", "node_modules/n.js"] {
        sandbox.file(name, "");
    }
    sandbox.file(".ignore", "node_modules\n");
    let all = [
        ".gitignore",
        ".hidden/",
        ".hidden/x.rs",
        ".ignore",
        "README.md",
        "keep.tmp",
        "modules/",
        "modules/c.nix",
        "modules/nixos/",
        "modules/nixos/a/",
        "modules/nixos/a/b.nix",
        "src/",
        "src/.gitignore",
        "src/main.rs",
    ];
    assert_eq!(matching(&sandbox, "*"), all);
    assert_eq!(matching(&sandbox, "*.js"), [] as [&str; 0]);
    assert_eq!(matching(&sandbox, "x.tmp"), ["x.tmp"]);
    assert_eq!(matching(&sandbox, "out/a/b.js"), ["out/a/b.js"]);
    assert_eq!(matching(&sandbox, "out/**/*.js"), ["out/a/b.js"]);
    assert_eq!(matching(&sandbox, "src/deep/*.rs"), ["src/deep/mod.rs"]);
    assert_eq!(found(&sandbox, &json!({"pattern": "*", "path": "out"})), ["a/", "a/b.js"]);
}

#[test]
fn links_are_shown_and_followed_only_where_they_are_named_opencode_18848() {
    let sandbox = tree();
    let work = sandbox.work();
    fs::create_dir(sandbox.root().join("outside")).unwrap();
    fs::write(sandbox.root().join("outside/o.rs"), "").unwrap();
    symlink("src", work.join("link")).unwrap();
    symlink("../outside", work.join("out")).unwrap();
    symlink("loop", work.join("loop")).unwrap();
    symlink("nowhere", work.join("broken.rs")).unwrap();
    assert_eq!(matching(&sandbox, "*.rs"), [".hidden/x.rs", "broken.rs", "src/deep/mod.rs", "src/main.rs"]);
    assert_eq!(matching(&sandbox, "l*"), ["link", "loop"]);
    assert_eq!(matching(&sandbox, "link/**/*.rs"), ["link/deep/mod.rs", "link/main.rs"]);
    assert_eq!(found(&sandbox, &json!({"pattern": "*.rs", "path": "link"})), ["deep/mod.rs", "main.rs"]);
    assert_eq!(matching(&sandbox, "out/*.rs"), [] as [&str; 0]);
    assert_eq!(matching(&sandbox, "../outside/*.rs"), [] as [&str; 0]);
    let run = sandbox.atoll().args(["tool", "call", "find", "{\"pattern\":\"*\",\"path\":\"out\"}"]).run().code(3);
    assert!(run.stderr.contains("not allowed"), "{run:#?}");
}

#[test]
fn the_limit_is_told_only_if_there_is_more() {
    let sandbox = Sandbox::new();
    for n in 0..1_200 {
        sandbox.file(&format!("{n:04}"), "");
    }
    let text = sandbox.good_call("find", &json!({"pattern": "*"}));
    let notice = "\n0999\n\n[1000 results limit reached. Use limit=2000 for more, or refine pattern]";
    assert!(text.starts_with("0000\n0001\n") && text.ends_with(notice), "{text}");
    assert_eq!(sandbox.good_call("find", &json!({"pattern": "*", "limit": 1_200})).lines().count(), 1_200);
    let text = sandbox.good_call("find", &json!({"pattern": "*", "limit": 0}));
    assert_eq!(text, "0000\n\n[1 results limit reached. Use limit=2 for more, or refine pattern]");
    let record = sandbox.call("find", &json!({"pattern": "*", "limit": 2}));
    assert_eq!(record["structuredContent"], json!({"paths": ["0000", "0001"], "truncated": true}));
}

#[test]
fn what_can_not_be_searched_says_why() {
    let sandbox = tree();
    assert_eq!(sandbox.good_call("find", &json!({"pattern": "*.zzz"})), "No files found matching pattern");
    assert!(sandbox.bad_call("find", &json!({"pattern": "*", "path": "nope"})).contains("Path not found: nope"));
    assert!(sandbox.bad_call("find", &json!({"pattern": "*", "path": "README.md"})).contains("Not a directory"));
    for bad in ["[a", "{a", "", "./", "/"] {
        let text = sandbox.bad_call("find", &json!({"pattern": bad}));
        assert!(text.contains("pattern"), "{bad}: {text}");
    }
}

#[test]
fn a_line_end_in_a_name_does_not_look_like_two_names() {
    let sandbox = Sandbox::new();
    sandbox.file("a\nb", "needle\n");
    assert_eq!(sandbox.good_call("find", &json!({"pattern": "*"})), "a\u{fffd}b");
    assert_eq!(matching(&sandbox, "*"), ["a\nb"]);
    assert_eq!(sandbox.good_call("grep", &json!({"pattern": "needle"})), "a\u{fffd}b:1: needle");
}
