//! MCP servers that extensions add to the session, for the extension that connects to them. Nothing here connects.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use atoll_caps::printable;
use atoll_table::{
    Error,
    extension::{EventKind, McpServer, Servers, Who},
};
use serde_json::{Value, json};

use super::Extensions;

/// How many servers one extension may add.
const MAX_SERVERS: usize = 100;

/// The servers of a session. Whoever wants to know is told of each change.
pub struct SessionServers {
    extensions: Extensions,
    all: Mutex<BTreeMap<String, McpServer>>,
}

/// Whether a name may be a server's: 1 to 64 of `A-Z a-z 0-9 _ - .`.
fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

impl SessionServers {
    /// None yet.
    pub fn new(extensions: Extensions) -> Self {
        Self { extensions, all: Mutex::default() }
    }

    /// Changes them, and tells what there is then.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, McpServer>) -> Result<(), Error>) -> Result<(), Error> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut all)?;
        // Told before anybody else can change them, so that the last one told is the last there is.
        self.extensions.observe(EventKind::McpServersChange, || {
            let shown =
                |server: &McpServer| json!({"name": server.name, "plugin": server.who.plugin, "config": server.config});
            json!({"servers": all.values().map(shown).collect::<Vec<_>>()})
        });
        Ok(())
    }
}

impl Servers for SessionServers {
    fn register(&self, who: &Who, name: &str, config: Value) -> Result<(), Error> {
        let shown = printable(name);
        if !is_name(name) {
            return Err(Error::InvalidArguments(format!(
                "`{shown}` can not name a server; use 1 to 64 letters, digits, `_`, `-` and `.`"
            )));
        }
        if !config.is_object() {
            return Err(Error::InvalidArguments(format!("the configuration of the server {shown} is no object")));
        }
        self.change(|all| {
            if let Some(known) = all.get(name).filter(|known| known.who != *who) {
                let other = &known.who.plugin;
                return Err(Error::InvalidArguments(format!(
                    "the plugin {other} has added a server {shown}; choose another name"
                )));
            }
            let own = all.values().filter(|known| known.who == *who).count();
            if own >= MAX_SERVERS && !all.contains_key(name) {
                return Err(Error::Limit { name: "servers".to_owned(), value: MAX_SERVERS as u64 });
            }
            all.insert(name.to_owned(), McpServer { name: name.to_owned(), who: who.clone(), config });
            Ok(())
        })
    }

    fn unregister(&self, who: &Who, name: &str) -> Result<(), Error> {
        self.change(|all| {
            if all.get(name).is_none_or(|known| known.who != *who) {
                let (shown, plugin) = (printable(name), &who.plugin);
                return Err(Error::NotFound(format!("the plugin {plugin} has added no server `{shown}`")));
            }
            all.remove(name);
            Ok(())
        })
    }

    fn list(&self) -> Vec<McpServer> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use atoll_table::Origin;

    use super::*;

    fn who(plugin: &str) -> Who {
        Who { plugin: plugin.to_owned(), origin: Origin::User }
    }

    #[test]
    fn each_extension_changes_its_own_and_has_so_many() {
        let servers = SessionServers::new(Extensions::default());
        servers.register(&who("a"), "one", json!({"command": "x"})).unwrap();
        servers.register(&who("a"), "one", json!({"command": "y"})).unwrap();
        let all = servers.list();
        assert_eq!((all.len(), &all[0].config), (1, &json!({"command": "y"})));
        for (name, config) in [("", json!({})), ("a b", json!({})), ("two", json!([])), ("two", json!(null))] {
            assert_eq!(servers.register(&who("a"), name, config).unwrap_err().code(), "invalid-arguments", "{name}");
        }
        let error = servers.register(&who("b"), "one", json!({})).unwrap_err();
        assert!(error.to_string().contains("the plugin a has added a server one"), "{error}");
        assert_eq!(servers.unregister(&who("b"), "one").unwrap_err().code(), "not-found");
        for number in 0..MAX_SERVERS - 1 {
            servers.register(&who("a"), &format!("n{number}"), json!({})).unwrap();
        }
        assert_eq!(servers.register(&who("a"), "more", json!({})).unwrap_err().code(), "limit");
        servers.register(&who("a"), "one", json!({})).unwrap();
        servers.register(&who("b"), "more", json!({})).unwrap();
        servers.unregister(&who("a"), "one").unwrap();
        assert_eq!(servers.list().len(), MAX_SERVERS);
    }
}
