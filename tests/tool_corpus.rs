//! Every tool on a folder of awkward files: line endings, encodings, links, pipes, names and lines that tools tend to
//! get wrong. What a model reads of each call is compared with a snapshot, and so is what became of the file.

use std::{fmt::Write as _, fs, os::unix::fs::PermissionsExt as _, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::common::{Sandbox, one_edit, text_of};

/// Characters of a result that are in the snapshot, from each end.
const SHOWN: usize = 400;

fn corpus() -> Sandbox {
    let sandbox = Sandbox::new();
    let texts = [
        ("crlf.txt", "alpha\r\nbeta\r\ngamma\r\n"),
        ("mixed.txt", "one\r\ntwo\nthree\r\nfour"),
        ("cr_only.txt", "a\rb\rc"),
        ("lone_cr.txt", "progress 1\rprogress 2\nend\n"),
        ("bom.txt", "\u{feff}hello\nworld\n"),
        ("bom_crlf.txt", "\u{feff}x\r\ny\r\n"),
        ("noeol.txt", "last line no newline"),
        ("empty.txt", ""),
        ("only_nl.txt", "\n"),
        (
            "smart.txt",
            "const s = \u{201c}hello\u{201d}; // don\u{2019}t \u{2014} dash\u{2026}\nplain \"keep\" \u{2018}other\u{2019}\u{a0}nbsp  \n",
        ),
        ("nfd.txt", "cafe\u{301} re\u{301}sume\u{301}\n"),
        ("nfc.txt", "caf\u{e9} r\u{e9}sum\u{e9}\n"),
        ("dup.txt", "foo\nbar\nfoo\nbar\n"),
        ("indent.py", "def f():\n    if x:\n        return 1\n\ndef g():\n\treturn 2\n"),
        ("trailing_ws.txt", "key: value   \nnext\t\n"),
        ("ansi.txt", "\u{1b}[31mred\u{1b}[0m\n"),
        ("regex.txt", "a.b*c [x] $1 ^start\n\\d+ (group) {2}\n"),
        ("dollar.txt", "price $& and $1 $$ end\n"),
        ("fake.png", "not a picture\n"),
        (".gitignore", "ignored/\nnode_modules/\n*.log\n"),
        ("sub/.hidden/h.txt", "needle hidden\n"),
        ("sub/ignored/i.txt", "needle ignored\n"),
        ("sub/x.log", "needle log\n"),
        ("sub/deep/a/b/c.txt", "needle deep\n"),
        ("we ird/sp ace [1].txt", "needle space\n"),
        ("-dash.txt", "needle dash\n"),
        ("node_modules/m/i.js", "needle module\n"),
    ];
    for (name, text) in texts {
        sandbox.file(name, text);
    }
    sandbox.file("latin1.txt", b"caf\xe9 na\xefve\nplain ascii\n");
    sandbox.file("utf16le.txt", utf_16("\u{feff}hello\r\nwide\r\n"));
    sandbox.file("gbk.txt", b"\xd6\xd0\xce\xc4\xb2\xe2\xca\xd4\n");
    sandbox.file("nul.bin", b"abc\0def\n\0\xff\n");
    sandbox.file("program", [b"\x7fELF".as_slice(), &[1; 200]].concat());
    sandbox.file("longline.min.js", format!("var needle=1;{};needle();\nshort needle\n", "x".repeat(300_000)));
    sandbox.file("many.txt", (1..=5000).map(|line| format!("line {line}\n")).collect::<String>());
    let work = sandbox.work();
    fs::set_permissions(work.join("noeol.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    for (name, target) in
        [("link.txt", "crlf.txt"), ("broken.txt", "missing-target"), ("dirlink", "sub"), ("loop", "loop")]
    {
        symlink(target, work.join(name)).unwrap();
    }
    rustix::fs::mknodat(rustix::fs::CWD, work.join("fifo"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    sandbox
}

fn utf_16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// Makes calls one after the other, each in a folder of its own, and writes down what came of them.
fn record(calls: &[(&str, Value, Option<&str>)]) -> String {
    let mut report = String::new();
    for (tool, arguments, looked_at) in calls {
        let sandbox = corpus();
        let record = sandbox.call(tool, arguments);
        let failed = if record["isError"] == true { " (error)" } else { "" };
        let text = text_of(&record["content"]).replace(&sandbox.root().to_string_lossy().into_owned(), "ROOT");
        let text = without_spill(&text);
        writeln!(report, "### {tool} {arguments}{failed}\n{}", shown(&text)).unwrap();
        if let Some(file) = looked_at {
            let bytes = fs::read(sandbox.work().join(file)).unwrap();
            writeln!(report, "{file}: \"{}\"", shown(&bytes.escape_ascii().to_string())).unwrap();
        }
        report.push('\n');
    }
    report
}

/// A text without the name of the file that has all of it, which is another one each time.
fn without_spill(text: &str) -> String {
    match text.split_once("Full output: ") {
        Some((before, after)) => {
            let (path, rest) = after.split_once(']').unwrap();
            assert!(path.ends_with(".log"), "{path}");
            format!("{before}Full output: FILE]{rest}")
        }
        None => text.to_owned(),
    }
}

/// A text without the middle, if it is long; what can not be seen is escaped.
fn shown(text: &str) -> String {
    let text: String = text
        .chars()
        .flat_map(|c| if c == '\n' || !c.is_control() { vec![c] } else { c.escape_default().collect() })
        .collect();
    let count = text.chars().count();
    if count <= 2 * SHOWN {
        return text;
    }
    let start: String = text.chars().take(SHOWN).collect();
    let end: String = text.chars().skip(count - SHOWN).collect();
    format!("{start}\n… {} characters …\n{end}", count - 2 * SHOWN)
}

#[test]
fn edits_of_awkward_files() {
    let edits = |path: &str, edits: &[(&str, &str)]| {
        let edits: Vec<Value> = edits.iter().map(|(old, new)| json!({"oldText": old, "newText": new})).collect();
        json!({"path": path, "edits": edits})
    };
    let report = record(&[
        ("edit", one_edit("crlf.txt", "alpha\nbeta", "A\nB\nB2"), Some("crlf.txt")),
        ("edit", one_edit("mixed.txt", "three\nfour", "3\n4\n5"), Some("mixed.txt")),
        ("edit", one_edit("lone_cr.txt", "end", "END"), Some("lone_cr.txt")),
        ("edit", one_edit("bom.txt", "hello", "HELLO"), Some("bom.txt")),
        ("edit", one_edit("noeol.txt", "last line", "final line"), Some("noeol.txt")),
        ("edit", one_edit("crlf.txt", "", "x"), Some("crlf.txt")),
        ("edit", one_edit("dup.txt", "nope", "x"), Some("dup.txt")),
        ("edit", one_edit("dup.txt", "foo", "x"), Some("dup.txt")),
        (
            "edit",
            one_edit("smart.txt", "const s = \"hello\"; // don't - dash", "const s = \"bye\";"),
            Some("smart.txt"),
        ),
        ("edit", one_edit("smart.txt", "plain \u{201c}keep\u{201d}", "plain \"kept\""), Some("smart.txt")),
        ("edit", one_edit("trailing_ws.txt", "key: value\nnext", "key: v2\nnext"), Some("trailing_ws.txt")),
        ("edit", one_edit("indent.py", "if x:\n    return 1", "if y:\n    return 1"), Some("indent.py")),
        ("edit", one_edit("regex.txt", "a.b*c [x] $1 ^start", "done"), Some("regex.txt")),
        ("edit", one_edit("dollar.txt", "price", "$& $1 $$ $`"), Some("dollar.txt")),
        ("edit", one_edit("utf16le.txt", "hello", "x"), Some("utf16le.txt")),
        ("edit", one_edit("latin1.txt", "plain", "x"), Some("latin1.txt")),
        ("edit", one_edit("nfd.txt", "caf\u{e9}", "tea"), Some("nfd.txt")),
        ("edit", one_edit("link.txt", "beta", "BETA"), Some("crlf.txt")),
        ("edit", one_edit("sub", "x", "y"), None),
        ("edit", one_edit("no/such.txt", "x", "y"), None),
        (
            "edit",
            edits("indent.py", &[("def f():\n    if x:", "A"), ("if x:\n        return 1", "B")]),
            Some("indent.py"),
        ),
        ("edit", edits("nfc.txt", &[("caf\u{e9}", "tea"), ("tea", "milk")]), Some("nfc.txt")),
        ("edit", one_edit("dup.txt", "foo\nbar\nfoo\n", ""), Some("dup.txt")),
    ]);
    insta::assert_snapshot!(report);
}

#[test]
fn reads_of_awkward_files() {
    let read = |path: &str| ("read", json!({"path": path}), None);
    let report = record(&[
        read("noeol.txt"),
        read("bom.txt"),
        read("empty.txt"),
        read("only_nl.txt"),
        read("cr_only.txt"),
        read("many.txt"),
        ("read", json!({"path": "many.txt", "offset": 4999, "limit": 10}), None),
        ("read", json!({"path": "dup.txt", "offset": 5}), None),
        ("read", json!({"path": "dup.txt", "limit": 0}), None),
        ("read", json!({"path": "dup.txt", "offset": -1}), None),
        ("read", json!({"path": "dup.txt", "offset": 0}), None),
        read("longline.min.js"),
        read("latin1.txt"),
        read("gbk.txt"),
        read("nul.bin"),
        read("program"),
        read("utf16le.txt"),
        read("fake.png"),
        read("sub"),
        read("nope.txt"),
        read("broken.txt"),
        read("loop"),
        read("fifo"),
        read("@noeol.txt"),
        read("~/definitely-missing-file"),
        read("noeol.txt/"),
        read("we ird/sp ace [1].txt"),
    ]);
    insta::assert_snapshot!(report);
}

#[test]
fn writes_over_awkward_files() {
    let write = |path: &str, content: &str, after: &'static str| {
        ("write", json!({"path": path, "content": content}), Some(after))
    };
    let report = record(&[
        write("link.txt", "new\n", "crlf.txt"),
        write("noeol.txt", "x", "noeol.txt"),
        write("bom_crlf.txt", "q\nr\n", "bom_crlf.txt"),
        ("write", json!({"path": "sub", "content": "x"}), None),
        ("write", json!({"path": "loop", "content": "x"}), None),
        ("write", json!({"path": "broken.txt", "content": "x"}), None),
        ("write", json!({"path": "fifo", "content": "x"}), None),
    ]);
    insta::assert_snapshot!(report);
}

#[test]
fn searches_of_awkward_files() {
    let report = record(&[
        ("grep", json!({"pattern": "needle"}), None),
        ("grep", json!({"pattern": "needle", "path": "longline.min.js"}), None),
        ("grep", json!({"pattern": "a.b*c [x] $1", "literal": true}), None),
        ("grep", json!({"pattern": "-dash"}), None),
        ("grep", json!({"pattern": "needle", "path": "-dash.txt"}), None),
        ("grep", json!({"pattern": "zzzzqqq"}), None),
        ("grep", json!({"pattern": "beta", "path": "crlf.txt", "context": 1}), None),
        ("grep", json!({"pattern": "line", "path": "many.txt", "limit": 5}), None),
        ("grep", json!({"pattern": "line", "path": "many.txt", "limit": 0}), None),
        ("grep", json!({"pattern": "wide", "path": "utf16le.txt"}), None),
        ("grep", json!({"pattern": "^hello", "path": "bom.txt"}), None),
        ("grep", json!({"pattern": "caf", "path": "latin1.txt"}), None),
        ("grep", json!({"pattern": "def", "path": "nul.bin"}), None),
        ("grep", json!({"pattern": "(", "path": "dup.txt"}), None),
        ("grep", json!({"pattern": "x", "path": "nope"}), None),
        ("grep", json!({"pattern": "x", "path": "fifo"}), None),
        ("grep", json!({"pattern": "needle", "path": "dirlink"}), None),
        ("grep", json!({"pattern": "needle", "path": "sub/ignored"}), None),
        ("grep", json!({"pattern": "needle", "glob": "*.log"}), None),
        ("find", json!({"pattern": "**/*.txt"}), None),
        ("find", json!({"pattern": "h.txt"}), None),
        ("find", json!({"pattern": "*.zzz"}), None),
        ("find", json!({"pattern": "*", "limit": 3}), None),
        ("find", json!({"pattern": "*", "path": "sub"}), None),
        ("find", json!({"pattern": "*[[]1].txt"}), None),
        ("find", json!({"pattern": "i.js"}), None),
        ("find", json!({"pattern": "node_modules/m/i.js"}), None),
        ("find", json!({"pattern": "x", "path": "nope"}), None),
        ("find", json!({"pattern": "x", "path": "dup.txt"}), None),
        ("find", json!({"pattern": "[x"}), None),
        ("ls", json!({}), None),
        ("ls", json!({"limit": 2}), None),
        ("ls", json!({"limit": 0}), None),
        ("ls", json!({"path": "noeol.txt"}), None),
        ("ls", json!({"path": "nope"}), None),
        ("ls", json!({"path": "loop"}), None),
        ("ls", json!({"path": "dirlink"}), None),
    ]);
    insta::assert_snapshot!(report);
}

#[test]
fn commands_with_awkward_output() {
    let bash = |command: &str| ("bash", json!({"command": command}), None);
    let report = record(&[
        bash("echo out; echo err >&2"),
        bash("true"),
        bash("echo; echo '  '"),
        bash("kill -9 $$"),
        bash("cat; read x; echo \"r=$?\""),
        bash("printf 'ok\\xff\\xfe bad\\n'"),
        bash("printf '\\xe2\\x82'; printf '\\xac\\n'"),
        bash("head -c 300000 /dev/zero | tr '\\0' x | sed 's/$/END/'; exit 7"),
        bash("printf 'a\\0b\\a\\033[31mred\\033[0m\\n'"),
        bash("test -t 1 && echo tty || echo notty; cd /; pwd"),
        bash("pwd"),
        bash("cat latin1.txt"),
    ]);
    insta::assert_snapshot!(report);
}
