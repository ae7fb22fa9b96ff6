//! `models`: completions of an extension's own.

use atoll_caps::Capability;
use atoll_table::{Content, Error};
use wasmtime::component::Accessor;

use super::{Answer, Host, contract, permitted, service};
use crate::{convert, state::PluginState};

impl contract::models::Host for PluginState {
    fn available(&mut self) -> wasmtime::Result<Vec<contract::models::Choice>> {
        let is_granted = self.plugin.effective().allows_interface(Capability::Models) && self.call.asks();
        let services = self.plugin.shared.services.get().filter(|_| is_granted);
        let models = services.and_then(|services| services.models.clone());
        let choices = models.map_or_else(Vec::new, |models| models.available());
        let choice = |choice: atoll_table::extension::ModelChoice| contract::models::Choice {
            name: choice.name,
            images: choice.images,
            context_window: choice.context_window,
        };
        Ok(choices.into_iter().map(choice).collect())
    }
}

impl<T: Send + 'static> contract::models::HostWithStore<T> for Host {
    async fn complete(
        accessor: &Accessor<T, Self>,
        model: Option<String>,
        system: String,
        prompt: Vec<contract::types::Content>,
        max_tokens: Option<u32>,
    ) -> Answer<contract::models::Answer> {
        let complete = async {
            let target = model.as_deref().unwrap_or("the session's model");
            let caller = permitted(accessor, Capability::Models, "complete", target)?;
            caller.check_bytes(convert::content_size(&prompt) + system.len())?;
            let mut prompt: Vec<Content> = prompt.into_iter().map(convert::content_from_wit).collect();
            caller.redact_parts(&mut prompt, []);
            let models = service(&caller, "models", |services| services.models.clone())?;
            let system = caller.redacted(&system);
            let answer = models.complete(&caller.who(), model, system, prompt, max_tokens).await?;
            caller.check_bytes(answer.text.len())?;
            Ok::<_, Error>(contract::models::Answer { text: answer.text, usage: convert::usage_to_wit(&answer.usage) })
        };
        Ok(complete.await.map_err(Into::into))
    }
}
