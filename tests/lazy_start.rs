//! A start loads nothing that is not needed: what is kept of plugins, that it is as good as asking them, and what is done
//! when it is not.

use std::{
    fs::{self, File},
    path::Path,
};

use serde_json::{Value, json};

use crate::common::{
    Command, Finished, Sandbox,
    components::tool,
    plugins::{digest, misbehave, test_plugin, workspace_root},
    text_of, until,
};

const NEST_TOML: &str = include_str!("plugins/nest/plugin.toml");
/// The body of a `call` that gives an empty result.
const GOOD: &str = "(i32.const 64)";
/// What the log says when a component is loaded.
const LOADING: &str = "loading the component";

fn list(sandbox: &Sandbox) -> Finished {
    sandbox.atoll().args(["tool", "list", "--json"]).run().ok()
}

/// The names of the tools.
fn names(sandbox: &Sandbox) -> Vec<String> {
    let all = list(sandbox).silent().json();
    all.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn has(sandbox: &Sandbox, name: &str) -> bool {
    names(sandbox).iter().any(|known| known == name)
}

fn only(sandbox: &Sandbox, kind: &str) -> std::path::PathBuf {
    let entries = sandbox.cache_entries(kind);
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].clone()
}

/// A plugin with the tool `plain`.
fn with_plain() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.plugin("plain", &tool("plain", GOOD), None);
    sandbox
}

#[test]
fn a_start_loads_no_component() {
    let sandbox = with_plain();
    let fresh = list(&sandbox).silent();
    // Not even looked at: else it would be rebuilt.
    let image = only(&sandbox, "image");
    fs::write(&image, "no image").unwrap();
    let run = sandbox.atoll().env("ATOLL_LOG", "debug").args(["tool", "list", "--json"]).run().ok();
    assert_eq!(run.stdout, fresh.stdout);
    assert!(!run.stderr.contains(LOADING), "{run:#?}");
    assert_eq!(fs::read(&image).unwrap(), b"no image");
    // It is found out, and put right, where it is needed; and only what is needed is loaded.
    let run = sandbox.atoll().env("ATOLL_LOG", "debug").args(["tool", "call", "plain"]).run().ok();
    assert_eq!(run.stderr.matches(LOADING).count(), 1, "{run:#?}");
    assert!(fs::metadata(&image).unwrap().len() > 1000);
}

#[test]
fn a_list_from_what_was_kept_is_the_one_that_the_plugins_give() {
    let sandbox = Sandbox::with_misbehave();
    let nest = test_plugin("nest");
    sandbox.plugin("nest", &nest, Some(NEST_TOML));
    let grant =
        |name: &str, component: &[u8]| format!("[plugin.{name}]\nsha256 = \"{}\"\nall = true\n", digest(component));
    sandbox.home_file("grants.toml", format!("{}{}", grant("misbehave", &misbehave()), grant("nest", &nest)));
    let fresh = list(&sandbox).silent().stdout;
    assert!(fresh.contains("misbehave") && fresh.contains("nest"), "{fresh}");
    assert_eq!(list(&sandbox).silent().stdout, fresh);
    let kept = sandbox.cache_entries("description");
    assert_eq!(kept.len(), 2);
    kept.iter().for_each(|path| fs::remove_file(path).unwrap());
    assert_eq!(list(&sandbox).silent().stdout, fresh);
    assert_eq!(sandbox.cache_entries("description"), kept);
}

#[test]
fn a_description_that_is_damaged_cut_off_or_of_another_version_is_made_anew() {
    let sandbox = with_plain();
    let fresh = list(&sandbox).silent().stdout;
    let entry = only(&sandbox, "description");
    let whole = fs::read(&entry).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (what, bytes) in [
        ("of another layout", flipped(7)),
        ("of another version", flipped(10)),
        ("of another component", flipped(30)),
        ("with another checksum", flipped(89)),
        ("damaged", flipped(whole.len() - 20)),
        ("cut off", whole[..whole.len() - 1].to_vec()),
        ("cut off in its head", whole[..20].to_vec()),
        ("empty", Vec::new()),
        ("text", b"{\"tools\":[]}".to_vec()),
    ] {
        fs::write(&entry, bytes).unwrap();
        assert_eq!(list(&sandbox).silent().stdout, fresh, "{what}");
        assert_eq!(fs::read(&entry).unwrap(), whole, "{what}");
    }
    fs::remove_file(&entry).unwrap();
    std::os::unix::fs::symlink("nowhere", &entry).unwrap();
    assert_eq!(list(&sandbox).silent().stdout, fresh);
}

#[test]
fn the_description_of_another_component_is_not_taken_for_this_ones() {
    let sandbox = with_plain();
    list(&sandbox).silent();
    let entry = only(&sandbox, "description");
    let foreign = {
        let other = Sandbox::new();
        other.plugin("other", &tool("other", GOOD), None);
        list(&other).silent();
        fs::read(only(&other, "description")).unwrap()
    };
    fs::write(&entry, &foreign).unwrap();
    assert!(has(&sandbox, "plain") && !has(&sandbox, "other"));
    assert_ne!(fs::read(&entry).unwrap(), foreign);
}

#[test]
fn grants_and_limits_of_today_count_for_what_was_kept_yesterday() {
    let sandbox = Sandbox::with_misbehave();
    let grants = sandbox.grants();
    assert!(has(&sandbox, "misbehave"));
    sandbox.home_file("grants.toml", "");
    let run = list(&sandbox);
    assert!(run.one_line().contains("the plugin misbehave is left out"), "{run:#?}");
    assert!(run.one_line().contains("not allowed: files"), "{run:#?}");
    assert!(!run.stdout.contains("misbehave"));
    sandbox.home_file("grants.toml", grants);
    assert!(has(&sandbox, "misbehave"));
    // A manifest for another contract.
    let old = fs::read_to_string(sandbox.atoll_home().join("plugins/misbehave/plugin.toml")).unwrap();
    sandbox.home_file("plugins/misbehave/plugin.toml", old.replacen("contract = \"0.1\"", "contract = \"0.2\"", 1));
    let run = list(&sandbox);
    assert!(run.one_line().contains("atoll:plugin@0.2"), "{run:#?}");
    sandbox.home_file("plugins/misbehave/plugin.toml", old);
    assert!(has(&sandbox, "misbehave"));

    let sandbox = Sandbox::new();
    let nest = test_plugin("nest");
    sandbox.plugin("nest", &nest, Some(NEST_TOML));
    sandbox.grant("nest", &nest, "all = true");
    assert!(has(&sandbox, "nest"));
    sandbox.settings(&json!({"limits": {"nest": {"tools": 1}}}));
    let run = list(&sandbox);
    assert!(run.one_line().contains("the plugin nest is left out"), "{run:#?}");
    assert!(run.one_line().contains("tools (1)"), "{run:#?}");
    sandbox.settings(&json!({}));
    assert!(has(&sandbox, "nest"));
    assert_eq!(sandbox.cache_entries("description").len(), 1);
}

/// A session of the scripted model, with the log.
fn session(sandbox: &Sandbox, turns: &Value) -> (Finished, Vec<Value>) {
    let run = sandbox.scripted(&json!({"turns": turns})).env("ATOLL_LOG", "debug").arg("go").run().ok();
    let results = sandbox.results();
    (run, results)
}

#[test]
fn first_calls_at_once_load_a_plugin_once() {
    let sandbox = with_plain();
    list(&sandbox).silent();
    // Compiling takes longer than starting all calls.
    fs::remove_file(only(&sandbox, "image")).unwrap();
    let call = json!({"tool": "plain", "arguments": {}});
    let (run, results) = session(&sandbox, &json!([{"calls": vec![call; 12]}, {"text": "end"}]));
    assert_eq!(results.len(), 12);
    assert!(results.iter().all(|result| result["isError"] == false), "{results:#?}");
    let loaded = run.stderr.lines().filter(|line| line.contains(LOADING) && line.contains("plain")).count();
    assert_eq!(loaded, 1, "{run:#?}");
}

/// A session whose first call changes the plugin `plain`, whose image is gone, and whose second one calls it.
fn after_a_change(change: impl FnOnce(&Path) -> String) -> String {
    let sandbox = with_plain();
    list(&sandbox).silent();
    let plugin = sandbox.atoll_home().join("plugins/plain/plugin.wasm");
    let other = sandbox.file("other.wasm", tool("other", GOOD));
    let command = format!("rm {}/*.image; {}", sandbox.aot_cache().display(), change(&plugin));
    let command = command.replace("OTHER", &other.to_string_lossy());
    let (_, results) = session(
        &sandbox,
        &json!([
            {"calls": [{"tool": "bash", "arguments": {"command": command}}]},
            {"calls": [{"tool": "plain", "arguments": {}}]},
            {"text": "end"},
        ]),
    );
    assert_eq!(results[0]["isError"], false, "{results:#?}");
    assert_eq!(results[1]["isError"], true, "{results:#?}");
    assert!(sandbox.cache_entries("image").is_empty(), "what was not looked at was compiled");
    text_of(&results[1]["content"])
}

#[test]
fn a_file_that_was_exchanged_before_the_first_call_is_not_run() {
    let text = after_a_change(|plugin| format!("cp OTHER {}", plugin.display()));
    assert!(text.contains("the plugin plain has changed since Atoll was started"), "{text}");
    let text = after_a_change(|plugin| format!("rm {}", plugin.display()));
    assert!(text.contains("the plugin plain can not be loaded any more"), "{text}");
}

/// Starts until the plugins' files have been left alone for long enough to be remembered.
fn remembered(sandbox: &Sandbox, count: usize) {
    until("files are remembered", || {
        list(sandbox).silent();
        (sandbox.cache_entries("seen").len() == count).then_some(())
    });
}

#[test]
fn a_remembered_file_that_changes_is_read_again_even_if_it_looks_as_old_and_as_large() {
    let sandbox = Sandbox::new();
    let (first, other) = (tool("first", GOOD), tool("other", GOOD));
    assert_eq!(first.len(), other.len());
    let path = sandbox.plugin("a", &first, None);
    remembered(&sandbox, 1);
    assert!(has(&sandbox, "first"));
    let before = fs::metadata(&path).unwrap();
    fs::write(&path, other).unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(before.modified().unwrap()).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before.modified().unwrap());
    assert!(has(&sandbox, "other") && !has(&sandbox, "first"));
    // The same with the file exchanged for another one.
    fs::write(path.with_extension("new"), first).unwrap();
    fs::rename(path.with_extension("new"), &path).unwrap();
    assert!(has(&sandbox, "first") && !has(&sandbox, "other"));
}

#[test]
fn what_is_remembered_of_a_file_is_not_believed_of_another_nor_if_it_is_damaged() {
    let sandbox = Sandbox::new();
    sandbox.plugin("a", &tool("first", GOOD), None);
    sandbox.plugin("b", &tool("other", GOOD), None);
    remembered(&sandbox, 2);
    let entries = sandbox.cache_entries("seen");
    let fresh = list(&sandbox).silent().stdout;
    let whole = fs::read(&entries[1]).unwrap();
    let mut flipped = whole.clone();
    let last = flipped.len() - 1;
    flipped[last] ^= 1;
    // One digit of the digest, so that it stays well-formed.
    let mut forged = whole.clone();
    let digit = String::from_utf8_lossy(&whole[12..]).find("\"digest\":\"").unwrap() + 12 + 10;
    forged[digit] = if forged[digit] == b'0' { b'1' } else { b'0' };
    for bytes in [fs::read(&entries[0]).unwrap(), flipped, forged, whole[..30].to_vec(), Vec::new()] {
        fs::write(&entries[1], bytes).unwrap();
        assert_eq!(list(&sandbox).silent().stdout, fresh);
        assert_eq!(fs::read(&entries[1]).unwrap(), whole);
    }
}

#[test]
fn a_manifest_inside_a_remembered_component_counts() {
    let sandbox = Sandbox::new();
    let component = sandbox.file("plain.wasm", tool("plain", GOOD));
    let manifest = sandbox.file("plugin.toml", "name = \"a\"\nversion = \"1\"\ncontract = \"0.2\"\n");
    let packed = sandbox.work().join("packed.wasm");
    let pack = |sandbox: &Sandbox| -> Command {
        let files = [&component, &manifest, &packed].map(|path| path.to_string_lossy().into_owned());
        sandbox.atoll().args(["plugin", "pack", &files[0], &files[1], "--output", &files[2]])
    };
    pack(&sandbox).run().ok();
    sandbox.plugin("a", &fs::read(&packed).unwrap(), None);
    // It asks for a contract that is not served, each time.
    until("the file is remembered", || {
        let run = list(&sandbox);
        assert!(run.one_line().contains("atoll:plugin@0.2"), "{run:#?}");
        (sandbox.cache_entries("seen").len() == 1).then_some(())
    });
    let run = list(&sandbox);
    assert!(run.one_line().contains("atoll:plugin@0.2"), "{run:#?}");
}

/// The images of built-in plugins, with all that is embedded of them.
fn builtins() -> Vec<atoll_engine::Builtin> {
    let images = workspace_root().join("target/guests/images");
    let mut all = Vec::new();
    for entry in fs::read_dir(&images).unwrap().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "image") {
            let text = |extension: &str| fs::read_to_string(path.with_extension(extension)).unwrap().leak();
            all.push(atoll_engine::Builtin {
                name: path.file_stem().unwrap().to_str().unwrap().to_owned().leak(),
                manifest: text("toml"),
                image: fs::read(&path).unwrap().leak(),
                description: text("json"),
            });
        }
    }
    assert!(all.len() >= 9, "no images; run the tests with `cargo xtask test`");
    all
}

#[test]
fn what_is_embedded_of_built_in_plugins_is_what_they_say() {
    let sandbox = Sandbox::new();
    let places = atoll_engine::Places::all_in(&sandbox.root().join("nowhere"));
    let host = atoll_engine::PluginHost::new(places).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let listed = list(&sandbox).silent().json();
    let listed = listed.as_array().unwrap();
    let mut known = 0;
    for builtin in builtins() {
        assert_eq!(runtime.block_on(host.describe(&builtin)).unwrap(), builtin.description, "{}", builtin.name);
        // And the program has these, not those of an earlier build.
        let description: Value = serde_json::from_str(builtin.description).unwrap();
        for tool in description["tools"].as_array().unwrap() {
            let parameters: Value = serde_json::from_str(tool["parameters"].as_str().unwrap()).unwrap();
            let found = listed.iter().find(|found| found["name"] == tool["name"]).unwrap();
            assert_eq!((&found["description"], &found["parameters"]), (&tool["description"], &parameters));
            known += 1;
        }
    }
    assert_eq!(known, listed.len());
}
