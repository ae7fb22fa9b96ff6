//! The tool `bash` in cases that others' users have reported: how a command ends, and what is said of it.

use serde_json::json;

use crate::common::Sandbox;

#[test]
fn a_shell_that_has_exited_is_not_said_to_have_timed_out_pi_11613() {
    let sandbox = Sandbox::new();
    // What it leaves running writes on and on, so the call is still under way when the time is up.
    let command = "(while :; do echo x; sleep 0.02; done) & echo ready; exit 3";
    let record = sandbox.call("bash", &json!({"command": command, "timeout": 1}));
    let text = crate::common::text_of(&record["content"]);
    assert_eq!(record["isError"], true);
    assert!(text.contains("exited with code 3") && !text.contains("timed out"), "{text}");
    assert_eq!(record["structuredContent"]["exit_code"], 3);
}

#[test]
fn the_end_of_a_last_line_that_is_too_long_is_shown_pi_12062() {
    let sandbox = Sandbox::new();
    let text =
        sandbox.good_call("bash", &json!({"command": "echo first; head -c 150000 /dev/zero | tr '\\0' x; echo END"}));
    assert!(text.contains("xxxEND\n\n[Showing last 50.0KB of line 2 (line is 146.5KB). Full output: "), "{text:.300}");
}

#[test]
fn a_command_that_times_out_is_reported_opencode_28654() {
    let sandbox = Sandbox::new();
    let record = sandbox.call("bash", &json!({"command": "echo before; sleep 60", "timeout": 0.5}));
    let text = crate::common::text_of(&record["content"]);
    assert_eq!(record["isError"], true);
    assert!(text.starts_with("before\n\n") && text.contains("timed out after 0.5 seconds"), "{text}");
}

#[test]
fn a_silent_process_in_the_background_does_not_hold_up_the_call_opencode_48414_pi_7636() {
    let sandbox = Sandbox::new();
    // Longer than any run of a test may take.
    let text = sandbox.good_call("bash", &json!({"command": "sleep 3000 & echo started"}));
    assert!(text.starts_with("started\n\n[") && text.contains("in the background"), "{text}");
}
