//! The tools `read`, `write`, `edit` and `ls`: what they reach, what they keep, and what they refuse.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
};

use serde_json::{Value, json};

use crate::common::{Sandbox, text_of};

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "edits": [{"oldText": old, "newText": new}]})
}

/// Calls that would read or change something outside; each has to be denied, with exit code 3.
#[track_caller]
fn denied(sandbox: &Sandbox, tool: &str, arguments: &Value) {
    let run = sandbox.atoll().args(["tool", "call", tool, &arguments.to_string()]).run().code(3);
    assert!(run.stderr.contains("not allowed: files on "), "{run:#?}");
    assert_eq!(run.stdout, "", "{run:#?}");
}

#[test]
fn no_path_leads_out_of_the_workspace_extism_133() {
    let sandbox = Sandbox::new();
    let outside = sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "secret\n").unwrap();
    let work = sandbox.work();
    symlink(outside.join("secret.txt"), work.join("link.txt")).unwrap();
    symlink("../outside", work.join("linked")).unwrap();
    symlink("/", work.join("root")).unwrap();
    fs::create_dir(work.join("inner")).unwrap();
    let secret = outside.join("secret.txt").to_string_lossy().into_owned();
    let through_root = format!("root{secret}");
    for path in [
        "../outside/secret.txt",
        "inner/../../outside/secret.txt",
        "./../outside/./secret.txt",
        "link.txt",
        "linked/secret.txt",
        &through_root,
        &secret,
        "~/../outside/secret.txt",
        "/etc/passwd",
        "/proc/self/environ",
    ] {
        denied(&sandbox, "read", &json!({"path": path}));
        for (tool, arguments) in
            [("write", json!({"path": path, "content": "changed"})), ("edit", edit(path, "s", "x"))]
        {
            let run = sandbox.atoll().args(["tool", "call", tool, &arguments.to_string()]).run();
            assert!(matches!(run.status.code(), Some(1 | 3)), "{run:#?}");
        }
    }
    for path in ["..", "/", "linked", "root", "~", "../outside"] {
        denied(&sandbox, "ls", &json!({"path": path}));
    }
    assert_eq!(fs::read_to_string(outside.join("secret.txt")).unwrap(), "secret\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(!sandbox.root().join("passwd").exists());
}

#[test]
fn a_write_through_a_link_that_leads_out_is_denied_and_says_so() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.root().join("outside")).unwrap();
    symlink("../outside", sandbox.work().join("linked")).unwrap();
    denied(&sandbox, "write", &json!({"path": "linked/a.txt", "content": "x"}));
}

#[test]
fn a_denial_of_a_built_in_tool_prints_the_command_that_adds_the_file() {
    let sandbox = Sandbox::new();
    let call = ["tool", "call", "read", "{\"path\":\"/etc/passwd\"}"];
    let run = sandbox.atoll().args(call).run().code(3);
    assert!(run.stderr.contains("to allow it: atoll plugin grant read --files /etc/passwd:read\n"), "{run:#?}");
    sandbox.home_file("grants.toml", "[builtin.read]\nfiles = [{ root = \"/etc/passwd\", access = \"read\" }]\n");
    sandbox.atoll().args(call).run().ok();
    // Not beside it, and for no other tool.
    sandbox.bad_call("read", &json!({"path": "/etc/group"}));
    sandbox.bad_call("grep", &json!({"path": "/etc/passwd", "pattern": "root"}));
}

#[test]
fn a_new_file_is_not_made_outside() {
    let sandbox = Sandbox::new();
    symlink("../tmp/new.txt", sandbox.work().join("dangling")).unwrap();
    symlink("../tmp", sandbox.work().join("tmp")).unwrap();
    for path in ["../new.txt", "tmp/new.txt", "dangling", "/tmp/atoll-test-must-not-be-there"] {
        let record = sandbox.call("write", &json!({"path": path, "content": "x"}));
        assert_eq!(record["isError"], true, "{record:#}");
    }
    assert!(!sandbox.root().join("new.txt").exists());
    assert!(!sandbox.root().join("tmp/new.txt").exists());
    assert!(!std::path::Path::new("/tmp/atoll-test-must-not-be-there").exists());
}

#[test]
fn a_link_that_is_swapped_during_the_call_never_leads_out() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let sandbox = Sandbox::new();
    let outside = sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "secret\n").unwrap();
    sandbox.file("good/a.txt", "alpha\n");
    let work = sandbox.work();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // `dir` is by turns a link to a good place and one that leads out.
            while !stop.load(Ordering::Relaxed) {
                for target in ["good", "../outside"] {
                    let _ = fs::remove_file(work.join("next"));
                    let _ = symlink(target, work.join("next"));
                    let _ = fs::rename(work.join("next"), work.join("dir"));
                }
            }
        });
        let call = |tool: &str, extra: &str| {
            json!({"tool": tool, "arguments": match tool {
                "write" => json!({"path": "dir/new.txt", "content": extra}),
                _ => json!({"path": "dir/a.txt"}),
            }})
        };
        let calls: Vec<Value> = (0..200).flat_map(|n| [call("read", ""), call("write", &n.to_string())]).collect();
        let script = json!({"turns": [{"calls": calls}, {"text": "done"}]});
        let run = sandbox.scripted(&script).arg("go").run();
        stop.store(true, Ordering::Relaxed);
        run.ok();
    });
    for result in sandbox.results() {
        assert!(!text_of(&result["content"]).contains("secret"), "{result:#}");
    }
    assert!(!outside.join("new.txt").exists());
}

#[test]
fn atolls_own_directory_is_out_of_reach_even_inside_the_workspace() {
    let sandbox = Sandbox::new();
    sandbox.model_at("http://127.0.0.1:1/v1");
    // The workspace is the home directory, so all of Atoll's is below it.
    let home = sandbox.root().join("home");
    symlink(".atoll/models.json", home.join("innocent.json")).unwrap();
    let call = |tool: &str, arguments: Value| {
        sandbox.atoll().cwd(&home).args(["tool", "call", tool, &arguments.to_string()]).run()
    };
    for path in [".atoll/models.json", "./x/../.atoll/models.json", "innocent.json", "~/.atoll/models.json"] {
        let run = call("read", json!({"path": path})).code(3);
        assert!(run.stderr.contains("belongs to atoll"), "{run:#?}");
        call("write", json!({"path": path, "content": "{}"})).code(3);
    }
    call("write", json!({"path": ".atoll/grants.toml", "content": "x"})).code(3);
    call("write", json!({"path": ".atoll/plugins/x/plugin.wasm", "content": "x"})).code(3);
    call("ls", json!({"path": ".atoll"})).code(3);
    assert!(!sandbox.atoll_home().join("grants.toml").exists());
}

#[test]
fn pipes_devices_and_sockets_are_refused_at_once() {
    let sandbox = Sandbox::new();
    let fifo = sandbox.work().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(sandbox.work().join("socket")).unwrap();
    for path in ["fifo", "socket"] {
        for (tool, arguments) in [
            ("read", json!({"path": path})),
            ("edit", edit(path, "a", "b")),
            ("write", json!({"path": path, "content": "x"})),
        ] {
            let record = sandbox.call(tool, &arguments);
            assert_eq!(record["isError"], true, "{tool} {path}: {record:#}");
        }
    }
    // Devices can only be reached where the workspace is above them.
    let run = sandbox.atoll().cwd("/dev").args(["tool", "call", "read", "{\"path\":\"zero\"}"]).run().code(1);
    assert!(run.stderr.contains("device"), "{run:#?}");
}

#[test]
fn an_edit_keeps_every_other_byte_of_a_file_with_crlf_pi_2744_kimi_cli_2191() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "one\r\ntwo\r\nthree\nfour\rfive\r\n");
    sandbox.good_call("edit", &edit("a.txt", "one\ntwo", "one\n2\n2b"));
    assert_eq!(sandbox.read("a.txt"), "one\r\n2\r\n2b\r\nthree\nfour\rfive\r\n");
    sandbox.good_call("edit", &edit("a.txt", "2\r\n2b\r\nthree", "3"));
    assert_eq!(sandbox.read("a.txt"), "one\r\n3\nfour\rfive\r\n");
}

#[test]
fn an_edit_keeps_a_byte_order_mark_once_oh_my_pi_3867() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "\u{feff}one\ntwo\n");
    sandbox.good_call("edit", &edit("a.txt", "one", "uno"));
    assert_eq!(sandbox.read("a.txt"), "\u{feff}uno\ntwo\n");
}

#[test]
fn an_edit_writes_quotes_as_given_claude_code_23945() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "say \u{201c}hi\u{201d}\nother \u{2018}line\u{2019}\n");
    sandbox.good_call("edit", &edit("a.txt", "say \u{201c}hi\u{201d}", "say \u{201c}ho\u{201d}"));
    assert_eq!(sandbox.read("a.txt"), "say \u{201c}ho\u{201d}\nother \u{2018}line\u{2019}\n");
}

#[test]
fn a_loose_edit_changes_nothing_but_its_lines_pi_3554() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "keep \u{201c}this\u{201d}  \nsay \u{201c}hi\u{201d}\nkeep\u{a0}that\t\n");
    sandbox.good_call("edit", &edit("a.txt", "say \"hi\"", "say \"ho\""));
    assert_eq!(sandbox.read("a.txt"), "keep \u{201c}this\u{201d}  \nsay \"ho\"\nkeep\u{a0}that\t\n");
}

#[test]
fn a_file_in_another_encoding_is_not_edited_gemini_cli_1468() {
    let sandbox = Sandbox::new();
    for bytes in [&b"caf\xe9\n"[..], b"\xff\xfec\0a\0f\0\xe9\0", b"ok\n\xc3\x28\n"] {
        let path = sandbox.file("a.txt", bytes);
        let text = sandbox.bad_call("edit", &edit("a.txt", "caf", "tea"));
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
    assert!(sandbox.bad_call("edit", &edit("missing.txt", "a", "b")).contains("does not exist"));
    assert!(sandbox.bad_call("edit", &edit(".", "a", "b")).contains("directory"));
}

#[test]
fn an_edit_shows_what_it_changed() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "one\ntwo\nthree\n");
    let record = sandbox.call("edit", &edit("a.txt", "two", "2"));
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
            json!({"tool": "edit", "arguments": edit(path, &format!("line {n};"), &format!("LINE {n};"))})
        })
        .collect();
    sandbox.scripted(&json!({"turns": [{"calls": calls}, {"text": "done"}]})).arg("go").run().ok();
    for result in sandbox.results() {
        assert_eq!(result["isError"], false, "{result:#}");
    }
    assert_eq!(sandbox.read("a.txt"), lines.replace("line", "LINE"));
}

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
    sandbox.good_call("edit", &edit("link.sh", "new", "newer"));
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
