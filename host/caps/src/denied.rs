//! A use that was not allowed, and what would allow it.

use std::fmt;

use crate::manifest::PluginName;
use crate::scope::Capability;
use crate::text::printable;

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
