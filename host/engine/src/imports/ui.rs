//! `ui`: talking to the person. While they think, no clock of whoever waits for the answer runs.

use std::{sync::Arc, time::Duration};

use atoll_caps::Capability;
use atoll_table::{
    Error,
    extension::{Tone, Ui},
};
use wasmtime::component::Accessor;

use super::{Answer, Host, contract, permitted, service};
use crate::{call::Caller, state::PluginState};

/// The longest text of a question or a notice, in bytes, and the most options.
const MAX_TEXT: usize = 64 << 10;
const MAX_OPTIONS: usize = 10_000;

/// The person, for a caller that may talk to them.
fn ui<T: Send>(
    accessor: &Accessor<T, Host>,
    operation: &str,
    title: &str,
    texts: &[&str],
) -> Result<(Caller, Arc<dyn Ui>), Error> {
    let caller =
        permitted(accessor, Capability::Ui, operation, title.get(..title.floor_char_boundary(200)).unwrap_or(""))?;
    let length = texts.iter().map(|text| text.len()).sum::<usize>() + title.len();
    if length > MAX_TEXT {
        return Err(Error::InvalidArguments(format!(
            "a question may have {MAX_TEXT} bytes, this one has {length}; shorten it"
        )));
    }
    let ui = service(&caller, "ui", |services| services.ui.clone())?;
    Ok((caller, ui))
}

fn timeout(milliseconds: Option<u64>) -> Option<Duration> {
    milliseconds.map(Duration::from_millis)
}

impl PluginState {
    /// The person, for imports that have no way to say no.
    fn ui(&self, operation: &str, target: &str) -> Option<Arc<dyn Ui>> {
        let ui = self.plugin.shared.services.get()?.ui.clone()?;
        self.may_use(Capability::Ui, operation, target).then_some(ui)
    }
}

impl PluginState {
    /// Shows a notice, unless it has shown too many.
    pub(super) fn show_notice(&mut self, ui: &dyn Ui, message: &str, tone: Tone) {
        let (may, is_last) = self.notices.take();
        if !may {
            return;
        }
        let mut message = self.plugin.redacted(message);
        message.truncate(message.floor_char_boundary(MAX_TEXT));
        ui.notify(&self.plugin.who(), message, tone);
        if is_last {
            let said = "it says too much; what it says from here on is left out for a while";
            ui.notify(&self.plugin.who(), said.to_owned(), Tone::Warning);
        }
    }
}

impl contract::ui::Host for PluginState {
    fn available(&mut self) -> wasmtime::Result<bool> {
        let is_granted = self.plugin.effective().allows_interface(Capability::Ui) && self.call.asks();
        let services = self.plugin.shared.services.get().filter(|_| is_granted);
        Ok(services.and_then(|services| services.ui.as_ref()).is_some_and(|ui| ui.available()))
    }

    fn notify(&mut self, message: String, tone: contract::ui::Tone) -> wasmtime::Result<()> {
        self.plugin.trap_on_bytes(message.len())?;
        if let Some(ui) = self.ui("notify", &message) {
            let tone = match tone {
                contract::ui::Tone::Info => Tone::Info,
                contract::ui::Tone::Warning => Tone::Warning,
                contract::ui::Tone::Error => Tone::Error,
            };
            self.show_notice(&*ui, &message, tone);
        }
        Ok(())
    }

    fn set_status(&mut self, text: Option<String>) -> wasmtime::Result<()> {
        self.plugin.trap_on_bytes(text.as_ref().map_or(0, String::len))?;
        if let Some(ui) = self.ui("set status", text.as_deref().unwrap_or_default()) {
            let text = text.map(|text| {
                let mut text = self.plugin.redacted(&text);
                text.truncate(text.floor_char_boundary(MAX_TEXT));
                text
            });
            ui.set_status(&self.plugin.who(), text);
        }
        Ok(())
    }
}

impl<T: Send + 'static> contract::ui::HostWithStore<T> for Host {
    async fn select(
        accessor: &Accessor<T, Self>,
        title: String,
        options: Vec<String>,
        timeout_ms: Option<u64>,
    ) -> Answer<Option<u32>> {
        let ask = async {
            let texts: Vec<&str> = options.iter().map(String::as_str).collect();
            let (caller, ui) = ui(accessor, "select", &title, &texts)?;
            if options.is_empty() || options.len() > MAX_OPTIONS {
                return Err(Error::InvalidArguments(format!(
                    "there are {} options to choose from; there may be 1 to {MAX_OPTIONS}",
                    options.len()
                )));
            }
            let _pause = caller.call.clock.pause();
            let (title, options) =
                (caller.redacted(&title), options.iter().map(|text| caller.redacted(text)).collect());
            let picked = ui.select(&caller.who(), title, options, timeout(timeout_ms)).await?;
            Ok::<_, Error>(picked.and_then(|index| u32::try_from(index).ok()))
        };
        Ok(ask.await.map_err(Into::into))
    }

    async fn confirm(
        accessor: &Accessor<T, Self>,
        title: String,
        message: String,
        timeout_ms: Option<u64>,
    ) -> Answer<Option<bool>> {
        let ask = async {
            let (caller, ui) = ui(accessor, "confirm", &title, &[&message])?;
            let _pause = caller.call.clock.pause();
            let (title, message) = (caller.redacted(&title), caller.redacted(&message));
            ui.confirm(&caller.who(), title, message, timeout(timeout_ms)).await
        };
        Ok(ask.await.map_err(Into::into))
    }

    async fn input(
        accessor: &Accessor<T, Self>,
        title: String,
        placeholder: String,
        timeout_ms: Option<u64>,
    ) -> Answer<Option<String>> {
        let ask = async {
            let (caller, ui) = ui(accessor, "input", &title, &[&placeholder])?;
            let _pause = caller.call.clock.pause();
            let (title, placeholder) = (caller.redacted(&title), caller.redacted(&placeholder));
            let text = ui.input(&caller.who(), title, placeholder, timeout(timeout_ms)).await?;
            caller.check_bytes(text.as_ref().map_or(0, String::len))?;
            Ok::<_, Error>(text)
        };
        Ok(ask.await.map_err(Into::into))
    }

    async fn editor(accessor: &Accessor<T, Self>, title: String, prefill: String) -> Answer<Option<String>> {
        let ask = async {
            let (caller, ui) = ui(accessor, "editor", &title, &[])?;
            caller.check_bytes(prefill.len())?;
            let _pause = caller.call.clock.pause();
            let (title, prefill) = (caller.redacted(&title), caller.redacted(&prefill));
            let text = ui.editor(&caller.who(), title, prefill).await?;
            caller.check_bytes(text.as_ref().map_or(0, String::len))?;
            Ok::<_, Error>(text)
        };
        Ok(ask.await.map_err(Into::into))
    }
}
