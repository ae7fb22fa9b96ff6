//! What extensions have added to the session beside tools: model providers, and servers. It goes with who added it, so that
//! nothing is sent in the name of a plugin that is not there any more.

use std::sync::{Arc, OnceLock};

use atoll_agent::{
    conversation::{Asked, Conversation},
    extensions::servers::{OwnServers, SessionServers},
    models::{Chosen, Models, OwnProviders},
};
use atoll_table::{Origin, extension::Who};

use crate::{assemble::Parts, loaded::Plugins, model_source};

/// What was added. Empty until extensions start. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Additions(Arc<Inner>);

#[derive(Default)]
struct Inner {
    to: OnceLock<(Models, Arc<SessionServers>)>,
    conversation: OnceLock<Conversation>,
}

/// What one extension had added before another version of it began.
pub(crate) struct Before(Option<(OwnProviders, OwnServers)>);

fn who(name: &str, origin: Origin) -> Who {
    Who { plugin: name.to_owned(), origin }
}

impl Additions {
    /// Where things are added. Only the first counts.
    pub(crate) fn are_in(&self, models: Models, servers: Arc<SessionServers>) {
        let _ = self.0.to.set((models, servers));
    }

    /// Who asks the models. Only the first counts.
    pub(crate) fn are_asked_by(&self, conversation: Conversation) {
        let _ = self.0.conversation.set(conversation);
    }

    /// What an extension has added, before another version of it takes over.
    pub(crate) fn before(&self, name: &str, origin: Origin) -> Before {
        let who = who(name, origin);
        Before(self.0.to.get().map(|(models, servers)| (models.of(&who), servers.of(&who))))
    }

    /// Another version has taken over, or has failed to.
    pub(crate) fn after(&self, before: Before, has_taken_over: bool) {
        let (Some((models, servers)), Before(Some((own_models, own_servers)))) = (self.0.to.get(), before) else {
            return;
        };
        if has_taken_over {
            models.taken_over(&own_models);
            servers.taken_over(&own_servers);
        } else {
            models.restore(own_models);
            servers.restore(own_servers);
        }
    }

    /// An extension is not there any more.
    pub(crate) fn forget(&self, name: &str, origin: Origin) {
        if let Some((models, servers)) = self.0.to.get() {
            let who = who(name, origin);
            models.forget(&who);
            servers.forget(&who);
        }
    }

    /// After extensions came or went: the model that is asked is as it is described now, if an extension described it. Once
    /// it is gone, whoever asks it is told so; the session does not turn to another by itself.
    pub(crate) async fn settle(&self, parts: &Arc<Parts>, plugins: &Plugins) {
        let (Some((models, _)), Some(conversation)) = (self.0.to.get(), self.0.conversation.get()) else { return };
        let Asked { chosen: before, .. } = conversation.asked();
        // Nothing was asked for by name where there is no provider.
        if before.model.is_users || before.model.provider.is_empty() {
            return;
        }
        let name = format!("{}/{}", before.model.provider, before.model.id);
        let asked = match models.choose(Some(&name)) {
            Ok(chosen) => match parts.provider(&chosen.model.api, plugins).await {
                // How hard it is to think was not asked about.
                Ok(provider) => Asked { chosen: Chosen { thinking: before.thinking, ..chosen }, provider },
                Err(_) => return,
            },
            Err(error) => model_source::nobody(Some(&name), &error),
        };
        conversation.set_asked(asked);
    }
}
