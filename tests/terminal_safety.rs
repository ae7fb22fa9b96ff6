//! What plugins and files bring does nothing to the terminal, and files that should be small are read only if they are.

use std::{fs, path::Path};

use crate::common::{Sandbox, components::tool, terminal::AtTerminal};

/// The component of a tool whose description would do things to a terminal and forge a line.
fn sly() -> Vec<u8> {
    let mut component = tool("sly", "(i32.const 64)");
    let (said, forged) = (b"Made by hand.", b"\x1b[2J\r forged.");
    assert_eq!(said.len(), forged.len());
    let at = component.windows(said.len()).position(|part| part == said).unwrap();
    component[at..at + said.len()].copy_from_slice(forged);
    component
}

#[test]
fn what_a_plugin_says_of_itself_does_nothing_to_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.plugin("sly", &sly(), None);
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(!run.stdout.contains(['\u{1b}', '\r']), "{run:#?}");
    assert!(run.stdout.contains("\\u{1b}[2J\\r forged."), "{run:#?}");
}

#[test]
fn what_is_told_on_standard_error_does_nothing_to_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.home_file("plugins/a\u{1b}[2J\nforged/plugin.wasm", "x");
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    let line = run.one_line();
    assert!(!line.contains('\u{1b}') && line.contains("a\\u{1b}[2J\\nforged"), "{line}");
}

#[test]
fn what_a_failed_call_says_does_nothing_to_the_terminal() {
    let sandbox = Sandbox::new();
    let run = sandbox.atoll().args(["tool", "call", "read", r#"{"path": "a\u001b[2J\rb"}"#]).run().code(1);
    assert!(!run.stderr.contains(['\u{1b}', '\r']) && run.stderr.contains("a\\u{1b}[2J\\rb"), "{run:#?}");
}

#[test]
fn what_a_tool_gives_does_nothing_to_the_terminal_and_is_as_it_is_elsewhere() {
    let sandbox = Sandbox::new();
    let content = "one\ttwo\n\u{1b}]0;title\u{7}three\u{1b}[2J\n";
    sandbox.file("sly.txt", content);
    let read = || sandbox.atoll().args(["tool", "call", "read", r#"{"path": "sly.txt"}"#]);
    assert_eq!(read().run().ok().silent().stdout, content);
    let shown = AtTerminal::start_whole(read()).wait().ok().stderr;
    assert_eq!(shown.replace("\r\n", "\n"), "one\ttwo\n\\u{1b}]0;title\\u{7}three\\u{1b}[2J\n");
}

fn fifo(path: &Path) {
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
}

/// Each file that is read whole, as a pipe and as one that is too large: named in a line, and nobody waits.
#[test]
fn a_pipe_or_a_huge_file_where_a_small_one_is_expected_is_an_error_in_one_line() {
    type Make = fn(&Path);
    let makes: [(&str, Make); 2] = [
        ("not a regular file", fifo),
        ("more than 1048576 bytes", |path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap()),
    ];
    for (reason, make) in makes {
        for name in ["settings.json", "grants.toml", "trust.json", "plugins.json", "plugins/sly/plugin.toml"] {
            let sandbox = Sandbox::new();
            sandbox.plugin("sly", &sly(), None);
            make(&sandbox.atoll_home().join(name));
            let run = sandbox.atoll().args(["tool", "list"]).run();
            let line = run.one_line();
            assert!(line.contains(name) && line.contains(reason), "{name}: {line}");
            if name != "settings.json" {
                run.ok();
            }
        }
        // A trusted project's.
        for name in ["settings.json", "plugins/theirs/plugin.toml"] {
            let sandbox = Sandbox::new();
            sandbox.file(".atoll/plugins/theirs/plugin.wasm", sly());
            make(&sandbox.work().join(".atoll").join(name));
            let run = sandbox.atoll().args(["-a", "tool", "list"]).run();
            let line = run.one_line();
            assert!(line.contains(name) && line.contains(reason), "{name}: {line}");
        }
    }
}
