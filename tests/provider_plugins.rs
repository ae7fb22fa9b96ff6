//! A provider of the user's that breaks: the run ends in one line that says how, and the session stays good.

use serde_json::{Value, json};

use crate::common::{
    Finished, Sandbox,
    plugins::{MOODY_TOML, test_plugin},
};

fn with_moody(settings: &Value) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.plugin("moody", &test_plugin("moody"), Some(MOODY_TOML));
    let models =
        json!({"providers": {"moody": {"baseUrl": "http://127.0.0.1:1", "api": "moody", "models": [{"id": "m"}]}}});
    sandbox.home_file("models.json", models.to_string());
    sandbox.settings(settings);
    sandbox
}

/// A prompt that makes it break, then one that does not in the same session.
#[track_caller]
fn breaks(wish: &str, settings: &Value, expected: &str) -> Finished {
    let sandbox = with_moody(settings);
    let run = sandbox.atoll().args(["-p", wish]).run().code(1);
    assert!(run.one_line().contains(expected), "{expected:?} is missing: {run:#?}");
    assert_eq!(run.stdout, "", "{run:#?}");
    let last = sandbox.messages().pop().unwrap();
    assert_eq!((&last["role"], &last["stopReason"]), (&json!("assistant"), &json!("error")), "{last:#}");
    let again = sandbox.atoll().args(["-c", "-p", "please"]).run().ok().silent();
    assert_eq!(again.stdout, "half whole\n");
    sandbox.session();
    run
}

#[test]
fn a_provider_of_the_users_is_asked() {
    let run = with_moody(&json!({})).atoll().args(["-p", "please"]).run().ok().silent();
    assert_eq!(run.stdout, "half whole\n");
}

#[test]
fn a_provider_that_refuses() {
    breaks("refuse", &json!({}), "not today");
}

#[test]
fn a_provider_that_panics_zed_43005() {
    breaks("panic at once", &json!({}), "it is Monday");
    breaks("panic", &json!({}), "the thread is lost");
}

#[test]
fn a_provider_that_loops_for_ever() {
    breaks("loop at once", &json!({}), "stopped by the limit cpu-ms (300)");
    breaks("loop", &json!({}), "stopped by the limit cpu-ms (300)");
}

#[test]
fn a_provider_that_allocates_without_end() {
    breaks("allocate", &json!({}), "stopped by the limit memory (33554432)");
}

#[test]
fn a_provider_that_never_answers() {
    breaks("never answer", &json!({"httpIdleTimeoutMs": 100}), "silent");
}

#[test]
fn a_provider_that_ends_its_answer_without_an_end() {
    // Its stream is at its end: there is nothing to wait for. A bound on silence keeps this test short where it fails.
    let run = breaks("end without an end", &json!({"httpIdleTimeoutMs": 100}), "");
    assert!(!run.stderr.contains("silent"), "the end of its stream was not noticed: {run:#?}");
}

#[test]
fn a_provider_that_numbers_its_blocks_wrongly_loses_only_those() {
    let run = with_moody(&json!({})).atoll().args(["-p", "wrong numbers"]).run().ok();
    assert_eq!(run.stdout, "half kept\n");
}

#[test]
fn what_a_provider_sends_after_its_end_is_passed_over() {
    let run = with_moody(&json!({})).atoll().args(["-p", "two ends"]).run().ok().silent();
    assert_eq!(run.stdout, "half whole\n");
}

#[test]
fn ctrl_c_ends_a_run_whose_provider_loops() {
    let sandbox = Sandbox::new();
    sandbox.plugin("moody", &test_plugin("moody"), Some(&MOODY_TOML.replace("cpu-ms = 300", "cpu-ms = 600000")));
    let models =
        json!({"providers": {"moody": {"baseUrl": "http://127.0.0.1:1", "api": "moody", "models": [{"id": "m"}]}}});
    sandbox.home_file("models.json", models.to_string());
    let running = sandbox.atoll().args(["--mode", "json", "-p", "loop"]).start();
    running.wait_for_output("\"half \"");
    running.signal(rustix::process::Signal::INT);
    running.wait().code(130);
    let last = sandbox.messages().pop().unwrap();
    assert_eq!(last["stopReason"], "aborted", "{last:#}");
}

#[test]
fn an_api_that_nobody_speaks_is_one_line() {
    let sandbox = Sandbox::new();
    let models =
        json!({"providers": {"x": {"baseUrl": "http://127.0.0.1:1", "api": "telepathy", "models": [{"id": "m"}]}}});
    sandbox.home_file("models.json", models.to_string());
    let run = sandbox.atoll().args(["-p", "x"]).run().code(1);
    assert!(run.one_line().contains("telepathy"), "{run:#?}");
    assert_eq!(sandbox.session_files().len(), 0);
}
