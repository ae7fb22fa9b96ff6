//! MCP servers that extensions add to the session, for the extension that connects to them. Nothing here connects.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
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
    all: Mutex<BTreeMap<String, Entry>>,
    additions: AtomicU64,
}

/// A server, with a number that no other addition has.
#[derive(Clone)]
struct Entry {
    server: McpServer,
    number: u64,
}

/// What one extension had added at some time.
pub struct OwnServers {
    who: Who,
    entries: Vec<Entry>,
}

/// Whether a name may be a server's: 1 to 64 of `A-Z a-z 0-9 _ - .`.
fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}

impl SessionServers {
    /// None yet.
    pub fn new(extensions: Extensions) -> Self {
        Self { extensions, all: Mutex::default(), additions: AtomicU64::default() }
    }

    /// What an extension has added, before another version of it takes over.
    pub fn of(&self, who: &Who) -> OwnServers {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = all.values().filter(|entry| entry.server.who == *who).cloned().collect();
        OwnServers { who: who.clone(), entries }
    }

    /// Another version has taken over: what it has not added itself goes.
    pub fn taken_over(&self, before: &OwnServers) {
        let is_old = |entry: &Entry| before.entries.iter().any(|old| old.number == entry.number);
        self.retain(|entry| !is_old(entry));
    }

    /// No other version has taken over: what there was is there again.
    pub fn restore(&self, before: OwnServers) {
        let OwnServers { who, entries } = before;
        let is_changed = |all: &BTreeMap<String, Entry>| {
            let now = all.values().filter(|entry| entry.server.who == who).map(|entry| entry.number);
            !now.eq(entries.iter().map(|entry| entry.number))
        };
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if is_changed(&all) {
            all.retain(|_, entry| entry.server.who != who);
            all.extend(entries.into_iter().map(|entry| (entry.server.name.clone(), entry)));
            self.tell(&all);
        }
    }

    /// An extension is not there any more, and what it added goes with it.
    pub fn forget(&self, who: &Who) {
        self.retain(|entry| entry.server.who != *who);
    }

    fn retain(&self, stays: impl Fn(&Entry) -> bool) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.len();
        all.retain(|_, entry| stays(entry));
        if all.len() != before {
            self.tell(&all);
        }
    }

    /// Changes them, and tells what there is then.
    fn change(&self, change: impl FnOnce(&mut BTreeMap<String, Entry>) -> Result<(), Error>) -> Result<(), Error> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut all)?;
        self.tell(&all);
        Ok(())
    }

    /// Tells what there is. To be called before anybody else can change it, so that the last one told is the last there is.
    fn tell(&self, all: &BTreeMap<String, Entry>) {
        self.extensions.observe(EventKind::McpServersChange, || {
            let shown = |Entry { server, .. }: &Entry| json!({"name": server.name, "plugin": server.who.plugin, "config": server.config});
            json!({"servers": all.values().map(shown).collect::<Vec<_>>()})
        });
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
            if let Some(known) = all.get(name).filter(|known| known.server.who != *who) {
                let other = &known.server.who.plugin;
                return Err(Error::InvalidArguments(format!(
                    "the plugin {other} has added a server {shown}; choose another name"
                )));
            }
            let own = all.values().filter(|known| known.server.who == *who).count();
            if own >= MAX_SERVERS && !all.contains_key(name) {
                return Err(Error::Limit { name: "servers".to_owned(), value: MAX_SERVERS as u64 });
            }
            let server = McpServer { name: name.to_owned(), who: who.clone(), config };
            let number = self.additions.fetch_add(1, Ordering::Relaxed);
            all.insert(name.to_owned(), Entry { server, number });
            Ok(())
        })
    }

    fn unregister(&self, who: &Who, name: &str) -> Result<(), Error> {
        self.change(|all| {
            if all.get(name).is_none_or(|known| known.server.who != *who) {
                let (shown, plugin) = (printable(name), &who.plugin);
                return Err(Error::NotFound(format!("the plugin {plugin} has added no server `{shown}`")));
            }
            all.remove(name);
            Ok(())
        })
    }

    fn list(&self) -> Vec<McpServer> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.values().map(|entry| entry.server.clone()).collect()
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

    #[test]
    fn what_one_added_goes_with_it_or_with_the_version_that_added_it() {
        let servers = SessionServers::new(Extensions::default());
        let add = |plugin: &str, name: &str, version: u64| {
            servers.register(&who(plugin), name, json!({"version": version})).unwrap();
        };
        let there = || -> Vec<String> {
            servers.list().iter().map(|server| format!("{} {}", server.name, server.config["version"])).collect()
        };
        for (plugin, name) in [("a", "stays"), ("a", "goes"), ("b", "other")] {
            add(plugin, name, 1);
        }
        // A version that can not take over leaves what there was.
        let before = servers.of(&who("a"));
        add("a", "stays", 2);
        add("a", "new", 2);
        servers.restore(before);
        assert_eq!(there(), ["goes 1", "other 1", "stays 1"]);
        let before = servers.of(&who("a"));
        add("a", "stays", 2);
        add("a", "new", 2);
        servers.taken_over(&before);
        assert_eq!(there(), ["new 2", "other 1", "stays 2"]);
        servers.forget(&who("a"));
        assert_eq!(there(), ["other 1"]);
        servers.forget(&Who { origin: Origin::Project, ..who("b") });
        assert_eq!(there(), ["other 1"], "one of that name from elsewhere is another");
    }
}
