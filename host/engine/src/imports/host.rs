//! `host`: granted to every plugin.

use std::sync::atomic::Ordering;

use atoll_table::{
    Error,
    extension::{HostInfo, Mode, Tone},
};
use wasmtime::component::Accessor;

use super::{Answer, Host, caller, contract};
use crate::{convert, state::PluginState};

/// The longest text that is printed at once, in bytes.
const MAX_PRINTED: usize = 1 << 20;

impl contract::host::Host for PluginState {
    fn describe(&mut self) -> wasmtime::Result<contract::host::Info> {
        let facts = self.plugin.shared.services.get().and_then(|services| services.facts.clone());
        let info = facts.map_or_else(
            || HostInfo {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                mode: Mode::Command,
                has_person: false,
                cwd: self.plugin.shared.places.cwd.clone(),
                trusted: false,
            },
            |facts| facts.describe(),
        );
        Ok(contract::host::Info {
            version: info.version,
            mode: match info.mode {
                Mode::Print => contract::host::Mode::Print,
                Mode::Json => contract::host::Mode::Json,
                Mode::Rpc => contract::host::Mode::Rpc,
                Mode::Terminal => contract::host::Mode::Terminal,
                Mode::Command => contract::host::Mode::Command,
            },
            has_person: info.has_person,
            cwd: info.cwd.to_string_lossy().into_owned(),
            trusted: info.trusted,
            plugin: self.plugin.name.clone(),
        })
    }

    fn flag_value(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        self.plugin.trap_on_bytes(name.len())?;
        let facts = self.plugin.shared.services.get().and_then(|services| services.facts.clone());
        Ok(facts.and_then(|facts| facts.flag(&self.plugin.who(), &name)))
    }

    fn settings(&mut self) -> wasmtime::Result<String> {
        let facts = self.plugin.shared.services.get().and_then(|services| services.facts.clone());
        Ok(facts.map_or_else(|| "{}".to_owned(), |facts| facts.settings(&self.plugin.who()).to_string()))
    }

    fn home(&mut self) -> wasmtime::Result<Option<String>> {
        let home = &self.plugin.shared.places.home;
        Ok(home.is_absolute().then(|| home.to_string_lossy().into_owned()))
    }

    fn wanted_command(&mut self) -> wasmtime::Result<Option<String>> {
        let facts = self.plugin.shared.services.get().and_then(|services| services.facts.clone());
        Ok(facts.and_then(|facts| facts.command()))
    }

    fn print(&mut self, text: String) -> wasmtime::Result<()> {
        self.plugin.trap_on_bytes(text.len())?;
        // What only says what it is has nobody to say it to.
        if !self.call.asks() {
            return Ok(());
        }
        let services = self.plugin.shared.services.get();
        let Some(ui) = services.and_then(|services| services.ui.clone()) else { return Ok(()) };
        let mode = services.and_then(|services| services.facts.as_ref()).map(|facts| facts.describe().mode);
        // Standard output is the program's own, but for what a person asked for.
        let is_asked = self.plugin.commands.load(Ordering::SeqCst) > 0;
        if is_asked && matches!(mode, Some(Mode::Print | Mode::Command)) {
            let mut text = self.plugin.redacted(&text);
            text.truncate(text.floor_char_boundary(MAX_PRINTED));
            ui.print(&self.plugin.who(), text);
        } else {
            self.show_notice(&*ui, &text, Tone::Info);
        }
        Ok(())
    }
}

impl<T: Send + 'static> contract::host::HostWithStore<T> for Host {
    async fn subscribe(accessor: &Accessor<T, Self>, wanted: contract::types::Subscription) -> Answer<()> {
        let caller = caller(accessor);
        let is_extension = accessor.with(|mut access| access.get().is_extension);
        let subscribe = || {
            let wanted = convert::extension::subscription_from_wit(&caller.name, wanted)?;
            let extension = caller.plugin.extension.get().and_then(std::sync::Weak::upgrade).filter(|_| is_extension);
            let Some(extension) = extension else {
                return Err(Error::Unavailable(format!(
                    "the plugin {} is no extension that runs, so nothing can call it",
                    caller.name
                )));
            };
            extension.subscribe(wanted)
        };
        Ok(subscribe().map_err(Into::into))
    }
}
