//! Extensions that do what a test says: the plugin `puppet` under several names.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::{
    Command, Sandbox,
    plugins::{digest, test_plugin},
};

/// Its manifest.
pub(crate) const PUPPET_TOML: &str = include_str!("../plugins/puppet/plugin.toml");

/// What `puppet` needs beside what its place gives it.
pub(crate) const OUTWARD: &str = "process = [{ program = \"sh\" }]\nfiles = [{ root = \"$workspace\", access = \"read\" }]\n\
     secrets = [{ name = \"shown/*\", reveal = true }]\nconfig = [{ file = \"puppet.json\" }]\nlistener = {}\nproviders = {}\nservers = {}";

/// The manifest of a puppet of this name.
pub(crate) fn manifest(name: &str) -> String {
    PUPPET_TOML.replacen("name = \"puppet\"", &format!("name = \"{name}\""), 1)
}

impl Sandbox {
    /// Says what puppets do, each by its name.
    pub(crate) fn direct(&self, puppets: &[(&str, Value)]) {
        let all: Map<String, Value> = puppets.iter().map(|(name, does)| ((*name).to_owned(), does.clone())).collect();
        self.settings(&json!({"pluginSettings": all}));
    }

    /// Puppets as a user has them before installing, and the arguments that name them for a run, in this order.
    pub(crate) fn puppets(&self, puppets: &[(&str, Value)]) -> Vec<String> {
        self.direct(puppets);
        for (name, _) in puppets {
            self.grant_puppet(name);
        }
        puppets.iter().flat_map(|(name, _)| ["-e".to_owned(), self.puppet(name).display().to_string()]).collect()
    }

    /// Grants a puppet what it can be made to do, beside what others are granted.
    fn grant_puppet(&self, name: &str) {
        let (grants, table) = (self.grants(), format!("[plugin.{name}]"));
        if !grants.contains(&table) {
            let grant = format!("{table}\nsha256 = \"{}\"\nall = true\n", digest(&test_plugin("puppet")));
            self.home_file("grants.toml", grants + &grant);
        }
    }

    /// The component of a puppet of this name, in a folder of its own with its manifest.
    pub(crate) fn puppet(&self, name: &str) -> PathBuf {
        self.offered(&format!("puppets/{name}"), &test_plugin("puppet"), Some(&manifest(name)))
    }

    /// Installs a puppet, and grants it all that it asks for beside what others are granted.
    pub(crate) fn installed_puppet(&self, name: &str) {
        self.plugin(name, &test_plugin("puppet"), Some(&manifest(name)));
        self.grant_puppet(name);
    }

    /// Puts a puppet among the user's extensions.
    pub(crate) fn loose_puppet(&self, name: &str) {
        self.home_file(&format!("extensions/{name}.wasm"), test_plugin("puppet"));
        self.home_file(&format!("extensions/{name}.toml"), manifest(name));
    }

    /// Grants puppets of these names what reaches outside, and nothing else.
    pub(crate) fn grant_outward(&self, names: &[&str]) {
        let digest = digest(&test_plugin("puppet"));
        let grants = names.iter().map(|name| format!("[plugin.{name}]\nsha256 = \"{digest}\"\n{OUTWARD}\n"));
        self.home_file("grants.toml", grants.collect::<String>());
    }

    /// A run of the scripted model with these puppets, in the order in which they are loaded.
    pub(crate) fn with_puppets(&self, puppets: &[(&str, Value)], script: &Value) -> Command {
        let names = self.puppets(puppets);
        self.scripted(script).args(names)
    }

    /// What a puppet was told that noted it in the session: the names of the events, and their fields.
    #[track_caller]
    pub(crate) fn told(&self) -> Vec<(String, Value)> {
        let entries = self.session().into_iter().filter(|entry| entry["customType"] == "told");
        entries.map(|entry| event(&entry["data"])).collect()
    }

    /// The same of one that noted it in its store.
    #[track_caller]
    pub(crate) fn told_in_store(&self, name: &str) -> Vec<(String, Value)> {
        let stored = self.stored(name, "told").unwrap_or_else(|| panic!("{name} has noted nothing"));
        serde_json::from_str::<Vec<Value>>(&stored).unwrap().iter().map(event).collect()
    }

    /// What a plugin of this name keeps under a key: the one that is there, else the only one that was named by its place.
    #[track_caller]
    pub(crate) fn stored(&self, name: &str, key: &str) -> Option<String> {
        let store = self.atoll_home().join("store");
        let of_place =
            |folder: &PathBuf| folder.file_name().unwrap().to_string_lossy().starts_with(&format!("{name}@"));
        let folders = std::fs::read_dir(&store).into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut named = folders.filter(of_place);
        let folder = match (store.join(name), named.next()) {
            (own, _) if own.is_dir() => own,
            (_, Some(folder)) => folder,
            (own, None) => own,
        };
        assert_eq!(named.next(), None, "several have been called {name}");
        std::fs::read_to_string(folder.join(format!("{key}="))).ok()
    }
}

fn event(told: &Value) -> (String, Value) {
    (told["event"].as_str().unwrap().to_owned(), told["fields"].clone())
}

/// A script of a model that calls a tool and is done then.
pub(crate) fn one_call(tool: &str, arguments: &Value) -> Value {
    json!({"turns": [{"calls": [{"tool": tool, "arguments": arguments}]}, {"text": "done"}]})
}

/// A script of a model that only answers.
pub(crate) fn no_call() -> Value {
    json!({"turns": [{"text": "done"}, {"text": "done again"}, {"text": "done once more"}]})
}
