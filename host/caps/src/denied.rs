//! A use that was not allowed, and what would allow it.

use std::fmt;

use crate::manifest::PluginName;
use crate::scope::Capability;
use crate::text::printable;
use crate::wants::Wants;

/// A capability was asked for and is not had. One line, which ends with the way out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Denied {
    /// Who asked.
    pub plugin: PluginName,
    /// For what.
    pub capability: Capability,
    /// What it was to be used on: a path, an origin, a program, a name. Empty for a capability without scopes.
    pub target: String,
    /// What would allow it: the command to run, after what has to be changed first, if anything.
    pub hint: String,
    /// What the user would have to grant, where a grant alone would allow it: what may be asked about.
    #[serde(skip)]
    pub offer: Option<Box<Offer>>,
}

/// What a grant would have to say to allow a use that was denied. The plugin has no hand in it but for `reason`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The one scope, without a reason.
    pub wants: Wants,
    /// Why the plugin wants it, in the words of its manifest: to be shown escaped. Empty if it does not say.
    pub reason: String,
    /// The command that grants it.
    pub command: String,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plugin `{}` has no grant for `{}`", self.plugin, self.capability)?;
        if !self.target.is_empty() {
            write!(f, " on `{}`", printable(&self.target))?;
        }
        write!(f, "; to allow it: {}", self.hint)
    }
}

impl std::error::Error for Denied {}
