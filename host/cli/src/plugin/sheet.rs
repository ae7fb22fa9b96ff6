//! What there is to know about a plugin, as lines for a person and as JSON. A manifest's words are an author's: nothing
//! in them may break a line or steer a terminal.

use atoll_caps::{ContractVersion, Effective, Limits, Pin, Wants, printable};
use atoll_engine::Surface;
use atoll_table::Error;
use serde_json::{Value, json};

/// All of it. What could not be found out, because the file is damaged, is left out.
pub(super) struct Sheet<'a> {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) description: String,
    pub(super) contract: ContractVersion,
    /// Where it lies; `None` for a built-in plugin.
    pub(super) file: Option<String>,
    /// Where its manifest was found.
    pub(super) manifest: &'static str,
    /// `built in`, `installed`, `changed` since it was granted anything, `disabled`, `of the project`, `not installed`.
    pub(super) state: &'static str,
    /// The files' digests; `None` for a built-in plugin.
    pub(super) pin: Option<&'a Pin>,
    pub(super) size: Option<usize>,
    pub(super) surface: Option<Surface>,
    pub(super) wants: &'a Wants,
    /// `None` for a built-in plugin, which is granted what it wants.
    pub(super) granted: Option<&'a Wants>,
    pub(super) effective: &'a Effective,
    pub(super) replaces: &'a [String],
    pub(super) may_replace: Vec<String>,
    pub(super) limits: Limits,
    pub(super) refusal: Option<&'a Error>,
}

impl Sheet<'_> {
    /// What it would get: what it imports, asks for and is granted; and what it imports but would not get.
    fn outcome(&self) -> (Vec<String>, Vec<String>) {
        let Some(surface) = &self.surface else { return (Vec::new(), Vec::new()) };
        let mut gets = Vec::new();
        let mut lacks = Vec::new();
        for (capability, part) in self.wants.parts() {
            if surface.imports.contains(&capability) {
                let is_granted = self.granted.is_none_or(|granted| part.may_share(granted, capability));
                let sets_nothing = || self.granted.is_some_and(|granted| !part.may_share_variables(granted));
                if is_granted && sets_nothing() {
                    gets.extend(part.without_variables().describe());
                    lacks.extend(part.describe());
                } else {
                    if is_granted { &mut gets } else { &mut lacks }.extend(part.describe());
                }
            }
        }
        for capability in &surface.imports {
            if !self.wants.has(*capability) {
                lacks.push(format!("{capability} (its manifest does not ask for it)"));
            }
        }
        (gets, lacks)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("name: {} {}", self.name, printable(&self.version))];
        let mut line = |title: &str, text: String| {
            if !text.is_empty() {
                lines.push(format!("{title}: {text}"));
            }
        };
        line("description", printable(&self.description));
        line("state", self.state.to_owned());
        line("file", self.file.as_deref().map(printable).unwrap_or_default());
        line("manifest", self.manifest.to_owned());
        line("sha256", self.pin.map(|pin| pin.component.to_string()).unwrap_or_default());
        line("size", self.size.map(|size| format!("{size} bytes")).unwrap_or_default());
        line("contract", self.contract.to_string());
        let mut list = |title: &str, items: Vec<String>| {
            lines.push(format!("{title}:"));
            if items.is_empty() {
                lines.push("  (none)".to_owned());
            }
            lines.extend(items.iter().map(|item| format!("  {}", printable(item))));
        };
        if let Some(surface) = &self.surface {
            list("exports", surface.all_exports.iter().cloned().collect());
            list("imports", surface.all_imports.iter().cloned().collect());
        }
        list("wants", with_reasons(self.wants));
        if !self.replaces.is_empty() {
            list("replaces", self.replaces.to_vec());
        }
        list("granted", self.granted_lines());
        if self.surface.is_some() {
            let (gets, lacks) = self.outcome();
            list("gets", gets);
            list("not granted", lacks);
        }
        list("limits", self.limit_lines());
        lines.push(match self.refusal {
            None => "usable: yes".to_owned(),
            Some(reason) => format!("usable: no: {}", printable(&reason.to_string())),
        });
        lines
    }

    fn granted_lines(&self) -> Vec<String> {
        let mut lines = self.effective.describe();
        lines.extend(self.may_replace.iter().map(|tool| format!("replaces: {tool}")));
        lines
    }

    fn limit_lines(&self) -> Vec<String> {
        let limits = json!(self.limits);
        let value = |value: &Value| if value.is_null() { "no bound".to_owned() } else { value.to_string() };
        limits.as_object().into_iter().flatten().map(|(name, limit)| format!("{name}: {}", value(limit))).collect()
    }

    pub(super) fn json(&self) -> Value {
        let (gets, lacks) = self.outcome();
        json!({
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "contract": self.contract,
            "state": self.state,
            "file": self.file,
            "manifest": self.manifest,
            "sha256": self.pin.map(|pin| &pin.component),
            "manifestSha256": self.pin.map(|pin| &pin.manifest),
            "bytes": self.size,
            "exports": self.surface.as_ref().map(|surface| &surface.all_exports),
            "imports": self.surface.as_ref().map(|surface| &surface.all_imports),
            "wants": self.wants.describe(),
            "asks": self.wants,
            "replaces": self.replaces,
            "granted": self.granted_lines(),
            "gets": gets,
            "notGranted": lacks,
            "limits": self.limits,
            "usable": self.refusal.is_none(),
            "refusal": self.refusal,
        })
    }
}

/// A line for each thing a manifest asks for, with the author's reason.
pub(super) fn with_reasons(wants: &Wants) -> Vec<String> {
    let line = |part: Wants| {
        let scope = part.describe().join(", ");
        if part.reason().is_empty() { scope } else { format!("{scope}: {}", part.reason()) }
    };
    wants.parts().into_iter().map(|(_, part)| line(part)).collect()
}
