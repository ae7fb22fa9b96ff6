//! The tool `edit`: what it finds, what it keeps, and what it says.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::common::{Sandbox, one_edit};

#[test]
fn an_edit_keeps_every_other_byte_of_a_file_with_crlf_pi_2744_kimi_cli_2191() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "one\r\ntwo\r\nthree\nfour\rfive\r\n");
    sandbox.good_call("edit", &one_edit("a.txt", "one\ntwo", "one\n2\n2b"));
    assert_eq!(sandbox.read("a.txt"), "one\r\n2\r\n2b\r\nthree\nfour\rfive\r\n");
    sandbox.good_call("edit", &one_edit("a.txt", "2\r\n2b\r\nthree", "3"));
    assert_eq!(sandbox.read("a.txt"), "one\r\n3\nfour\rfive\r\n");
}

#[test]
fn an_edit_keeps_a_byte_order_mark_once_oh_my_pi_3867() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "\u{feff}one\ntwo\n");
    sandbox.good_call("edit", &one_edit("a.txt", "one", "uno"));
    assert_eq!(sandbox.read("a.txt"), "\u{feff}uno\ntwo\n");
}

#[test]
fn an_edit_writes_quotes_as_given_claude_code_23945() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "say \u{201c}hi\u{201d}\nother \u{2018}line\u{2019}\n");
    sandbox.good_call("edit", &one_edit("a.txt", "say \u{201c}hi\u{201d}", "say \u{201c}ho\u{201d}"));
    assert_eq!(sandbox.read("a.txt"), "say \u{201c}ho\u{201d}\nother \u{2018}line\u{2019}\n");
}

#[test]
fn a_loose_edit_changes_nothing_but_its_lines_pi_3554() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "keep \u{201c}this\u{201d}  \nsay \u{201c}hi\u{201d}\nkeep\u{a0}that\t\n");
    sandbox.good_call("edit", &one_edit("a.txt", "say \"hi\"", "say \"ho\""));
    assert_eq!(sandbox.read("a.txt"), "keep \u{201c}this\u{201d}  \nsay \"ho\"\nkeep\u{a0}that\t\n");
}

#[test]
fn a_file_in_another_encoding_is_not_edited_gemini_cli_1468() {
    let sandbox = Sandbox::new();
    for bytes in [&b"caf\xe9\n"[..], b"\xff\xfec\0a\0f\0\xe9\0", b"ok\n\xc3\x28\n"] {
        let path = sandbox.file("a.txt", bytes);
        let text = sandbox.bad_call("edit", &one_edit("a.txt", "caf", "tea"));
        assert!(text.contains("UTF-"), "{text}");
        assert_eq!(fs::read(path).unwrap(), bytes);
    }
}

#[test]
fn edits_that_can_not_be_made_change_nothing() {
    let sandbox = Sandbox::new();
    let content = "a\nb\na\n";
    sandbox.file("a.txt", content);
    for (edits, reason) in [
        (json!([{"oldText": "zzz", "newText": "y"}]), "not found"),
        (json!([{"oldText": "a", "newText": "y"}]), "2 times"),
        (json!([{"oldText": "", "newText": "y"}]), "empty"),
        (json!([{"oldText": "b", "newText": "b"}]), "as it is"),
        (json!([]), "edits"),
        (json!([{"oldText": "a\nb", "newText": "x"}, {"oldText": "b\na", "newText": "y"}]), "overlap"),
        (json!([{"oldText": "b", "newText": "good"}, {"oldText": "zzz", "newText": "y"}]), "not found"),
    ] {
        let text = sandbox.bad_call("edit", &json!({"path": "a.txt", "edits": edits}));
        assert!(text.contains(reason), "{reason:?}: {text}");
        assert_eq!(sandbox.read("a.txt"), content);
    }
    assert!(sandbox.bad_call("edit", &one_edit("missing.txt", "a", "b")).contains("does not exist"));
    assert!(sandbox.bad_call("edit", &one_edit(".", "a", "b")).contains("directory"));
}

#[test]
fn an_edit_shows_what_it_changed() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "one\ntwo\nthree\n");
    let record = sandbox.call("edit", &one_edit("a.txt", "two", "2"));
    assert_eq!(record["details"]["firstChangedLine"], 2, "{record:#}");
    assert!(record["details"]["patch"].as_str().unwrap().contains("\n-two\n+2\n"), "{record:#}");
}

#[test]
fn two_edits_of_one_file_in_one_answer_both_land() {
    let sandbox = Sandbox::new();
    let lines: String = (0..40).map(|n| format!("line {n};\n")).collect();
    sandbox.file("a.txt", &lines);
    symlink("a.txt", sandbox.work().join("alias.txt")).unwrap();
    let calls: Vec<Value> = (0..40)
        .map(|n| {
            let path = if n % 2 == 0 { "a.txt" } else { "alias.txt" };
            json!({"tool": "edit", "arguments": one_edit(path, &format!("line {n};"), &format!("LINE {n};"))})
        })
        .collect();
    sandbox.scripted(&json!({"turns": [{"calls": calls}, {"text": "done"}]})).arg("go").run().ok();
    for result in sandbox.results() {
        assert_eq!(result["isError"], false, "{result:#}");
    }
    assert_eq!(sandbox.read("a.txt"), lines.replace("line", "LINE"));
}
