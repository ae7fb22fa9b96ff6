//! What is promised of Atoll's own files: settings, grants, keys, sessions and caches are out of reach of every tool
//! and every plugin, wherever the workspace is and whatever name is used for them.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::common::{
    Command, Sandbox,
    probes::{CANARY, call, every_way, raw},
    sandbox::KEY,
    skipped,
};

/// A sandbox with something in each of Atoll's directories, and its home, which is to be the workspace.
fn scene() -> (Sandbox, PathBuf) {
    let sandbox = Sandbox::with_probes();
    sandbox.home_file("models.json", format!("{{\"providers\":{{}},\"x\":\"{CANARY}\"}}"));
    sandbox.home_file("sessions/old/session.jsonl", CANARY);
    sandbox.home_file("store/other-plugin/key=", CANARY);
    fs::create_dir_all(sandbox.root().join("cache/atoll")).unwrap();
    fs::write(sandbox.root().join("cache/atoll/canary.txt"), CANARY).unwrap();
    let home = sandbox.root().join("home");
    (sandbox, home)
}

/// As [`Sandbox::out_of_reach`], for what is the host's own; its folders may get new files of the host's meanwhile.
#[track_caller]
fn own_is_out_of_reach(sandbox: &Sandbox, cwd: &Path, paths: &[&str]) {
    let kept = |sandbox: &Sandbox| -> Vec<_> {
        let files = ["models.json", "settings.json", "grants.toml", "sessions/old/session.jsonl"];
        files.iter().map(|file| fs::read(sandbox.atoll_home().join(file)).ok()).collect()
    };
    let before = kept(sandbox);
    let calls: Vec<Value> = paths.iter().flat_map(|path| every_way(path)).collect();
    for (call, (failed, text)) in calls.iter().zip(sandbox.probe(cwd, &calls)) {
        assert!(!text.contains(CANARY), "{call}: {text}");
        let refused = failed || text.contains("{\"error\":\"") || text.starts_with("No ");
        assert!(refused, "{call} worked: {text}");
        assert!(!refused || !text.contains("models.json,"), "{call}: {text}");
    }
    assert_eq!(kept(sandbox), before);
    assert!(!sandbox.atoll_home().join("plugins/evil").exists());
}

#[test]
fn atolls_own_files_are_out_of_reach_when_the_workspace_is_the_home_directory() {
    let (sandbox, home) = scene();
    let absolute = sandbox.atoll_home().join("models.json").to_string_lossy().into_owned();
    symlink(".atoll/models.json", home.join("file-link")).unwrap();
    symlink(".atoll", home.join("folder-link")).unwrap();
    symlink(sandbox.atoll_home(), home.join("absolute-link")).unwrap();
    symlink(".", home.join("here")).unwrap();
    let paths = [
        ".atoll",
        ".atoll/",
        ".atoll/models.json",
        ".atoll/grants.toml",
        ".atoll/new.toml",
        ".atoll/plugins/evil/plugin.wasm",
        ".atoll/sessions/old/session.jsonl",
        ".atoll/store/other-plugin/key=",
        "./x/../.atoll/models.json",
        "~/.atoll/models.json",
        &absolute,
        "folder-link/models.json",
        "folder-link/plugins/evil/plugin.wasm",
        "absolute-link/models.json",
        "here/.atoll",
        "here/.atoll/models.json",
        "here/here/.atoll/plugins/evil/plugin.wasm",
        "here/folder-link/new.toml",
        "../cache/atoll/canary.txt",
    ];
    own_is_out_of_reach(&sandbox, &home, &paths);
    // Looking around does not find them either.
    let looks = [
        raw("walk", "."),
        raw("walk-links", "."),
        raw("walk-read", "."),
        raw("walk-links-read", "."),
        call("find", json!({"pattern": "**/*"})),
        call("grep", json!({"pattern": "canary"})),
    ];
    for (call, (failed, text)) in looks.iter().zip(sandbox.probe(&home, &looks)) {
        assert!(!failed, "{call}: {text}");
        assert!(!text.contains("models.json") && !text.contains(CANARY), "{call}: {text}");
    }
    // A link to one of them does not tell how long it is.
    let size = fs::metadata(sandbox.atoll_home().join("models.json")).unwrap().len();
    let [(_, listed)] = &sandbox.probe(&home, &[raw("list", ".")])[..] else { panic!("one answer") };
    assert!(listed.contains("file-link") && !listed.contains(&format!("\"size\":{size}")), "{listed}");
}

#[test]
fn atolls_own_files_are_out_of_reach_when_the_workspace_is_the_root() {
    let (sandbox, _) = scene();
    let own = sandbox.atoll_home().join("models.json").to_string_lossy().into_owned();
    let cache = sandbox.root().join("cache/atoll/canary.txt").to_string_lossy().into_owned();
    let relative = own.trim_start_matches('/').to_owned();
    let by_process = format!("/proc/self/root{own}");
    own_is_out_of_reach(&sandbox, Path::new("/"), &[&own, &relative, &cache, &by_process]);
}

#[test]
fn what_processes_hold_is_out_of_reach_when_the_workspace_is_the_root() {
    let sandbox = Sandbox::with_probes();
    let calls: Vec<Value> = [
        "/proc/self/environ",
        "proc/self/environ",
        "/proc/thread-self/environ",
        "/proc/self/mem",
        "/proc/self/maps",
        "/proc/self/fd/0",
        "/proc/self/fd/3",
        "/proc/self/task",
        "/proc/1/environ",
        "/proc",
        "/dev/fd/0",
        "/dev/stdin",
    ]
    .iter()
    .flat_map(|path| every_way(path).into_iter().filter(|call| !changes(call)))
    .collect();
    let mut turns: Vec<Value> = calls.iter().map(|call| json!({"calls": [call]})).collect();
    turns.push(json!({"text": "done"}));
    let script = json!({"turns": turns});
    sandbox.scripted(&script).cwd("/").env("ATOLL_TEST_SECRET", CANARY).arg("go").run().ok();
    let results = sandbox.results();
    assert_eq!(results.len(), calls.len());
    for (call, result) in calls.iter().zip(results) {
        let text = crate::common::text_of(&result["content"]);
        assert!(!text.contains(CANARY), "{call}: {text}");
        let refused =
            result["isError"] == true || text.contains("{\"error\":\"") || text.starts_with("No ") || text == "[]";
        // What the file of a process leads to may be anything that could be named by itself, such as a terminal.
        let refused = refused || text.contains("\"kind\":\"other\"") || text.contains("\"real\":\"/dev/");
        assert!(refused, "{call} worked: {text}");
    }
}

/// Whether a call would change something: not to be tried outside of a sandbox.
fn changes(call: &Value) -> bool {
    let how = call["arguments"]["how"].as_str().unwrap_or_default();
    ["write-file", "remove"].contains(&how) || ["write", "edit"].contains(&call["tool"].as_str().unwrap())
}

#[test]
fn a_place_in_proc_that_the_user_names_can_be_granted() {
    let sandbox = Sandbox::new();
    let component = crate::common::plugins::misbehave();
    let manifest =
        crate::common::plugins::MISBEHAVE_TOML.replace("root = \"$workspace\"", "root = \"/proc/sys/kernel\"");
    sandbox.plugin("misbehave", &component, Some(&manifest));
    let wants = "files = [{ root = \"/proc/sys/kernel\" }]\nhttp = [{ origin = \"http://127.0.0.1:1\" }]\n\
                 process = [{ program = \"/bin/true\" }]\n";
    sandbox.grant("misbehave", &component, wants);
    let version = sandbox.good_call("misbehave", &json!({"how": "open", "target": "/proc/sys/kernel/ostype"}));
    assert!(version.contains("Linux"), "{version}");
    // What such a file gives it gives at once, and never more.
    for how in ["read", "open"] {
        let most = sandbox.good_call("misbehave", &json!({"how": how, "target": "/proc/sys/kernel/pid_max"}));
        let expected = fs::read_to_string("/proc/sys/kernel/pid_max").unwrap();
        assert!(most.contains(expected.trim()), "{how}: {most}");
    }
    sandbox.bad_call("misbehave", &json!({"how": "read", "target": "/proc/self/environ"}));
}

#[test]
fn a_link_to_atolls_own_directory_at_a_granted_place_does_not_open_it() {
    let (sandbox, home) = scene();
    let component = crate::common::plugins::misbehave();
    let data = home.join("data");
    let root = format!("root = \"{}\"", data.display());
    let manifest = crate::common::plugins::MISBEHAVE_TOML.replace("root = \"$workspace\"", &root);
    sandbox.plugin("misbehave", &component, Some(&manifest));
    let rest = "http = [{ origin = \"http://127.0.0.1:1\" }]\nprocess = [{ program = \"/bin/true\" }]\n";
    sandbox.grant("misbehave", &component, &format!("files = [{{ {root}, access = \"read-write\" }}]\n{rest}"));
    symlink(sandbox.atoll_home(), &data).unwrap();
    let target = data.join("models.json");
    for how in ["read", "open", "stat", "write-file", "remove"] {
        let text = sandbox.bad_call("misbehave", &json!({"how": how, "target": target}));
        assert!(text.contains("belongs to atoll itself"), "{how}: {text}");
    }
    assert!(fs::read_to_string(sandbox.atoll_home().join("models.json")).unwrap().contains(CANARY));
}

#[test]
fn a_second_name_of_one_of_atolls_files_does_not_show_it() {
    let (sandbox, _) = scene();
    let work = sandbox.work();
    fs::hard_link(sandbox.atoll_home().join("models.json"), work.join("hard")).unwrap();
    fs::hard_link(sandbox.root().join("cache/atoll/canary.txt"), work.join("cached")).unwrap();
    // A name may be removed or replaced: the file that belongs to atoll keeps its own.
    let calls: Vec<Value> = ["hard", "cached"]
        .iter()
        .flat_map(|path| every_way(path))
        .filter(|call| call["arguments"]["how"] != "lock" && (!changes(call) || call["tool"] == "edit"))
        .collect();
    for (call, (failed, text)) in calls.iter().zip(sandbox.probe(&work, &calls)) {
        assert!(!text.contains(CANARY), "{call}: {text}");
        assert!(failed || text.contains("{\"error\":\"") || text.starts_with("No "), "{call} worked: {text}");
    }
    let looks = [raw("walk-read", "."), call("grep", json!({"pattern": "canary"})), raw("write-file", "hard")];
    for (call, (_, text)) in looks.iter().zip(sandbox.probe(&work, &looks)) {
        assert!(!text.contains(CANARY), "{call}: {text}");
    }
    assert!(fs::read_to_string(sandbox.atoll_home().join("models.json")).unwrap().contains(CANARY));
    assert_eq!(sandbox.read("hard"), "overwritten");
}

#[test]
fn a_second_name_of_another_file_can_be_read_but_never_changes_it() {
    let (sandbox, _) = scene();
    let outside = sandbox.root().join("outside.txt");
    fs::write(&outside, "theirs\n").unwrap();
    fs::hard_link(&outside, sandbox.work().join("hard")).unwrap();
    let edit = json!({"path": "hard", "edits": [{"oldText": "theirs", "newText": "mine"}]});
    let calls = [call("read", json!({"path": "hard"})), call("edit", edit), raw("remove", "hard")];
    let answers = sandbox.probe(&sandbox.work(), &calls);
    assert!(answers.iter().all(|(failed, _)| !failed), "{answers:?}");
    assert_eq!(answers[0].1, "theirs\n");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs\n");
}

#[test]
fn settings_that_are_kept_elsewhere_by_a_link_are_out_of_reach_there_too() {
    let sandbox = Sandbox::with_probes();
    // As whoever keeps all settings in one repository has it.
    let kept = sandbox.file("dotfiles/models.json", format!("{{\"providers\":{{}},\"x\":\"{CANARY}\"}}"));
    symlink(&kept, sandbox.atoll_home().join("models.json")).unwrap();
    sandbox.file("dotfiles/sessions/note.txt", CANARY);
    symlink(sandbox.work().join("dotfiles/sessions"), sandbox.atoll_home().join("history")).unwrap();
    let paths = ["dotfiles/models.json", "dotfiles/sessions/note.txt", "dotfiles/sessions"];
    sandbox.out_of_reach(&sandbox.work(), &paths, &sandbox.work().join("dotfiles"));
}

#[test]
fn sessions_are_out_of_reach_wherever_the_settings_put_them() {
    let sandbox = Sandbox::with_probes();
    let sessions = sandbox.work().join("history");
    fs::create_dir(&sessions).unwrap();
    fs::write(sessions.join("old.jsonl"), CANARY).unwrap();
    sandbox.settings(&json!({"sessionDir": sessions}));
    for how in ["read", "open", "stat", "walk-read", "write-file", "remove"] {
        let text = sandbox.bad_call("misbehave", &json!({"how": how, "target": "history/old.jsonl"}));
        assert!(text.contains("belongs to atoll itself"), "{how}: {text}");
    }
    assert_eq!(fs::read_to_string(sessions.join("old.jsonl")).unwrap(), CANARY);
}

#[test]
fn a_directory_of_atolls_that_is_not_there_yet_can_not_be_made_by_a_tool() {
    let sandbox = Sandbox::new();
    // The home is reached through a link, and nothing of Atoll's is in it yet.
    let real = sandbox.root().join("real-home");
    fs::create_dir(&real).unwrap();
    symlink("real-home", sandbox.root().join("linked-home")).unwrap();
    symlink(".", real.join("here")).unwrap();
    for path in [
        ".atoll/grants.toml",
        "here/.atoll/grants.toml",
        ".atoll",
        "here/.atoll",
        ".cache/atoll/x",
        "here/.cache/atoll/x",
    ] {
        for home in ["linked-home", "real-home"] {
            let arguments = json!({"path": path, "content": "x"}).to_string();
            let run = sandbox
                .atoll()
                .cwd(sandbox.root().join(home))
                .env("HOME", sandbox.root().join("linked-home"))
                .without_env("ATOLL_HOME")
                .without_env("XDG_CACHE_HOME")
                .args(["tool", "call", "write", &arguments])
                .run()
                .code(3);
            assert!(run.stderr.contains("belongs to atoll itself"), "{path}: {run:#?}");
        }
    }
    // The host makes its directories itself; what the tool was told to put there is not in them.
    assert!(!real.join(".atoll/grants.toml").exists() && !real.join(".atoll").is_file());
    assert!(!real.join(".cache/atoll/x").exists());
}

#[test]
fn another_mount_of_atolls_directory_does_not_show_it() {
    let (sandbox, home) = scene();
    fs::create_dir(home.join("mounted")).unwrap();
    let script = format!("mount --bind {} {}", sandbox.atoll_home().display(), home.join("mounted").display());
    let probe = std::process::Command::new("unshare").args(["-m", "sh", "-c", &script]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        return skipped("this user can not mount anything");
    }
    let arguments = json!({"path": "mounted/models.json"}).to_string();
    let run = Command::after(&["unshare", "-m", "sh", "-c", &format!("{script} && exec \"$0\" \"$@\"")]);
    let run = sandbox.equipped(run).cwd(&home).args(["tool", "call", "read", &arguments]).run().code(3);
    assert!(run.stderr.contains("belongs to atoll itself"), "{run:#?}");
    assert_eq!(run.stdout, "");
}

#[test]
fn keys_are_in_no_file_a_tool_can_reach_and_in_no_answer() {
    let (sandbox, home) = scene();
    sandbox.model_at("http://127.0.0.1:1/v1");
    let calls = [raw("walk-links-read", "."), call("grep", json!({"pattern": "sk-canary"})), raw("walk", "..")];
    for (call, (_, text)) in calls.iter().zip(sandbox.probe(&home, &calls)) {
        assert!(!text.contains(KEY), "{call}: {text}");
    }
}
