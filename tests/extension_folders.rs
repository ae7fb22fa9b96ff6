//! Extensions that lie in folders of extensions, and those that settings name: the user's and a project's.

use serde_json::{Value, json};

use crate::common::{
    Sandbox,
    plugins::test_plugin,
    puppets::{OUTWARD, manifest, one_call},
    text_of,
};

impl Sandbox {
    /// The plugins of the table, each once, in order.
    #[track_caller]
    fn plugins_of_table(&self, options: &[&str]) -> Vec<String> {
        let list = self.atoll().args(["tool", "list", "--json"]).args(options).run().json();
        let mut plugins: Vec<String> =
            list.as_array().unwrap().iter().map(|tool| tool["plugin"].as_str().unwrap().to_owned()).collect();
        plugins.dedup();
        plugins.drain(..plugins.iter().position(|plugin| plugin == "codemode").unwrap() + 1);
        plugins
    }

    /// The name of a project's plugin.
    #[track_caller]
    fn name_in_project(&self, name: &str) -> String {
        let list = self.atoll().args(["-a", "plugin", "list", "--json"]).run().json();
        let all = list.as_array().unwrap().iter().map(|plugin| plugin["name"].as_str().unwrap());
        all.filter(|known| known.starts_with(&format!("{name}-in-"))).map(str::to_owned).next().unwrap()
    }
}

/// Puts a word behind what a tool gave.
fn says(word: &str) -> Value {
    json!({"events": ["tool-result"], "answers": {"tool-result": [{"patch": {"text": word}}]}})
}

/// Blocks every call.
fn gate(reason: &str) -> Value {
    json!({"events": ["tool-call"], "answers": {"tool-call": [{"block": reason}]}})
}

#[test]
fn what_lies_in_the_users_folder_has_what_dash_e_gives_and_nothing_that_reaches_outside() {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("greeter");
    let steps =
        json!([{"call": {"tool": "bash", "arguments": {"command": "echo hi"}}}, {"keep": {"key": "a", "value": "b"}}]);
    sandbox.direct(&[("greeter", json!({"tools": [{"name": "hello", "steps": steps}]}))]);
    // It asks for files and programs, too.
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    let line = run.one_line();
    assert!(line.contains("greeter is left out") && line.contains("atoll plugin grant greeter"), "{run:#?}");
    assert!(!run.stdout.contains("hello"), "{run:#?}");
    sandbox.grant_outward(&["greeter"]);
    let run = sandbox.atoll().args(["tool", "call", "hello"]).run().ok().silent();
    assert!(run.stdout.contains("hi"), "{run:#?}");
    assert_eq!(sandbox.stored("greeter", "a").as_deref(), Some("b"));
    // A grant to another file counts for nothing, and that is said.
    sandbox.grant("greeter", b"another", OUTWARD);
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.stderr.contains("has changed") && run.stderr.contains("left out"), "{run:#?}");
}

#[test]
fn commands_for_plugins_know_what_lies_in_folders_of_extensions() {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("greeter");
    sandbox.atoll().args(["plugin", "grant", "greeter", "--all"]).run().ok();
    assert_eq!(sandbox.plugins_of_table(&[]), ["greeter"]);
    let list = sandbox.atoll().args(["plugin", "list", "--json"]).run().json();
    let row = list.as_array().unwrap().iter().find(|row| row["name"] == "greeter").unwrap();
    assert_eq!(row["folder"], json!(sandbox.atoll_home().join("extensions/greeter.wasm")));
    sandbox.atoll().args(["plugin", "disable", "greeter"]).run().ok();
    assert_eq!(sandbox.plugins_of_table(&[]), Vec::<String>::new());
    sandbox.atoll().args(["plugin", "enable", "greeter"]).run().ok();
    let removed = sandbox.atoll().args(["plugin", "remove", "greeter", "--yes"]).run().code(1);
    assert!(removed.one_line().contains("extensions/greeter.wasm"), "{removed:#?}");
    // What it gets by its place is shown, though no grant says it.
    sandbox.home_file("grants.toml", "");
    let shown = sandbox.atoll().args(["plugin", "inspect", "greeter"]).run().ok();
    assert!(shown.stdout.contains("among extensions") && shown.stdout.contains("session"), "{shown:#?}");
}

#[test]
fn settings_come_before_the_folder_and_the_folder_before_what_is_installed() {
    let sandbox = Sandbox::new();
    let all = ["named", "listed", "loose", "installed"];
    sandbox.grant_outward(&all[..3]);
    sandbox.installed_puppet("installed");
    sandbox.loose_puppet("loose");
    sandbox.home_file("elsewhere/listed.wasm", test_plugin("puppet"));
    sandbox.home_file("elsewhere/listed.toml", manifest("listed"));
    sandbox.puppet("named");
    let does: serde_json::Map<String, Value> = all.iter().map(|name| ((*name).to_owned(), says(name))).collect();
    sandbox.settings(&json!({"pluginSettings": does, "extensions": ["elsewhere/listed.wasm"]}));
    let file = sandbox.work().join("puppets/named/offered.wasm");
    let options = ["-e", file.to_str().unwrap()];
    assert_eq!(sandbox.plugins_of_table(&options), ["named", "listed", "loose", "installed"]);
    // The last one asked has the last word.
    let script = one_call("bash", &json!({"command": "ls"}));
    sandbox.scripted(&script).args(options).arg("go").run().ok().silent();
    assert_eq!(text_of(&sandbox.results()[0]["content"]), "installed");
}

#[test]
fn the_first_of_one_name_counts_with_a_note_and_one_file_is_loaded_once() {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("twin");
    sandbox.installed_puppet("twin");
    sandbox.grant_outward(&["twin"]);
    sandbox.settings(&json!({"extensions": ["extensions/twin.wasm", "./extensions/twin.wasm"]}));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(run.one_line().contains("plugins/twin") && run.one_line().contains("comes first"), "{run:#?}");
    assert_eq!(sandbox.plugins_of_table(&[]), ["twin"]);
}

#[test]
fn lists_in_settings_add_and_take_away() {
    let sandbox = Sandbox::new();
    for name in ["one", "two"] {
        sandbox.loose_puppet(name);
    }
    sandbox.grant_outward(&["one", "two"]);
    for (list, left) in [
        (json!([]), &["one", "two"][..]),
        (json!(["-extensions/one.wasm"]), &["two"]),
        (json!(["!*.wasm"]), &[]),
        (json!(["!*.wasm", "+extensions/two.wasm"]), &["two"]),
    ] {
        sandbox.settings(&json!({"extensions": list}));
        assert_eq!(sandbox.plugins_of_table(&[]), left, "{list}");
    }
    sandbox.settings(&json!({"extensions": ["gone.wasm", "-extensions/three.wasm"]}));
    let run = sandbox.atoll().args(["tool", "list"]).run().ok();
    for says in
        ["gone.wasm is left out: it does not exist", "-extensions/three.wasm is left out: it takes away nothing"]
    {
        assert!(run.stderr.contains(says), "{run:#?}");
    }
}

/// It may add to them, in its own name, and that needs trust and a grant.
#[test]
fn a_project_adds_extensions_with_trust_and_a_grant_and_none_of_the_users_word() {
    let sandbox = Sandbox::new();
    sandbox.file(".atoll/extensions/helper.wasm", test_plugin("puppet"));
    sandbox.file(".atoll/extensions/helper.toml", manifest("helper"));
    sandbox.file("more/other.wasm", test_plugin("puppet"));
    sandbox.file("more/other.toml", manifest("other"));
    sandbox.file(".atoll/settings.json", json!({"extensions": ["../more/other.wasm"]}).to_string());
    let without = sandbox.atoll().args(["tool", "list"]).run().ok();
    assert!(without.one_line().contains("not trusted") && without.one_line().contains("extensions"), "{without:#?}");
    // What it asks for and the user's own would have is not granted by trust.
    let (helper, other) = (sandbox.name_in_project("helper"), sandbox.name_in_project("other"));
    sandbox.grant_outward(&[&helper, &other]);
    let trusted = sandbox.atoll().args(["-a", "tool", "list"]).run().ok();
    assert!(trusted.stderr.contains(&format!("{helper} is left out")), "{trusted:#?}");
    assert!(trusted.stderr.contains(&format!("{other} is left out")), "{trusted:#?}");
    sandbox.atoll().args(["-a", "plugin", "grant", &helper, "--all"]).run().ok();
    sandbox.atoll().args(["-a", "plugin", "grant", &other, "--all"]).run().ok();
    assert_eq!(sandbox.plugins_of_table(&["-a"]), [other, helper]);
    assert_eq!(sandbox.plugins_of_table(&["-na"]), Vec::<String>::new());
}

#[test]
fn a_project_can_not_take_away_an_extension_of_the_users_nor_make_it_its_own() {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("guard");
    sandbox.installed_puppet("second");
    sandbox.grant_outward(&["guard"]);
    sandbox.direct(&[("guard", gate("not here"))]);
    let file = sandbox.atoll_home().join("extensions/guard.wasm");
    let lists = [
        json!([format!("-{}", file.display())]),
        json!(["!**", "!**/*.wasm", format!("!{}", file.display())]),
        json!([file]),
        json!(["-builtin:guard", "-guard", "-second"]),
    ];
    let script = one_call("bash", &json!({"command": "ls"}));
    for list in lists {
        sandbox.file(".atoll/settings.json", json!({"extensions": list}).to_string());
        sandbox.scripted(&script).args(["--no-session", "-a", "--mode", "json", "go"]).run().ok();
        let run = sandbox.scripted(&script).args(["-a", "--mode", "json", "--no-session", "go"]).run().ok();
        assert!(run.stdout.contains("not here"), "{list}: {run:#?}");
    }
    // Nor does a link in the project make a file of the user's a project's.
    let link = sandbox.work().join(".atoll/extensions/guard.wasm");
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(&file, link).unwrap();
    let run = sandbox.scripted(&script).args(["-a", "--mode", "json", "--no-session", "go"]).run().ok();
    assert!(run.stdout.contains("not here"), "{run:#?}");
}

/// One that the user names and that lies in a project is the user's, and not the project's as well.
#[test]
fn a_file_of_a_project_that_the_user_names_is_the_users() {
    let sandbox = Sandbox::new();
    let file = sandbox.file(".atoll/extensions/mine.wasm", test_plugin("puppet"));
    sandbox.file(".atoll/extensions/mine.toml", manifest("mine"));
    sandbox.settings(&json!({"extensions": [file]}));
    sandbox.grant_outward(&["mine"]);
    assert_eq!(sandbox.plugins_of_table(&["-a"]), ["mine"]);
    let list = sandbox.atoll().args(["-a", "plugin", "list"]).run().ok();
    assert!(!list.stdout.contains("mine-in-"), "{list:#?}");
}

#[test]
fn no_extensions_does_not_even_load_what_it_leaves_out() {
    let sandbox = Sandbox::new();
    sandbox.loose_puppet("loose");
    sandbox.installed_puppet("installed");
    sandbox.grant_outward(&["loose"]);
    let run = sandbox.atoll().args(["tool", "list", "-ne"]).run().ok().silent();
    assert!(!run.stdout.contains("puppet"), "{run:#?}");
    assert_eq!(sandbox.cache_entries("image"), Vec::<std::path::PathBuf>::new(), "something was compiled");
}

#[test]
fn what_a_project_lists_in_vain_is_shown_as_the_projects() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.root().join("outside.wasm"), test_plugin("puppet")).unwrap();
    sandbox.file(".atoll/settings.json", json!({"extensions": ["../../outside.wasm", "../gone.wasm"]}).to_string());
    sandbox.settings(&json!({"extensions": ["mine.wasm"]}));
    let list = sandbox.atoll().args(["-a", "plugin", "list", "--json"]).run().json();
    let from = |name: &str| list.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()["from"].clone();
    assert_eq!(["outside.wasm", "gone.wasm", "mine.wasm"].map(from), ["project", "project", "user"]);
}
