//! The models that can be asked: `models.json` in Atoll's directory, and what the environment offers.

mod added;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, RwLock},
};

use atoll_table::{
    extension::ModelChoice,
    model::{Model, Secret, ThinkingLevel, Usage},
};
use serde::Deserialize;
use serde_json::Value;

pub use added::OwnProviders;

use crate::config_value;
use added::Added;

/// The provider that plays a script; needs no configuration.
pub const SCRIPTED: &str = "scripted";
/// Tokens that fit into a model of which nothing is said.
const CONTEXT_WINDOW: u64 = 128_000;
/// The variable that names the script's file.
pub const SCRIPT_VARIABLE: &str = "ATOLL_SCRIPT";

/// A model can not be chosen or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The models file can not be used.
    #[error("{}: {reason}; correct the file", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// No model was named and none is configured.
    #[error(
        "no model is set up; name one with --model provider/id, describe a server in {}, or set OPENAI_API_KEY; `atoll doctor` tells more",
        path.display()
    )]
    NoneConfigured {
        /// Where the models file would be.
        path: PathBuf,
    },
    /// There is no such provider.
    #[error("there is no provider `{name}` (known: {known}); describe it in {}", path.display())]
    UnknownProvider {
        /// The name as given.
        name: String,
        /// Those that there are.
        known: String,
        /// Where it could be described.
        path: PathBuf,
    },
    /// Several providers have a model of this id, or none has.
    #[error("{0}")]
    UnknownModel(String),
    /// The scripted model has nothing to play.
    #[error("the scripted model has no script to play; name its file in the environment variable {SCRIPT_VARIABLE}")]
    NoScript,
    /// The key or a header can not be had.
    #[error("the {what} of the provider {provider} can not be used: {reason}")]
    Value {
        /// The provider.
        provider: String,
        /// `apiKey`, a header's name, …
        what: String,
        /// Why.
        reason: String,
    },
}

/// US dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Prices {
    /// Of input.
    pub input: f64,
    /// Of output.
    pub output: f64,
    /// Of cache reads.
    pub cache_read: f64,
    /// Of cache writes.
    pub cache_write: f64,
}

impl Prices {
    /// Works out what a request cost.
    pub fn apply(&self, mut usage: Usage) -> Usage {
        let cost = |tokens: u64, price: f64| {
            #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
            let tokens = tokens as f64;
            tokens * price / 1_000_000.0
        };
        usage.cost.input = cost(usage.input, self.input);
        usage.cost.output = cost(usage.output, self.output);
        usage.cost.cache_read = cost(usage.cache_read, self.cache_read);
        usage.cost.cache_write = cost(usage.cache_write, self.cache_write);
        usage.cost.total = usage.cost.input + usage.cost.output + usage.cost.cache_read + usage.cost.cache_write;
        usage
    }
}

/// A model that was chosen, with all it takes to ask it.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The model.
    pub model: Model,
    /// Its key.
    pub key: Option<Secret>,
    /// Secrets that its headers name.
    pub header_secrets: Vec<(String, Secret)>,
    /// What it costs.
    pub prices: Prices,
    /// How hard it should think.
    pub thinking: ThinkingLevel,
    /// Something worth telling the user.
    pub note: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ModelsFile {
    providers: serde_json::Map<String, Value>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProviderEntry {
    base_url: Option<String>,
    api_key: Option<String>,
    api: Option<String>,
    headers: BTreeMap<String, String>,
    compat: Option<Value>,
    models: Vec<ModelEntry>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ModelEntry {
    id: String,
    name: Option<String>,
    api: Option<String>,
    base_url: Option<String>,
    reasoning: bool,
    input: Option<Vec<String>>,
    cost: Prices,
    context_window: Option<u64>,
    max_tokens: Option<u64>,
    headers: BTreeMap<String, String>,
    compat: Option<Value>,
}

/// All that can be asked. Clones share what extensions add.
#[derive(Clone, Debug)]
pub struct Models {
    path: PathBuf,
    providers: Vec<(String, ProviderEntry)>,
    environment: BTreeMap<String, String>,
    added: Arc<RwLock<Vec<Added>>>,
}

impl Models {
    /// Reads the models file; a missing one is empty. `environment` is where variables are looked up.
    ///
    /// # Errors
    /// [`ModelError::File`], naming the provider and the place.
    pub fn load(path: &Path, environment: BTreeMap<String, String>) -> Result<Self, ModelError> {
        let failed = |reason: String| ModelError::File { path: path.to_owned(), reason };
        let file: ModelsFile = match atoll_caps::read_small_file(path) {
            Ok(Some(text)) => {
                serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| failed(error.to_string()))?
            }
            Ok(None) => ModelsFile::default(),
            Err(error) => return Err(failed(error.to_string())),
        };
        let mut providers = Vec::new();
        for (name, value) in file.providers {
            let entry: ProviderEntry =
                serde_json::from_value(value).map_err(|error| failed(format!("provider `{name}`: {error}")))?;
            if let Some(at) = entry.models.iter().position(|model| model.id.is_empty()) {
                return Err(failed(format!("provider `{name}`: model {} has no \"id\"", at + 1)));
            }
            let known = name == "openai";
            if !known
                && (entry.base_url.is_none() || entry.api.is_none())
                && entry.models.iter().any(|model| {
                    (entry.base_url.is_none() && model.base_url.is_none())
                        || (entry.api.is_none() && model.api.is_none())
                })
            {
                return Err(failed(format!("provider `{name}` needs \"baseUrl\" and \"api\"")));
            }
            providers.push((name, entry));
        }
        Ok(Self { path: path.to_owned(), providers, environment, added: Arc::default() })
    }

    /// The scripted model with this script; needs no configuration.
    ///
    /// # Errors
    /// None in practice: nothing is looked up.
    pub fn playing(script: &str) -> Result<Chosen, ModelError> {
        let models = Self::none();
        let mut chosen = models.build(SCRIPTED, &scripted_entry(), &ModelEntry::named("demo"), None)?;
        chosen.model.compat = serde_json::json!({ "script": script });
        Ok(chosen)
    }

    /// The variables of the environment that hold keys: those that keys and headers of the file name, and those that stand
    /// in for a file.
    pub fn key_variables(&self) -> Vec<String> {
        let headers = |entry: &ProviderEntry| {
            let models = entry.models.iter().map(|model| &model.headers);
            [&entry.headers].into_iter().chain(models).flat_map(BTreeMap::values).cloned().collect::<Vec<_>>()
        };
        let values = self.providers.iter().flat_map(|(_, entry)| entry.api_key.iter().cloned().chain(headers(entry)));
        let mut names: Vec<String> = values.flat_map(|value| config_value::variables(&value)).collect();
        names.push("OPENAI_API_KEY".to_owned());
        names.sort();
        names.dedup();
        names
    }

    /// The key of a provider of the models file; none if it has none, or is not there.
    ///
    /// # Errors
    /// [`ModelError::Value`] if it can not be had.
    pub fn key(&self, provider: &str) -> Result<Option<Secret>, ModelError> {
        match self.providers.iter().find(|(name, _)| name == provider) {
            Some((name, entry)) => self.key_in(name, entry),
            None => self.key_in(provider, &ProviderEntry::default()),
        }
    }

    fn key_in(&self, provider: &str, entry: &ProviderEntry) -> Result<Option<Secret>, ModelError> {
        match &entry.api_key {
            Some(text) => {
                let key = config_value::resolve(text, &|name| self.variable(name));
                let failed =
                    |reason| ModelError::Value { provider: provider.to_owned(), what: "apiKey".to_owned(), reason };
                key.map(|key| Some(Secret::new(key))).map_err(failed)
            }
            None if provider == "openai" => Ok(self.variable("OPENAI_API_KEY").map(Secret::new)),
            None => Ok(None),
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.environment.get(name).filter(|value| !value.is_empty()).cloned()
    }

    /// The names of all providers.
    pub fn providers(&self) -> Vec<String> {
        let mut names: Vec<String> = self.providers.iter().map(|(name, _)| name.clone()).collect();
        names.extend(self.added().into_iter().map(|added| added.name));
        for name in ["openai", SCRIPTED] {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }

    /// Every configured model as `provider/id`.
    pub fn configured(&self) -> Vec<String> {
        let full = |(name, entry): &(String, ProviderEntry)| {
            entry.models.iter().map(|model| format!("{name}/{}", model.id)).collect::<Vec<_>>()
        };
        self.described().iter().flat_map(full).collect()
    }

    /// What the models file describes, then what extensions have added.
    fn described(&self) -> Vec<(String, ProviderEntry)> {
        let added = self.added().into_iter().map(|added| (added.name, added.entry));
        self.providers.iter().cloned().chain(added).collect()
    }

    /// Every configured model, as extensions see it. Nothing is looked up for it: a key may still turn out to be missing.
    pub fn choices(&self) -> Vec<ModelChoice> {
        let choices = |(name, entry): &(String, ProviderEntry)| {
            let choice = |model: &ModelEntry| ModelChoice {
                name: format!("{name}/{}", model.id),
                images: model.input.iter().flatten().any(|kind| kind == "image"),
                context_window: model.context_window.unwrap_or(CONTEXT_WINDOW),
            };
            entry.models.iter().map(choice).collect::<Vec<_>>()
        };
        self.described().iter().flat_map(choices).collect()
    }

    /// Chooses a model: by `provider/id`, by an id that one provider has, or without a name the first that is set
    /// up. A `:level` at the end says how hard to think.
    ///
    /// # Errors
    /// One line that says what is missing and how to add it.
    pub fn choose(&self, wanted: Option<&str>) -> Result<Chosen, ModelError> {
        let Some(wanted) = wanted else { return self.first() };
        match self.find(wanted) {
            Err(error) => match wanted.rsplit_once(':').and_then(|(model, level)| Some((model, level_of(level)?))) {
                Some((model, level)) => self.find(model).map(|chosen| Chosen { thinking: level, ..chosen }),
                None => Err(error),
            },
            Ok(chosen) => match wanted.rsplit_once(':') {
                // An id that only the suffix makes unknown is meant without it.
                Some((model, level)) if chosen.note.is_some() && level_of(level).is_some() => {
                    let level = level_of(level).unwrap_or_default();
                    self.find(model).map(|chosen| Chosen { thinking: level, ..chosen })
                }
                _ => Ok(chosen),
            },
        }
    }

    fn first(&self) -> Result<Chosen, ModelError> {
        for (name, entry) in &self.providers {
            if let Some(model) = entry.models.first() {
                return self.build(name, entry, model, None);
            }
        }
        if let (Some(_), Some(model)) = (self.variable("OPENAI_API_KEY"), self.variable("OPENAI_MODEL")) {
            return self.find(&format!("openai/{model}"));
        }
        Err(ModelError::NoneConfigured { path: self.path.clone() })
    }

    fn find(&self, wanted: &str) -> Result<Chosen, ModelError> {
        if let Some((provider, id)) = wanted.split_once('/') {
            if let Some((name, entry)) = self.described().iter().find(|(name, _)| name == provider) {
                return self.in_provider(name, entry, id);
            }
            if provider == "openai" {
                return self.in_provider("openai", &ProviderEntry::default(), id);
            }
            if provider == SCRIPTED {
                return self.scripted(id);
            }
        }
        let described = self.described();
        let owners: Vec<(&String, &ProviderEntry, &ModelEntry)> = described
            .iter()
            .flat_map(|(name, entry)| entry.models.iter().map(move |model| (name, entry, model)))
            .filter(|(_, _, model)| model.id == wanted)
            .collect();
        match owners.as_slice() {
            [(name, entry, model)] => self.build(name, entry, model, None),
            [] => match wanted.split_once('/') {
                Some((provider, _)) => Err(ModelError::UnknownProvider {
                    name: provider.to_owned(),
                    known: self.providers().join(", "),
                    path: self.path.clone(),
                }),
                None => Err(ModelError::UnknownModel(format!(
                    "there is no model `{wanted}`; give it as provider/id (providers: {})",
                    self.providers().join(", ")
                ))),
            },
            several => {
                let names: Vec<String> =
                    several.iter().map(|(name, _, model)| format!("{name}/{}", model.id)).collect();
                Err(ModelError::UnknownModel(format!("`{wanted}` could be {}", names.join(" or "))))
            }
        }
    }

    fn in_provider(&self, name: &str, entry: &ProviderEntry, id: &str) -> Result<Chosen, ModelError> {
        if let Some(model) = entry.models.iter().find(|model| model.id == id) {
            return self.build(name, entry, model, None);
        }
        let custom = ModelEntry::named(id);
        let note = (!entry.models.is_empty())
            .then(|| format!("the model `{id}` is not described for the provider {name}; asking for it as it is"));
        self.build(name, entry, &custom, note)
    }

    fn scripted(&self, id: &str) -> Result<Chosen, ModelError> {
        let mut chosen = self.build(SCRIPTED, &scripted_entry(), &ModelEntry::named(id), None)?;
        let path = self.variable(SCRIPT_VARIABLE).ok_or(ModelError::NoScript)?;
        let script = std::fs::read_to_string(&path).map_err(|error| ModelError::Value {
            provider: SCRIPTED.to_owned(),
            what: format!("script {path}"),
            reason: error.to_string(),
        })?;
        chosen.model.compat = serde_json::json!({ "script": script });
        Ok(chosen)
    }

    fn build(
        &self,
        provider: &str,
        entry: &ProviderEntry,
        model: &ModelEntry,
        note: Option<String>,
    ) -> Result<Chosen, ModelError> {
        let value = |what: &str, text: &str| {
            config_value::resolve(text, &|name| self.variable(name)).map_err(|reason| ModelError::Value {
                provider: provider.to_owned(),
                what: what.to_owned(),
                reason,
            })
        };
        let added = self.added().into_iter().find(|added| added.name == provider);
        let is_openai = provider == "openai";
        let base_url = model
            .base_url
            .clone()
            .or_else(|| entry.base_url.clone())
            .or_else(|| if is_openai { self.variable("OPENAI_BASE_URL") } else { None })
            .or_else(|| is_openai.then(|| "https://api.openai.com/v1".to_owned()))
            .unwrap_or_default();
        let key = self.key_in(provider, entry)?;
        let mut headers: Vec<(String, String)> = Vec::new();
        let mut header_secrets = Vec::new();
        for (name, text) in entry.headers.iter().chain(&model.headers) {
            headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            let resolved = value(&format!("header {name}"), text)?;
            if resolved == *text {
                headers.push((name.clone(), resolved));
            } else {
                // It came from the environment or a command: as secret as a key.
                let secret = format!("{provider}-header-{}", name.to_ascii_lowercase());
                headers.push((name.clone(), format!("{{{{secret:{secret}}}}}")));
                header_secrets.push((secret, Secret::new(resolved)));
            }
        }
        let input = model.input.clone().unwrap_or_else(|| vec!["text".to_owned()]);
        Ok(Chosen {
            model: Model {
                id: model.id.clone(),
                name: model.name.clone().unwrap_or_else(|| model.id.clone()),
                provider: provider.to_owned(),
                api: model.api.clone().or_else(|| entry.api.clone()).unwrap_or_else(|| "openai-completions".to_owned()),
                base_url: base_url.trim_end_matches('/').to_owned(),
                reasoning: model.reasoning,
                images: input.iter().any(|kind| kind == "image"),
                context_window: model.context_window.unwrap_or(CONTEXT_WINDOW),
                max_tokens: model.max_tokens.unwrap_or(16_384),
                headers,
                compat: merged(entry.compat.as_ref(), model.compat.as_ref()),
                is_users: added.is_none(),
            },
            key: key.or(added.and_then(|added| added.key)),
            header_secrets,
            prices: model.cost,
            thinking: ThinkingLevel::Off,
            note,
        })
    }
}

impl ModelEntry {
    /// A model of which nothing but the id is known.
    fn named(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }
}

fn scripted_entry() -> ProviderEntry {
    ProviderEntry { api: Some(SCRIPTED.to_owned()), base_url: Some(String::new()), ..ProviderEntry::default() }
}

fn level_of(text: &str) -> Option<ThinkingLevel> {
    serde_json::from_value(Value::String(text.to_owned())).ok()
}

/// The model's deviations over the provider's.
fn merged(provider: Option<&Value>, model: Option<&Value>) -> Value {
    let mut all = provider.and_then(Value::as_object).cloned().unwrap_or_default();
    if let Some(model) = model.and_then(Value::as_object) {
        all.extend(model.clone());
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn models(file: &str, environment: &[(&str, &str)]) -> Result<Models, ModelError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("models.json");
        if !file.is_empty() {
            std::fs::write(&path, file).unwrap();
        }
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Models::load(&path, environment.iter().map(pair).collect())
    }

    const FILE: &str = r#"{"providers": {
        "mock": {"baseUrl": "http://127.0.0.1:1/v1/", "api": "openai-completions", "apiKey": "$MOCK_KEY",
            "headers": {"X-A": "a", "X-Team": "$MOCK_KEY"}, "compat": {"x": 1, "y": 1},
            "models": [{"id": "m", "input": ["text", "image"], "headers": {"x-a": "b"}, "compat": {"y": 2},
                "cost": {"input": 1, "output": 2}},
                {"id": "org/deep:high"}]},
        "other": {"baseUrl": "http://127.0.0.1:2", "api": "openai-completions", "models": [{"id": "m"}, {"id": "n"}]}}}"#;

    #[test]
    fn a_model_is_found_by_its_full_name_by_a_unique_id_or_as_the_first() {
        let models = models(FILE, &[("MOCK_KEY", "k")]).unwrap();
        let chosen = models.choose(Some("mock/m")).unwrap();
        assert_eq!(chosen.model.base_url, "http://127.0.0.1:1/v1");
        assert_eq!(chosen.key, Some(Secret::new("k")));
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            chosen.model.headers,
            [header("X-Team", "{{secret:mock-header-x-team}}"), header("x-a", "b")],
            "what comes from the environment stays out of the sandbox"
        );
        assert_eq!(chosen.header_secrets, [("mock-header-x-team".to_owned(), Secret::new("k"))]);
        assert_eq!(chosen.model.compat, serde_json::json!({"x": 1, "y": 2}));
        assert!(chosen.model.images && chosen.note.is_none());
        assert_eq!(models.choose(Some("n")).unwrap().model.provider, "other");
        assert_eq!(models.choose(None).unwrap().model.id, "m");
        assert_eq!(models.choose(Some("m")).unwrap_err().to_string(), "`m` could be mock/m or other/m");
        assert!(models.choose(Some("mock/unknown")).unwrap().note.is_some());
        assert!(
            models.choose(Some("nope/x")).unwrap_err().to_string().contains("known: mock, other, openai, scripted")
        );
    }

    #[test]
    fn a_thinking_level_may_follow_the_id_unless_it_is_part_of_it() {
        let models = models(FILE, &[("MOCK_KEY", "k")]).unwrap();
        let chosen = models.choose(Some("mock/m:high")).unwrap();
        assert_eq!((chosen.model.id.as_str(), chosen.thinking), ("m", ThinkingLevel::High));
        let chosen = models.choose(Some("mock/org/deep:high")).unwrap();
        assert_eq!((chosen.model.id.as_str(), chosen.thinking), ("org/deep:high", ThinkingLevel::Off));
        assert_eq!(models.choose(Some("n:low")).unwrap().thinking, ThinkingLevel::Low);
    }

    #[test]
    fn a_missing_key_is_an_error_before_anything_is_sent() {
        let error = models(FILE, &[]).unwrap().choose(Some("mock/m")).unwrap_err().to_string();
        assert_eq!(
            error,
            "the apiKey of the provider mock can not be used: the environment variable MOCK_KEY is not set"
        );
    }

    #[test]
    fn the_variables_of_all_keys_and_headers_are_known() {
        let file = r#"{"providers": {
            "a": {"baseUrl": "http://a/v1", "api": "x", "apiKey": "${A_PASS}$B",
                "headers": {"X-A": "pre-$C", "X-D": "$$NONE"}, "models": [{"id": "m", "headers": {"X-E": "$E"}}]},
            "b": {"baseUrl": "http://b/v1", "api": "x", "apiKey": "!echo $F", "models": [{"id": "n"}]}}}"#;
        assert_eq!(models(file, &[]).unwrap().key_variables(), ["A_PASS", "B", "C", "E", "OPENAI_API_KEY"]);
    }

    #[test]
    fn the_environment_alone_can_set_up_openai() {
        let environment =
            [("OPENAI_API_KEY", "k"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), ("OPENAI_MODEL", "x")];
        let chosen = models("", &environment).unwrap().choose(None).unwrap();
        assert_eq!((chosen.model.provider.as_str(), chosen.model.id.as_str()), ("openai", "x"));
        assert_eq!(chosen.model.base_url, "http://127.0.0.1:9/v1");
        assert!(matches!(models("", &[]).unwrap().choose(None), Err(ModelError::NoneConfigured { .. })));
    }

    #[test]
    fn a_bad_file_is_named_with_its_provider() {
        let text = models("{\"providers\": {\"p\": {\"models\": [{\"id\": \"x\"}]}}}", &[]).unwrap_err().to_string();
        assert!(text.contains("provider `p` needs \"baseUrl\" and \"api\""), "{text}");
        assert!(models("{", &[]).is_err());
        assert!(
            models("{\"providers\": {\"p\": {\"models\": [{}]}}}", &[]).unwrap_err().to_string().contains("no \"id\"")
        );
    }

    #[test]
    fn costs_follow_the_prices() {
        let usage = Usage { input: 1_000_000, output: 500_000, ..Usage::default() };
        let prices = Prices { input: 3.0, output: 10.0, ..Prices::default() };
        assert!((prices.apply(usage).cost.total - 8.0).abs() < 1e-9);
    }
}
