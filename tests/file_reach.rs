//! What the tools for files reach, and what they refuse to touch.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::common::{Sandbox, one_edit, text_of};

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
            [("write", json!({"path": path, "content": "changed"})), ("edit", one_edit(path, "s", "x"))]
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
fn what_decides_about_the_project_is_read_and_not_changed() {
    let sandbox = Sandbox::with_misbehave();
    sandbox.file(".atoll/settings.json", "{}");
    sandbox.file("conf/x", "x");
    symlink(".atoll", sandbox.work().join("way")).unwrap();
    symlink(".atoll/settings.json", sandbox.work().join("innocent.json")).unwrap();
    assert_eq!(sandbox.good_call("read", &json!({"path": ".atoll/settings.json"})), "{}");
    assert!(sandbox.good_call("ls", &json!({"path": ".atoll"})).contains("settings.json"));
    let spelt = sandbox.work().join(".atoll/settings.json");
    for path in [".atoll/settings.json", "./conf/../.atoll/settings.json", "way/settings.json", "innocent.json"]
        .into_iter()
        .chain([spelt.to_str().unwrap()])
    {
        for (tool, arguments) in
            [("write", json!({"path": path, "content": "{\"a\": 1}"})), ("edit", one_edit(path, "{}", "{ }"))]
        {
            let said = sandbox.bad_call(tool, &arguments);
            assert!(said.contains("decides what atoll does in this project"), "{tool} {path}: {said}");
        }
    }
    for path in [".atoll/plugins/x/plugin.wasm", "way/skills/x/SKILL.md", ".atoll"] {
        sandbox.bad_call("write", &json!({"path": path, "content": "x"}));
    }
    sandbox.bad_call("misbehave", &json!({"how": "remove", "target": ".atoll/settings.json"}));
    assert_eq!(sandbox.read(".atoll/settings.json"), "{}");
    assert_eq!(std::fs::read_dir(sandbox.work().join(".atoll")).unwrap().count(), 1);
    // Where there is none, none is made; a name that only begins the same is like any other.
    let fresh = Sandbox::new();
    fresh.bad_call("write", &json!({"path": ".atoll/settings.json", "content": "x"}));
    assert!(!fresh.work().join(".atoll").exists());
    fresh.good_call("write", &json!({"path": ".atollish/x", "content": "x"}));
    // Granted by its own name, it is like any other.
    let folder = format!("{}:read-write", sandbox.work().join(".atoll").display());
    sandbox.atoll().args(["plugin", "grant", "write", "--files", &folder]).run().ok();
    sandbox.good_call("write", &json!({"path": ".atoll/settings.json", "content": "{\"theme\": \"dark\"}"}));
    sandbox.bad_call("edit", &one_edit(".atoll/settings.json", "dark", "light"));
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
            ("edit", one_edit(path, "a", "b")),
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
