//! The tool `read` on texts. Pictures are in `read_pictures`.

use std::{fs, os::unix::fs::PermissionsExt as _};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use crate::common::Sandbox;

#[test]
fn what_can_not_be_read_says_why() {
    let sandbox = Sandbox::new();
    sandbox.file("program", b"\x7fELF\x02\x01\x01\0");
    assert!(sandbox.bad_call("read", &json!({"path": "missing.txt"})).contains("does not exist"));
    assert!(sandbox.bad_call("read", &json!({"path": "."})).contains("directory"));
    assert!(sandbox.bad_call("read", &json!({"path": "program"})).contains("compiled program"));
    assert!(sandbox.bad_call("read", &json!({"path": ""})).contains("path"));
    assert!(sandbox.bad_call("read", &json!({"path": "a\u{0}b"})).contains("NUL"));
    sandbox.file("a.txt", "one\n");
    assert!(sandbox.bad_call("read", &json!({"path": "a.txt", "offset": 9})).contains("1 line"));
    assert!(sandbox.bad_call("ls", &json!({"path": "a.txt"})).contains("Not a directory"));
    assert!(sandbox.bad_call("ls", &json!({"path": "missing"})).contains("does not exist"));
}

#[test]
fn a_file_that_may_not_be_read_says_so() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("a.txt", "x");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        crate::common::skipped("a_file_that_may_not_be_read_says_so: this user may read everything");
        return;
    }
    assert!(sandbox.bad_call("read", &json!({"path": "a.txt"})).contains("permission"));
}

#[test]
fn a_large_file_is_shown_in_parts_with_the_way_to_the_next() {
    let sandbox = Sandbox::new();
    let lines: String = (1..=5000).map(|line| format!("line {line}\n")).collect();
    sandbox.file("a.txt", &lines);
    let text = sandbox.good_call("read", &json!({"path": "a.txt"}));
    assert!(text.ends_with("line 2000\n\n[Showing lines 1-2000 of 5000. Use offset=2001 to continue.]"));
    let text = sandbox.good_call("read", &json!({"path": "a.txt", "offset": 4001}));
    assert!(text.starts_with("line 4001\n") && text.ends_with("line 5000\n"));
    let text = sandbox.good_call("read", &json!({"path": "a.txt", "offset": 10, "limit": 2}));
    assert!(text.starts_with("line 10\nline 11\n\n[") && text.contains("offset=12"), "{text}");
    sandbox.file("wide.txt", format!("{}\n", "x".repeat(1000)).repeat(100));
    let text = sandbox.good_call("read", &json!({"path": "wide.txt"}));
    assert!(text.contains("(50.0KB limit)") && text.len() < 52_000, "{} bytes", text.len());
    sandbox.file("line.txt", "y".repeat(300_000));
    let text = sandbox.good_call("read", &json!({"path": "line.txt"}));
    assert!(text.contains("exceeds 50.0KB limit"), "{text}");
}

#[test]
fn files_of_many_megabytes_are_read_without_a_limit() {
    let sandbox = Sandbox::new();
    sandbox.file("big.txt", "0123456789abcde\n".repeat(8 << 20));
    let text = sandbox.good_call("read", &json!({"path": "big.txt", "offset": 8_388_600}));
    assert_eq!(text.lines().count(), 9);
}

#[test]
fn paths_as_models_write_them_are_understood() {
    let sandbox = Sandbox::new();
    sandbox.file("a b.txt", "spaced\n");
    sandbox.file("plain.txt", "plain\n");
    assert_eq!(sandbox.good_call("read", &json!({"path": "@plain.txt"})), "plain\n");
    assert_eq!(sandbox.good_call("read", &json!({"path": "a\u{a0}b.txt"})), "spaced\n");
    let absolute = sandbox.work().join("plain.txt");
    assert_eq!(sandbox.good_call("read", &json!({"path": absolute})), "plain\n");
}

#[test]
fn a_picture_is_read_as_a_picture() {
    let sandbox = Sandbox::new();
    let dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    sandbox.file("dot.png", STANDARD.decode(dot).unwrap());
    let record = sandbox.call("read", &json!({"path": "dot.png"}));
    assert_eq!(
        (&record["content"][1]["type"], &record["content"][1]["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
}

#[test]
fn bytes_that_are_not_utf_8_are_shown_with_a_note_trpc_agent_go_2495() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", b"caf\xe9\nok\n");
    let text = sandbox.good_call("read", &json!({"path": "a.txt"}));
    assert!(text.starts_with("caf\u{fffd}\nok\n") && text.contains("U+FFFD"), "{text}");
}

#[test]
fn a_character_at_an_edge_is_no_sign_of_a_binary_file_hermes_agent_76886() {
    let sandbox = Sandbox::new();
    for edge in [4_096, 8_192, 65_536, 1 << 20] {
        sandbox.file(
            "a.txt",
            format!("{}\u{20ac}\nend\n", "x\n".repeat((edge - 1) / 2) + "y".repeat((edge - 1) % 2).as_str()),
        );
        let text = sandbox.good_call("read", &json!({"path": "a.txt", "offset": (edge - 1) / 2 + 1}));
        assert!(text.contains("\u{20ac}\nend\n") && !text.contains('\u{fffd}'), "{edge}: {text}");
    }
}

#[test]
fn lines_are_counted_by_their_ends_sure_72() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "1\n2\n3\n");
    let text = sandbox.bad_call("read", &json!({"path": "a.txt", "offset": 4}));
    assert!(text.contains("3 lines"), "{text}");
    sandbox.file("b.txt", "1\n2\n3");
    assert_eq!(sandbox.good_call("read", &json!({"path": "b.txt", "offset": 3})), "3");
}

#[test]
fn a_file_larger_than_the_plugins_memory_is_read_pi_9654() {
    let sandbox = Sandbox::new();
    let mut file = fs::File::create(sandbox.work().join("big.txt")).unwrap();
    let block = "0123456789abcde\n".repeat(1 << 16);
    for _ in 0..300 {
        std::io::Write::write_all(&mut file, block.as_bytes()).unwrap();
    }
    drop(file);
    let text = sandbox.good_call("read", &json!({"path": "big.txt", "limit": 1}));
    assert_eq!(text, "0123456789abcde\n\n[19660799 more lines in file. Use offset=2 to continue.]");
}

#[test]
fn no_result_is_blank_pi_8720() {
    let sandbox = Sandbox::new();
    sandbox.file("blank.txt", " \n\t\n\n");
    sandbox.file("empty.txt", "");
    for path in ["blank.txt", "empty.txt"] {
        let text = sandbox.good_call("read", &json!({"path": path}));
        assert!(!text.trim().is_empty(), "{path}");
    }
    for command in ["true", "printf ' \\n\\n'"] {
        let text = sandbox.good_call("bash", &json!({"command": command}));
        assert!(!text.trim().is_empty(), "{command}");
    }
}
