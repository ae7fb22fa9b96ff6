//! What a program that a tool starts can not do when it is confined, each test named for the promise.

use std::{fs, io::ErrorKind, net::TcpListener, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};

use crate::common::{
    Command, Finished, Sandbox,
    processes::until,
    server::{Reply, Server},
    skipped, text_of,
};

/// A sandbox with the setting, where programs can be confined.
fn confined() -> Option<Sandbox> {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"bash": {"sandbox": "bubblewrap"}}));
    let found = sandbox.atoll().args(["doctor", "--json"]).run().json();
    let finding = found.as_array().unwrap().iter().find(|finding| finding["check"] == "bash").unwrap().clone();
    if finding["verdict"] == "ok" {
        return Some(sandbox);
    }
    skipped(&format!("programs can not be confined here: {finding}"));
    None
}

fn bash(sandbox: &Sandbox, command: &str) -> Value {
    sandbox.call("bash", &json!({"command": command}))
}

/// The text of a command that has to work.
#[track_caller]
fn works(sandbox: &Sandbox, command: &str) -> String {
    sandbox.good_call("bash", &json!({"command": command}))
}

/// Fails unless the command fails.
#[track_caller]
fn fails(sandbox: &Sandbox, command: &str) -> String {
    sandbox.bad_call("bash", &json!({"command": command}))
}

#[test]
fn a_confined_program_writes_in_the_workspace_only() {
    let Some(sandbox) = confined() else { return };
    works(&sandbox, "mkdir -p a/b && echo hello > a/b/c");
    assert_eq!(sandbox.read("a/b/c"), "hello\n");
    let outside = sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("old"), "old").unwrap();
    std::os::unix::fs::symlink(&outside, sandbox.work().join("link")).unwrap();
    for command in [
        format!("touch {}/new", outside.display()),
        format!("echo x > {}/old", outside.display()),
        format!("rm {}/old", outside.display()),
        "touch link/new".to_owned(),
        "touch /etc/atoll-test".to_owned(),
        "touch /usr/atoll-test".to_owned(),
        "mount -o remount,rw /".to_owned(),
        "mknod device b 8 0".to_owned(),
    ] {
        fails(&sandbox, &command);
    }
    // Beside the workspace are temporary files of its own, if the workspace is among the temporary files.
    bash(&sandbox, "touch ../new ~/new");
    assert!(!sandbox.root().join("new").exists() && !sandbox.root().join("home/new").exists());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(fs::read(outside.join("old")).unwrap(), b"old");
}

#[test]
fn a_confined_program_has_no_network() {
    let Some(sandbox) = confined() else { return };
    let server = Server::start(vec![Reply::status(200, &[], "reached")]);
    let (host, port) = server
        .origin()
        .trim_start_matches("http://")
        .split_once(':')
        .map(|(h, p)| (h.to_owned(), p.to_owned()))
        .unwrap();
    fails(&sandbox, &format!("exec 3<>/dev/tcp/{host}/{port}"));
    assert_eq!(server.requests().len(), 0);
    // The same command reaches it where nothing is confined.
    let plain = Sandbox::new();
    works(&plain, &format!("exec 3<>/dev/tcp/{host}/{port}"));
}

#[test]
fn a_confined_program_does_not_see_what_belongs_to_atoll() {
    let Some(sandbox) = confined() else { return };
    sandbox.home_file("grants.toml", "# mine\n");
    sandbox.home_file("sessions/x.jsonl", "{}\n");
    assert_eq!(
        works(
            &sandbox,
            "ls -A \"$ATOLL_HOME\" \"$XDG_CACHE_HOME/atoll\" 2>/dev/null | grep -v : | grep . || echo nothing"
        ),
        "nothing\n"
    );
    works(&sandbox, "echo x > \"$ATOLL_HOME/grants.toml\" || true");
    assert_eq!(fs::read(sandbox.atoll_home().join("grants.toml")).unwrap(), b"# mine\n");
}

#[test]
fn a_workspace_around_atolls_directory_does_not_open_it() {
    let Some(sandbox) = confined() else { return };
    sandbox.home_file("grants.toml", "# mine\n");
    let home = sandbox.root().join("home");
    let cache = home.join(".cache/atoll");
    let run = |command: &str| -> Finished {
        let arguments = json!({"command": command}).to_string();
        sandbox
            .atoll()
            .cwd(&home)
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .args(["tool", "call", "bash", &arguments])
            .run()
    };
    run("echo works > here").ok();
    assert_eq!(fs::read(home.join("here")).unwrap(), b"works\n");
    run("cat .atoll/grants.toml").code(1);
    for command in ["mv .atoll gone", "rm -r .atoll", "mv .cache gone", "mv .cache/atoll gone"] {
        run(command).code(1);
    }
    run("mkdir -p .atoll/x .cache/atoll/planted; echo x > .atoll/grants.toml");
    assert_eq!(fs::read(sandbox.atoll_home().join("grants.toml")).unwrap(), b"# mine\n");
    assert!(!sandbox.atoll_home().join("x").exists() && !cache.join("planted").exists());
}

#[test]
fn a_confined_program_does_not_change_what_decides_about_the_project() {
    let Some(sandbox) = confined() else { return };
    for command in ["mkdir -p .atoll/skills/x", "echo '{}' > .atoll/settings.json", "mv .atoll gone", "rmdir .atoll"] {
        fails(&sandbox, command);
    }
    assert_eq!(fs::read_dir(sandbox.work().join(".atoll")).unwrap().count(), 0);
    sandbox.file(".atoll/settings.json", "{}");
    assert_eq!(works(&sandbox, "cat .atoll/settings.json"), "{}");
    fails(&sandbox, "echo x > .atoll/settings.json");
    fails(&sandbox, "rm .atoll/settings.json");
    assert_eq!(sandbox.read(".atoll/settings.json"), "{}");
}

#[test]
fn a_confined_program_has_temporary_files_and_processes_of_its_own() {
    let Some(sandbox) = confined() else { return };
    assert_eq!(works(&sandbox, "echo x > /tmp/mine && f=$(mktemp) && echo y > $f && cat /tmp/mine $f"), "x\ny\n");
    assert!(!std::path::Path::new("/tmp/mine").exists());
    fails(&sandbox, "cat /tmp/mine");
    let text = works(&sandbox, "ls /proc | grep -c '^[0-9]'");
    assert!(text.trim().parse::<u32>().unwrap() < 10, "{text}");
    fails(&sandbox, &format!("kill -0 {}", std::process::id()));
}

#[test]
fn output_exit_codes_input_and_variables_work_inside() {
    let Some(sandbox) = confined() else { return };
    let record = bash(&sandbox, "echo out; echo err >&2; exit 7");
    let text = text_of(&record["content"]);
    assert!(text.contains("out\nerr\n") && text.contains("exited with code 7"), "{text}");
    assert_eq!(works(&sandbox, "cat; pwd; echo $AI_AGENT$TMPDIR"), format!("{}\n/tmp\n", sandbox.work().display()));
    let long = works(&sandbox, "seq 1 20000");
    assert!(long.contains("20000"), "{}", long.len());
}

#[test]
fn a_timeout_ends_everything_inside() {
    let Some(sandbox) = confined() else { return };
    let command = "(setsid sh -c 'echo $$ > started; while :; do sleep 0.1; echo x >> alive; done' &) ; sleep 60";
    let record = sandbox.call("bash", &json!({"command": command, "timeout": 2}));
    assert_eq!(record["isError"], true, "{record:#}");
    assert!(
        text_of(&record["content"]).contains("timed out") || text_of(&record["content"]).contains("timeout"),
        "{record:#}"
    );
    // Even what left its group is gone: its file does not grow any more.
    let length = || fs::metadata(sandbox.work().join("alive")).map(|facts| facts.len()).unwrap_or_default();
    assert!(sandbox.work().join("started").exists());
    let mut before = length();
    until("the file stays as it is", || {
        std::thread::sleep(std::time::Duration::from_millis(400));
        let now = length();
        let same = now == before;
        before = now;
        same.then_some(())
    });
}

#[test]
fn the_flag_switches_it_on_and_nothing_in_the_project_switches_it_off() {
    let Some(sandbox) = confined() else { return };
    sandbox.file(".atoll/settings.json", "{\"bash\": {\"sandbox\": \"off\"}}");
    fails(&sandbox, "touch /etc/atoll-test");
    let plain = Sandbox::new();
    let arguments = json!({"command": "touch ../new"}).to_string();
    plain.atoll().args(["tool", "call", "--sandbox-bash", "bash", &arguments]).run();
    assert!(!plain.root().join("new").exists());
    plain.atoll().args(["tool", "call", "bash", &arguments]).run().ok();
    assert!(plain.root().join("new").exists());
}

/// The program, with `bwrap` only where the test says.
fn with_path(sandbox: &Sandbox, path: &std::path::Path) -> Command {
    sandbox.atoll().env("PATH", path)
}

#[test]
fn where_it_can_not_be_had_nothing_is_started() {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"bash": {"sandbox": "bubblewrap"}}));
    let refused = |run: Finished| {
        assert!(run.stderr.contains("it can not be confined") && run.stderr.contains("bash.sandbox"), "{run:#?}");
        assert!(!sandbox.work().join("ran").exists());
    };
    let call = json!({"command": "touch ran"}).to_string();
    // The whole file system can not be the workspace.
    refused(
        sandbox.atoll().cwd("/").args(["tool", "call", "bash", &json!({"command": "true"}).to_string()]).run().code(1),
    );
    let installed =
        ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"].iter().any(|path| fs::exists(path).unwrap());
    if installed {
        return skipped("bubblewrap is installed, so that it can not be missing");
    }
    let bin = sandbox.root().join("bin");
    fs::create_dir(&bin).unwrap();
    refused(with_path(&sandbox, &bin).args(["tool", "call", "bash", &call]).run().code(1));
    // One that does not work is no better.
    let broken = bin.join("bwrap");
    fs::write(&broken, "#!/bin/sh\necho no namespaces >&2; exit 1\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let run = with_path(&sandbox, &bin).args(["tool", "call", "bash", &call]).run().code(1);
    assert!(run.stderr.contains("no namespaces"), "{run:#?}");
    refused(run);
}

#[test]
fn a_confined_program_gets_no_keys_of_the_environment() {
    let Some(sandbox) = confined() else { return };
    sandbox.home_file(
        "models.json",
        json!({"providers": {"x": {"baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completions", "apiKey": "$MY_PASS",
            "models": [{"id": "m"}]}}})
        .to_string(),
    );
    // What other processes of the box were started with is looked at too.
    let command = json!({"command": "env; cat /proc/[0-9]*/environ | tr '\\0' '\\n'"}).to_string();
    let run = sandbox
        .atoll()
        .env("MY_PASS", "canary-1")
        .env("OPENAI_API_KEY", "canary-2")
        .env("SOME_TOKEN", "canary-3")
        .env("PLAIN", "plain")
        .args(["tool", "call", "bash", &command])
        .run()
        .ok();
    assert!(run.stdout.contains("PLAIN=plain") && !run.stdout.contains("canary"), "{run:#?}");
}

#[test]
fn a_socket_below_run_is_not_there() {
    let Some(sandbox) = confined() else { return };
    match TcpListener::bind("127.0.0.1:0").map(drop).and_then(|()| fs::write("/run/atoll-test-probe", "x")) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return skipped("nothing can be made below /run"),
        result => result.unwrap(),
    }
    fails(&sandbox, "cat /run/atoll-test-probe");
    fs::remove_file("/run/atoll-test-probe").unwrap();
}
