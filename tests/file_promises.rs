//! What is promised of paths: however one is spelt, whatever link is in it, nothing outside of the workspace is read,
//! changed, listed or found. Tried with every tool, and with every function of the interface they are made of.

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt as _,
        fs::{MetadataExt as _, PermissionsExt as _, chown, symlink},
    },
    path::PathBuf,
};

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    probes::{CANARY, call, every_way, raw, snapshot},
    skipped,
};

/// A workspace with a directory beside it that is not to be reached.
fn scene() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::with_probes();
    let outside = sandbox.root().join("outside");
    fs::create_dir_all(outside.join("deep")).unwrap();
    fs::write(outside.join("secret.txt"), CANARY).unwrap();
    fs::write(outside.join("deep/secret.txt"), CANARY).unwrap();
    sandbox.file("inside/a.txt", "alpha\n");
    (sandbox, outside)
}

#[test]
fn no_spelling_of_a_path_leads_out_of_the_workspace() {
    let (sandbox, outside) = scene();
    let absolute = outside.join("secret.txt").to_string_lossy().into_owned();
    let paths = [
        "../outside/secret.txt",
        "./../outside/secret.txt",
        "inside/../../outside/secret.txt",
        "inside/missing/../../../outside/secret.txt",
        "../outside/deep/../secret.txt",
        "../outside/secret.txt/",
        "../outside/secret.txt/.",
        "..//outside///secret.txt",
        "../project/../outside/secret.txt",
        "../outside",
        "../outside/",
        "..",
        &absolute,
        &format!("//{absolute}"),
        &format!("/..{absolute}"),
        &format!("/proc/self/root{absolute}"),
        "/proc/self/cwd/../outside/secret.txt",
        "/proc/thread-self/cwd/../outside/secret.txt",
        "~/../outside/secret.txt",
        "~/../outside",
    ];
    sandbox.out_of_reach(&sandbox.work(), &paths, &outside);
}

#[test]
fn no_link_leads_out_of_the_workspace_in_any_position() {
    let (sandbox, outside) = scene();
    let work = sandbox.work();
    let link = |target: &str, name: &str| symlink(target, work.join(name)).unwrap();
    let absolute = outside.to_string_lossy().into_owned();
    // To a file and to a directory; relative and absolute; at the start, in the middle and at the end.
    link("../outside/secret.txt", "file");
    link(&format!("{absolute}/secret.txt"), "absolute-file");
    link("../outside", "directory");
    link(&absolute, "absolute-directory");
    link("../../outside", "inside/middle");
    link("..", "up");
    link("/", "root");
    link("/proc/self/root", "magic");
    // A chain, and one by way of a good link.
    link("second", "chain");
    link("third", "second");
    link("../outside/secret.txt", "third");
    link("inside", "good");
    link("good/middle/secret.txt", "by-way-of-good");
    link("inside/../../outside/secret.txt", "winding");
    let through_root = format!("root{absolute}/secret.txt");
    let through_magic = format!("magic{absolute}/secret.txt");
    let paths = [
        "file",
        "file/",
        "absolute-file",
        "directory",
        "directory/",
        "directory/secret.txt",
        "directory/deep/secret.txt",
        "absolute-directory/secret.txt",
        "inside/middle/secret.txt",
        "inside/middle/deep",
        "good/middle/secret.txt",
        "up/outside/secret.txt",
        &through_root,
        &through_magic,
        "chain",
        "by-way-of-good",
        "winding",
    ];
    // What is removed is the link itself, so every path gets links of its own.
    for path in paths {
        let calls: Vec<Value> =
            every_way(path).into_iter().filter(|call| call["arguments"]["how"] != "remove").collect();
        let before = snapshot(&outside);
        for (call, (failed, text)) in calls.iter().zip(sandbox.probe(&work, &calls)) {
            assert!(!text.contains(CANARY), "{call}: {text}");
            assert!(failed || text.contains("{\"error\":\"") || text.starts_with("No "), "{call} worked: {text}");
        }
        assert_eq!(snapshot(&outside), before);
    }
    let removals: Vec<Value> = ["file", "directory", "chain"].iter().map(|path| raw("remove", path)).collect();
    let before = snapshot(&outside);
    assert!(sandbox.probe(&work, &removals).iter().all(|(failed, _)| !failed));
    assert_eq!(snapshot(&outside), before);
    assert!(!work.join("file").is_symlink());
}

#[test]
fn links_that_lead_nowhere_or_in_circles_are_errors_and_make_nothing() {
    let (sandbox, outside) = scene();
    let work = sandbox.work();
    symlink("../outside/new.txt", work.join("dangling")).unwrap();
    symlink("circle", work.join("circle")).unwrap();
    symlink("ping", work.join("pong")).unwrap();
    symlink("pong", work.join("ping")).unwrap();
    symlink("..", work.join("inside/parent")).unwrap();
    for path in ["dangling", "dangling/x", "circle", "circle/x", "ping", "ping/x/y"] {
        let calls: Vec<Value> = every_way(path)
            .into_iter()
            .filter(|call| !["remove", "lock"].contains(&call["arguments"]["how"].as_str().unwrap_or_default()))
            .collect();
        for (call, (failed, text)) in calls.iter().zip(sandbox.probe(&work, &calls)) {
            assert!(failed || text.contains("{\"error\":\"") || text.starts_with("No "), "{call} worked: {text}");
        }
    }
    assert!(!outside.join("new.txt").exists());
    // Whoever follows links comes by `inside/parent` once and not for ever.
    let [(failed, text)] = &sandbox.probe(&work, &[raw("walk-links", ".")])[..] else { panic!("one answer") };
    assert!(!failed && text.contains("inside/a.txt") && !text.contains("parent/inside/parent/inside"), "{text}");
}

#[test]
fn links_that_stay_inside_work() {
    let (sandbox, _) = scene();
    let work = sandbox.work();
    symlink("inside/a.txt", work.join("relative")).unwrap();
    symlink(work.join("inside"), work.join("absolute")).unwrap();
    let calls = [
        raw("read", "relative"),
        raw("read", "absolute/a.txt"),
        raw("open", "absolute/../absolute/a.txt"),
        call("read", json!({"path": "relative"})),
        raw("walk-links-read", "."),
    ];
    for (failed, text) in sandbox.probe(&work, &calls) {
        assert!(!failed && text.contains("alpha"), "{text}");
    }
    let [(_, text)] = &sandbox.probe(&work, &[raw("walk-links", ".")])[..] else { panic!("one answer") };
    assert!(text.contains("absolute/a.txt"), "{text}");
}

#[test]
fn a_walk_never_tells_a_name_from_outside() {
    let (sandbox, outside) = scene();
    let work = sandbox.work();
    symlink("../outside", work.join("linked")).unwrap();
    symlink("../../outside/deep", work.join("inside/linked")).unwrap();
    symlink(&outside, work.join("inside/absolute")).unwrap();
    let calls = [
        raw("walk", "."),
        raw("walk-links", "."),
        raw("walk-read", "."),
        raw("walk-links-read", "."),
        raw("list", "."),
        call("find", json!({"pattern": "**/*"})),
        call("grep", json!({"pattern": "canary|alpha"})),
        call("ls", json!({})),
    ];
    for (call, (failed, text)) in calls.iter().zip(sandbox.probe(&work, &calls)) {
        assert!(!failed && text.contains("inside"), "{call}: {text}");
        assert!(!text.contains("secret") && !text.contains("canary"), "{call}: {text}");
    }
}

#[test]
fn a_lock_does_not_tell_where_a_link_leads() {
    let (sandbox, outside) = scene();
    symlink(outside.join("secret.txt"), sandbox.work().join("link")).unwrap();
    symlink("inside/a.txt", sandbox.work().join("good")).unwrap();
    let answers = sandbox.probe(&sandbox.work(), &[raw("lock", "link"), raw("lock", "good")]);
    assert!(answers[0].0 && answers[0].1.contains("not allowed"), "{answers:?}");
    assert!(answers[1].1.contains("/inside/a.txt"), "{answers:?}");
}

#[test]
fn a_tilde_with_a_name_is_a_file_of_that_name_and_nobodys_home() {
    let (sandbox, _) = scene();
    sandbox.file("~root/note.txt", "mine\n");
    let answers = sandbox.probe(&sandbox.work(), &[raw("read", "~root/note.txt"), raw("read", "~root/.bashrc")]);
    assert_eq!(answers[0], (false, "mine\n".to_owned()));
    assert!(answers[1].0 && answers[1].1.contains("does not exist"), "{answers:?}");
}

#[test]
fn a_name_in_another_case_is_another_name() {
    let (sandbox, _) = scene();
    if sandbox.work().join("INSIDE").exists() {
        return skipped("this file system does not tell upper from lower case");
    }
    for (failed, text) in sandbox.probe(&sandbox.work(), &[raw("read", "INSIDE/a.txt"), raw("list", "Inside")]) {
        assert!(failed && text.contains("does not exist"), "{text}");
    }
}

#[test]
fn names_of_any_bytes_are_errors_or_files_and_nothing_else() {
    let (sandbox, outside) = scene();
    let work = sandbox.work();
    fs::write(work.join("new\nline"), "two\n").unwrap();
    fs::write(work.join("\u{1b}[31mred"), "coloured\n").unwrap();
    fs::write(work.join(OsStr::from_bytes(b"bad-\xff-name")), "bytes\n").unwrap();
    fs::write(work.join(OsStr::from_bytes(b"bad-\xff-\n\x1b")), "bytes\n").unwrap();
    fs::write(work.join("n".repeat(255)), "long\n").unwrap();
    let longest = "n".repeat(255);
    let good = [raw("read", "new\nline"), raw("read", "\u{1b}[31mred"), raw("read", &longest)];
    let texts: Vec<String> = sandbox.probe(&work, &good).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["two\n", "coloured\n", "long\n"]);
    let (too_long, too_deep) = ("n".repeat(256), "d/".repeat(3_000));
    for path in ["a\0b", "\0", "../outside/secret.txt\0", "", "missing\nline", &too_long, &too_deep, "inside/a.txt/b"] {
        let calls: Vec<Value> =
            every_way(path).into_iter().filter(|call| !(path == "missing\nline" && writes(call))).collect();
        for (call, (failed, text)) in calls.iter().zip(sandbox.probe(&work, &calls)) {
            // No path is where the tools that look around start by themselves.
            let harmless = path.is_empty() && ["ls", "grep", "find"].contains(&call["tool"].as_str().unwrap());
            let refused = failed || text.contains("{\"error\":\"") || text.starts_with("No ");
            // The right to change a file may be had before there is one.
            let locked = call["arguments"]["how"] == "lock";
            assert!(harmless || refused || locked, "{path:?} {call} worked: {text}");
        }
    }
    // A name that is no text is shown as well as it can be, and is in nobody's way.
    let looks = [raw("list", "."), call("ls", json!({})), raw("walk", "."), call("find", json!({"pattern": "*"}))];
    for (call, (failed, text)) in looks.iter().zip(sandbox.probe(&work, &looks)) {
        assert!(!failed && text.contains("inside"), "{call}: {text}");
    }
    let [(_, listed)] = &sandbox.probe(&work, &[raw("list", ".")])[..] else { panic!("one answer") };
    assert!(listed.contains("bad-\u{fffd}-name"), "{listed}");
    assert_eq!(fs::read_dir(outside).unwrap().count(), 2);
}

fn writes(call: &Value) -> bool {
    let how = call["arguments"]["how"].as_str().unwrap_or_default();
    call["tool"] == "write" || how == "write-file" || how == "lock"
}

#[test]
fn a_written_file_keeps_its_mode_and_owner_but_not_the_right_to_run_as_its_owner() {
    let (sandbox, _) = scene();
    let work = sandbox.work();
    for (name, mode) in [("private", 0o600), ("script", 0o755), ("shared", 0o664), ("set-user-id", 0o6755)] {
        let path = sandbox.file(name, "old");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        chown(work.join("shared"), Some(4_321), Some(4_322)).unwrap();
        fs::set_permissions(work.join("shared"), fs::Permissions::from_mode(0o664)).unwrap();
    } else {
        skipped("only root can give a file away, so the owner is not looked at");
    }
    let calls: Vec<Value> = ["private", "script", "shared", "set-user-id", "fresh"]
        .iter()
        .map(|path| call("write", json!({"path": path, "content": "new"})))
        .collect();
    sandbox.probe(&work, &calls);
    let facts = |name: &str| fs::metadata(work.join(name)).unwrap();
    let modes = ["private", "script", "shared", "set-user-id"].map(|name| facts(name).mode() & 0o7777);
    assert_eq!(modes, [0o600, 0o755, 0o664, 0o755]);
    assert_eq!(sandbox.read("set-user-id"), "new");
    if is_root {
        assert_eq!((facts("shared").uid(), facts("shared").gid()), (4_321, 4_322));
    }
    assert_eq!(facts("fresh").mode() & 0o111, 0);
}
