//! What a plugin may really do: what its manifest and its grant both allow.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::config_file::ConfigFile;
use crate::denied::{Denied, Offer};
use crate::env_pattern::{self, EnvPattern};
use crate::manifest::{Manifest, PluginName};
use crate::origin::Origin;
use crate::origin_pattern::OriginPattern;
use crate::path_pattern::{Access, RootPattern, RootVars, normalised};
use crate::scope::Capability;
use crate::text::{printable, shell_word};
use crate::wants::{ConfigWant, FilesWant, HttpWant, Methods, ProcessWant, SecretWant, Wants};

/// What a plugin may really do. Each question is put to the manifest and to the grant, and both have to agree, so
/// that neither can widen the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    plugin: PluginName,
    wanted: Wants,
    granted: Granted,
    /// The file that it is, if it is a script that is known by that.
    script: Option<String>,
}

/// What stands against the manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Granted {
    /// A built-in plugin: the build grants it its manifest. The user may add directories, with no more access than
    /// the manifest has anywhere, for such a plugin can not know where the user's files are.
    Build { added: Vec<FilesWant> },
    /// The user's grant.
    User(Wants),
}

/// A directory that a plugin may use, and the granted directory it lies in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScopedRoot {
    /// The directory.
    pub path: PathBuf,
    /// The directory that the user (or, for a built-in plugin, the build) named: `path` or one above it. Open this
    /// one, and `path` beneath it without following links out of it: between the two may be a link that was
    /// put there by someone other than the user.
    pub within: PathBuf,
    /// What may be done there.
    pub access: Access,
}

/// Which side did not allow it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Manifest,
    Grant,
}

/// How a use could be allowed: the scope that a grant would need, and how it is written.
struct WayOut {
    wants: Wants,
    /// The option of `atoll plugin grant`.
    flag: String,
    /// The table in a manifest.
    table: String,
    /// What the manifest says to it, if it asks for it.
    reason: String,
}

impl Effective {
    /// A built-in plugin: everything it wants.
    pub fn builtin(manifest: &Manifest) -> Self {
        Self::builtin_with(manifest, &Wants::default())
    }

    /// A built-in plugin: everything it wants, and the directories that the user adds. Of those, each has at most the
    /// access that the manifest has anywhere; whatever else is in `added` counts for nothing.
    pub fn builtin_with(manifest: &Manifest, added: &Wants) -> Self {
        let granted = Granted::Build { added: Vec::new() };
        let effective = Self { plugin: manifest.name.clone(), wanted: manifest.wants.clone(), granted, script: None };
        effective.with_granted(added)
    }

    /// Any other plugin: what it wants and is granted. Without a grant: nothing.
    pub fn intersect(manifest: &Manifest, granted: Option<&Wants>) -> Self {
        Self {
            plugin: manifest.name.clone(),
            wanted: manifest.wants.clone(),
            granted: Granted::User(granted.cloned().unwrap_or_default()),
            script: None,
        }
    }

    /// The same, with more granted.
    #[must_use]
    pub fn with_granted(&self, more: &Wants) -> Self {
        let mut effective = self.clone();
        match &mut effective.granted {
            Granted::User(granted) => granted.add(more),
            Granted::Build { added } => {
                if let Some(most) = most_access(&self.wanted) {
                    for want in &more.files {
                        let access = want.access.min(most);
                        let want = FilesWant { root: want.root.clone(), access, reason: String::new() };
                        if !added.contains(&want) {
                            added.push(want);
                        }
                    }
                }
            }
        }
        effective
    }

    /// It is a script, which the user names by this file.
    #[must_use]
    pub fn of_script(self, file: &str) -> Self {
        Self { script: Some(file.to_owned()), ..self }
    }

    /// Whether the plugin is built in.
    pub fn is_builtin(&self) -> bool {
        matches!(self.granted, Granted::Build { .. })
    }

    /// Whether the manifest asks for a capability at all: whether a use of it may be asked about.
    pub fn wants(&self, capability: Capability) -> bool {
        self.wanted.has(capability)
    }

    /// The directories that the user granted by their own names, with their access: what opens even a directory that
    /// is otherwise out of reach. A variable, or a directory above it, is no such name.
    pub fn granted_by_name(&self, vars: &RootVars) -> Vec<(PathBuf, Access)> {
        let files = match &self.granted {
            Granted::User(granted) => &granted.files,
            Granted::Build { added } => added,
        };
        let named = files.iter().filter(|want| matches!(want.root, RootPattern::Home(_) | RootPattern::Absolute(_)));
        named.flat_map(|want| want.root.resolve(vars).into_iter().map(|path| (path, want.access))).collect()
    }

    /// Whose it is.
    pub fn plugin(&self) -> &PluginName {
        &self.plugin
    }

    /// Whether the interface of a capability is linked: whether any use of it could be allowed.
    pub fn allows_interface(&self, capability: Capability) -> bool {
        match &self.granted {
            Granted::Build { .. } => self.wanted.has(capability),
            Granted::User(granted) => self.wanted.may_share(granted, capability),
        }
    }

    /// Checks the use of a capability as a whole, as [`Effective::allows_interface`] answers it.
    pub fn check(&self, capability: Capability) -> Result<(), Denied> {
        if self.allows_interface(capability) {
            return Ok(());
        }
        let (key, value) = match capability {
            Capability::Files => ("--files", "<path>:<read|read-write>"),
            Capability::Http => ("--http", "<origin>[:<METHOD>]"),
            Capability::Process => ("--process", "<program>"),
            Capability::Secrets => ("--secret", "<name>"),
            Capability::Config => ("--config", "<file>"),
            flag => {
                let missing = if self.wanted.has(flag) { Missing::Grant } else { Missing::Manifest };
                let way = WayOut {
                    wants: Wants { flags: [(flag, String::new())].into(), ..Wants::default() },
                    flag: format!("--{flag}"),
                    table: format!("`[{flag}]` with its `reason`"),
                    reason: self.wanted.flags.get(&flag).cloned().unwrap_or_default(),
                };
                return Err(self.denied(flag, String::new(), missing, way));
            }
        };
        // What the manifest asks for is what has to be granted. Where it does not say, nor can we.
        let asked = self.wanted.parts().into_iter().filter(|(asked, _)| *asked == capability);
        let asked: Vec<String> = asked.flat_map(|(_, part)| part.to_arguments()).collect();
        let (missing, flag) = if asked.is_empty() {
            (Missing::Manifest, format!("{key} '{value}'"))
        } else {
            (Missing::Grant, asked.join(" "))
        };
        // Without a target there is nothing that could be offered.
        let way = WayOut { wants: Wants::default(), flag, table: format!("`[[{capability}]]`"), reason: String::new() };
        Err(self.denied(capability, String::new(), missing, way))
    }

    /// Checks a request. Of the parts of a parsed URL: host in lower case, IPv6 without brackets; the method in
    /// upper case. `model_origins` is what `$models` stands for.
    pub fn check_http(
        &self,
        scheme: &str,
        host: &str,
        port: u16,
        method: &str,
        model_origins: &[Origin],
    ) -> Result<(), Denied> {
        let origin = Origin { scheme: scheme.to_owned(), host: host.to_owned(), port };
        let allowing = |wants: &Wants| {
            let mut all = wants.http.iter();
            all.find(|want| want.methods.matches(method) && want.origin.matches_with(&origin, model_origins)).cloned()
        };
        let Some(missing) = self.side_without(|wants| allowing(wants).is_some()) else {
            return Ok(());
        };
        let target = origin.to_string();
        let want = OriginPattern::parse(&target).ok().filter(|pattern| pattern.matches(scheme, host, port));
        // `*` and `ANY` are no methods but what the command line calls all of them.
        let methods = Methods::parse(&[method]).ok().filter(|methods| *methods != Methods::Any && method != "ANY");
        let methods = methods.filter(|methods| methods.matches(method));
        let Some((pattern, methods)) = want.zip(methods) else {
            let hint = "no grant can name this request; use another URL or method".to_owned();
            return Err(self.denied_with(Capability::Http, target, hint));
        };
        let want = HttpWant { origin: pattern, methods, reason: String::new() };
        let flag = format!("--http {}", shell_word(&want.to_argument()));
        let table =
            format!("`[[http]]` with `origin = {}` and `methods = [{}]`", toml_text(&want.origin), toml_text(&method));
        let reason = allowing(&self.wanted).map(|want| want.reason).unwrap_or_default();
        let wants = Wants { http: vec![want], ..Wants::default() };
        Err(self.denied(Capability::Http, target, missing, WayOut { wants, flag, table, reason }))
    }

    /// What it may do, a line for each scope, for people: `files: $workspace (read)`. For a plugin that is not
    /// built in, these are the scopes of its grant; the manifest may narrow them further.
    pub fn describe(&self) -> Vec<String> {
        match &self.granted {
            Granted::User(granted) => granted.describe(),
            Granted::Build { added } => {
                let mut all = self.wanted.clone();
                all.add(&Wants { files: added.clone(), ..Wants::default() });
                all.describe()
            }
        }
    }

    /// The directories that the plugin may use, each once. A path is allowed if it lies in one of them that has the
    /// access it needs. Links are not resolved here; to be safe from those, use [`Effective::scoped_roots`].
    pub fn roots(&self, vars: &RootVars) -> Vec<(PathBuf, Access)> {
        let mut roots: Vec<(PathBuf, Access)> = Vec::new();
        for ScopedRoot { path, access, .. } in self.scoped_roots(vars) {
            match roots.iter_mut().find(|(known, _)| *known == path) {
                Some((_, known)) => *known = access.max(*known),
                None => roots.push((path, access)),
            }
        }
        roots
    }

    /// The directories that the plugin may use, each with the granted directory it lies in.
    pub fn scoped_roots(&self, vars: &RootVars) -> Vec<ScopedRoot> {
        let mut roots: Vec<ScopedRoot> = Vec::new();
        let mut add = |root: ScopedRoot| match roots
            .iter_mut()
            .find(|known| known.path == root.path && known.within == root.within)
        {
            Some(known) => known.access = known.access.max(root.access),
            None => roots.push(root),
        };
        let wanted = resolved(&self.wanted.files, vars);
        let granted = match &self.granted {
            Granted::User(granted) => resolved(&granted.files, vars),
            Granted::Build { added } => {
                for (path, access) in wanted.into_iter().chain(resolved(added, vars)) {
                    add(ScopedRoot { within: path.clone(), path, access });
                }
                return roots;
            }
        };
        for (want, want_access) in &wanted {
            for (grant, grant_access) in &granted {
                let path = if want.starts_with(grant) {
                    want
                } else if grant.starts_with(want) {
                    grant
                } else {
                    continue;
                };
                let access = *want_access.min(grant_access);
                add(ScopedRoot { path: path.clone(), within: grant.clone(), access });
            }
        }
        roots
    }

    /// Checks a path by its names alone; a relative one, or one with `..`, is never allowed. Where links are
    /// followed, what they lead to has to be checked as well.
    pub fn check_path(&self, vars: &RootVars, path: &Path, access: Access) -> Result<(), Denied> {
        let target = path.display().to_string();
        let Some(path) = normalised(path) else {
            let hint = "no grant can name this path; use an absolute path without `..`".to_owned();
            return Err(self.denied_with(Capability::Files, target, hint));
        };
        let covering = |files: &[FilesWant]| {
            let found = files.iter().find(|want| {
                want.access >= access && want.root.resolve(vars).iter().any(|root| path.starts_with(root))
            });
            found.cloned()
        };
        let missing = match &self.granted {
            Granted::Build { added } => {
                if covering(&self.wanted.files).or_else(|| covering(added)).is_some() {
                    return Ok(());
                }
                // To a built-in plugin the user may add directories, and nothing else.
                if most_access(&self.wanted) >= Some(access) { Missing::Grant } else { Missing::Manifest }
            }
            Granted::User(_) => match self.side_without(|wants| covering(&wants.files).is_some()) {
                Some(missing) => missing,
                None => return Ok(()),
            },
        };
        let asked = covering(&self.wanted.files);
        // What the manifest names is what its author had in mind; else the path itself, or the nearest directory
        // above it that can be written as a root.
        let root = asked
            .as_ref()
            .map(|want| want.root.clone())
            .or_else(|| path.ancestors().find_map(|path| path.to_str().and_then(|text| RootPattern::parse(text).ok())));
        let root = root.unwrap_or(RootPattern::Absolute("/".into()));
        let want = FilesWant { root, access, reason: String::new() };
        let flag = format!("--files {}", shell_word(&want.to_argument()));
        let table =
            format!("`[[files]]` with `root = {}` and `access = {}`", toml_text(&want.root), toml_text(&access));
        let wants = Wants { files: vec![want], ..Wants::default() };
        let reason = asked.map(|want| want.reason).unwrap_or_default();
        Err(self.denied(Capability::Files, target, missing, WayOut { wants, flag, table, reason }))
    }

    /// Checks a program with its arguments, as the plugin named them.
    pub fn check_process<T: AsRef<str>>(&self, program: &str, arguments: &[T]) -> Result<(), Denied> {
        let allows = |wants: &Wants| wants.process.iter().any(|want| want.command.matches(program, arguments));
        let Some(missing) = self.side_without(allows) else {
            return Ok(());
        };
        let want = ProcessWant::from_argument(program).ok().filter(|want| want.command.matches(program, arguments));
        let Some(want) = want.filter(|_| program != "*") else {
            let hint = "no grant can name this program; use its bare name or its absolute path".to_owned();
            return Err(self.denied_with(Capability::Process, program.to_owned(), hint));
        };
        let flag = format!("--process {}", shell_word(program));
        let table = format!("`[[process]]` with `program = {}`", toml_text(&program));
        let mut asked = self.wanted.process.iter().filter(|want| want.command.matches(program, arguments));
        let reason = asked.next().map(|want| want.reason.clone()).unwrap_or_default();
        let wants = Wants { process: vec![want], ..Wants::default() };
        Err(self.denied(Capability::Process, program.to_owned(), missing, WayOut { wants, flag, table, reason }))
    }

    /// Checks a variable that is to be set for a program with its arguments, as the plugin named them.
    pub fn check_env<T: AsRef<str>>(&self, program: &str, arguments: &[T], name: &str) -> Result<(), Denied> {
        let allowing =
            |wants: &Wants| wants.process.iter().find(|want| want.allows_variable(program, arguments, name)).cloned();
        let Some(missing) = self.side_without(|wants| allowing(wants).is_some()) else {
            return Ok(());
        };
        let target = format!("the variable {name} for {program}");
        // Not offered either: who is asked about a variable would say yes to every program.
        if let Some(reason) = env_pattern::no_grant(name) {
            return Err(self.denied_with(Capability::Process, target, format!("leave it out; {reason}")));
        }
        let want = ProcessWant::from_argument(program).ok().filter(|want| want.command.matches(program, arguments));
        let pattern = EnvPattern::parse(name).ok().filter(|_| !name.ends_with('*'));
        let Some((want, pattern)) = want.filter(|_| program != "*").zip(pattern) else {
            let hint =
                "no grant can name this variable for this program; a variable's name has letters, digits and `_`";
            return Err(self.denied_with(Capability::Process, target, hint.to_owned()));
        };
        let want = ProcessWant { env: vec![pattern], ..want };
        let flag = format!("--process {}", shell_word(&want.to_argument()));
        let table =
            format!("`env = [{}]` to a `[[process]]` with `program = {}`", toml_text(&name), toml_text(&program));
        let reason = allowing(&self.wanted).map(|want| want.reason).unwrap_or_default();
        let wants = Wants { process: vec![want], ..Wants::default() };
        Err(self.denied(Capability::Process, target, missing, WayOut { wants, flag, table, reason }))
    }

    /// Checks a secret: to be named in a header, or with `reveal` to be handed over.
    pub fn check_secret(&self, name: &str, reveal: bool) -> Result<(), Denied> {
        let allows =
            |wants: &Wants| wants.secrets.iter().any(|want| (want.reveal || !reveal) && want.name.matches(name));
        let Some(missing) = self.side_without(allows) else {
            return Ok(());
        };
        let argument = if reveal { format!("{name}:reveal") } else { name.to_owned() };
        let want = SecretWant::from_argument(&argument).ok();
        let Some(want) = want.filter(|_| !name.ends_with('*')) else {
            let hint = "no grant can name this secret; its name has to have letters, digits, `.`, `_`, `-` and `/`";
            return Err(self.denied_with(Capability::Secrets, name.to_owned(), hint.to_owned()));
        };
        let flag = format!("--secret {}", shell_word(&argument));
        let revealing = if reveal { " and `reveal = true`" } else { "" };
        let table = format!("`[[secrets]]` with `name = {}`{revealing}", toml_text(&name));
        let mut asked = self.wanted.secrets.iter().filter(|want| (want.reveal || !reveal) && want.name.matches(name));
        let reason = asked.next().map(|want| want.reason.clone()).unwrap_or_default();
        let wants = Wants { secrets: vec![want], ..Wants::default() };
        Err(self.denied(Capability::Secrets, name.to_owned(), missing, WayOut { wants, flag, table, reason }))
    }

    /// Checks a file of configuration, by its name.
    pub fn check_config(&self, file: &str) -> Result<(), Denied> {
        let file = match ConfigFile::parse(file) {
            Ok(file) => file,
            Err(error) => {
                let hint = format!("no grant can name this file: {}", error.reason);
                return Err(self.denied_with(Capability::Config, printable(file), hint));
            }
        };
        let allowing = |wants: &Wants| wants.config.iter().find(|want| want.file.matches(&file)).cloned();
        let Some(missing) = self.side_without(|wants| allowing(wants).is_some()) else {
            return Ok(());
        };
        let flag = format!("--config {}", shell_word(file.as_str()));
        let table = format!("`[[config]]` with `file = {}`", toml_text(&file));
        let reason = allowing(&self.wanted).map(|want| want.reason).unwrap_or_default();
        let target = file.to_string();
        let wants = Wants { config: vec![ConfigWant { file, reason: String::new() }], ..Wants::default() };
        Err(self.denied(Capability::Config, target, missing, WayOut { wants, flag, table, reason }))
    }

    /// The side that does not allow it; `None` if both do.
    fn side_without(&self, allows: impl Fn(&Wants) -> bool) -> Option<Missing> {
        if !allows(&self.wanted) {
            return Some(Missing::Manifest);
        }
        match &self.granted {
            Granted::User(granted) if !allows(granted) => Some(Missing::Grant),
            Granted::User(_) | Granted::Build { .. } => None,
        }
    }

    fn denied(&self, capability: Capability, target: String, missing: Missing, way: WayOut) -> Denied {
        let WayOut { wants, flag, table, reason } = way;
        let command = match &self.script {
            Some(file) => format!("atoll plugin grant {} {flag}", shell_word(file)),
            None => format!("atoll plugin grant {} {flag}", self.plugin),
        };
        let offer = (missing == Missing::Grant && !wants.is_empty())
            .then(|| Box::new(Offer { wants, reason, command: command.clone() }));
        let hint = match (missing, &self.granted) {
            (Missing::Grant, _) => command,
            (Missing::Manifest, Granted::User(_)) if self.script.is_some() => format!(
                "its manifest does not ask for it; add {table} to the comment `/* atoll … */` at its start, or to the .toml file beside it, then run {command}"
            ),
            (Missing::Manifest, Granted::User(_)) => {
                format!("its plugin.toml does not ask for it; add {table} there, then run {command}")
            }
            (Missing::Manifest, Granted::Build { .. }) => {
                "it is built in and was not made for this; use another plugin".to_owned()
            }
        };
        Denied { offer, ..self.denied_with(capability, target, hint) }
    }

    fn denied_with(&self, capability: Capability, target: String, hint: String) -> Denied {
        Denied { plugin: self.plugin.clone(), capability, target, hint, offer: None }
    }
}

/// The most that a manifest asks to do with files, wherever that is.
fn most_access(wants: &Wants) -> Option<Access> {
    wants.files.iter().map(|want| want.access).max()
}

fn resolved(files: &[FilesWant], vars: &RootVars) -> Vec<(PathBuf, Access)> {
    files.iter().flat_map(|want| want.root.resolve(vars).into_iter().map(|path| (path, want.access))).collect()
}

/// A value as a TOML string.
fn toml_text(value: &impl Display) -> String {
    toml::Value::String(value.to_string()).to_string()
}

#[cfg(test)]
#[path = "effective_tests.rs"]
mod tests;
