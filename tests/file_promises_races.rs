//! What is promised of paths that change while a call is under way: a link, a directory or a pipe that takes a file's
//! place is never followed out of the workspace, and a call that is killed leaves whole files.
//!
//! The short runs are always made; `ATOLL_LONG_TESTS=1`, which `cargo xtask test --long` sets, makes long ones.

use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::process::Signal;
use serde_json::json;

use crate::common::{
    Sandbox, is_long,
    probes::{CANARY, call, snapshot},
    until,
};

/// How often each way is tried.
fn tries() -> u32 {
    if is_long() { 4_000 } else { 150 }
}

/// Tries to reach `target` while `swap` goes on and on; nothing of `protected` may be read or change.
fn race(sandbox: &Sandbox, cwd: &Path, target: &str, protected: &Path, swap: impl Fn() + Sync) {
    let before = snapshot(protected);
    let stop = AtomicBool::new(false);
    // What one call may keep would not hold all tries.
    let rounds = tries().div_ceil(500);
    let calls: Vec<_> = (0..rounds)
        .map(|_| call("misbehave", json!({"how": "hammer", "target": target, "count": tries().div_ceil(rounds)})))
        .collect();
    let answers = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                swap();
            }
        });
        let answers = sandbox.probe(cwd, &calls);
        stop.store(true, Ordering::Relaxed);
        answers
    });
    for (failed, seen) in answers {
        assert!(!failed, "{seen}");
        assert!(!seen.contains(CANARY), "{seen}");
        // The size of the file that holds it, as a listing tells it.
        assert!(!seen.contains(&format!("{CANARY_SIZE} ")), "{seen}");
    }
    assert_eq!(snapshot(protected), before);
}

/// A size that nothing else in a race has.
const CANARY_SIZE: usize = 7_919;

fn canary() -> String {
    format!("{CANARY}{}", "!".repeat(CANARY_SIZE - CANARY.len()))
}

fn outside(sandbox: &Sandbox) -> std::path::PathBuf {
    let outside = sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), canary()).unwrap();
    outside
}

#[test]
fn a_link_that_is_swapped_during_the_call_never_leads_out_in_thousands_of_tries() {
    let sandbox = Sandbox::with_probes();
    let outside = outside(&sandbox);
    sandbox.file("good/a.txt", "alpha\n");
    let work = sandbox.work();
    race(&sandbox, &work, "dir/a.txt", &outside, || {
        for target in ["good", "../outside"] {
            let _ = fs::remove_file(work.join("next"));
            let _ = symlink(target, work.join("next"));
            let _ = fs::rename(work.join("next"), work.join("dir"));
        }
    });
}

#[test]
fn a_directory_that_is_swapped_for_a_link_during_the_call_never_leads_out() {
    let sandbox = Sandbox::with_probes();
    let outside = outside(&sandbox);
    sandbox.file("dir/a.txt", "alpha\n");
    symlink("../outside", sandbox.work().join("link")).unwrap();
    let work = sandbox.work();
    race(&sandbox, &work, "dir/a.txt", &outside, || {
        // The directory itself makes way and comes back: what was open stays open.
        let _ = fs::rename(work.join("dir"), work.join("kept"));
        let _ = fs::rename(work.join("link"), work.join("dir"));
        let _ = fs::rename(work.join("dir"), work.join("link"));
        let _ = fs::rename(work.join("kept"), work.join("dir"));
    });
}

#[test]
fn a_file_that_is_swapped_for_a_link_during_the_call_never_leads_out() {
    let sandbox = Sandbox::with_probes();
    let outside = outside(&sandbox);
    let work = sandbox.work();
    race(&sandbox, &work, "a.txt", &outside, || {
        let _ = symlink("../outside/a.txt", work.join("next"));
        let _ = fs::rename(work.join("next"), work.join("a.txt"));
        let _ = fs::write(work.join("next"), "alpha\n");
        let _ = fs::rename(work.join("next"), work.join("a.txt"));
    });
}

#[test]
fn a_link_that_is_swapped_during_the_call_never_leads_to_atolls_own_files() {
    let sandbox = Sandbox::with_probes();
    // The workspace is the home directory: by its spelling alone, everything is allowed.
    let home = sandbox.root().join("home");
    let own = sandbox.atoll_home().join("own");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("a.txt"), canary()).unwrap();
    fs::create_dir(home.join("good")).unwrap();
    fs::write(home.join("good/a.txt"), "alpha\n").unwrap();
    race(&sandbox, &home, "dir/a.txt", &own, || {
        for target in ["good", ".atoll/own"] {
            let _ = fs::remove_file(home.join("next"));
            let _ = symlink(target, home.join("next"));
            let _ = fs::rename(home.join("next"), home.join("dir"));
        }
    });
}

#[test]
fn a_pipe_that_takes_a_files_place_during_the_call_holds_nothing_up() {
    let sandbox = Sandbox::with_probes();
    let outside = outside(&sandbox);
    let work = sandbox.work();
    race(&sandbox, &work, "a.txt", &outside, || {
        let _ = rustix::fs::mknodat(rustix::fs::CWD, work.join("next"), rustix::fs::FileType::Fifo, 0o600.into(), 0);
        let _ = fs::rename(work.join("next"), work.join("a.txt"));
        let _ = fs::write(work.join("next"), "alpha\n");
        let _ = fs::rename(work.join("next"), work.join("a.txt"));
    });
}

#[test]
fn a_program_killed_while_it_writes_leaves_the_old_file_or_the_new_one_and_later_writes_work() {
    let rounds = if is_long() { 200 } else { 5 };
    let sandbox = Sandbox::with_probes();
    let size = 4 << 20;
    let old = "o".repeat(size);
    let write = json!({"how": "write-large", "target": "big.txt", "count": size});
    let component = crate::common::plugins::misbehave();
    let manifest = crate::common::plugins::MISBEHAVE_TOML.replace("host-call-mib = 1", "host-call-mib = 8");
    sandbox.plugin("misbehave", &component, Some(&manifest));
    for round in 0..rounds {
        let path = sandbox.file("big.txt", &old);
        let calls: Vec<_> = (0..50).map(|_| call("misbehave", write.clone())).collect();
        let running = sandbox.scripted(&json!({"turns": [{"calls": calls}, {"text": "done"}]})).arg("go").start();
        // Somewhere in the middle of it: as soon as the first new file is there, or a little later.
        until("the first write", || (fs::read(&path).unwrap()[0] == b'n').then_some(()));
        for _ in 0..round * 1_000 {
            std::hint::spin_loop();
        }
        running.signal(Signal::KILL);
        running.wait();
        let left = fs::read(&path).unwrap();
        assert!(left.len() == size && left.iter().all(|byte| *byte == b'n'), "{} bytes", left.len());
    }
    let answers = sandbox.probe(&sandbox.work(), &[call("write", json!({"path": "big.txt", "content": "small"}))]);
    assert!(!answers[0].0, "{answers:?}");
    assert_eq!(sandbox.read("big.txt"), "small");
}
