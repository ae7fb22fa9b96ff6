//! The tool `write`.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

use serde_json::json;

use crate::common::{Sandbox, one_edit};

#[test]
fn a_write_goes_through_a_link_and_keeps_the_mode() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("run.sh", "#!/bin/sh\necho old\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    symlink("run.sh", sandbox.work().join("link.sh")).unwrap();
    sandbox.good_call("write", &json!({"path": "link.sh", "content": "#!/bin/sh\necho new\n"}));
    assert!(sandbox.work().join("link.sh").is_symlink());
    assert_eq!(sandbox.read("run.sh"), "#!/bin/sh\necho new\n");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    sandbox.good_call("edit", &one_edit("link.sh", "new", "newer"));
    assert!(sandbox.work().join("link.sh").is_symlink());
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
}

#[test]
fn a_write_makes_directories_and_leaves_no_other_files() {
    let sandbox = Sandbox::new();
    let text = sandbox.good_call("write", &json!({"path": "x/y/new.txt", "content": "a\nb\n"}));
    assert!(text.contains("x/y/new.txt") && text.contains("2 lines"), "{text}");
    assert_eq!(sandbox.read("x/y/new.txt"), "a\nb\n");
    assert_eq!(fs::read_dir(sandbox.work().join("x/y")).unwrap().count(), 1);
    assert!(sandbox.bad_call("write", &json!({"path": "x", "content": ""})).contains("directory"));
    sandbox.file("plain", "");
    let text = sandbox.bad_call("write", &json!({"path": "plain/z", "content": ""}));
    assert!(text.contains("plain"), "{text}");
}

#[test]
fn a_write_keeps_content_byte_for_byte() {
    let sandbox = Sandbox::new();
    let content = "\u{feff}a\r\nb\0\u{2028}\u{1f980}\n\n";
    sandbox.good_call("write", &json!({"path": "a.txt", "content": content}));
    assert_eq!(sandbox.read("a.txt"), content);
}

#[test]
fn quotes_are_written_as_given_claude_code_1986() {
    let sandbox = Sandbox::new();
    let content = "\u{201c}a\u{201d} \u{2018}b\u{2019} \u{2014} \u{2026} \u{a0}\u{202f}\n";
    sandbox.good_call("write", &json!({"path": "a.txt", "content": content}));
    assert_eq!(sandbox.read("a.txt"), content);
}

#[test]
fn a_byte_order_mark_is_written_once_if_it_is_given_copilot_intellij_1042() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "\u{feff}old\r\n");
    sandbox.good_call("write", &json!({"path": "a.txt", "content": "\u{feff}new\r\n"}));
    assert_eq!(sandbox.read("a.txt"), "\u{feff}new\r\n");
}
