//! The tool `ls`.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use crate::common::Sandbox;

#[test]
fn names_are_listed_with_their_kinds_sure_72() {
    let sandbox = Sandbox::new();
    sandbox.file("b.txt", "");
    sandbox.file("A/x", "");
    sandbox.file(".hidden", "");
    symlink("A", sandbox.work().join("link")).unwrap();
    symlink("nowhere", sandbox.work().join("broken")).unwrap();
    assert_eq!(sandbox.good_call("ls", &json!({})), ".hidden\nA/\nb.txt\nbroken@\nlink/");
    let text = sandbox.good_call("ls", &json!({"limit": 2}));
    assert!(text.starts_with(".hidden\nA/\n") && text.contains("limit"), "{text}");
    fs::create_dir(sandbox.work().join("empty")).unwrap();
    assert!(sandbox.good_call("ls", &json!({"path": "empty"})).contains("empty"));
}

#[test]
fn scripts_get_what_each_name_is() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "four");
    symlink("a.txt", sandbox.work().join("b")).unwrap();
    symlink("nowhere", sandbox.work().join("c")).unwrap();
    let record = sandbox.call("ls", &json!({}));
    let expected = json!({"entries": [
        {"name": "a.txt", "kind": "file", "size": 4, "link": false},
        {"name": "b", "kind": "file", "size": 4, "link": true},
        {"name": "c", "kind": "symlink", "size": 0, "link": true},
    ], "truncated": false});
    assert_eq!(record["structuredContent"], expected);
}

#[test]
fn the_limit_is_told_only_if_there_is_more() {
    let sandbox = Sandbox::new();
    for n in 0..501 {
        sandbox.file(&format!("{n:03}"), "");
    }
    let text = sandbox.good_call("ls", &json!({}));
    assert!(text.ends_with("\n499\n\n[500 entries limit reached. Use limit=1000 for more]"), "{text}");
    assert_eq!(sandbox.good_call("ls", &json!({"limit": 501})).lines().count(), 501);
}
