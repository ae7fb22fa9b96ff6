//! Providers that extensions add to the session, beside those of the models file.
//!
//! What an extension says must never be worked out as the user's own words are: nothing of it names a variable, a command or
//! a secret, and it never stands in for what the user has set up.

use std::sync::{
    PoisonError,
    atomic::{AtomicU64, Ordering},
};

use atoll_caps::printable;
use atoll_table::{
    Error,
    extension::{Providers, Who},
    model::Secret,
};
use serde_json::Value;

use super::{Models, ProviderEntry, SCRIPTED};

/// How many providers one extension may add.
const MAX_PROVIDERS: usize = 100;
/// How many models one of them may have.
const MAX_MODELS: usize = 1_000;

/// How many additions there have been, to tell one from another of the same name.
static ADDITIONS: AtomicU64 = AtomicU64::new(0);

/// A provider that an extension added.
#[derive(Clone, Debug)]
pub(super) struct Added {
    pub(super) who: Who,
    pub(super) name: String,
    pub(super) entry: ProviderEntry,
    pub(super) key: Option<Secret>,
    /// No other addition has it.
    number: u64,
}

/// What one extension had added at some time.
pub struct OwnProviders {
    who: Who,
    all: Vec<Added>,
}

/// Whether a name may be a provider's: 1 to 64 of `a-z 0-9 _ - .`, a letter or a digit first.
fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    (1..=64).contains(&name.len())
        && name.bytes().next().is_some_and(fits)
        && name.bytes().all(|b| fits(b) || matches!(b, b'_' | b'-' | b'.'))
        // What stands for secrets in headers is named like this.
        && !name.contains("-header-")
}

/// The entry in a configuration that an extension gave.
fn entry(config: Value) -> Result<ProviderEntry, String> {
    if !config.is_object() {
        return Err("it is no object".to_owned());
    }
    let entry: ProviderEntry = serde_json::from_value(config).map_err(|error| error.to_string())?;
    if entry.api_key.is_some() {
        return Err("\"apiKey\" is the name of a secret, a text".to_owned());
    }
    if entry.models.is_empty() || entry.models.len() > MAX_MODELS {
        return Err(format!("it has {} \"models\"; give it 1 to {MAX_MODELS}", entry.models.len()));
    }
    let is_empty = |text: &Option<String>| text.as_ref().is_none_or(String::is_empty);
    for (at, model) in entry.models.iter().enumerate() {
        if model.id.is_empty() {
            return Err(format!("model {} has no \"id\"", at + 1));
        }
        let has_no = |own: &Option<String>, shared: &Option<String>| is_empty(own) && is_empty(shared);
        if has_no(&model.base_url, &entry.base_url) || has_no(&model.api, &entry.api) {
            return Err("it needs \"baseUrl\" and \"api\"".to_owned());
        }
    }
    let headers = entry.models.iter().map(|model| &model.headers).chain([&entry.headers]).flatten();
    for (name, value) in headers {
        if value.starts_with('!') || value.contains('$') || value.contains("{{") {
            let name = printable(name);
            return Err(format!("the header {name} is not plain text; a secret can only be the \"apiKey\""));
        }
    }
    Ok(entry)
}

impl Models {
    pub(super) fn added(&self) -> Vec<Added> {
        self.added.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What an extension has added, before another version of it takes over.
    pub fn of(&self, who: &Who) -> OwnProviders {
        let all = self.added().into_iter().filter(|added| added.who == *who).collect();
        OwnProviders { who: who.clone(), all }
    }

    /// Another version has taken over: what it has not added itself goes.
    pub fn taken_over(&self, before: &OwnProviders) {
        let is_old = |added: &Added| before.all.iter().any(|old| old.number == added.number);
        self.retain(|added| !is_old(added));
    }

    /// No other version has taken over: what there was is there again.
    pub fn restore(&self, before: OwnProviders) {
        let OwnProviders { who, all } = before;
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        added.retain(|added| added.who != who);
        added.extend(all);
    }

    /// An extension is not there any more, and what it added goes with it.
    pub fn forget(&self, who: &Who) {
        self.retain(|added| added.who != *who);
    }

    fn retain(&self, stays: impl Fn(&Added) -> bool) {
        self.added.write().unwrap_or_else(PoisonError::into_inner).retain(stays);
    }

    /// No models file and no environment: only what extensions add.
    pub fn none() -> Self {
        Self {
            path: std::path::PathBuf::new(),
            providers: Vec::new(),
            environment: Default::default(),
            added: Default::default(),
        }
    }
}

impl Providers for Models {
    fn register(&self, who: &Who, name: &str, config: Value, key: Option<Secret>) -> Result<(), Error> {
        let shown = printable(name);
        let wrong = |reason: String| Error::InvalidArguments(format!("the provider `{shown}`: {reason}"));
        if !is_name(name) {
            return Err(wrong("a name has 1 to 64 of a-z, 0-9, `_`, `-` and `.`, and no `-header-`".to_owned()));
        }
        if ["openai", SCRIPTED].contains(&name) || self.providers.iter().any(|(known, _)| known == name) {
            return Err(wrong("the user has one of this name, which stays; choose another".to_owned()));
        }
        let entry = entry(config).map_err(wrong)?;
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        let number = ADDITIONS.fetch_add(1, Ordering::Relaxed);
        let new = Added { who: who.clone(), name: name.to_owned(), entry, key, number };
        if let Some(known) = added.iter_mut().find(|known| known.name == name) {
            if known.who != *who {
                let other = &known.who.plugin;
                return Err(wrong(format!("the plugin {other} has added one of this name; choose another")));
            }
            *known = new;
            return Ok(());
        }
        if added.iter().filter(|known| known.who == *who).count() >= MAX_PROVIDERS {
            return Err(Error::Limit { name: "providers".to_owned(), value: MAX_PROVIDERS as u64 });
        }
        added.push(new);
        Ok(())
    }

    fn unregister(&self, who: &Who, name: &str) -> Result<(), Error> {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        let before = added.len();
        added.retain(|known| known.name != name || known.who != *who);
        if added.len() == before {
            let (shown, plugin) = (printable(name), &who.plugin);
            return Err(Error::NotFound(format!("the plugin {plugin} has added no provider `{shown}`")));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::BTreeMap;

    use atoll_table::Origin;
    use serde_json::json;

    use super::*;

    fn who(plugin: &str) -> Who {
        Who { plugin: plugin.to_owned(), origin: Origin::User }
    }

    fn config() -> Value {
        json!({"baseUrl": "https://a.example/v1", "api": "openai-completions", "models": [{"id": "m"}, {"id": "n"}]})
    }

    fn users() -> Models {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("models.json");
        let text =
            json!({"providers": {"mine": {"baseUrl": "https://b.example", "api": "x", "models": [{"id": "m"}]}}});
        std::fs::write(&file, text.to_string()).unwrap();
        Models::load(&file, BTreeMap::from([("KEY".to_owned(), "from-the-environment".to_owned())])).unwrap()
    }

    #[test]
    fn what_is_added_can_be_chosen_and_listed_and_taken_away() {
        let models = users();
        models.register(&who("p"), "theirs", config(), Some(Secret::new("k"))).unwrap();
        let chosen = models.choose(Some("theirs/m:high")).unwrap();
        assert_eq!((chosen.key.unwrap().reveal(), chosen.model.is_users), ("k", false));
        assert_eq!(models.choose(Some("n")).unwrap().model.provider, "theirs");
        assert!(models.choose(Some("mine/m")).unwrap().model.is_users);
        assert!(models.choose(Some("m")).unwrap_err().to_string().contains("mine/m or theirs/m"));
        assert_eq!(models.configured(), ["mine/m", "theirs/m", "theirs/n"]);
        assert_eq!(models.choices().len(), 3);
        assert!(models.providers().contains(&"theirs".to_owned()));
        // Without a name it is never what an extension added.
        assert_eq!(models.choose(None).unwrap().model.provider, "mine");
        assert_eq!(models.unregister(&who("q"), "theirs").unwrap_err().code(), "not-found");
        models.unregister(&who("p"), "theirs").unwrap();
        assert!(models.choose(Some("theirs/m")).is_err());
    }

    #[test]
    fn what_one_added_goes_with_it_or_with_the_version_that_added_it() {
        let models = users();
        let add = |plugin: &str, name: &str| models.register(&who(plugin), name, config(), None).unwrap();
        let there = || models.added().into_iter().map(|added| added.name).collect::<Vec<_>>();
        for (plugin, name) in [("a", "stays"), ("a", "goes"), ("b", "other")] {
            add(plugin, name);
        }
        // A version that can not take over leaves what there was.
        let before = models.of(&who("a"));
        add("a", "new");
        models.restore(before);
        assert_eq!(there(), ["other", "stays", "goes"]);
        let before = models.of(&who("a"));
        add("a", "stays");
        add("a", "new");
        models.taken_over(&before);
        assert_eq!(there(), ["other", "stays", "new"]);
        models.forget(&who("a"));
        assert_eq!(there(), ["other"]);
    }

    #[test]
    fn nothing_of_the_users_is_replaced_or_worked_out() {
        let models = users();
        models.register(&who("p"), "theirs", config(), None).unwrap();
        models.register(&who("p"), "theirs", config(), None).unwrap();
        let cases = [
            ("mine", config(), "the user has one"),
            ("openai", config(), "the user has one"),
            ("scripted", config(), "the user has one"),
            ("", config(), "a name has"),
            ("A", config(), "a name has"),
            ("a/b", config(), "a name has"),
            ("x-header-y", config(), "a name has"),
            ("x", json!([]), "no object"),
            ("x", json!({"baseUrl": "https://a.example", "api": "x"}), "0 \"models\""),
            ("x", json!({"models": [{"id": "m"}]}), "needs \"baseUrl\""),
            ("x", json!({"baseUrl": "https://a.example", "api": "x", "models": [{"name": "m"}]}), "no \"id\""),
            (
                "x",
                json!({"baseUrl": "https://a.example", "api": "x", "apiKey": "$KEY", "models": [{"id": "m"}]}),
                "apiKey",
            ),
        ];
        for (name, config, said) in cases {
            let error = models.register(&who("p"), name, config, None).unwrap_err();
            assert!(error.code() == "invalid-arguments" && error.to_string().contains(said), "{name}: {error}");
        }
        for value in ["$KEY", "!touch x", "{{secret:other-key}}"] {
            for place in ["/headers", "/models/0/headers"] {
                let mut config = config();
                let (parent, _) = place.rsplit_once('/').unwrap();
                config.pointer_mut(parent).unwrap()["headers"] = json!({"x": value});
                let error = models.register(&who("p"), "x", config, None).unwrap_err();
                assert!(error.to_string().contains("not plain text"), "{error}");
            }
        }
        let error = models.register(&who("q"), "theirs", config(), None).unwrap_err();
        assert!(error.to_string().contains("the plugin p has added one"), "{error}");
        for number in 0..MAX_PROVIDERS - 1 {
            models.register(&who("p"), &format!("n{number}"), config(), None).unwrap();
        }
        assert_eq!(models.register(&who("p"), "more", config(), None).unwrap_err().code(), "limit");
    }
}
