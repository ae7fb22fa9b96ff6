//! `secrets`: for protocols that must hold a credential. Most plugins only name one in a header.
//!
//! What a plugin has seen of a secret must not be seen in anything it says from then on.

use std::sync::{Arc, PoisonError};

use atoll_caps::{Capability, printable};
use atoll_table::{Error, model::Secret, secrets::SecretStore};
use wasmtime::component::Accessor;

use super::{Answer, Host, caller, contract};
use crate::{
    audit::Verdict,
    call::{Caller, Use},
    state::{PluginContext, PluginState},
};

/// What is used of a secret.
fn use_of<'a>(operation: &'a str, name: &'a str) -> Use<'a> {
    Use { capability: Capability::Secrets.as_str(), operation, target: name }
}

fn store(plugin: &PluginContext) -> Option<Arc<dyn SecretStore>> {
    plugin.shared.secrets.get().cloned()
}

/// From here on this value is taken out of what the plugin says, and of the audit log.
pub(super) fn learn(plugin: &PluginContext, name: &str, value: &Secret) {
    if let Some(audit) = plugin.shared.audit.get() {
        audit.learn(value.reveal());
    }
    plugin.used_secrets.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), value.clone());
}

/// A secret of the user's, for a plugin that may use it. From here on it is taken out of what the plugin says.
pub(crate) async fn look_up(plugin: &Caller, name: &str) -> Result<Secret, Error> {
    let Some(store) = store(plugin) else {
        return Err(Error::NotFound(format!("there is no secret {}", printable(name))));
    };
    let wanted = name.to_owned();
    let value = plugin.blocking(move || store.get(&wanted)).await?;
    learn(plugin, name, &value);
    Ok(value)
}

impl contract::secrets::Host for PluginState {
    fn available(&mut self) -> wasmtime::Result<Vec<String>> {
        let caller = self.caller();
        if caller.check_in_call(use_of("list", "")).is_err() {
            return Ok(Vec::new());
        }
        let effective = caller.effective();
        let names = store(&caller).map_or_else(|| Ok(Vec::new()), |store| store.names());
        let mut names = names.unwrap_or_else(|error| {
            tracing::warn!(plugin = caller.name, %error, "secrets can not be listed");
            Vec::new()
        });
        names.retain(|name| effective.check_secret(name, false).is_ok());
        caller.call.uses.add(Capability::Secrets.as_str(), "list", "", Verdict::Allowed, names.len() as u64, None);
        Ok(names)
    }
}

impl<T: Send + 'static> contract::secrets::HostWithStore<T> for Host {
    async fn reveal(accessor: &Accessor<T, Self>, name: String) -> Answer<String> {
        let reveal = async {
            let caller = caller(accessor);
            caller.check_bytes(name.len())?;
            let the_use = use_of("reveal", &name);
            let verdict = caller.permit(the_use, |effective| effective.check_secret(&name, true)).await?;
            let value = look_up(&caller, &name).await?;
            caller.call.uses.used(the_use.capability, the_use.operation, &name, verdict);
            Ok::<_, Error>(value.reveal().to_owned())
        };
        Ok(reveal.await.map_err(Into::into))
    }

    async fn save(accessor: &Accessor<T, Self>, name: String, value: String) -> Answer<()> {
        let save = async {
            let caller = caller(accessor);
            caller.check_bytes(name.len() + value.len())?;
            let the_use = use_of("save", &name);
            let verdict = caller.permit(the_use, |effective| effective.check_secret(&name, false)).await?;
            let Some(store) = store(&caller) else {
                return Err(Error::Unavailable("there is no place for secrets here".to_owned()));
            };
            let value = Secret::new(value);
            // First, for an error may hold it.
            learn(&caller, &name, &value);
            let kept = name.clone();
            caller.blocking(move || store.save(&kept, &value)).await.map_err(|error| caller.redacted_error(error))?;
            caller.call.uses.used(the_use.capability, the_use.operation, &name, verdict);
            Ok::<_, Error>(())
        };
        Ok(save.await.map_err(Into::into))
    }
}
