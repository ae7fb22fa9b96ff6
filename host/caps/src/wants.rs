//! What a plugin asks for, and in the same shapes what it is granted.

use std::collections::BTreeMap;
use std::collections::BTreeSet;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::command_pattern::{ArgumentPatterns, CommandPattern, ProgramPattern};
use crate::config_file::ConfigFile;
use crate::env_pattern::{self, EnvPattern};
use crate::origin_pattern::{HostPattern, OriginPattern, PortPattern, SchemePattern};
use crate::path_pattern::{Access, RootPattern};
use crate::pattern_error::PatternError;
use crate::scope::Capability;
use crate::secret_pattern::SecretPattern;
use crate::text::shell_word;
use crate::toml_source::{ManifestError, Section};

/// A root of files.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct FilesWant {
    /// Where.
    pub root: RootPattern,
    /// What may be done there.
    pub access: Access,
    /// Why, as the plugin's author puts it; empty in a grant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// The methods of requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Methods {
    /// `*`: every method.
    Any,
    /// These, in upper case.
    Only(BTreeSet<String>),
}

impl Methods {
    /// Reads a list of methods; `*` in it stands for all.
    pub fn parse<T: AsRef<str>>(methods: &[T]) -> Result<Self, String> {
        if methods.is_empty() {
            return Err("a list of methods is empty; name one, or `*` for all".to_owned());
        }
        let mut only = BTreeSet::new();
        let mut any = false;
        for method in methods {
            let method = method.as_ref().to_ascii_uppercase();
            if method == "*" {
                any = true;
            } else if method.starts_with(|c: char| c.is_ascii_uppercase())
                && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
            {
                only.insert(method);
            } else {
                return Err(format!("`{method}` is not a method; write one such as `GET` or `POST`, or `*` for all"));
            }
        }
        Ok(if any { Self::Any } else { Self::Only(only) })
    }

    /// `GET` alone: the default.
    pub fn get() -> Self {
        Self::Only(BTreeSet::from(["GET".to_owned()]))
    }

    /// Whether a method, in upper case, is one of these.
    pub fn matches(&self, method: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only(methods) => methods.contains(method),
        }
    }

    fn may_overlap(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Only(a), Self::Only(b)) => !a.is_disjoint(b),
            _ => true,
        }
    }
}

impl std::fmt::Display for Methods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Any => f.write_str("any method"),
            Self::Only(methods) => f.write_str(&methods.iter().cloned().collect::<Vec<_>>().join(", ")),
        }
    }
}

impl Serialize for Methods {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Any => ["*"].serialize(serializer),
            Self::Only(methods) => methods.serialize(serializer),
        }
    }
}

/// Origins that requests may go to.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct HttpWant {
    /// Where.
    pub origin: OriginPattern,
    /// With which methods.
    pub methods: Methods,
    /// Why; empty in a grant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Programs that may be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessWant {
    /// Which, with which arguments.
    pub command: CommandPattern,
    /// The variables that may be set for them, beside those that they inherit.
    pub env: Vec<EnvPattern>,
    /// Why; empty in a grant.
    pub reason: String,
}

impl ProcessWant {
    /// Whether a variable may be set for this program with these arguments.
    pub(crate) fn allows_variable<T: AsRef<str>>(&self, program: &str, arguments: &[T], name: &str) -> bool {
        self.command.matches(program, arguments)
            && self.env.iter().any(|pattern| pattern.matches(name))
            && (self.is_every_program() || !env_pattern::needs_every_program(name))
    }

    fn is_every_program(&self) -> bool {
        self.command.program == ProgramPattern::Any && self.command.arguments.is_none()
    }

    /// The variable that can not be set for these programs, and why.
    pub(crate) fn wrong_variable(&self) -> Option<PatternError> {
        let wrong = |pattern: &&EnvPattern| env_pattern::needs_every_program(pattern.as_str());
        let wrong = self.env.iter().find(wrong).filter(|_| !self.is_every_program())?.as_str();
        env_pattern::no_grant(wrong).map(|reason| PatternError::at(wrong, 0, reason))
    }
}

impl Serialize for ProcessWant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("program", &self.command.program)?;
        if let Some(arguments) = &self.command.arguments {
            map.serialize_entry("arguments", arguments)?;
        }
        if !self.env.is_empty() {
            map.serialize_entry("env", &self.env)?;
        }
        if !self.reason.is_empty() {
            map.serialize_entry("reason", &self.reason)?;
        }
        map.end()
    }
}

/// Secrets that may be used.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SecretWant {
    /// Which.
    pub name: SecretPattern,
    /// The plugin may hold the value itself, not only name it in a header.
    pub reveal: bool,
    /// Why; empty in a grant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// A file of configuration that may be read and written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ConfigWant {
    /// Which.
    pub file: ConfigFile,
    /// Why; empty in a grant.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Everything that a plugin asks for, or that it is granted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wants {
    /// Roots of files.
    pub files: Vec<FilesWant>,
    /// Origins of requests.
    pub http: Vec<HttpWant>,
    /// Programs to start.
    pub process: Vec<ProcessWant>,
    /// Secrets to use.
    pub secrets: Vec<SecretWant>,
    /// Files of configuration.
    pub config: Vec<ConfigWant>,
    /// The capabilities that have no scope, with the reason for each; the keys are of [`Capability::FLAGS`].
    pub flags: BTreeMap<Capability, String>,
}

impl Wants {
    /// The keys of wants in a manifest or grant.
    pub(crate) const KEYS: [&'static str; 14] = {
        let mut keys = [""; 14];
        let mut index = 0;
        while index < keys.len() {
            keys[index] = Capability::ALL[index].as_str();
            index += 1;
        }
        keys
    };

    /// Everything there is. Only ever of use as the other side of a manifest.
    pub fn everything() -> Self {
        let reason = String::new;
        let any_origin =
            OriginPattern::Parts { scheme: SchemePattern::Any, host: HostPattern::Any, port: PortPattern::Any };
        Self {
            files: vec![FilesWant {
                root: RootPattern::Absolute("/".into()),
                access: Access::ReadWrite,
                reason: reason(),
            }],
            http: vec![HttpWant { origin: any_origin, methods: Methods::Any, reason: reason() }],
            process: vec![ProcessWant {
                command: CommandPattern { program: ProgramPattern::Any, arguments: None },
                env: EnvPattern::any(),
                reason: reason(),
            }],
            secrets: SecretPattern::parse("*")
                .map(|name| SecretWant { name, reveal: true, reason: reason() })
                .into_iter()
                .collect(),
            config: vec![ConfigWant { file: ConfigFile::any(), reason: reason() }],
            flags: Capability::FLAGS.into_iter().map(|capability| (capability, reason())).collect(),
        }
    }

    /// A line for each scope, for people: `http: https://api.example.com:443 (POST)`.
    pub fn describe(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for want in &self.files {
            lines.push(format!("files: {} ({})", want.root, want.access));
        }
        for want in &self.http {
            lines.push(format!("http: {} ({})", want.origin, want.methods));
        }
        for want in &self.process {
            let may_set = if want.env.is_empty() {
                String::new()
            } else {
                format!(" (may set {})", want.env.iter().map(EnvPattern::as_str).collect::<Vec<_>>().join(", "))
            };
            lines.push(format!("process: {}{may_set}", want.command));
        }
        for want in &self.secrets {
            let how = if want.reveal { " (may read its value)" } else { "" };
            lines.push(format!("secret: {}{how}", want.name));
        }
        lines.extend(self.config.iter().map(|want| format!("config: {}", want.file)));
        lines.extend(self.flags.keys().map(|capability| capability.to_string()));
        lines
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a capability is wanted at all.
    pub fn has(&self, capability: Capability) -> bool {
        match capability {
            Capability::Files => !self.files.is_empty(),
            Capability::Http => !self.http.is_empty(),
            Capability::Process => !self.process.is_empty(),
            Capability::Secrets => !self.secrets.is_empty(),
            Capability::Config => !self.config.is_empty(),
            flag => self.flags.contains_key(&flag),
        }
    }

    /// Adds what is not there yet.
    pub fn add(&mut self, more: &Self) {
        fn extend<T: Clone + PartialEq>(list: &mut Vec<T>, more: &[T]) {
            for item in more {
                if !list.contains(item) {
                    list.push(item.clone());
                }
            }
        }
        extend(&mut self.files, &more.files);
        extend(&mut self.http, &more.http);
        for item in &more.process {
            add_process(&mut self.process, item);
        }
        extend(&mut self.secrets, &more.secrets);
        extend(&mut self.config, &more.config);
        for (capability, reason) in &more.flags {
            self.flags.entry(*capability).or_insert_with(|| reason.clone());
        }
    }

    /// Removes what is listed; the reasons do not matter, and a program goes whatever arguments it may have. A program
    /// with variables stays, without these variables. Gives what was not there, as [`Wants::describe`] puts it.
    pub fn remove(&mut self, less: &Self) -> Vec<String> {
        fn take<T>(list: &mut Vec<T>, less: &[T], same: impl Fn(&T, &T) -> bool, missing: &mut Vec<T>)
        where
            T: Clone,
        {
            for item in less {
                let before = list.len();
                list.retain(|known| !same(known, item));
                if list.len() == before {
                    missing.push(item.clone());
                }
            }
        }
        let mut missing = Self::default();
        take(&mut self.files, &less.files, |a, b| (&a.root, a.access) == (&b.root, b.access), &mut missing.files);
        take(&mut self.http, &less.http, |a, b| (&a.origin, &a.methods) == (&b.origin, &b.methods), &mut missing.http);
        for item in &less.process {
            if !remove_program(&mut self.process, item) {
                missing.process.push(item.clone());
            }
        }
        let same_secret = |a: &SecretWant, b: &SecretWant| (&a.name, a.reveal) == (&b.name, b.reveal);
        take(&mut self.secrets, &less.secrets, same_secret, &mut missing.secrets);
        take(&mut self.config, &less.config, |a, b| a.file == b.file, &mut missing.config);
        for (capability, reason) in &less.flags {
            if self.flags.remove(capability).is_none() {
                missing.flags.insert(*capability, reason.clone());
            }
        }
        missing.describe()
    }

    /// Each scope and each capability without scopes by itself.
    pub fn parts(&self) -> Vec<(Capability, Self)> {
        let one = Self::default;
        let files = self.files.iter().map(|want| (Capability::Files, Self { files: vec![want.clone()], ..one() }));
        let http = self.http.iter().map(|want| (Capability::Http, Self { http: vec![want.clone()], ..one() }));
        let process =
            self.process.iter().map(|want| (Capability::Process, Self { process: vec![want.clone()], ..one() }));
        let secrets =
            self.secrets.iter().map(|want| (Capability::Secrets, Self { secrets: vec![want.clone()], ..one() }));
        let config = self.config.iter().map(|want| (Capability::Config, Self { config: vec![want.clone()], ..one() }));
        let flags = self.flags.iter().map(|(capability, reason)| {
            (*capability, Self { flags: BTreeMap::from([(*capability, reason.clone())]), ..one() })
        });
        files.chain(http).chain(process).chain(secrets).chain(config).chain(flags).collect()
    }

    /// The reason of the first want, as the plugin's author puts it. Meant for one of [`Wants::parts`].
    pub fn reason(&self) -> &str {
        let reasons = (self.files.iter().map(|want| &want.reason))
            .chain(self.http.iter().map(|want| &want.reason))
            .chain(self.process.iter().map(|want| &want.reason))
            .chain(self.secrets.iter().map(|want| &want.reason))
            .chain(self.config.iter().map(|want| &want.reason))
            .chain(self.flags.values());
        reasons.map(String::as_str).next().unwrap_or_default()
    }

    /// The options of `atoll plugin grant` and `revoke` that name all this, each quoted for a shell. A program is
    /// named without its arguments, for which there is no option.
    pub fn to_arguments(&self) -> Vec<String> {
        let option = |key: &str, value: &str| format!("--{key} {}", shell_word(value));
        let mut arguments: Vec<String> = self.files.iter().map(|want| option("files", &want.to_argument())).collect();
        arguments.extend(self.http.iter().map(|want| option("http", &want.to_argument())));
        arguments.extend(self.process.iter().map(|want| option("process", &want.to_argument())));
        arguments.extend(self.secrets.iter().map(|want| option("secret", &want.to_argument())));
        arguments.extend(self.config.iter().map(|want| option("config", &want.to_argument())));
        arguments.extend(self.flags.keys().map(|capability| format!("--{capability}")));
        arguments
    }

    /// Whether a use of the capability could be allowed by both.
    pub fn may_share(&self, other: &Self, capability: Capability) -> bool {
        fn any<T>(a: &[T], b: &[T], meet: impl Fn(&T, &T) -> bool) -> bool {
            a.iter().any(|a| b.iter().any(|b| meet(a, b)))
        }
        match capability {
            Capability::Files => any(&self.files, &other.files, |a, b| a.root.may_overlap(&b.root)),
            Capability::Http => any(&self.http, &other.http, |a, b| {
                a.origin.may_overlap(&b.origin) && a.methods.may_overlap(&b.methods)
            }),
            Capability::Process => any(&self.process, &other.process, |a, b| a.command.may_overlap(&b.command)),
            Capability::Secrets => any(&self.secrets, &other.secrets, |a, b| a.name.may_overlap(&b.name)),
            Capability::Config => {
                any(&self.config, &other.config, |a, b| a.file.matches(&b.file) || b.file.matches(&a.file))
            }
            flag => self.flags.contains_key(&flag) && other.flags.contains_key(&flag),
        }
    }

    /// The same without the variables that may be set for programs.
    pub fn without_variables(&self) -> Self {
        let mut all = self.clone();
        all.process.iter_mut().for_each(|want| want.env.clear());
        all
    }

    /// Whether a variable could be allowed by both for each of these programs, or none is wanted.
    pub fn may_share_variables(&self, other: &Self) -> bool {
        let shared = |a: &ProcessWant, b: &ProcessWant| {
            a.command.may_overlap(&b.command)
                && a.env.iter().any(|name| b.env.iter().any(|other| name.may_overlap(other)))
        };
        self.process.iter().all(|a| a.env.is_empty() || other.process.iter().any(|b| shared(a, b)))
    }

    /// Reads the wants of a table.
    pub(crate) fn read(section: &Section<'_>) -> Result<Self, ManifestError> {
        let mut wants = Self::default();
        for item in section.tables("files")? {
            item.only(&["root", "access", "reason"])?;
            wants.files.push(FilesWant {
                root: item.required("root", "\"$workspace\"")?,
                access: item.parsed("access")?.unwrap_or(Access::Read),
                reason: item.reason()?,
            });
        }
        for item in section.tables("http")? {
            item.only(&["origin", "methods", "reason"])?;
            let methods = match item.texts("methods")? {
                None => Methods::get(),
                Some(list) => {
                    Methods::parse(&list.value).map_err(|error| item.source().error(list.span, error, "correct it"))?
                }
            };
            let origin = item.required("origin", "\"https://example.com\"")?;
            wants.http.push(HttpWant { origin, methods, reason: item.reason()? });
        }
        for item in section.tables("process")? {
            item.only(&["program", "arguments", "env", "reason"])?;
            let arguments =
                match item.texts("arguments")? {
                    None => None,
                    Some(list) => Some(ArgumentPatterns::parse(&list.value).map_err(|error| {
                        item.source().error(list.span, format!("`arguments`: {error}"), "correct it")
                    })?),
                };
            let program = item.required("program", "\"git\"")?;
            let mut env = Vec::new();
            if let Some(list) = item.texts("env")? {
                for name in list.value {
                    let name = EnvPattern::parse(name).map_err(|error| {
                        item.source().error(list.span.clone(), format!("`env`: {error}"), "correct it")
                    })?;
                    env.push(name);
                }
            }
            let command = CommandPattern { program, arguments };
            let want = ProcessWant { command, env, reason: item.reason()? };
            if let (Some(error), Some(list)) = (want.wrong_variable(), item.texts("env")?) {
                return Err(item.source().error(list.span, format!("`env`: {error}"), "correct it"));
            }
            wants.process.push(want);
        }
        for item in section.tables("secrets")? {
            item.only(&["name", "reveal", "reason"])?;
            wants.secrets.push(SecretWant {
                name: item.required("name", "\"API_KEY\"")?,
                reveal: item.flag("reveal")?.unwrap_or(false),
                reason: item.reason()?,
            });
        }
        for item in section.tables("config")? {
            item.only(&["file", "reason"])?;
            wants.config.push(ConfigWant { file: item.required("file", "\"mcp.json\"")?, reason: item.reason()? });
        }
        for capability in Capability::FLAGS {
            if let Some(item) = section.table(capability.as_str())? {
                item.only(&["reason"])?;
                wants.flags.insert(capability, item.reason()?);
            }
        }
        Ok(wants)
    }

    /// Writes the wants as entries of a map.
    pub(crate) fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        fn list<M: SerializeMap, T: Serialize>(
            map: &mut M,
            capability: Capability,
            list: &[T],
        ) -> Result<(), M::Error> {
            if list.is_empty() { Ok(()) } else { map.serialize_entry(capability.as_str(), list) }
        }
        list(map, Capability::Files, &self.files)?;
        list(map, Capability::Http, &self.http)?;
        list(map, Capability::Process, &self.process)?;
        list(map, Capability::Secrets, &self.secrets)?;
        list(map, Capability::Config, &self.config)?;
        for (capability, reason) in &self.flags {
            let table: BTreeMap<&str, &str> =
                if reason.is_empty() { BTreeMap::new() } else { BTreeMap::from([("reason", reason.as_str())]) };
            map.serialize_entry(capability.as_str(), &table)?;
        }
        Ok(())
    }
}

/// Adds a program. Variables for one that may be started already are added for the arguments that it may have: they must not
/// bring it others.
fn add_process(list: &mut Vec<ProcessWant>, more: &ProcessWant) {
    let command = &more.command;
    let program = command.program.to_string();
    let is_there = |known: &&ProcessWant| known.command.program == command.program;
    let covers = |known: &&ProcessWant| known.command.program.matches(&program);
    let mut added: Vec<ProcessWant> = Vec::new();
    if !more.env.is_empty()
        && command.arguments.is_none()
        && list.iter().any(|known| is_there(&known) || covers(&known))
    {
        for want in list.iter_mut().filter(|known| known.command.program == command.program) {
            let new = more.env.iter().filter(|name| !want.env.contains(name)).cloned().collect::<Vec<_>>();
            want.env.extend(new);
        }
        // Under another name, or as one of all programs.
        for known in list.iter().filter(|known| !is_there(known) && covers(known)) {
            let command = CommandPattern { arguments: known.command.arguments.clone(), ..command.clone() };
            added.push(ProcessWant { command, ..more.clone() });
        }
    } else {
        added.push(more.clone());
    }
    for want in added {
        if !list.contains(&want) {
            list.push(want);
        }
    }
}

/// Removes a program, or the variables of it that `less` names. Whether there was such a thing.
fn remove_program(list: &mut Vec<ProcessWant>, less: &ProcessWant) -> bool {
    let is_it = |known: &ProcessWant| known.command.program == less.command.program;
    let size = |list: &[ProcessWant]| list.len() + list.iter().map(|want| want.env.len()).sum::<usize>();
    let before = size(list);
    if less.env.is_empty() {
        list.retain(|known| !is_it(known));
    } else {
        for known in list.iter_mut().filter(|known| is_it(known)) {
            known.env.retain(|name| !less.env.contains(name));
        }
    }
    size(list) < before
}

impl Serialize for Wants {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.write(&mut map)?;
        map.end()
    }
}
