//! The names of the capabilities.

use std::fmt;
use std::str::FromStr;

use crate::text::{near_matches, or_list, printable, serialize_as_text};

/// Something that a plugin can be granted: one interface of the contract each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Capability {
    /// Files under named roots.
    Files,
    /// Requests to named origins.
    Http,
    /// Starting named programs.
    Process,
    /// A one-shot HTTP listener on the loopback address.
    Listener,
    /// Private persistent keys and values.
    Store,
    /// Named credentials.
    Secrets,
    /// Named files of configuration.
    Config,
    /// The tool table: adding, switching, searching and calling tools.
    Table,
    /// The session: reading it and taking part in it.
    Session,
    /// Asking models.
    Models,
    /// Talking to the person.
    Ui,
    /// Saying something to other extensions.
    Bus,
    /// Adding model providers to the session.
    Providers,
    /// Adding MCP servers to the session.
    Servers,
}

impl Capability {
    /// Every capability.
    pub const ALL: [Self; 14] = [
        Self::Files,
        Self::Http,
        Self::Process,
        Self::Listener,
        Self::Store,
        Self::Secrets,
        Self::Config,
        Self::Table,
        Self::Session,
        Self::Models,
        Self::Ui,
        Self::Bus,
        Self::Providers,
        Self::Servers,
    ];

    /// Those that are had or not had, without a scope.
    pub const FLAGS: [Self; 9] = [
        Self::Listener,
        Self::Store,
        Self::Table,
        Self::Session,
        Self::Models,
        Self::Ui,
        Self::Bus,
        Self::Providers,
        Self::Servers,
    ];

    /// The capability's name, in manifests, denials and on the command line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Http => "http",
            Self::Process => "process",
            Self::Listener => "listener",
            Self::Store => "store",
            Self::Secrets => "secrets",
            Self::Config => "config",
            Self::Table => "table",
            Self::Session => "session",
            Self::Models => "models",
            Self::Ui => "ui",
            Self::Bus => "bus",
            Self::Providers => "providers",
            Self::Servers => "servers",
        }
    }

    /// The capability that an interface of the contract needs, by the interface's bare name.
    ///
    /// `None` means that it needs none: `log`, `clock`, `progress`, `workers`, `host`, `source` and `types`. A name the contract does not have
    /// gives `None` too; whether an interface exists is for the engine to say.
    pub fn of_interface(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that is no capability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a capability; {}", printable(name), suggestion(name))]
pub struct UnknownCapability {
    /// The word.
    pub name: String,
}

fn suggestion(name: &str) -> String {
    let all = Capability::ALL.map(Capability::as_str);
    match near_matches(name, &all).as_slice() {
        [] => format!("there are {}", or_list(&all).replace(" or ", " and ")),
        near => format!("did you mean {}?", or_list(near)),
    }
}

impl FromStr for Capability {
    type Err = UnknownCapability;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|capability| capability.as_str() == text)
            .ok_or_else(|| UnknownCapability { name: text.to_owned() })
    }
}

serialize_as_text!(Capability);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for capability in Capability::ALL {
            assert_eq!(capability.as_str().parse(), Ok(capability));
            assert_eq!(Capability::of_interface(capability.as_str()), Some(capability));
        }
        for free in ["log", "clock", "progress", "workers", "host", "source", "types"] {
            assert_eq!(Capability::of_interface(free), None);
        }
    }

    #[test]
    fn suggests() {
        let error = "proces".parse::<Capability>().unwrap_err();
        assert_eq!(error.to_string(), "`proces` is not a capability; did you mean `process`?");
    }
}
