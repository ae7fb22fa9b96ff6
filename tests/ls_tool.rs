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
