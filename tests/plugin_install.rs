//! Installing plugins: what is shown, what is asked, and that nothing is ever half there or more than was agreed to.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::json;

use crate::common::{
    Sandbox,
    components::{component, core_module, importing, tool},
    plugins::{MISBEHAVE_TOML, digest, misbehave},
    server::{Reply, Server, Step},
    terminal::AtTerminal,
};

/// A manifest of a plugin without wishes.
fn plain_manifest(name: &str, more: &str) -> String {
    format!("name = \"{name}\"\nversion = \"1.2.3\"\ndescription = \"Says hello.\"\ncontract = \"0.1\"\n{more}")
}

/// All names in the folder of plugins.
fn names(sandbox: &Sandbox) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(sandbox.atoll_home().join("plugins"))
        .into_iter()
        .flatten()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn installed(sandbox: &Sandbox, name: &str) -> Option<Vec<u8>> {
    fs::read(sandbox.atoll_home().join(format!("plugins/{name}/plugin.wasm"))).ok()
}

#[test]
fn an_installed_plugin_is_copied_pinned_and_granted_nothing() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("new", &misbehave(), Some(MISBEHAVE_TOML));
    let run = sandbox.atoll().args(["plugin", "install", "--yes"]).arg(&file).run().ok().silent();
    assert!(run.stdout.contains("installed: misbehave 0.1.0"), "{run:#?}");
    assert!(run.stdout.contains("atoll plugin grant misbehave --all"), "{run:#?}");
    assert_eq!(installed(&sandbox, "misbehave"), Some(misbehave()));
    assert_eq!(names(&sandbox), [".lock", "misbehave"]);
    let grants = sandbox.grants();
    assert!(grants.contains(&format!("sha256 = \"{}\"", digest(&misbehave()))), "{grants}");
    assert!(grants.contains(&format!("manifest-sha256 = \"{}\"", digest(MISBEHAVE_TOML.as_bytes()))), "{grants}");
    assert!(!grants.contains("[[plugin.misbehave"), "{grants}");
    // It is there, but imports what it was not granted.
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("atoll plugin grant misbehave --"), "{run:#?}");
}

#[test]
fn with_grant_all_it_works_at_once() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("new", &misbehave(), Some(MISBEHAVE_TOML));
    let run = sandbox.atoll().args(["plugin", "install", "--yes", "--grant-all", "--json"]).arg(&file).run().ok();
    let record = run.json();
    assert_eq!(record["outcome"], "installed", "{record:#}");
    assert_eq!(record["granted"], record["wants"], "{record:#}");
    assert_eq!(sandbox.good_call("misbehave", &json!({"how": "behave", "target": "x"})), "behaved: x");
}

#[test]
fn without_a_terminal_and_without_yes_it_is_a_denial_and_its_command_works_as_typed() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("it's new", &misbehave(), Some(MISBEHAVE_TOML));
    let run = sandbox.atoll().args(["plugin", "install", "--name", "odd"]).arg(&file).run().code(3);
    assert_eq!(names(&sandbox), Vec::<String>::new());
    assert!(run.stderr.contains("to open more files than it may"), "the reasons are shown: {run:#?}");
    let line = run.stderr.lines().last().unwrap().to_owned();
    assert!(line.starts_with("atoll: not allowed: "), "{line}");
    let command = line.split("to allow it: ").nth(1).unwrap().to_owned();
    sandbox.shell(&command).ok();
    assert_eq!(names(&sandbox), [".lock", "odd"]);
}

#[test]
fn a_person_is_asked_and_no_is_the_default() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("new", &misbehave(), Some(MISBEHAVE_TOML));
    let start = || AtTerminal::start(sandbox.atoll().args(["plugin", "install"]).arg(&file));
    for answer in ["", "n", "yeah, no"] {
        let run = start().answer("[y/N]", answer).wait().code(1);
        assert!(run.stderr.contains("nothing was installed"), "{run:#?}");
        assert_eq!(names(&sandbox), Vec::<String>::new(), "{answer:?}");
    }
    start().answer("Install it?", "y").answer("Grant it all", "n").wait().ok();
    assert_eq!(names(&sandbox), [".lock", "misbehave"]);
    assert!(!sandbox.grants().contains("[[plugin"));
    sandbox.atoll().args(["plugin", "remove", "misbehave", "--yes"]).run().ok();
    start().answer("Install it?", "y").answer("Grant it all", "y").wait().ok();
    assert!(sandbox.grants().contains("all = true\n\n[[plugin.misbehave.files]]"), "{}", sandbox.grants());
}

#[test]
fn a_manifest_can_not_forge_what_is_shown() {
    let sandbox = Sandbox::new();
    let manifest = plain_manifest("sly", "[store]\nreason = \"x\\u001b[2J\\nInstall it? [y/N] y\"\n");
    let file = sandbox.offered("new", &tool("sly", "(i32.const 64)"), Some(&manifest));
    let run = sandbox.atoll().args(["plugin", "install"]).arg(&file).run().code(3);
    assert!(!run.stderr.contains('\u{1b}') && run.stderr.contains("\\u{1b}[2J\\nInstall it?"), "{run:#?}");
    let run = sandbox.atoll().args(["plugin", "inspect"]).arg(&file).run().ok();
    assert!(!run.stdout.contains('\u{1b}') && run.stdout.contains("\\u{1b}[2J\\n"), "{run:#?}");
}

#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("new", &misbehave(), Some(MISBEHAVE_TOML));
    let start = |typed| AtTerminal::start_after_typing(sandbox.atoll().args(["plugin", "install"]).arg(&file), typed);
    let mut run = start("y\ny\n");
    run.wait_for("Install it?");
    run.press("n\n");
    run.wait().code(1);
    assert_eq!(names(&sandbox), Vec::<String>::new());
    // Nor does more than was asked for answer the question that comes next.
    let mut run = start("");
    run.wait_for("Install it?");
    run.press("y\ny\n");
    run.wait_for("Grant it all");
    run.press("n\n");
    run.wait().ok();
    assert_eq!(names(&sandbox), [".lock", "misbehave"]);
    assert!(!sandbox.grants().contains("[[plugin"), "{}", sandbox.grants());
}

#[test]
fn another_version_has_none_of_the_grants_and_says_what_is_new() {
    let sandbox = Sandbox::new();
    let old = sandbox.offered("old", &misbehave(), Some(MISBEHAVE_TOML));
    sandbox.atoll().args(["plugin", "install", "--yes", "--grant-all"]).arg(&old).run().ok();
    let mut changed = misbehave();
    changed.extend([0, 3, 1, b'x', b'y']);
    let manifest = format!("{MISBEHAVE_TOML}\n[store]\nreason = \"to remember\"\n").replace("0.1.0", "0.2.0");
    // Above the limits, which are the last table of the original.
    let manifest = manifest.replace("program = \"/bin/true\"", "program = \"/bin/false\"");
    let new = sandbox.offered("new", &changed, Some(&manifest));
    let run = sandbox.atoll().args(["plugin", "install"]).arg(&new).run().code(3);
    for said in [
        &format!("It replaces misbehave 0.1.0, sha256 {}", digest(&misbehave())),
        &digest(&changed),
        "It newly asks for: process: /bin/false, store",
        "It no longer asks for: process: /bin/true",
    ] {
        assert!(run.stderr.contains(said), "{said}: {run:#?}");
    }
    assert_eq!(installed(&sandbox, "misbehave"), Some(misbehave()), "the old one is untouched");
    let run = sandbox.atoll().args(["plugin", "install", "--yes", "--json"]).arg(&new).run().ok().json();
    assert_eq!(run["outcome"], "replaced", "{run:#}");
    assert_eq!(run["granted"], json!([]), "{run:#}");
    let grants = sandbox.grants();
    assert!(!grants.contains("[[plugin") && !grants.contains(&digest(&misbehave())), "{grants}");
    assert_eq!(installed(&sandbox, "misbehave"), Some(changed));
}

#[test]
fn the_same_version_again_changes_nothing_and_keeps_its_grants() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("new", &misbehave(), Some(MISBEHAVE_TOML));
    sandbox.atoll().args(["plugin", "install", "--yes", "--grant-all"]).arg(&file).run().ok();
    let before = sandbox.grants();
    let run = sandbox.atoll().args(["plugin", "install"]).arg(&file).run().ok();
    assert!(run.stdout.starts_with("unchanged: "), "{run:#?}");
    assert_eq!(sandbox.grants(), before);
}

#[test]
fn a_changed_manifest_is_asked_about_like_a_changed_component() {
    let sandbox = Sandbox::new();
    let component = tool("hello", "(i32.const 64)");
    let store = plain_manifest("hello", "[store]\nreason = \"to remember\"\n");
    let file = sandbox.offered("new", &component, Some(&store));
    sandbox.atoll().args(["plugin", "install", "--yes", "--grant-all"]).arg(&file).run().ok();
    let more = plain_manifest("hello", "[store]\nreason = \"to remember\"\n[ui]\nreason = \"to ask\"\n");
    sandbox.offered("new", &component, Some(&more));
    let run = sandbox.atoll().args(["plugin", "install"]).arg(&file).run().code(3);
    assert!(run.stderr.contains("It newly asks for: ui"), "{run:#?}");
    assert!(run.stderr.contains("its manifest has changed"), "{run:#?}");
}

#[test]
fn what_is_no_plugin_of_ours_is_not_installed() {
    let good = tool("good", "(i32.const 64)");
    for (bytes, reason) in [
        (Vec::new(), "empty"),
        (good[..good.len() / 2].to_vec(), "not a usable component"),
        (core_module(), "core WebAssembly module"),
        (component("(component)"), "exports none of"),
        (importing("atoll:plugin/log@0.2.0"), "atoll:plugin/log@0.2.0"),
        (importing("wasi:sockets/tcp@0.2.3"), "wasi:sockets/tcp@0.2.3"),
        // It imports what it does not ask for, so no grant could make it work.
        (misbehave(), "does not ask for it"),
    ] {
        let sandbox = Sandbox::new();
        let file = sandbox.offered("new", &bytes, None);
        let run = sandbox.atoll().args(["plugin", "install", "--yes"]).arg(&file).run();
        assert!(matches!(run.status.code(), Some(1 | 3)), "{run:#?}");
        assert!(run.one_line().contains(reason), "{reason}: {run:#?}");
        assert_eq!(names(&sandbox), Vec::<String>::new());
        assert_eq!(sandbox.grants(), "");
    }
    let sandbox = Sandbox::new();
    let file = sandbox.offered("new", &good, Some("version = \"1\"\nname = 7\n"));
    let run = sandbox.atoll().args(["plugin", "install", "--yes"]).arg(&file).run().code(1);
    assert!(run.one_line().contains("plugin.toml:2:8"), "{run:#?}");
}

#[test]
fn names_are_checked_and_never_a_built_in_plugins() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("new", &tool("x", "(i32.const 64)"), Some(&plain_manifest("read", "")));
    let install = |name: &[&str]| sandbox.atoll().args(["plugin", "install", "--yes"]).args(name).arg(&file).run();
    assert!(install(&[]).code(1).one_line().contains("name of a built-in plugin"));
    for name in ["../evil", "A", "", "a/b", "bash"] {
        let run = install(&["--name", name]).code(1);
        assert!(run.one_line().contains("--name"), "{run:#?}");
    }
    assert_eq!(names(&sandbox), Vec::<String>::new());
    install(&["--name", "mine"]).ok();
    assert_eq!(names(&sandbox), [".lock", "mine"]);
}

#[test]
fn a_sha256_that_does_not_match_stops_it() {
    let sandbox = Sandbox::new();
    let bytes = tool("hello", "(i32.const 64)");
    let file = sandbox.offered("new", &bytes, None);
    let install = |sha256: &str| sandbox.atoll().args(["plugin", "install", "-y", "--sha256", sha256]).arg(&file).run();
    assert!(install("abc").code(1).one_line().contains("64 hexadecimal digits"));
    let run = install(&digest(b"another")).code(1);
    assert!(run.one_line().contains(&digest(&bytes)) && run.one_line().contains(&digest(b"another")), "{run:#?}");
    assert_eq!(names(&sandbox), Vec::<String>::new());
    install(&digest(&bytes).to_uppercase()).ok();
}

#[test]
fn a_plugin_is_fetched_from_this_machine_with_the_manifest_inside_it() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("new", &tool("hello", "(i32.const 64)"), Some(&plain_manifest("hello", "")));
    let packed = sandbox.work().join("packed.wasm");
    let manifest = sandbox.work().join("new/plugin.toml");
    sandbox.atoll().args(["plugin", "pack", "-o"]).arg(&packed).arg(&file).arg(&manifest).run().ok().silent();
    let bytes = fs::read(&packed).unwrap();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", bytes.len());
    let server = Server::start(vec![
        Reply::status(302, &[("location", "/elsewhere")], ""),
        Reply::raw(head.into_bytes()).send(bytes.clone()),
    ]);
    let url = format!("{}/x.wasm?token=sk-hush", server.origin());
    let run = sandbox.atoll().args(["plugin", "install", "--yes", "--sha256", &digest(&bytes), &url]).run().ok();
    assert!(run.stdout.contains("installed: hello 1.2.3"), "{run:#?}");
    assert_eq!(installed(&sandbox, "hello"), Some(bytes));
    assert!(!sandbox.atoll_home().join("plugins/hello/plugin.toml").exists());
    let paths: Vec<String> = server.requests().iter().map(|request| request.line.clone()).collect();
    assert_eq!(paths, ["GET /x.wasm?token=sk-hush HTTP/1.1", "GET /elsewhere HTTP/1.1"]);
    assert!(sandbox.atoll().args(["tool", "list"]).run().ok().silent().stdout.contains("hello"));
}

#[test]
fn nothing_is_fetched_over_an_open_line_nor_by_a_redirect_that_leads_there() {
    let sandbox = Sandbox::new();
    for (url, reason) in [
        ("http://example.com/x.wasm", "https"),
        ("http://127.0.0.1@example.com/x.wasm", "user name"),
        ("ftp://example.com/x.wasm", "https"),
        ("file:///etc/passwd", "https"),
        ("https://", "not a URL"),
    ] {
        let run = sandbox.atoll().args(["plugin", "install", "--yes", url]).run().code(1);
        assert!(run.one_line().contains(reason), "{url}: {run:#?}");
    }
    for (to, reason) in [
        ("http://example.com/x.wasm", "http is for this machine only"),
        ("file:///etc/passwd", "over https"),
        ("http://user:sk-hush@127.0.0.1/x", "user name"),
    ] {
        let server = Server::start(vec![Reply::status(302, &[("location", to)], "")]);
        let run = sandbox.atoll().args(["plugin", "install", "--yes", &server.origin()]).run().code(1);
        // Refused, and not merely out of reach.
        assert!(run.one_line().contains(reason) && !run.stderr.contains("sk-hush"), "{run:#?}");
        assert_eq!(server.requests().len(), 1, "{to}");
    }
    let again: Vec<Reply> = (0..10).map(|_| Reply::status(302, &[("location", "/again")], "")).collect();
    let server = Server::start(again);
    let run = sandbox.atoll().args(["plugin", "install", "--yes", &server.origin()]).run().code(1);
    assert!(run.one_line().contains("redirects"), "{run:#?}");
    assert_eq!(server.requests().len(), 6);
    assert_eq!(names(&sandbox), Vec::<String>::new());
}

#[test]
fn a_download_that_fails_is_cut_off_or_too_large_installs_nothing() {
    let half = tool("hello", "(i32.const 64)")[..200].to_vec();
    let endless = {
        let mut reply = Reply::raw("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
        for _ in 0..65 {
            reply = reply.then(Step::Send(vec![0; 1 << 20]));
        }
        reply
    };
    for (reply, reason) in [
        (Reply::status(404, &[], "gone"), "404"),
        (Reply::status(500, &[], "oops"), "500"),
        (Reply::status(200, &[], "<html>"), "not WebAssembly"),
        (Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n"), "bytes that a component may have"),
        (Reply::raw("HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n").send(half), "ends before it is whole"),
        (endless, "bytes that a component may have"),
    ] {
        let sandbox = Sandbox::new();
        let server = Server::start(vec![reply]);
        let run = sandbox.atoll().args(["plugin", "install", "--yes", &server.origin()]).run().code(1);
        assert!(run.one_line().contains(reason), "{reason}: {run:#?}");
        assert_eq!(names(&sandbox), Vec::<String>::new());
    }
}

#[test]
fn what_a_killed_install_left_behind_is_not_loaded_and_is_cleared_away() {
    let sandbox = Sandbox::new();
    sandbox.home_file("plugins/.staging-x/plugin.wasm", tool("half", "(i32.const 64)"));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok().silent();
    assert!(!run.stdout.contains("half"), "{run:#?}");
    let file = sandbox.offered("new", &tool("hello", "(i32.const 64)"), Some(&plain_manifest("hello", "")));
    sandbox.atoll().args(["plugin", "install", "--yes"]).arg(&file).run().ok();
    assert_eq!(names(&sandbox), [".lock", "hello"]);
}

#[test]
fn installs_at_once_leave_one_whole_plugin_that_matches_its_pin() {
    let sandbox = Sandbox::new();
    let versions: Vec<Vec<u8>> = (0..4).map(|n| tool(&format!("v{n}"), "(i32.const 64)")).collect();
    let running: Vec<_> = versions
        .iter()
        .enumerate()
        .map(|(n, bytes)| {
            let manifest = plain_manifest("hello", &format!("# {n}\n"));
            let file = sandbox.offered(&format!("v{n}"), bytes, Some(&manifest));
            sandbox.atoll().args(["plugin", "install", "--yes"]).arg(&file).start()
        })
        .collect();
    // Whoever finds that another one was quicker says so.
    let won = running.into_iter().map(|run| run.wait()).filter(|run| run.status.success()).count();
    assert!(won >= 1);
    let found = installed(&sandbox, "hello").unwrap();
    let number = versions.iter().position(|bytes| *bytes == found).unwrap();
    let manifest = fs::read_to_string(sandbox.atoll_home().join("plugins/hello/plugin.toml")).unwrap();
    assert!(manifest.contains(&format!("# {number}\n")), "of another version: {manifest}");
    sandbox.atoll().args(["plugin", "verify", "hello"]).run().ok();
    assert_eq!(names(&sandbox), [".lock", "hello"]);
}

#[test]
fn grants_that_can_not_be_read_stop_it_before_anything_is_changed() {
    let sandbox = Sandbox::new();
    sandbox.home_file("grants.toml", "[plugin.oops\n");
    let file = sandbox.offered("new", &tool("hello", "(i32.const 64)"), None);
    let run = sandbox.atoll().args(["plugin", "install", "--yes"]).arg(&file).run().code(1);
    assert!(run.one_line().contains("grants.toml"), "{run:#?}");
    assert_eq!(names(&sandbox), Vec::<String>::new());
    assert_eq!(sandbox.grants(), "[plugin.oops\n");
}

#[test]
fn a_tool_stands_in_for_a_built_in_one_only_if_that_was_granted() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "real\n");
    let read = |reason: &str| {
        let run = sandbox.atoll().args(["tool", "call", "read", "{\"path\":\"a.txt\"}"]).run().ok();
        assert!(run.stderr.is_empty(), "{reason}: {run:#?}");
        run.stdout
    };
    // Its answer is empty.
    let manifest = plain_manifest("mine", "replaces = [\"read\"]\n");
    let file = sandbox.offered("new", &tool("read", "(i32.const 64)"), Some(&manifest));
    let run = sandbox.atoll().args(["plugin", "install"]).arg(&file).run().code(3);
    assert!(run.stderr.contains("are to stand in for the built-in:\n  read"), "{run:#?}");
    sandbox.atoll().args(["plugin", "install", "--yes"]).arg(&file).run().ok();
    assert_eq!(read("it was not granted"), "real\n");
    let run = sandbox.atoll().args(["plugin", "inspect", "mine"]).run().ok();
    assert!(run.stdout.contains("replaces:\n  read"), "{run:#?}");
    sandbox.atoll().args(["plugin", "grant", "mine", "--replace", "read"]).run().ok();
    assert_eq!(read("it is granted"), "");
    sandbox.atoll().args(["plugin", "revoke", "mine", "--replace", "read"]).run().ok();
    assert_eq!(read("it was taken back"), "real\n");
    let run = sandbox.atoll().args(["plugin", "grant", "mine", "--replace", "bash"]).run().code(1);
    assert!(run.one_line().contains("does not ask to replace the tool bash"), "{run:#?}");
    // A manifest that was changed afterwards names another tool: nothing of it counts.
    sandbox.atoll().args(["plugin", "grant", "mine", "--all"]).run().ok();
    assert_eq!(read("it is granted again"), "");
    sandbox.home_file("plugins/mine/plugin.toml", plain_manifest("mine", "replaces = [\"read\", \"bash\"]\n"));
    let run = sandbox.atoll().args(["tool", "call", "read", "{\"path\":\"a.txt\"}"]).run().ok();
    assert_eq!(run.stdout, "real\n");
    assert!(run.one_line().contains("has changed since it was granted"), "{run:#?}");
}

#[test]
fn pack_makes_one_file_of_two_and_keeps_its_mode() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("new", &tool("hello", "(i32.const 64)"), Some(&plain_manifest("hello", "")));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let manifest = sandbox.work().join("new/plugin.toml");
    let pack = |manifest: &Path| sandbox.atoll().args(["plugin", "pack"]).arg(&file).arg(manifest).run();
    pack(&manifest).ok().silent();
    let once = fs::read(&file).unwrap();
    pack(&manifest).ok().silent();
    assert_eq!(fs::read(&file).unwrap(), once, "packing again changes nothing");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    fs::remove_file(&manifest).unwrap();
    let record = sandbox.atoll().args(["plugin", "inspect", "--json"]).arg(&file).run().ok().json();
    assert_eq!((&record["name"], &record["manifest"]), (&json!("hello"), &json!("inside it")), "{record:#}");
    // The one beside it counts, and that there are two is said.
    fs::write(&manifest, plain_manifest("other", "")).unwrap();
    let record = sandbox.atoll().args(["plugin", "inspect", "--json"]).arg(&file).run().ok().json();
    assert_eq!(record["name"], "other", "{record:#}");
    assert!(record["manifest"].as_str().unwrap().contains("says something else"), "{record:#}");
    let broken = sandbox.file("broken.toml", "version = \"1\"\nname = 7\n");
    assert!(pack(&broken).code(1).one_line().contains("broken.toml:2:8"));
    let core = sandbox.file("core.wasm", core_module());
    let run = sandbox.atoll().args(["plugin", "pack"]).arg(&core).arg(&manifest).run().code(1);
    assert!(run.one_line().contains("core WebAssembly module"), "{run:#?}");
}
