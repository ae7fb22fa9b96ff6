//! Where models come from for extensions: the models file, what they add themselves, and the providers that are loaded.

use std::sync::Arc;

use atoll_agent::{
    conversation::Asked,
    extensions::session_access::ModelSource,
    models::{Chosen, ModelError, Models, Prices},
};
use atoll_engine::LoadedPlugin;
use atoll_table::{
    Error,
    extension::ModelChoice,
    model::{Model, ModelEvent, ModelProvider, ModelRequest, ThinkingLevel},
};
use futures::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use serde_json::Value;

use crate::{assemble::Parts, assembled::Assembled};

/// The models of this run.
pub(crate) struct Source {
    pub(crate) parts: Arc<Parts>,
    pub(crate) models: Models,
    pub(crate) plugins: Arc<Vec<LoadedPlugin>>,
}

impl ModelSource for Source {
    fn choose(&self, name: &str) -> Result<Chosen, Error> {
        self.models.choose(Some(name)).map_err(|error| match error {
            ModelError::UnknownProvider { .. } | ModelError::UnknownModel(_) | ModelError::NoneConfigured { .. } => {
                Error::NotFound(error.to_string())
            }
            ModelError::File { .. } | ModelError::NoScript | ModelError::Value { .. } => {
                Error::Unavailable(error.to_string())
            }
        })
    }

    fn available(&self) -> Vec<ModelChoice> {
        self.models.choices()
    }

    fn provider<'a>(&'a self, api: &'a str) -> BoxFuture<'a, Result<Arc<dyn ModelProvider>, Error>> {
        let (parts, plugins, api) = (Arc::clone(&self.parts), Arc::clone(&self.plugins), api.to_owned());
        async move {
            // In a task of its own: an extension may ask for it, and an instance is not run inside of another one's call.
            let found = tokio::spawn(async move { parts.provider(&api, &plugins).await }).await;
            let found = found.map_err(|reason| Error::Failed(format!("the host failed: {reason}")))?;
            found.map_err(|error| Error::NotFound(format!("{error:#}")))
        }
        .boxed()
    }
}

/// Whether a model that is not there may be one that an extension adds when it starts.
pub(crate) fn may_be_added(error: &ModelError, assembled: &Assembled) -> bool {
    matches!(error, ModelError::UnknownProvider { .. } | ModelError::UnknownModel(_))
        && !assembled.extensions.all().is_empty()
}

/// What is asked until extensions have started: a model that is not there yet.
pub(crate) fn nobody(wanted: Option<&str>, error: &ModelError) -> Asked {
    let (provider, id) = wanted.unwrap_or_default().split_once('/').unwrap_or(("", wanted.unwrap_or_default()));
    let model = Model {
        id: id.to_owned(),
        name: id.to_owned(),
        provider: provider.to_owned(),
        api: String::new(),
        base_url: String::new(),
        reasoning: false,
        images: false,
        context_window: 0,
        max_tokens: 0,
        headers: Vec::new(),
        compat: Value::Null,
        is_users: false,
    };
    let chosen = Chosen {
        model,
        key: None,
        header_secrets: Vec::new(),
        prices: Prices::default(),
        thinking: ThinkingLevel::Off,
        note: None,
    };
    Asked { chosen, provider: Arc::new(Nobody(Error::NotFound(error.to_string()))) }
}

/// Answers no request.
struct Nobody(Error);

impl ModelProvider for Nobody {
    fn apis(&self) -> Vec<String> {
        Vec::new()
    }

    fn complete(&self, _: ModelRequest) -> BoxFuture<'_, Result<BoxStream<'static, ModelEvent>, Error>> {
        async { Err(self.0.clone()) }.boxed()
    }
}
