//! `atoll plugin dev`: an extension that changes while it runs.

use std::{fs, path::Path};

use rustix::process::Signal;
use serde_json::json;

use crate::common::{
    Sandbox,
    plugins::test_plugin,
    puppets::{PUPPET_TOML, manifest},
};

/// The same component as another version: with something in it that means nothing.
fn version(number: u8) -> Vec<u8> {
    let mut component = test_plugin("puppet");
    component.extend([0, 3, 2, b'v', number]);
    component
}

/// Puts a file in the place of another in one step, as builds do.
fn replace(file: &Path, content: &[u8]) {
    let new = file.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(new, file).unwrap();
}

#[test]
fn each_version_takes_over_its_log_is_shown_and_one_that_does_not_load_leaves_the_old_one_running() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("puppet", &test_plugin("puppet"), Some(PUPPET_TOML));
    let does = |word: &str| {
        json!({"start": [{"log": format!("started as {word}")}], "commands": {"hello": [
            {"log": format!("hello from {word}")}, {"kept": "times"}, {"keep": {"key": "times", "value": word}}, {"notify": "hi"},
        ]}})
    };
    sandbox.direct(&[("puppet", does("one"))]);
    let dev = sandbox.atoll().args(["plugin", "dev", "--grant", "-p", "/hello"]).arg(&file).start();
    dev.wait_for_notes("waiting for changes", 1);
    // Another build, and other settings with it.
    sandbox.direct(&[("puppet", does("two"))]);
    replace(&file, &version(1));
    let said = dev.wait_for_notes("waiting for changes", 2);
    for line in [
        "puppet info: started as one",
        "puppet info: hello from one",
        "atoll: loaded anew: puppet",
        "puppet info: started as two",
        "puppet info: hello from two",
    ] {
        assert!(said.contains(line), "{line}\n{said}");
    }
    // One that is no plugin, then one that does not start: what runs goes on, and is asked nothing again.
    replace(&file, b"no component");
    let said = dev.wait_for_notes("waiting for changes", 3);
    assert!(said.contains("the plugin puppet goes on as it was: "), "{said}");
    sandbox.direct(&[("puppet", json!({"start": [{"fail": "not today"}]}))]);
    replace(&file, &version(2));
    let said = dev.wait_for_notes("waiting for changes", 4);
    assert!(said.contains("goes on as it was") && said.contains("not today"), "{said}");
    sandbox.direct(&[("puppet", does("three"))]);
    replace(&file, &version(3));
    let said = dev.wait_for_notes("waiting for changes", 5);
    assert!(said.contains("hello from three"), "{said}");
    // A new manifest is a new version; the same once more is none.
    fs::write(file.with_file_name("plugin.toml"), format!("{PUPPET_TOML}\n")).unwrap();
    dev.wait_for_notes("waiting for changes", 6);
    replace(&file, &version(3));
    let said = dev.wait_for_notes("waiting for changes", 7);
    assert!(said.contains("was written, and is what it was"), "{said}");
    dev.signal(Signal::INT);
    dev.wait().code(130);
    assert_eq!(sandbox.stored("puppet", "times").as_deref(), Some("three"));
}

#[test]
fn without_grant_it_has_what_dash_e_gives_and_no_more() {
    let sandbox = Sandbox::new();
    let file = sandbox.offered("puppet", &test_plugin("puppet"), Some(&manifest("puppet")));
    let refused = sandbox.atoll().args(["plugin", "dev"]).arg(&file).run().code(3);
    assert!(refused.stderr.contains("not allowed"), "{}", refused.stderr);
    assert!(!sandbox.atoll_home().join("grants.toml").exists());
    let missing = sandbox.atoll().args(["plugin", "dev", "none.wasm"]).run().code(1);
    assert!(missing.one_line().contains("build the extension first"), "{}", missing.stderr);
}
