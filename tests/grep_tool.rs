//! The tool `grep`. Among the reports: pi 7121, 9276, 11203 and 11807 (globs, configuration, context, limits, cut lines).

use std::{
    fs,
    os::unix::{ffi::OsStrExt as _, fs::symlink},
};

use serde_json::{Value, json};

use crate::common::Sandbox;

/// `path:line` of all matches, as data.
#[track_caller]
fn places(sandbox: &Sandbox, arguments: &Value) -> Vec<String> {
    let record = sandbox.call("grep", arguments);
    assert_eq!(record["isError"], false, "{record:#}");
    let lines = record["structuredContent"]["lines"].as_array().unwrap();
    let matches = lines.iter().filter(|line| line["match"] == true);
    matches.map(|line| format!("{}:{}", line["path"].as_str().unwrap(), line["line"])).collect()
}

/// A tree with rules in several places.
fn ruled() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file(".gitignore", "*.log\n/build/\nnode_modules/\n!keep.log\n");
    sandbox.file("src/.gitignore", "generated.rs\n!important.log\n");
    sandbox.file(".ignore", "vendored/\n");
    for name in [
        "a.txt",
        "a.log",
        "keep.log",
        "build/out.txt",
        "src/build/in.txt",
        "src/generated.rs",
        "src/main.rs",
        "src/important.log",
        "src/deep/generated.rs",
        "src/deep/x.log",
        ".hidden/h.txt",
        "vendored/v.txt",
        "node_modules/m/index.js",
        "node_modules/m/.gitignore",
        ".git/config",
    ] {
        sandbox.file(name, "needle\n");
    }
    // Rules in a directory that is left out must not bring anything of it back.
    sandbox.file("node_modules/m/.gitignore", "!*\n!index.js\nneedle\n");
    let outside = sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("o.txt"), "needle\n").unwrap();
    symlink("src", sandbox.work().join("link")).unwrap();
    symlink("../outside", sandbox.work().join("out")).unwrap();
    symlink("nowhere", sandbox.work().join("broken")).unwrap();
    symlink("a.txt", sandbox.work().join("b.txt")).unwrap();
    sandbox
}

#[test]
fn ignore_rules_hidden_names_and_links_are_as_ripgrep_has_them_odysseus_4493() {
    let sandbox = ruled();
    let expected =
        [".hidden/h.txt:1", "a.txt:1", "keep.log:1", "src/build/in.txt:1", "src/important.log:1", "src/main.rs:1"];
    assert_eq!(places(&sandbox, &json!({"pattern": "needle"})), expected);
    let below: Vec<&str> = vec!["build/in.txt:1", "important.log:1", "main.rs:1"];
    assert_eq!(places(&sandbox, &json!({"pattern": "needle", "path": "src"})), below);
    assert_eq!(places(&sandbox, &json!({"pattern": "needle", "path": "link"})), below);
}

#[test]
fn what_is_ignored_is_searched_if_it_is_named_opencode_31994() {
    let sandbox = ruled();
    let find = |path: &str| places(&sandbox, &json!({"pattern": "needle", "path": path}));
    assert_eq!(find("a.log"), ["a.log:1"]);
    assert_eq!(find("build"), ["out.txt:1"]);
    assert_eq!(find("node_modules/m/index.js"), ["index.js:1"]);
}

#[test]
fn a_glob_starts_at_the_searched_directory() {
    let sandbox = Sandbox::new();
    for name in ["a/src/x.ts", "a/y.ts", "src/z.ts", "a/src/w.js"] {
        sandbox.file(name, "needle\n");
    }
    let find = |path: &str, glob: &str| places(&sandbox, &json!({"pattern": "needle", "path": path, "glob": glob}));
    // Relative to `path`, not to where the program runs.
    assert_eq!(find("a", "src/*.ts"), ["src/x.ts:1"]);
    assert_eq!(find("a", "/*.ts"), ["y.ts:1"]);
    assert_eq!(find(".", "/src/*.ts"), ["src/z.ts:1"]);
    assert_eq!(find(".", "*.ts"), ["a/src/x.ts:1", "a/y.ts:1", "src/z.ts:1"]);
    assert_eq!(find(".", "a/**/*.ts"), ["a/src/x.ts:1", "a/y.ts:1"]);
    assert_eq!(find(".", "!*.ts"), ["a/src/w.js:1"]);
    assert_eq!(find(".", "*.{js,rs}"), ["a/src/w.js:1"]);
    let text = sandbox.bad_call("grep", &json!({"pattern": "x", "glob": "[a"}));
    assert!(text.contains("[a"), "{text}");
}

#[test]
fn a_configuration_of_ripgrep_changes_nothing() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "needle\nNEEDLE\n");
    let configuration = sandbox.file("rc", "--ignore-case\n--invert-match\n");
    let run = sandbox
        .atoll()
        .env("RIPGREP_CONFIG_PATH", configuration)
        .args(["tool", "call", "grep", "{\"pattern\":\"needle\",\"path\":\"a.txt\"}"])
        .run()
        .ok();
    assert_eq!(run.stdout.trim_end(), "a.txt:1: needle");
}

#[test]
fn the_limit_is_told_only_if_there_is_more() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "x\nx\n");
    sandbox.file("b.txt", "x\n");
    let grep = |limit: u32| sandbox.good_call("grep", &json!({"pattern": "x", "limit": limit}));
    assert_eq!(grep(3), "a.txt:1: x\na.txt:2: x\nb.txt:1: x");
    let more = "a.txt:1: x\na.txt:2: x\n\n[2 matches limit reached. Use limit=4 for more, or refine pattern]";
    assert_eq!(grep(2), more);
    assert!(grep(0).starts_with("a.txt:1: x\n\n[1 matches limit reached. Use limit=2 "));
    let record = sandbox.call("grep", &json!({"pattern": "x", "limit": 2}));
    assert_eq!(
        (&record["structuredContent"]["matches"], &record["structuredContent"]["truncated"]),
        (&json!(2), &json!(true))
    );
}

#[test]
fn a_hundred_matches_unless_asked_for_more() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "x\n".repeat(150));
    let text = sandbox.good_call("grep", &json!({"pattern": "x"}));
    assert!(text.ends_with("a.txt:100: x\n\n[100 matches limit reached. Use limit=200 for more, or refine pattern]"));
    assert_eq!(sandbox.good_call("grep", &json!({"pattern": "x", "limit": 200})).lines().count(), 150);
}

#[test]
fn context_surrounds_matches_and_comes_once() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "1\n2\nx3\n4\nx5\n6\n7\n8\nx9");
    let text = sandbox.good_call("grep", &json!({"pattern": "x", "context": 1}));
    let expected = "a.txt-2- 2\na.txt:3: x3\na.txt-4- 4\na.txt:5: x5\na.txt-6- 6\na.txt-8- 8\na.txt:9: x9";
    assert_eq!(text, expected);
    let record = sandbox.call("grep", &json!({"pattern": "x9", "context": 1}));
    let lines = json!([
        {"path": "a.txt", "line": 8, "text": "8", "match": false},
        {"path": "a.txt", "line": 9, "text": "x9", "match": true},
    ]);
    assert_eq!(record["structuredContent"], json!({"lines": lines, "matches": 1, "truncated": false}));
}

#[test]
fn context_of_a_huge_file_does_not_need_all_of_it() {
    let sandbox = Sandbox::new();
    // More than the plugin's memory.
    let mut file = std::io::BufWriter::new(fs::File::create(sandbox.work().join("huge.txt")).unwrap());
    let block = "0123456789abcde\n".repeat(1 << 16);
    for _ in 0..300 {
        std::io::Write::write_all(&mut file, block.as_bytes()).unwrap();
    }
    std::io::Write::write_all(&mut file, b"needle\nend\n").unwrap();
    drop(file);
    let text = sandbox.good_call("grep", &json!({"pattern": "needle", "context": 1}));
    let line = 300 * (1 << 16);
    let expected =
        format!("huge.txt-{line}- 0123456789abcde\nhuge.txt:{}: needle\nhuge.txt-{}- end", line + 1, line + 2);
    assert_eq!(text, expected);
}

#[test]
fn a_long_line_is_cut_around_its_match_opencode_13149_zed_64030_octo_agent_315() {
    let sandbox = Sandbox::new();
    // Longer than the buffers of programs that read other programs' output: opencode 35523.
    sandbox.file("a.min.js", format!("{}needle{}\n", "x".repeat(150_000), "y".repeat(150_000)));
    let text = sandbox.good_call("grep", &json!({"pattern": "needle"}));
    let side = "x".repeat(247);
    let line = format!("a.min.js:1: [truncated] ...{side}needle{}... [truncated]", side.replace('x', "y"));
    assert_eq!(text, format!("{line}\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]"));
    let record = sandbox.call("grep", &json!({"pattern": "needle"}));
    assert!(record.to_string().len() < 5_000, "{} bytes", record.to_string().len());
}

#[test]
fn a_line_is_never_cut_inside_a_character() {
    let sandbox = Sandbox::new();
    for shift in 0..2 {
        sandbox.file("a.txt", format!("{}{}\n", "x".repeat(shift), "\u{1f980}".repeat(400)));
        let text = sandbox.good_call("grep", &json!({"pattern": "\u{1f980}"}));
        assert!(!text.contains('\u{fffd}') && text.contains("[truncated]"), "{text}");
    }
}

#[test]
fn patterns_are_expressions_unless_they_are_literal() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "a.b*c [x] $1\nabbbc\n-dash\nFOO\nfoo\n");
    let find = |arguments: Value| places(&sandbox, &arguments);
    assert_eq!(find(json!({"pattern": "a.b*c"})), ["a.txt:2"]);
    assert_eq!(find(json!({"pattern": "a.b*c [x] $1", "literal": true})), ["a.txt:1"]);
    assert_eq!(find(json!({"pattern": "-dash"})), ["a.txt:3"]);
    assert_eq!(find(json!({"pattern": "^foo$", "ignoreCase": true})), ["a.txt:4", "a.txt:5"]);
    assert_eq!(sandbox.good_call("grep", &json!({"pattern": "zzz"})), "No matches found");
    for (pattern, reason) in [("(", "unclosed"), ("a\nb", "\\n"), ("(?:(?:a{1000}){1000}){9}", "size limit")] {
        let text = sandbox.bad_call("grep", &json!({"pattern": pattern}));
        assert!(text.contains(reason) && text.contains("literal"), "{pattern}: {text}");
    }
}

#[test]
fn an_expression_that_explodes_elsewhere_is_harmless() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", format!("{}\n", "a".repeat(60_000)));
    assert_eq!(sandbox.good_call("grep", &json!({"pattern": "(a+)+$b|(a|aa)+c"})), "No matches found");
}

#[test]
fn binary_files_and_other_encodings() {
    let sandbox = Sandbox::new();
    let wide: Vec<u8> = "\u{feff}one\r\ntwo\r\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
    sandbox.file("utf16.txt", wide);
    sandbox.file("bom.txt", "\u{feff}one\n");
    sandbox.file("latin1.txt", b"caf\xe9 one\n");
    sandbox.file("nul.bin", b"one\0\n");
    let late = [b"one\n".repeat(50_000), b"\0".to_vec()].concat();
    sandbox.file("late.bin", late);
    assert_eq!(places(&sandbox, &json!({"pattern": "^one$", "glob": "*.txt"})), ["bom.txt:1"]);
    assert_eq!(places(&sandbox, &json!({"pattern": "one|two", "glob": "*.txt"})).len(), 4);
    assert_eq!(places(&sandbox, &json!({"pattern": "one", "glob": "nul.bin"})), [] as [&str; 0]);
    assert_eq!(places(&sandbox, &json!({"pattern": "one", "path": "nul.bin"})), ["nul.bin:1"]);
    let text = sandbox.good_call("grep", &json!({"pattern": "caf", "path": "latin1.txt"}));
    assert_eq!(text, "latin1.txt:1: caf\u{fffd} one");
    // A character at the edge of what is looked at first is no sign of a binary file: hermes-agent 76886.
    for edge in [8_192, 65_536, 262_144] {
        sandbox.file("edge.txt", format!("{}\u{e9}\nneedle\n", "x".repeat(edge - 1)));
        assert_eq!(places(&sandbox, &json!({"pattern": "needle"})), ["edge.txt:2"]);
    }
}

#[test]
fn names_that_are_not_utf_8_are_searched_and_can_be_given_back() {
    let sandbox = Sandbox::new();
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    fs::write(sandbox.work().join(name), "needle\n").unwrap();
    assert_eq!(sandbox.good_call("grep", &json!({"pattern": "needle"})), "caf\u{fffd}.txt:1: needle");
    assert_eq!(sandbox.good_call("find", &json!({"pattern": "*.txt"})), "caf\u{fffd}.txt");
    assert_eq!(sandbox.good_call("ls", &json!({})), "caf\u{fffd}.txt");
    assert_eq!(sandbox.good_call("read", &json!({"path": "caf\u{fffd}.txt"})), "needle\n");
    sandbox.good_call("write", &json!({"path": "caf\u{fffd}.txt", "content": "new\n"}));
    assert_eq!(fs::read(sandbox.work().join(name)).unwrap(), b"new\n");
    // Two that look the same: neither is guessed.
    fs::write(sandbox.work().join(std::ffi::OsStr::from_bytes(b"caf\xe8.txt")), "other\n").unwrap();
    assert!(sandbox.bad_call("read", &json!({"path": "caf\u{fffd}.txt"})).contains("does not exist"));
}

#[test]
fn files_that_can_not_be_searched_are_counted() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "needle\n");
    sandbox.file("line.txt", vec![b'x'; 70 << 20]);
    let text = sandbox.good_call("grep", &json!({"pattern": "needle"}));
    assert_eq!(text, "a.txt:1: needle\n\n[1 file could not be searched]");
}

#[test]
fn ignore_rules_that_never_end_hold_nothing_up() {
    let sandbox = Sandbox::new();
    for folder in ["good", "pipe", "device", "long"] {
        sandbox.file(&format!("{folder}/a.txt"), "needle\n");
    }
    let pipe = sandbox.work().join("pipe/.gitignore");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    symlink("/dev/zero", sandbox.work().join("device/.ignore")).unwrap();
    sandbox.file("long/.gitignore", "a*b*c*d*e*f*g\n".repeat(100_000));
    // They do not count: what is beside them is searched.
    let all = ["device/a.txt:1", "good/a.txt:1", "long/a.txt:1", "pipe/a.txt:1"];
    assert_eq!(places(&sandbox, &json!({"pattern": "needle"})), all);
    for folder in ["pipe", "device", "long"] {
        assert_eq!(places(&sandbox, &json!({"pattern": "needle", "path": folder})), ["a.txt:1"], "{folder}");
    }
}

#[test]
fn many_files_are_searched_on_all_cores_with_the_result_of_one() {
    let sandbox = Sandbox::new();
    for n in 0..1_500 {
        let text = if n % 7 == 0 { "first\nneedle\n" } else { "nothing\n" };
        sandbox.file(&format!("d{}/f{n:04}.txt", n % 13), text);
    }
    let found = places(&sandbox, &json!({"pattern": "needle", "limit": 1_000}));
    let mut expected: Vec<(String, String)> =
        (0..1_500).step_by(7).map(|n| (format!("d{}", n % 13), format!("f{n:04}.txt:2"))).collect();
    expected.sort();
    assert_eq!(found, expected.into_iter().map(|(folder, file)| format!("{folder}/{file}")).collect::<Vec<_>>());
    // The first matches in order, whoever finds them first.
    assert_eq!(places(&sandbox, &json!({"pattern": "needle", "limit": 20})), found[..20]);
}

#[test]
fn a_result_stays_in_bounds_whatever_is_asked_for() {
    let sandbox = Sandbox::new();
    for n in 0..200 {
        sandbox.file(&format!("{n:03}.txt"), "\u{1}\"\\x\n".repeat(4_000));
    }
    let record = sandbox.call("grep", &json!({"pattern": "x", "limit": 100_000_000, "context": 3}));
    assert_eq!(record["isError"], false, "{:.2000}", record.to_string());
    assert_eq!(record["structuredContent"]["truncated"], true);
    let text = crate::common::text_of(&record["content"]);
    assert!(text.len() < 52_000 && text.ends_with("[50.0KB limit reached]"), "{} bytes", text.len());
}
