//! How searches end that would not end by themselves, and what they may cost.

use std::fs;

use rustix::process::Signal;
use serde_json::json;

use crate::common::{Sandbox, until};

/// A file of zeroes that takes no room and longer to search than any test may take.
fn endless(sandbox: &Sandbox, name: &str) {
    let file = fs::File::create(sandbox.work().join(name)).unwrap();
    file.set_len(1 << 42).unwrap();
}

/// Bytes a process has read.
fn bytes_read(pid: rustix::process::Pid) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/io", pid.as_raw_nonzero())).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.map_or(0, |count| count.parse().unwrap())
}

#[test]
fn ctrl_c_ends_a_search() {
    let sandbox = Sandbox::new();
    endless(&sandbox, "zeroes");
    let arguments = json!({"pattern": "needle", "path": "zeroes"}).to_string();
    let running = sandbox.atoll().args(["tool", "call", "grep", &arguments]).start();
    until("it searches", || (bytes_read(running.pid) > 100 << 20).then_some(()));
    running.signal(Signal::INT);
    running.wait().code(130);
}

#[test]
fn a_huge_binary_file_in_a_tree_costs_only_its_start() {
    let sandbox = Sandbox::new();
    for n in 0..3 {
        endless(&sandbox, &format!("zeroes {n}"));
    }
    sandbox.file("z.txt", "needle\n");
    assert_eq!(sandbox.good_call("grep", &json!({"pattern": "needle"})), "z.txt:1: needle");
}
