//! What the configuration says: the servers of `mcp.json` as every adapter reads them, and what only this adapter knows of
//! them.
//!
//! What is wrong takes away one server and no other, and is told with the way out.

use atoll_mcp_client::{
    config::{self, Configuration, Document, Entry, Place, Problem, Severity},
    exposure::{Exposure, matches},
    names::near_matches,
};
use serde_json::{Map, Value, json};

use crate::{
    lifecycle::{Lifecycle, minutes},
    prefix::Prefix,
};

/// How often a server that is to be kept is asked whether it is there, where nothing says otherwise, in milliseconds.
const CHECK_MS: u64 = 30_000;
/// How long a `lazy` server may be idle, where nothing says otherwise, in milliseconds.
const IDLE_MS: u64 = 10 * 60_000;

/// Which tools of a server are tools of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Direct {
    /// None.
    #[default]
    None,
    /// All, declared from the start.
    All,
    /// These, declared from the start.
    These(Vec<String>),
    /// All, declared once a search has found them.
    Search,
}

impl Direct {
    /// Whether this tool of the server is one of the table.
    pub(crate) fn takes(&self, tool: &str) -> bool {
        match self {
            Self::None => false,
            Self::All | Self::Search => true,
            Self::These(names) => names.iter().any(|name| name == tool),
        }
    }
}

/// What is said of all servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// How names are made.
    pub(crate) prefix: Prefix,
    /// There is no gateway where it is not needed.
    pub(crate) no_gateway: bool,
    /// There is a tool for each server.
    pub(crate) namespaces: bool,
    /// After the start no tool is added to the table, and none is taken away.
    pub(crate) frozen: bool,
    /// How often a server that is to be kept is asked whether it is there, in milliseconds.
    pub(crate) check_ms: u64,
    /// What counts for servers that do not say otherwise.
    pub(crate) direct: Direct,
    pub(crate) idle_ms: Option<u64>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            prefix: Prefix::default(),
            no_gateway: false,
            namespaces: true,
            frozen: false,
            check_ms: CHECK_MS,
            direct: Direct::default(),
            idle_ms: None,
        }
    }
}

/// A server, with what is said of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proxied {
    pub(crate) name: String,
    pub(crate) entry: Entry,
    pub(crate) direct: Direct,
    pub(crate) lifecycle: Lifecycle,
    /// How long it may be idle, in milliseconds; none: for ever.
    pub(crate) idle_ms: Option<u64>,
    /// Its resources are tools.
    pub(crate) resources: bool,
    include: Vec<String>,
    exclude: Vec<String>,
    keywords: Vec<(String, Vec<String>)>,
}

impl Proxied {
    /// Whether a tool is there for anybody, by any of its names; the first is the one that it has on the server.
    pub(crate) fn offers(&self, names: &[&str]) -> bool {
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)));
        let is_hidden = names.first().is_some_and(|name| self.entry.exposure.of(name) == Exposure::Hidden);
        !is_hidden && (self.include.is_empty() || fits(&self.include)) && !fits(&self.exclude)
    }

    /// Words by which a tool is found beside its own.
    pub(crate) fn keywords(&self, tool: &str) -> Vec<String> {
        let fitting = self.keywords.iter().filter(|(pattern, _)| matches(pattern, tool));
        fitting.flat_map(|(_, words)| words.iter().cloned()).collect()
    }

    /// What decides, beside how it is reached, which tools it has here.
    pub(crate) fn choice(&self) -> Value {
        json!([self.include, self.exclude, self.resources])
    }
}

/// What the files say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// The servers that are switched on, in the order of the files.
    pub(crate) servers: Vec<Proxied>,
    pub(crate) settings: Settings,
    pub(crate) problems: Vec<Problem>,
}

/// What an entry has that only this adapter knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Own {
    direct: Option<Direct>,
    lifecycle: Option<Lifecycle>,
    idle_ms: Option<Option<u64>>,
    resources: Option<bool>,
    include: Option<Vec<String>>,
    exclude: Option<Vec<String>>,
    keywords: Option<Vec<(String, Vec<String>)>>,
}

impl Own {
    fn apply(&mut self, over: Self) {
        let Self { direct, lifecycle, idle_ms, resources, include, exclude, keywords } = over;
        self.direct = direct.or(self.direct.take());
        self.lifecycle = lifecycle.or(self.lifecycle.take());
        self.idle_ms = idle_ms.or(self.idle_ms.take());
        self.resources = resources.or(self.resources.take());
        self.include = include.or(self.include.take());
        self.exclude = exclude.or(self.exclude.take());
        self.keywords = keywords.or(self.keywords.take());
    }
}

/// Reads the files, the user's first.
pub(crate) fn read(documents: &[Document<'_>]) -> Read {
    let (mut settings, mut problems) = (Settings::default(), Vec::new());
    // By the servers' names, in the order of the files: what is known of them, and whether that is all right.
    let mut own: Vec<(String, Own, bool)> = Vec::new();
    let mut texts: Vec<String> = Vec::new();
    for document in documents {
        let Ok(Some(Value::Object(mut all))) = config::parse(document.text) else {
            // It is read once more below, where it is said what is wrong.
            texts.push(document.text.to_owned());
            continue;
        };
        let mut problem = |server: Option<&str>, text: String| {
            let (path, server) = (document.path.to_owned(), server.map(str::to_owned));
            problems.push(Problem { path, server, severity: Severity::Error, text });
        };
        if let Some(said) = all.shift_remove("settings") {
            read_settings(&said, &mut settings, &mut |text| problem(None, text));
        }
        if let Some(servers) = all.get_mut("mcpServers").and_then(Value::as_object_mut) {
            let mut only_ours = Vec::new();
            for (name, entry) in servers.iter_mut() {
                let Some(fields) = entry.as_object_mut() else { continue };
                let before = fields.len();
                let mut is_right = true;
                let said = take_own(fields, &mut |text| {
                    is_right = false;
                    problem(Some(name), text);
                });
                let is_change = ["command", "url", "type"].iter().all(|key| !fields.contains_key(*key));
                let is_change = is_change && document.place == Place::Project;
                match own.iter_mut().find(|(known, _, _)| known == name) {
                    Some((_, known, was_right)) if is_change => {
                        known.apply(said);
                        *was_right &= is_right;
                    }
                    Some(known) => (known.1, known.2) = (said, is_right),
                    None => own.push((name.clone(), said, is_right)),
                }
                if is_change && fields.is_empty() && before > 0 {
                    only_ours.push(name.clone());
                }
            }
            for name in only_ours {
                servers.shift_remove(&name);
            }
        }
        texts.push(Value::Object(all).to_string());
    }
    let plain: Vec<Document<'_>> = (documents.iter().zip(&texts))
        .map(|(document, text)| Document { place: document.place, path: document.path, text })
        .collect();
    let Configuration { servers, problems: more, .. } = Configuration::read(&plain);
    problems.splice(0..0, more);
    let unmeant = own.iter().filter(|(name, said, _)| *said != Own::default() && is_missing(name, &servers, &texts));
    for (name, _, _) in unmeant {
        let near = near_matches(name, servers.iter().map(|server| server.name.as_str()));
        let near = near.first().map(|near| format!("; is \"{near}\" meant?")).unwrap_or_default();
        let path = documents.last().map(|document| document.path.to_owned()).unwrap_or_default();
        let text = format!("there is no server of that name that could be changed{near}");
        problems.push(Problem { path, server: Some(name.clone()), severity: Severity::Error, text });
    }
    let servers = servers.into_iter().filter(|server| server.entry.enabled).filter_map(|server| {
        let said = own.iter().find(|(name, _, _)| *name == server.name);
        let (said, is_right) = said.map(|(_, said, right)| (said.clone(), *right)).unwrap_or((Own::default(), true));
        is_right.then(|| proxied(server.name, server.entry, said, &settings))
    });
    Read { servers: servers.collect(), problems, settings }
}

/// Whether a server is in no file, not even as one that can not be used.
fn is_missing(name: &str, servers: &[config::Server], texts: &[String]) -> bool {
    let is_named = |text: &String| {
        let all: Value = serde_json::from_str(text).unwrap_or_default();
        all["mcpServers"].get(name).is_some()
    };
    !servers.iter().any(|server| server.name == name) && !texts.iter().any(is_named)
}

fn proxied(name: String, entry: Entry, own: Own, settings: &Settings) -> Proxied {
    let lifecycle = own.lifecycle.unwrap_or_default();
    let idle_ms = match (lifecycle, own.idle_ms.or(settings.idle_ms.map(Some))) {
        (Lifecycle::KeepAlive | Lifecycle::LazyKeepAlive, _) | (Lifecycle::Eager, None) => None,
        (_, Some(said)) => said.filter(|time| *time > 0),
        (Lifecycle::Lazy, None) => Some(IDLE_MS),
    };
    Proxied {
        direct: own.direct.unwrap_or_else(|| settings.direct.clone()),
        resources: own.resources.unwrap_or(true),
        include: own.include.unwrap_or_default(),
        exclude: own.exclude.unwrap_or_default(),
        keywords: own.keywords.unwrap_or_default(),
        name,
        entry,
        lifecycle,
        idle_ms,
    }
}

/// The fields of an entry that only this adapter knows.
const FIELDS: [&str; 7] =
    ["directTools", "lifecycle", "idleTimeout", "exposeResources", "includeTools", "excludeTools", "searchKeywords"];

/// Takes out of an entry what only this adapter knows.
fn take_own(fields: &mut Map<String, Value>, wrong: &mut dyn FnMut(String)) -> Own {
    let mut own = Own::default();
    for field in FIELDS {
        let Some(value) = fields.shift_remove(field).filter(|value| !value.is_null()) else { continue };
        let read = match field {
            "directTools" => direct(&value).map(|read| own.direct = Some(read)),
            "lifecycle" => lifecycle(&value).map(|read| own.lifecycle = Some(read)),
            "idleTimeout" => minutes(&value).map(|read| own.idle_ms = Some(Some(read))),
            "exposeResources" => switch(&value).map(|read| own.resources = Some(read)),
            "includeTools" => texts(&value).map(|read| own.include = Some(read)),
            "excludeTools" => texts(&value).map(|read| own.exclude = Some(read)),
            _ => keywords(&value).map(|read| own.keywords = Some(read)),
        };
        if let Err(why) = read {
            wrong(format!("\"{field}\": {why}"));
        }
    }
    own
}

/// The fields of `settings`.
const SETTINGS: [&str; 7] = [
    "toolPrefix",
    "idleTimeout",
    "directTools",
    "disableProxyTool",
    "namespaceProxyTools",
    "freezeDirectTools",
    "healthCheckSeconds",
];

fn read_settings(said: &Value, settings: &mut Settings, wrong: &mut dyn FnMut(String)) {
    let Some(fields) = said.as_object() else { return wrong("\"settings\" has to be an object".to_owned()) };
    for (field, value) in fields.iter().filter(|(_, value)| !value.is_null()) {
        let read = match field.as_str() {
            "toolPrefix" => prefix(value).map(|read| settings.prefix = read),
            "idleTimeout" => minutes(value).map(|read| settings.idle_ms = Some(read)),
            "directTools" => match direct(value) {
                Ok(Direct::These(_)) => Err("a list of tools belongs to the server that has them".to_owned()),
                read => read.map(|read| settings.direct = read),
            },
            "disableProxyTool" => switch(value).map(|read| settings.no_gateway = read),
            "namespaceProxyTools" => switch(value).map(|read| settings.namespaces = read),
            "freezeDirectTools" => switch(value).map(|read| settings.frozen = read),
            "healthCheckSeconds" => seconds(value).map(|read| settings.check_ms = read),
            other => {
                let near = near_matches(other, SETTINGS.into_iter());
                let known = if near.is_empty() { SETTINGS.join(", ") } else { near.join(", ") };
                Err(format!("there is no such setting; there is {known}"))
            }
        };
        if let Err(why) = read {
            wrong(format!("\"settings\": {}: {why}", json!(field)));
        }
    }
}

fn switch(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| "it has to be true or false".to_owned())
}

fn texts(value: &Value) -> Result<Vec<String>, String> {
    let all: Option<Vec<String>> =
        value.as_array().and_then(|all| all.iter().map(|text| text.as_str().map(str::to_owned)).collect());
    all.ok_or_else(|| "it has to be a list of names, in which `*` stands for any characters".to_owned())
}

fn direct(value: &Value) -> Result<Direct, String> {
    match value {
        Value::Bool(false) => Ok(Direct::None),
        Value::Bool(true) => Ok(Direct::All),
        Value::String(word) if word == "search" => Ok(Direct::Search),
        Value::Array(_) => texts(value).map(Direct::These),
        _ => Err("it has to be true, false, \"search\" or a list of the names of tools".to_owned()),
    }
}

fn lifecycle(value: &Value) -> Result<Lifecycle, String> {
    let found = value.as_str().and_then(Lifecycle::of);
    found.ok_or_else(|| format!("it has to be one of {}", Lifecycle::NAMES.join(", ")))
}

fn prefix(value: &Value) -> Result<Prefix, String> {
    let found = value.as_str().and_then(Prefix::of);
    found.ok_or_else(|| format!("it has to be one of {}", Prefix::NAMES.join(", ")))
}

fn seconds(value: &Value) -> Result<u64, String> {
    let found = value.as_f64().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    let milliseconds = found.map(|seconds| std::time::Duration::from_secs_f64(seconds).as_millis());
    let milliseconds = milliseconds.and_then(|milliseconds| u64::try_from(milliseconds).ok());
    milliseconds.ok_or_else(|| "it has to be a number of seconds, more than 0 and at most 86400".to_owned())
}

/// Words for the whole server, or by names of tools.
fn keywords(value: &Value) -> Result<Vec<(String, Vec<String>)>, String> {
    match value {
        Value::Array(_) => texts(value).map(|words| vec![("*".to_owned(), words)]),
        Value::Object(by_tool) => {
            by_tool.iter().map(|(tool, words)| texts(words).map(|words| (tool.clone(), words))).collect()
        }
        _ => Err("it has to be a list of words, or such lists by names of tools".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Read {
        let paths = ["mcp.json", ".atoll/mcp.json"];
        let documents: Vec<Document<'_>> = (texts.iter().zip(paths).zip([Place::User, Place::Project]))
            .map(|((text, path), place)| Document { place, path, text })
            .collect();
        read(&documents)
    }

    fn problems(read: &Read) -> String {
        read.problems.iter().map(|problem| format!("{problem}\n")).collect()
    }

    #[test]
    fn what_only_this_adapter_knows_is_read_beside_what_all_know() {
        let read = of(&[r#"{
            // With comments, like every such file.
            "settings": {"toolPrefix": "short", "directTools": "search", "idleTimeout": 5, "healthCheckSeconds": 1.5},
            "mcpServers": {
                "a": {"command": "a", "lifecycle": "eager", "directTools": ["x"], "idleTimeout": 0.5,
                      "includeTools": ["x", "y*"], "excludeTools": ["*_all"], "searchKeywords": {"x": ["eks"]}},
                "b": {"url": "http://127.0.0.1/mcp", "lifecycle": "keep-alive", "exposeResources": false,
                      "toolExposure": {"secret_*": "hidden"}},
                "c": {"command": "c", "lifecycle": "lazy-keep-alive", "searchKeywords": ["sea"], "directTools": false},
                "d": {"command": "d", "enabled": false},
                "e": {"command": "e", "idleTimeout": 0},
            }}"#]);
        assert_eq!(problems(&read), "");
        assert_eq!((read.settings.prefix, read.settings.check_ms), (Prefix::Short, 1_500));
        let shown: Vec<_> = (read.servers.iter())
            .map(|server| (server.name.as_str(), server.lifecycle, server.idle_ms, server.direct.clone()))
            .collect();
        assert_eq!(
            shown,
            [
                ("a", Lifecycle::Eager, Some(30_000), Direct::These(vec!["x".to_owned()])),
                ("b", Lifecycle::KeepAlive, None, Direct::Search),
                ("c", Lifecycle::LazyKeepAlive, None, Direct::None),
                ("e", Lifecycle::Lazy, None, Direct::Search),
            ]
        );
        let [a, b, c, e] = &read.servers[..] else { panic!() };
        let offered = ["x", "yes", "y_all", "z"].map(|tool| a.offers(&[tool, "a_other"]));
        assert_eq!(offered, [true, true, false, false]);
        assert!(e.offers(&["z"]) && !b.offers(&["secret_key", "b_secret_key"]) && b.offers(&["open"]));
        assert!(!a.offers(&["q", "n_all"]) && a.offers(&["q", "y2"]), "every name of a tool counts");
        assert_eq!((a.keywords("x"), a.keywords("y")), (vec!["eks".to_owned()], vec![]));
        assert_eq!(c.keywords("anything"), ["sea"]);
        assert!(!b.resources && a.resources);
    }

    #[test]
    fn how_long_a_server_may_be_idle_depends_on_its_lifecycle() {
        let idle = |settings: &str, lifecycle: &str, own: &str| {
            let text = format!(
                "{{\"settings\": {{{settings}}}, \"mcpServers\": {{\"a\": {{\"command\": \"a\", \"lifecycle\": \"{lifecycle}\"{own}}}}}}}"
            );
            of(&[&text]).servers[0].idle_ms
        };
        assert_eq!(idle("", "lazy", ""), Some(600_000));
        assert_eq!(idle("", "eager", ""), None);
        assert_eq!(idle("\"idleTimeout\": 1", "eager", ""), Some(60_000));
        assert_eq!(idle("\"idleTimeout\": 1", "lazy", ", \"idleTimeout\": 2"), Some(120_000));
        assert_eq!(idle("\"idleTimeout\": 1", "keep-alive", ", \"idleTimeout\": 2"), None);
        assert_eq!(idle("\"idleTimeout\": 0", "lazy", ""), None);
    }

    #[test]
    fn what_is_wrong_takes_away_that_server_alone() {
        let read =
            of(&[r#"{"settings": {"toolPrefix": "long", "idletimeout": 3, "directTools": ["a"]}, "mcpServers": {
            "a": {"command": "a", "lifecycle": "always"},
            "b": {"command": "b", "directTools": "yes", "idleTimeout": -1},
            "c": {"command": "c", "includeTools": "x", "searchKeywords": 3, "exposeResources": "no"},
            "d": {"command": "d", "exposre": "direct"},
            "e": {"command": "e"}}}"#]);
        insta::assert_snapshot!(problems(&read));
        assert_eq!(read.servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["e"]);
        assert!(problems(&of(&["{\"mcpServers\": "])).contains("this is no JSON, line 1"));
    }

    #[test]
    fn a_project_changes_how_a_server_of_the_users_is_shown() {
        let read = of(&[
            r#"{"mcpServers": {"a": {"command": "a", "directTools": true, "excludeTools": ["x"]}, "b": {"command": "b"}}}"#,
            r#"{"mcpServers": {"a": {"directTools": "search"}, "b": {"enabled": false, "lifecycle": "eager"},
                "aa": {"lifecycle": "eager"}, "c": {"command": "c"}}}"#,
        ]);
        insta::assert_snapshot!(problems(&read));
        let [a, c] = &read.servers[..] else { panic!("{read:#?}") };
        assert_eq!((&a.direct, a.offers(&["x"]), c.name.as_str()), (&Direct::Search, false, "c"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_harms(text in "[\\[\\]{}:,\"a-z0-9 ]{0,60}|.*") {
            of(&[&text, &text]);
            of(&[&format!("{{\"mcpServers\": {text}}}")]);
        }
    }
}
