//! `atoll demo`.

use crate::common::Sandbox;

/// The demo's output with what differs from run to run taken out: the folder, times, and the order in which two
/// calls that run side by side come to their ends.
fn redacted(output: &str) -> String {
    let lines: Vec<String> = output
        .lines()
        .map(|line| match (line.split_once("atoll-demo-"), line.rsplit_once(" in ")) {
            (Some(_), _) => "A small project with a bug, in [folder]:".to_owned(),
            (_, Some((before, time))) if time.ends_with(" ms") => format!("{before} in [time]"),
            (_, Some((before, time))) if before.ends_with("Completed") => {
                format!("{before} in [time],{}", time.split_once(',').unwrap().1)
            }
            _ => line.to_owned(),
        })
        .collect();
    let mut blocks: Vec<String> = lines.join("\n").split("\n\n").map(str::to_owned).collect();
    let is_result = |block: &String| block.lines().next().is_some_and(|line| line.ends_with(" in [time]"));
    let mut at = 0;
    while at < blocks.len() {
        let end = at + blocks[at..].iter().take_while(|block| is_result(block)).count();
        blocks[at..end].sort();
        at = end.max(at) + 1;
    }
    blocks.join("\n\n")
}

#[test]
fn the_demo_shows_each_step_and_what_ran_it_was_allowed() {
    let sandbox = Sandbox::new();
    let run = sandbox.atoll().args(["demo", "--fast"]).run().ok().silent();
    insta::assert_snapshot!("demo", redacted(&run.stdout));
}

#[test]
fn the_demo_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    sandbox.atoll().args(["demo", "--fast"]).run().ok();
    assert_eq!(sandbox.session_files().len(), 0);
    for folder in ["project", "tmp"] {
        let left: Vec<_> =
            std::fs::read_dir(sandbox.root().join(folder)).unwrap().flatten().map(|e| e.path()).collect();
        let left: Vec<_> = left.iter().filter(|path| path.to_string_lossy().contains("atoll-demo-")).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn the_demo_works_whatever_the_user_has_set_up() {
    let sandbox = Sandbox::new();
    sandbox.model_at("http://127.0.0.1:1/v1");
    sandbox.home_file("AGENTS.md", "Answer in verse.");
    sandbox.plugin("broken", b"not a component", None);
    let run = sandbox.atoll().args(["demo", "--fast"]).run().ok().silent();
    assert!(run.stdout.contains("all 3 checks passed"), "{run:#?}");
}

#[test]
fn the_slow_demo_ends_at_ctrl_c() {
    let sandbox = Sandbox::new();
    let running = sandbox.atoll().arg("demo").start();
    running.wait_for_output("model:");
    running.signal(rustix::process::Signal::INT);
    running.wait().code(130);
}
