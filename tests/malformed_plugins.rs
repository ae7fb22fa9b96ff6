//! Files that are no plugins: each is refused in one line, quickly, and nothing else suffers.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use crate::common::{
    Sandbox,
    components::{component, core_module, importing, tool},
};

/// Files that are no usable plugin, with what the refusal has to say.
fn bad_components() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let good = tool("good", "(i32.const 64)");
    let half = good[..good.len() / 2].to_vec();
    let mut damaged = good;
    let middle = damaged.len() / 2;
    damaged[middle..middle + 64].fill(0xff);
    vec![
        ("empty", Vec::new(), "empty"),
        ("truncated", half, "not a usable component"),
        ("damaged", damaged, "not a usable component"),
        ("core-module", core_module(), "core WebAssembly module"),
        ("nothing", component("(component)"), "exports none of"),
        (
            "other-world",
            component("(component (instance $run) (export \"wasi:cli/run@0.2.3\" (instance $run)))"),
            "exports none of",
        ),
        ("newer-contract", importing("atoll:plugin/log@0.2.0"), "atoll:plugin/log@0.2.0"),
        ("newer-patch", importing("atoll:plugin/log@0.1.9"), "atoll:plugin/log@0.1.9"),
        ("unknown-interface", importing("atoll:plugin/telepathy@0.1.0"), "atoll:plugin/telepathy@0.1.0"),
        ("sockets", importing("wasi:sockets/tcp@0.2.3"), "wasi:sockets/tcp@0.2.3"),
        ("wasi-http", importing("wasi:http/outgoing-handler@0.2.3"), "wasi:http/outgoing-handler@0.2.3"),
        ("foreign", importing("acme:rocket/launch@1.0.0"), "acme:rocket/launch@1.0.0"),
        ("bare-import", component("(component (import \"launch\" (func)))"), "launch"),
        ("random", (0_u32..5000).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect(), "not WebAssembly"),
        ("text", b"#!/bin/sh\necho hi\n".to_vec(), "not WebAssembly"),
        ("magic-only", b"\0asm".to_vec(), "cut off"),
        ("future-layer", b"\0asm\x0d\0\x02\0".to_vec(), "unknown kind"),
    ]
}

/// Inspects a file; the one line of its refusal.
#[track_caller]
fn refused(sandbox: &Sandbox, file: &std::path::Path) -> String {
    let run = sandbox.atoll().args(["plugin", "inspect"]).arg(file).run().code(1);
    run.one_line().to_owned()
}

#[test]
fn every_bad_file_is_refused_in_one_line_by_inspect_zed_10352() {
    let sandbox = Sandbox::new();
    for (name, bytes, reason) in bad_components() {
        let file = sandbox.file(&format!("{name}.wasm"), bytes);
        let line = refused(&sandbox, &file);
        assert!(line.contains(reason), "{name}: {line}");
        assert!(line.contains(&format!("{name}.wasm")), "{name}: {line}");
    }
}

#[test]
fn every_bad_file_as_a_plugin_costs_one_line_and_the_other_tools_work() {
    for (name, bytes, reason) in bad_components() {
        let sandbox = Sandbox::new();
        sandbox.file("a.txt", "alpha\n");
        sandbox.plugin(name, &bytes, None);
        let run = sandbox.atoll().args(["tool", "call", "read", "{\"path\":\"a.txt\"}"]).run().ok();
        assert_eq!(run.stdout, "alpha\n");
        let line = run.one_line();
        assert!(line.contains(reason) && line.contains(name), "{name}: {line}");
    }
}

#[test]
fn a_contract_that_is_not_served_has_its_own_code_ironclaw_7711() {
    let sandbox = Sandbox::new();
    for (interface, served) in [("atoll:plugin/telepathy@0.1.0", false), ("atoll:plugin/log@0.2.0", true)] {
        let file = sandbox.file("x.wasm", importing(interface));
        let run = sandbox.atoll().args(["plugin", "inspect", "--json"]).arg(file).run().code(1);
        let record = run.json();
        assert_eq!(record["usable"], false, "{record:#}");
        assert_eq!(record["refusal"]["code"], "unsupported-contract", "{record:#}");
        let message = record["refusal"]["message"].as_str().unwrap();
        assert!(message.contains(interface), "{message}");
        assert_eq!(message.contains("serves"), served, "{message}");
        assert_eq!(record["imports"][0], interface, "{record:#}");
    }
}

#[test]
fn every_prefix_of_a_component_is_refused_without_a_crash() {
    let sandbox = Sandbox::new();
    let whole = tool("good", "(i32.const 64)");
    // All places where a section could end early are between these.
    let mut lengths: Vec<usize> = (0..12).chain((12..whole.len()).step_by(whole.len() / 40)).collect();
    lengths.push(whole.len() - 1);
    for length in lengths {
        let file = sandbox.file("prefix.wasm", &whole[..length]);
        let run = sandbox.atoll().args(["plugin", "inspect"]).arg(&file).run().code(1);
        assert!(run.stderr.starts_with("atoll: ") && run.stderr.lines().count() == 1, "{length}: {run:#?}");
    }
    let file = sandbox.file("whole.wasm", &whole);
    sandbox.atoll().args(["plugin", "inspect"]).arg(&file).run().ok();
}

#[test]
fn a_component_with_any_byte_changed_is_refused_or_used_but_never_crashes() {
    let sandbox = Sandbox::new();
    let whole = tool("good", "(i32.const 64)");
    for at in (8..whole.len()).step_by(whole.len() / 40) {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        let file = sandbox.file("changed.wasm", &changed);
        let run = sandbox.atoll().args(["plugin", "inspect"]).arg(&file).run();
        let code = run.status.code();
        assert!(matches!(code, Some(0 | 1)) && !run.stderr.contains("panicked"), "{at}: {run:#?}");
    }
}

#[test]
fn two_hundred_megabytes_of_zeros_are_refused_without_reading_them() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("zeros.wasm", "");
    fs::File::options().write(true).open(&file).unwrap().set_len(200 << 20).unwrap();
    assert!(refused(&sandbox, &file).contains("not WebAssembly"));
}

#[test]
fn a_component_that_is_too_large_is_refused_with_the_limit() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("large.wasm", component("(component)"));
    fs::File::options().write(true).open(&file).unwrap().set_len(200 << 20).unwrap();
    assert!(refused(&sandbox, &file).contains("at most"));
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let sandbox = Sandbox::new();
    let fifo: PathBuf = sandbox.work().join("fifo.wasm");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    assert!(refused(&sandbox, &fifo).contains("not a file"));
    assert!(refused(&sandbox, &sandbox.work()).contains("not a file"));
    assert!(refused(&sandbox, std::path::Path::new("/dev/zero")).contains("not a file"));
    assert!(refused(&sandbox, &sandbox.work().join("missing.wasm")).contains("does not exist"));
    symlink("nowhere", sandbox.work().join("link.wasm")).unwrap();
    assert!(refused(&sandbox, &sandbox.work().join("link.wasm")).contains("does not exist"));
}

#[test]
fn a_broken_manifest_is_one_line_with_its_place() {
    for (manifest, reason) in [
        ("name = \"x", "plugin.toml"),
        ("name = \"x\"\nversion = \"1\"\ncontract = \"0.1\"\n[[fiels]]\nroot = \"/\"\n", "fiels"),
        ("version = \"1\"\ncontract = \"0.1\"\n", "name"),
        ("name = \"x\"\nversion = \"1\"\ncontract = \"0.1\"\n[limits]\ncpu-ms = 0\n", "cpu-ms"),
    ] {
        let sandbox = Sandbox::new();
        sandbox.plugin("x", &tool("x", "(i32.const 64)"), Some(manifest));
        let run = sandbox.atoll().args(["tool", "list"]).run().ok();
        let line = run.one_line();
        assert!(line.contains("plugin.toml") && line.contains(reason), "{line}");
        assert!(run.stdout.contains("bash"));
    }
}

#[test]
fn a_manifest_for_a_newer_contract_is_refused() {
    let sandbox = Sandbox::new();
    let manifest = "name = \"x\"\nversion = \"1\"\ncontract = \"0.9\"\n";
    sandbox.plugin("x", &tool("x", "(i32.const 64)"), Some(manifest));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("0.9"), "{run:#?}");
}

#[test]
fn broken_grants_grant_nothing_and_are_one_line() {
    let sandbox = Sandbox::with_misbehave();
    sandbox.home_file("grants.toml", "[plugin.misbehave\n");
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.stderr.contains("grants.toml"), "{run:#?}");
    assert!(!run.stdout.contains("misbehave"), "{run:#?}");
}

#[test]
fn folders_that_hold_no_plugin_are_one_line_each() {
    let sandbox = Sandbox::new();
    sandbox.home_file("plugins/Bad Name/plugin.wasm", tool("x", "(i32.const 64)"));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("Bad Name"), "{run:#?}");
    let sandbox = Sandbox::new();
    sandbox.home_file("plugins/README.txt", "not a folder");
    sandbox.home_file("plugins/no-component/notes.txt", "x");
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("no-component"), "{run:#?}");
}

#[test]
fn a_tool_with_a_bad_name_or_schema_costs_one_line() {
    let sandbox = Sandbox::new();
    sandbox.plugin("x", &tool("not a name!", "(i32.const 64)"), None);
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("not a name!"), "{run:#?}");
    assert!(run.stdout.contains("bash"));
}

#[test]
fn inspect_shows_a_good_plugin_and_does_not_run_it() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("good.wasm", tool("good", "unreachable"));
    let run = sandbox.atoll().args(["plugin", "inspect"]).arg(&file).run().ok().silent();
    assert!(run.stdout.contains("atoll:plugin/tools@0.1.0") && run.stdout.contains("usable: yes"), "{run:#?}");
}
