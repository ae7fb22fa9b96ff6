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
        (json!([]), "edits: [] has less than 1 item"),
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

#[test]
fn old_text_with_crlf_is_found_in_a_file_without_qwen_code_2474() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "one\ntwo\nthree\n");
    sandbox.good_call("edit", &one_edit("a.txt", "one\r\ntwo", "1\r\n2"));
    assert_eq!(sandbox.read("a.txt"), "1\n2\nthree\n");
}

#[test]
fn a_lone_carriage_return_is_kept_sure_72() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "progress 1\rprogress 2\nend\n");
    sandbox.good_call("edit", &one_edit("a.txt", "end", "END"));
    assert_eq!(sandbox.read("a.txt"), "progress 1\rprogress 2\nEND\n");
}

#[test]
fn a_byte_order_mark_in_the_edit_is_not_doubled_copilot_intellij_1042() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "\u{feff}one\ntwo\n");
    let shown = sandbox.good_call("read", &json!({"path": "a.txt"}));
    let line = shown.lines().next().unwrap();
    // As a model copies it from what it was shown, the mark included.
    sandbox.good_call("edit", &one_edit("a.txt", line, "\u{feff}uno"));
    assert_eq!(sandbox.read("a.txt"), "\u{feff}uno\ntwo\n");
    sandbox.good_call("edit", &one_edit("a.txt", "uno", "\u{feff}eins"));
    assert_eq!(sandbox.read("a.txt"), "\u{feff}eins\ntwo\n");
}

#[test]
fn escapes_for_characters_are_told_apart_pi_4198() {
    let sandbox = Sandbox::new();
    sandbox.file("a.js", "s = 'it\\u2019s';\n");
    sandbox.file("b.js", "s = 'it\u{2019}s';\n");
    let text = sandbox.bad_call("edit", &one_edit("a.js", "it\u{2019}s", "x"));
    assert!(text.contains("has escapes such as \\u2019") && text.contains("line 1"), "{text}");
    let text = sandbox.bad_call("edit", &one_edit("b.js", "it\\u2019s", "x"));
    assert!(text.contains("has the characters themselves") && text.contains("line 1"), "{text}");
}

#[test]
fn a_loose_edit_keeps_the_rest_of_its_line() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "a \u{201c}b\u{201d} \u{2014} cafe\u{301}\u{a0}\u{2018}d\u{2019}  \n");
    sandbox.good_call("edit", &one_edit("a.txt", "a \"b\"", "A"));
    assert_eq!(sandbox.read("a.txt"), "A \u{2014} cafe\u{301}\u{a0}\u{2018}d\u{2019}  \n");
}

#[test]
fn edits_may_come_in_other_shapes() {
    let sandbox = Sandbox::new();
    for arguments in [
        json!({"path": "a.txt", "edits": {"oldText": "one", "newText": "uno"}}),
        json!({"path": "a.txt", "edits": "[{\"oldText\": \"one\", \"newText\": \"uno\"}]"}),
        json!({"path": "a.txt", "oldText": "one", "newText": "uno"}),
    ] {
        sandbox.file("a.txt", "one\n");
        sandbox.good_call("edit", &arguments);
        assert_eq!(sandbox.read("a.txt"), "uno\n");
    }
}

#[test]
fn a_huge_change_has_a_bounded_difference_pi_8036() {
    let sandbox = Sandbox::new();
    let old: String = (0..60_000).map(|n| format!("line number {n} of a long text\n")).collect();
    sandbox.file("a.txt", format!("start\n{old}end\n"));
    let call = json!({"tool": "edit", "arguments": {"path": "a.txt", "edits": [
        {"oldText": old, "newText": old.replace("line", "row")},
    ]}});
    sandbox.scripted(&json!({"turns": [{"calls": [call]}, {"text": "done"}]})).arg("go").run().ok();
    assert_eq!(sandbox.read("a.txt"), format!("start\n{}end\n", old.replace("line", "row")));
    let result = &sandbox.results()[0];
    assert_eq!(result["isError"], false, "{:.1000}", result.to_string());
    // It is drawn again each time the session is opened.
    assert!(result.to_string().len() < 400_000, "{} bytes", result.to_string().len());
}

#[test]
fn a_file_of_ten_megabytes_is_edited_in_bounded_memory_pi_8544() {
    let sandbox = Sandbox::new();
    let lines: String = (0..300_000).map(|n| format!("line {n} of a text that is long\r\n")).collect();
    assert!(lines.len() > 10 << 20);
    sandbox.file("a.txt", &lines);
    sandbox.good_call("edit", &one_edit("a.txt", "line 150000 of\u{a0}a text", "LINE 150000 of a text"));
    assert_eq!(sandbox.read("a.txt"), lines.replace("line 150000 ", "LINE 150000 "));
    let text = {
        sandbox.file("b.txt", vec![b'x'; 17 << 20]);
        sandbox.bad_call("edit", &one_edit("b.txt", "x", "y"))
    };
    assert!(text.contains("16.0MB") && text.contains("shell"), "{text}");
}
