//! What a plugin under test keeps with the user and adds to the session: secrets, providers, servers. Nobody uses them.

use atoll_table::{
    Error,
    extension::{McpServer, Providers, Servers, Who},
    model::Secret,
    secrets::SecretStore,
};
use serde_json::Value;

use super::{
    record::Effect,
    stage::{Stage, lock},
};

impl Stage {
    fn added(&self, what: String) {
        self.record.add(Effect::Session(what));
    }
}

impl SecretStore for Stage {
    fn get(&self, name: &str) -> Result<Secret, Error> {
        let found = lock(&self.secrets).get(name).cloned();
        found.ok_or_else(|| Error::NotFound(format!("there is no secret {name}")))
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        Ok(lock(&self.secrets).keys().cloned().collect())
    }

    fn save(&self, name: &str, value: &Secret) -> Result<(), Error> {
        lock(&self.secrets).insert(name.to_owned(), value.clone());
        self.added(format!("secret {name}"));
        Ok(())
    }
}

impl Providers for Stage {
    fn register(&self, _: &Who, name: &str, config: Value, key: Option<Secret>) -> Result<(), Error> {
        let with_key = if key.is_some() { " with a key" } else { "" };
        self.added(format!("provider {name}{with_key}: {config}"));
        lock(&self.providers).insert(name.to_owned(), config);
        Ok(())
    }

    fn unregister(&self, _: &Who, name: &str) -> Result<(), Error> {
        if lock(&self.providers).remove(name).is_none() {
            return Err(Error::NotFound(format!("the plugin has added no provider `{name}`")));
        }
        self.added(format!("no provider {name}"));
        Ok(())
    }
}

impl Servers for Stage {
    fn register(&self, who: &Who, name: &str, config: Value) -> Result<(), Error> {
        self.added(format!("server {name}: {config}"));
        lock(&self.servers).insert(name.to_owned(), McpServer { name: name.to_owned(), who: who.clone(), config });
        Ok(())
    }

    fn unregister(&self, _: &Who, name: &str) -> Result<(), Error> {
        if lock(&self.servers).remove(name).is_none() {
            return Err(Error::NotFound(format!("the plugin has added no server `{name}`")));
        }
        self.added(format!("no server {name}"));
        Ok(())
    }

    fn list(&self) -> Vec<McpServer> {
        lock(&self.servers).values().cloned().collect()
    }
}
