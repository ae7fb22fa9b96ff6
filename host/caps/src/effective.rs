//! What a plugin may really do: what its manifest and its grant both allow.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use crate::denied::Denied;
use crate::manifest::{Manifest, PluginName};
use crate::origin::Origin;
use crate::origin_pattern::OriginPattern;
use crate::path_pattern::{Access, RootPattern, RootVars, normalised};
use crate::scope::Capability;
use crate::text::shell_word;
use crate::wants::{FilesWant, HttpWant, Methods, ProcessWant, SecretWant, Wants};

/// What a plugin may really do. Each question is put to the manifest and to the grant, and both have to agree, so
/// that neither can widen the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    plugin: PluginName,
    wanted: Wants,
    /// `None` for a built-in plugin: the build grants it its manifest.
    granted: Option<Wants>,
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
enum Missing {
    Manifest,
    Grant,
}

impl Effective {
    /// A built-in plugin: everything it wants.
    pub fn builtin(manifest: &Manifest) -> Self {
        Self { plugin: manifest.name.clone(), wanted: manifest.wants.clone(), granted: None }
    }

    /// Any other plugin: what it wants and is granted. Without a grant: nothing.
    pub fn intersect(manifest: &Manifest, granted: Option<&Wants>) -> Self {
        Self {
            plugin: manifest.name.clone(),
            wanted: manifest.wants.clone(),
            granted: Some(granted.cloned().unwrap_or_default()),
        }
    }

    /// Whose it is.
    pub fn plugin(&self) -> &PluginName {
        &self.plugin
    }

    /// Whether the interface of a capability is linked: whether any use of it could be allowed.
    pub fn allows_interface(&self, capability: Capability) -> bool {
        match &self.granted {
            None => self.wanted.has(capability),
            Some(granted) => self.wanted.may_share(granted, capability),
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
            flag => {
                let missing = if self.wanted.has(flag) { Missing::Grant } else { Missing::Manifest };
                let table = format!("`[{flag}]` with its `reason`");
                return Err(self.denied(flag, String::new(), missing, &format!("--{flag}"), &table));
            }
        };
        let missing = if self.wanted.has(capability) { Missing::Grant } else { Missing::Manifest };
        let table = format!("`[[{capability}]]`");
        Err(self.denied(capability, String::new(), missing, &format!("{key} '{value}'"), &table))
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
        let Some(missing) = self.side_without(|wants| {
            wants
                .http
                .iter()
                .any(|want| want.methods.matches(method) && want.origin.matches_with(&origin, model_origins))
        }) else {
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
        Err(self.denied(Capability::Http, target, missing, &flag, &table))
    }

    /// What it may do, a line for each scope, for people: `files: $workspace (read)`. For a plugin that is not
    /// built in, these are the scopes of its grant; the manifest may narrow them further.
    pub fn describe(&self) -> Vec<String> {
        self.granted.as_ref().unwrap_or(&self.wanted).describe()
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
        let wanted = resolved(&self.wanted, vars);
        let Some(granted) = self.granted.as_ref().map(|granted| resolved(granted, vars)) else {
            for (path, access) in wanted {
                add(ScopedRoot { within: path.clone(), path, access });
            }
            return roots;
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
        let covering = |wants: &Wants| {
            let found = wants.files.iter().find(|want| {
                want.access >= access && want.root.resolve(vars).iter().any(|root| path.starts_with(root))
            });
            found.map(|want| want.root.clone())
        };
        let Some(missing) = self.side_without(|wants| covering(wants).is_some()) else {
            return Ok(());
        };
        // What the manifest names is what its author had in mind; else the path itself, or the nearest directory
        // above it that can be written as a root.
        let root = covering(&self.wanted)
            .or_else(|| path.ancestors().find_map(|path| path.to_str().and_then(|text| RootPattern::parse(text).ok())));
        let root = root.unwrap_or(RootPattern::Absolute("/".into()));
        let want = FilesWant { root, access, reason: String::new() };
        let flag = format!("--files {}", shell_word(&want.to_argument()));
        let table =
            format!("`[[files]]` with `root = {}` and `access = {}`", toml_text(&want.root), toml_text(&access));
        Err(self.denied(Capability::Files, target, missing, &flag, &table))
    }

    /// Checks a program with its arguments, as the plugin named them.
    pub fn check_process<T: AsRef<str>>(&self, program: &str, arguments: &[T]) -> Result<(), Denied> {
        let allows = |wants: &Wants| wants.process.iter().any(|want| want.command.matches(program, arguments));
        let Some(missing) = self.side_without(allows) else {
            return Ok(());
        };
        let want = ProcessWant::from_argument(program).ok().filter(|want| want.command.matches(program, arguments));
        if program == "*" || want.is_none() {
            let hint = "no grant can name this program; use its bare name or its absolute path".to_owned();
            return Err(self.denied_with(Capability::Process, program.to_owned(), hint));
        }
        let flag = format!("--process {}", shell_word(program));
        let table = format!("`[[process]]` with `program = {}`", toml_text(&program));
        Err(self.denied(Capability::Process, program.to_owned(), missing, &flag, &table))
    }

    /// Checks a secret: to be named in a header, or with `reveal` to be handed over.
    pub fn check_secret(&self, name: &str, reveal: bool) -> Result<(), Denied> {
        let allows =
            |wants: &Wants| wants.secrets.iter().any(|want| (want.reveal || !reveal) && want.name.matches(name));
        let Some(missing) = self.side_without(allows) else {
            return Ok(());
        };
        let argument = if reveal { format!("{name}:reveal") } else { name.to_owned() };
        if name.ends_with('*') || SecretWant::from_argument(&argument).is_err() {
            let hint = "no grant can name this secret; its name has to have letters, digits, `.`, `_`, `-` and `/`";
            return Err(self.denied_with(Capability::Secrets, name.to_owned(), hint.to_owned()));
        }
        let flag = format!("--secret {}", shell_word(&argument));
        let revealing = if reveal { " and `reveal = true`" } else { "" };
        let table = format!("`[[secrets]]` with `name = {}`{revealing}", toml_text(&name));
        Err(self.denied(Capability::Secrets, name.to_owned(), missing, &flag, &table))
    }

    /// The side that does not allow it; `None` if both do.
    fn side_without(&self, allows: impl Fn(&Wants) -> bool) -> Option<Missing> {
        if !allows(&self.wanted) {
            Some(Missing::Manifest)
        } else if self.granted.as_ref().is_some_and(|granted| !allows(granted)) {
            Some(Missing::Grant)
        } else {
            None
        }
    }

    fn denied(&self, capability: Capability, target: String, missing: Missing, flag: &str, table: &str) -> Denied {
        let command = format!("atoll plugin grant {} {flag}", self.plugin);
        let hint = match (missing, &self.granted) {
            (Missing::Grant, _) => command,
            (Missing::Manifest, Some(_)) => {
                format!("its plugin.toml does not ask for it; add {table} there, then run {command}")
            }
            (Missing::Manifest, None) => "it is built in and was not made for this; use another plugin".to_owned(),
        };
        self.denied_with(capability, target, hint)
    }

    fn denied_with(&self, capability: Capability, target: String, hint: String) -> Denied {
        Denied { plugin: self.plugin.clone(), capability, target, hint }
    }
}

fn resolved(wants: &Wants, vars: &RootVars) -> Vec<(PathBuf, Access)> {
    wants.files.iter().flat_map(|want| want.root.resolve(vars).into_iter().map(|path| (path, want.access))).collect()
}

/// A value as a TOML string.
fn toml_text(value: &impl Display) -> String {
    toml::Value::String(value.to_string()).to_string()
}

#[cfg(test)]
#[path = "effective_tests.rs"]
mod tests;
