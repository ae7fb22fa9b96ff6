//! The tool `bash`: how commands end, what is shown, and that nothing they start outlives them.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};

use crate::common::{Sandbox, json_lines, sandbox::session_entries, text_of, until};

fn bash(command: &str) -> Value {
    json!({"command": command})
}

/// The pid that a command wrote into a file.
fn pid_in(path: &Path) -> Pid {
    let text = until("a process writes its pid", || {
        let text = fs::read_to_string(path).ok()?;
        text.ends_with('\n').then_some(text)
    });
    Pid::from_raw(text.trim().parse().unwrap()).unwrap()
}

/// Waits until a process is gone, or is only a zombie that nobody has collected yet.
fn until_gone(pid: Pid) {
    until(&format!("process {} ends", pid.as_raw_nonzero()), || {
        if test_kill_process(pid).is_err() {
            return Some(());
        }
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        (state.is_empty() || state.starts_with('Z') || state.starts_with('X')).then_some(())
    });
}

fn kill(pid: Pid) {
    let _ = kill_process(pid, Signal::KILL);
}

#[test]
fn output_and_exit_code_of_a_good_command() {
    let record = Sandbox::new().call("bash", &bash("echo hello; pwd >/dev/null"));
    assert_eq!(text_of(&record["content"]), "hello\n");
    let structured = &record["structuredContent"];
    assert_eq!((&structured["exit_code"], &structured["truncated"]), (&json!(0), &json!(false)));
    assert_eq!(structured["output"], "hello\n");
}

#[test]
fn a_failing_command_is_an_error_with_its_output_and_code() {
    let sandbox = Sandbox::new();
    let run = sandbox.atoll().args(["tool", "call", "bash", &bash("echo so far; exit 3").to_string()]).run().code(1);
    assert_eq!(run.stderr, "so far\n\nCommand exited with code 3\n");
    assert!(sandbox.bad_call("bash", &bash("kill -TERM $$")).contains("143"));
    assert!(sandbox.bad_call("bash", &bash("no-such-program-here")).contains("127"));
}

#[test]
fn commands_run_in_the_workspace_with_no_input() {
    let sandbox = Sandbox::new();
    let text = sandbox.good_call("bash", &bash("pwd -P; cat; test -t 0 || echo no terminal"));
    assert_eq!(text, format!("{}\nno terminal\n", sandbox.work().display()));
}

#[test]
fn commands_are_told_about_the_session() {
    let sandbox = Sandbox::new();
    let show =
        "echo $AI_AGENT $ATOLL_PROVIDER/$ATOLL_MODEL $ATOLL_SESSION_ID; test -f \"$ATOLL_SESSION_FILE\" && echo kept";
    let script = json!({"turns": [{"calls": [{"tool": "bash", "arguments": bash(show)}]}, {"text": "x"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let id = sandbox.session()[0]["id"].as_str().unwrap().to_owned();
    let text = text_of(&sandbox.results()[0]["content"]);
    assert_eq!(text, format!("atoll scripted/default {id}\nkept\n"));
}

#[test]
fn a_timeout_ends_the_command_and_all_it_started_codex_5258() {
    let sandbox = Sandbox::new();
    let command = "echo begun; sh -c 'sh -c \"echo \\$\\$ > grandchild; sleep 1000\" & echo $! > child; wait' & wait";
    let text = sandbox.bad_call("bash", &json!({"command": command, "timeout": 4}));
    assert_eq!(text, "begun\n\nCommand timed out after 4 seconds");
    until_gone(pid_in(&sandbox.work().join("child")));
    until_gone(pid_in(&sandbox.work().join("grandchild")));
}

#[test]
fn a_timeout_ends_a_command_that_ignores_polite_signals() {
    let sandbox = Sandbox::new();
    let command = "trap '' INT TERM HUP; echo $$ > pid; while :; do sleep 1000; done";
    assert!(sandbox.bad_call("bash", &json!({"command": command, "timeout": 0.5})).contains("timed out after 0.5"));
    until_gone(pid_in(&sandbox.work().join("pid")));
}

#[test]
fn timeouts_that_make_no_sense_are_refused_before_anything_runs() {
    let sandbox = Sandbox::new();
    for timeout in [json!(0), json!(-1), json!(1e12), json!("soon")] {
        sandbox.bad_call("bash", &json!({"command": "touch made", "timeout": timeout}));
        assert!(!sandbox.work().join("made").exists(), "{timeout}");
    }
}

#[test]
fn a_sleep_in_the_background_does_not_hold_up_the_call_xum_41() {
    let sandbox = Sandbox::new();
    let text = sandbox.good_call("bash", &bash("sleep 1000 & echo $! > pid; echo started"));
    assert!(text.starts_with("started\n"), "{text}");
    assert!(text.contains("background"), "{text}");
    // Without a bound of its own the call ended; what was left behind goes with it.
    until_gone(pid_in(&sandbox.work().join("pid")));
}

#[test]
fn a_writer_in_the_background_that_never_ends_does_not_hold_up_the_call_opencode_22012() {
    let sandbox = Sandbox::new();
    let text = sandbox
        .good_call("bash", &bash("(echo $BASHPID > pid; while :; do echo tick; sleep 0.01; done) & echo started"));
    assert!(text.contains("started\n"), "{text}");
    until_gone(pid_in(&sandbox.work().join("pid")));
}

#[test]
fn a_fast_writer_in_the_background_does_not_hold_up_the_call_or_fill_the_disk() {
    let sandbox = Sandbox::new();
    let record =
        sandbox.call("bash", &json!({"command": "(echo $BASHPID > pid; exec yes) & echo started", "timeout": 60}));
    assert_eq!(record["isError"], false, "{record:#}");
    until_gone(pid_in(&sandbox.work().join("pid")));
}

#[test]
fn a_process_in_a_session_of_its_own_that_keeps_the_pipe_does_not_hold_up_the_call_claurst_189() {
    let sandbox = Sandbox::new();
    let text = sandbox.good_call(
        "bash",
        &bash("setsid sh -c 'echo $$ > pid; exec sleep 1000' & until test -s pid; do :; done; echo started"),
    );
    let pid = pid_in(&sandbox.work().join("pid"));
    assert!(text.contains("started\n"), "{text}");
    // It left the group on purpose; the test cleans up.
    kill(pid);
}

#[test]
fn long_output_is_cut_at_its_start_and_kept_whole_in_a_file_that_read_can_read() {
    let sandbox = Sandbox::new();
    let script = json!({"turns": [{"calls": [{"tool": "bash", "arguments": bash("seq 1 5000")}]}, {"text": "x"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let text = text_of(&sandbox.results()[0]["content"]);
    assert!(text.starts_with("3001\n"), "{}", &text[..50]);
    let footer = text.lines().last().unwrap();
    assert!(footer.starts_with("[Showing lines 3001-5000 of 5000. Full output: "), "{footer}");
    let path = footer.rsplit_once(": ").unwrap().1.trim_end_matches(']');
    let whole: String = (1..=5000).map(|line| format!("{line}\n")).collect();
    assert_eq!(fs::read_to_string(path).unwrap(), whole);
    assert_eq!(sandbox.good_call("read", &json!({"path": path, "offset": 4999})), "4999\n5000\n");
}

#[test]
fn short_output_leaves_no_file() {
    let sandbox = Sandbox::new();
    sandbox.good_call("bash", &bash("echo x"));
    let spilled = fs::read_dir(sandbox.root().join("tmp")).unwrap().flatten();
    let files: Vec<_> = spilled.flat_map(|entry| fs::read_dir(entry.path()).into_iter().flatten().flatten()).collect();
    assert!(files.is_empty(), "{files:?}");
}

#[test]
fn a_line_without_end_is_shown_by_its_end() {
    let sandbox = Sandbox::new();
    let record = sandbox.call("bash", &bash("head -c 300000 /dev/zero | tr '\\0' x; echo END"));
    let text = text_of(&record["content"]);
    assert!(text.contains("xEND") && text.len() < 60_000, "{} bytes", text.len());
    assert!(text.contains("Full output: "));
}

#[test]
fn a_flood_of_output_keeps_memory_and_time_in_bounds() {
    let sandbox = Sandbox::new();
    let record = sandbox.call("bash", &bash("yes 0123456789abcdef | head -c 100000000"));
    assert_eq!(record["isError"], false);
    let structured = &record["structuredContent"];
    assert_eq!(structured["truncated"], true);
    let kept = structured["full_output_path"].as_str().unwrap();
    assert_eq!(fs::metadata(kept).unwrap().len(), 100_000_000);
}

#[test]
fn both_outputs_come_in_the_order_they_were_written() {
    let command = "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done";
    let expected: String = (1..=5).map(|i| format!("out {i}\nerr {i}\n")).collect();
    assert_eq!(Sandbox::new().good_call("bash", &bash(command)), expected);
}

#[test]
fn bytes_that_are_not_utf_8_are_shown_as_such() {
    let text = Sandbox::new().good_call("bash", &bash("printf 'caf\\351\\n\\360\\237\\246\\200\\n'"));
    assert_eq!(text, "caf\u{fffd}\n🦀\n");
}

#[test]
fn terminal_controls_do_not_reach_the_model() {
    let text = Sandbox::new().good_call("bash", &bash("printf '\\033[31mred\\033[0m\\n50%%\\r100%%\\n\\007'"));
    assert_eq!(text, "red\n100%\n");
}

#[test]
fn no_output_says_so_and_ends_claude_agent_sdk_64() {
    assert_eq!(Sandbox::new().good_call("bash", &bash("true")), "(no output)");
}

#[test]
fn output_is_shown_while_the_command_runs() {
    let sandbox = Sandbox::new();
    let command = "echo early; until test -e go; do sleep 0.01; done; echo late";
    let script = json!({"turns": [{"calls": [{"tool": "bash", "arguments": bash(command)}]}, {"text": "x"}]});
    let running = sandbox.scripted(&script).args(["--mode", "json", "go"]).start();
    running.wait_for_output("\"text\":\"early\\n\"");
    sandbox.file("go", "");
    let run = running.wait().ok();
    let events = json_lines(&run.stdout);
    let updates: Vec<&Value> = events.iter().filter(|event| event["type"] == "tool_execution_update").collect();
    assert_eq!(updates[0]["partialResult"]["content"], json!([]));
    assert!(updates.len() >= 2);
    assert_eq!(text_of(&sandbox.results()[0]["content"]), "early\nlate\n");
}

#[test]
fn two_commands_run_side_by_side() {
    let sandbox = Sandbox::new();
    let meet = |me: &str, other: &str| {
        let command = format!("touch {me}; until test -e {other}; do sleep 0.01; done; echo {me}");
        json!({"tool": "bash", "arguments": bash(&command)})
    };
    let script = json!({"turns": [{"calls": [meet("a", "b"), meet("b", "a")]}, {"text": "x"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    let texts: Vec<String> = sandbox.results().iter().map(|result| text_of(&result["content"])).collect();
    assert_eq!(texts, ["a\n", "b\n"]);
}

#[test]
fn the_users_shell_is_used() {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"shellPath": "/bin/sh"}));
    assert_eq!(
        sandbox.good_call("bash", &bash("echo ${BASH_VERSION:-plain} $0")).split_whitespace().last(),
        Some("/bin/sh")
    );
    sandbox.settings(&json!({"shellPath": "/no/such/shell"}));
    assert!(sandbox.bad_call("bash", &bash("echo hi")).contains("/no/such/shell"));
}

/// A session whose first answer runs two commands that never end; started, and waited for until both run.
fn endless(sandbox: &Sandbox) -> (crate::common::Running, [Pid; 2]) {
    let call = |name: &str| {
        let command = format!("(echo $BASHPID > {name}; exec sleep 1000) & wait");
        json!({"tool": "bash", "arguments": bash(&command)})
    };
    let script = json!({"turns": [{"text": "Both.", "calls": [call("one"), call("two")]}, {"text": "never"}]});
    let running = sandbox.scripted(&script).arg("go").start();
    let pids = ["one", "two"].map(|name| pid_in(&sandbox.work().join(name)));
    (running, pids)
}

#[test]
fn ctrl_c_ends_the_commands_and_every_call_has_a_result() {
    let sandbox = Sandbox::new();
    let (running, pids) = endless(&sandbox);
    running.signal(Signal::INT);
    let run = running.wait().code(130);
    assert_eq!(run.stdout, "");
    for pid in pids {
        until_gone(pid);
    }
    let entries = session_entries(&sandbox.session_files()[0]);
    let calls = entries.iter().find(|entry| entry["message"]["role"] == "assistant").unwrap()["message"]["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|block| block["type"] == "toolCall")
        .map(|call| call["id"].clone())
        .collect::<Vec<_>>();
    let results: Vec<Value> = sandbox.results().iter().map(|result| result["toolCallId"].clone()).collect();
    assert_eq!((calls.len(), &results), (2, &calls));
    assert!(sandbox.results().iter().all(|result| result["isError"] == true));
}

#[test]
fn sigterm_and_sighup_end_the_run_in_order_with_their_own_codes() {
    for (signal, code) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let sandbox = Sandbox::new();
        let (running, pids) = endless(&sandbox);
        running.signal(signal);
        running.wait().code(code);
        for pid in pids {
            until_gone(pid);
        }
        assert_eq!(sandbox.results().len(), 2);
    }
}

#[test]
fn ctrl_c_during_a_call_from_the_command_line_ends_the_command() {
    let sandbox = Sandbox::new();
    let command = bash("echo $$ > pid; sleep 1000").to_string();
    let running = sandbox.atoll().args(["tool", "call", "bash", &command]).start();
    let pid = pid_in(&sandbox.work().join("pid"));
    running.signal(Signal::INT);
    running.wait().code(130);
    until_gone(pid);
}

#[test]
fn a_second_ctrl_c_ends_a_run_that_the_first_can_not_end() {
    let sandbox = Sandbox::new();
    let script = json!({"turns": [{"text": "x".repeat(4 << 20), "chunk": 1000}]});
    // Nobody reads its output, so it hangs in writing it.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut running = sandbox.scripted(&script).args(["--mode", "json", "go"]).stdout(writer.into()).start();
    // Writes leave gaps in the pipe's pages, so a full one can hold half of its 64 KiB.
    until("the pipe is full", || (rustix::io::ioctl_fionread(&reader).unwrap() > 30_000).then_some(()));
    // Signals that come too fast are one; how many that makes does not matter.
    until("it ends", || {
        let _ = kill_process(running.pid, Signal::INT);
        running.has_ended().then_some(())
    });
    running.wait().code(130);
}

#[test]
fn processes_that_have_ended_are_collected_codex_12491() {
    let sandbox = Sandbox::new();
    let mut turns: Vec<Value> =
        (0..10).map(|_| json!({"calls": [{"tool": "bash", "arguments": bash("true & false | true")}]})).collect();
    let count = "n=0; for s in /proc/[0-9]*/status; do \
        grep -q \"^PPid:[[:space:]]*$PPID$\" $s 2>/dev/null && grep -q '^State:.*Z' $s 2>/dev/null && n=$((n+1)); \
        done; echo zombies $n";
    turns.push(json!({"calls": [{"tool": "bash", "arguments": bash(count)}]}));
    turns.push(json!({"text": "x"}));
    sandbox.scripted(&json!({"turns": turns})).arg("go").run().ok();
    assert_eq!(text_of(&sandbox.results().pop().unwrap()["content"]), "zombies 0\n");
}

#[test]
fn killing_atoll_outright_leaves_a_session_that_can_be_continued() {
    let sandbox = Sandbox::new();
    let (running, pids) = endless(&sandbox);
    running.signal(Signal::KILL);
    drop(running.wait());
    // Nobody is left to end them: SIGKILL can not be handled. The test cleans up.
    for pid in pids {
        kill(pid);
    }
    let script = json!({"turns": [
        {"text": "Both.", "calls": [{"tool": "bash", "arguments": bash("true")}]}, {"text": "second"}]});
    let run = sandbox.scripted(&script).args(["--continue", "again"]).run().ok();
    assert_eq!(run.stdout, "second\n");
    sandbox.session();
}

#[test]
fn an_interrupted_session_goes_on() {
    let sandbox = Sandbox::new();
    let (running, _) = endless(&sandbox);
    running.signal(Signal::INT);
    running.wait().code(130);
    let script = json!({"turns": [{"text": "Both."}, {"text": "second"}]});
    let run = sandbox.scripted(&script).args(["--continue", "again"]).run().ok();
    assert_eq!(run.stdout, "second\n");
}

/// Where long output goes unless somebody was there first.
fn spill_folder(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join(format!("tmp/atoll-{}", rustix::process::geteuid().as_raw()))
}

#[test]
fn a_timeout_holds_while_output_flows_without_pause() {
    let sandbox = Sandbox::new();
    let record = sandbox.call("bash", &json!({"command": "yes", "timeout": 1}));
    assert_eq!(record["isError"], true);
    assert!(text_of(&record["content"]).ends_with("Command timed out after 1 seconds"));
}

#[test]
fn a_command_that_prints_without_end_is_stopped_by_the_named_limit() {
    let sandbox = Sandbox::new();
    let record = sandbox.call("bash", &bash("echo $$ > pid; echo begun; yes"));
    assert_eq!(record["isError"], true);
    let text = text_of(&record["content"]);
    let start = &text[text.len() - 300..];
    assert!(text.starts_with("y\n"), "{start}");
    assert!(text.ends_with("Command stopped by the limit command-output-bytes (1073741824)"), "{start}");
    until_gone(pid_in(&sandbox.work().join("pid")));
    // The log holds the start of the output, and the result says how much of it.
    let kept = record["structuredContent"]["full_output_path"].as_str().unwrap();
    assert!(text.contains(&format!("Only the first 256.0MB of the output were kept: {kept}]")), "{start}");
    assert_eq!(fs::metadata(kept).unwrap().len(), 256 << 20);
    let mut head = [0; 10];
    std::io::Read::read_exact(&mut fs::File::open(kept).unwrap(), &mut head).unwrap();
    assert_eq!(&head, b"begun\ny\ny\n");
}

#[test]
fn a_planted_spill_folder_is_neither_written_to_nor_readable() {
    let plant: [fn(&Path, &Path); 2] = [
        |folder, elsewhere| std::os::unix::fs::symlink(elsewhere, folder).unwrap(),
        |folder, _| {
            fs::create_dir(folder).unwrap();
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
        },
    ];
    for plant in plant {
        let sandbox = Sandbox::new();
        let elsewhere = sandbox.root().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let folder = spill_folder(&sandbox);
        plant(&folder, &elsewhere);
        let planted = folder.join("planted.log");
        fs::write(&planted, "planted\n").unwrap();
        let refusal = sandbox.bad_call("read", &json!({"path": planted}));
        assert!(refusal.contains("not allowed"), "{refusal}");

        let script = json!({"turns": [{"calls": [{"tool": "bash", "arguments": bash("seq 1 5000")}]}, {"text": "x"}]});
        sandbox.scripted(&script).arg("go").run().ok();
        let text = text_of(&sandbox.results()[0]["content"]);
        let path = text.rsplit_once("Full output: ").unwrap().1.trim_end_matches(']');
        assert!(path.contains("/atoll-spill-"), "{path}");
        assert_eq!(fs::metadata(Path::new(path).parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(fs::read_to_string(path).unwrap().ends_with("4999\n5000\n"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }
}

#[test]
fn output_spilled_by_a_session_can_be_read_in_it_even_if_read_came_first() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "a\n");
    let read = |path: &str| json!({"calls": [{"tool": "read", "arguments": {"path": path}}]});
    let list = json!({"calls": [{"tool": "bash", "arguments": bash("seq 1 5000; ls $TMPDIR/atoll-*/*.log > log")}]});
    let link = json!({"calls": [{"tool": "bash", "arguments": bash("ln -s $(cat log) link")}]});
    let script = json!({"turns": [read("a.txt"), list, link, read("link"), {"text": "x"}]});
    sandbox.scripted(&script).arg("go").run().ok();
    assert!(text_of(&sandbox.results()[3]["content"]).starts_with("1\n2\n"), "{:#}", sandbox.results()[3]);
}

#[test]
fn spilled_output_is_removed_after_a_week() {
    let sandbox = Sandbox::new();
    sandbox.good_call("bash", &bash("true"));
    let [old, new] = ["old.log", "new.log"].map(|name| spill_folder(&sandbox).join(name));
    for path in [&old, &new] {
        fs::write(path, "x").unwrap();
    }
    let week = Duration::from_secs(8 * 24 * 60 * 60);
    fs::File::open(&old).unwrap().set_modified(SystemTime::now() - week).unwrap();
    sandbox.good_call("bash", &bash("true"));
    assert!(!old.exists() && new.exists());
}

#[test]
fn killing_atoll_outright_leaves_no_process_behind() {
    let sandbox = Sandbox::new();
    let (running, pids) = endless(&sandbox);
    running.signal(Signal::KILL);
    drop(running.wait());
    for pid in pids {
        until_gone(pid);
    }
}

#[test]
fn commands_do_not_inherit_files_that_atoll_inherited() {
    let sandbox = Sandbox::new();
    let file = fs::File::open(sandbox.file("inherited", "")).unwrap();
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    let text = sandbox.good_call("bash", &bash("readlink /proc/self/fd/* || true"));
    assert!(!text.contains("inherited"), "{text}");
}
