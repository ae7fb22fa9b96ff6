//! Where models come from for extensions: the models file, what they add themselves, and the providers that are loaded.

use std::sync::Arc;

use atoll_agent::{
    Session,
    conversation::Asked,
    extensions::session_access::ModelSource,
    models::{Chosen, ModelError, Models, Prices},
};
use atoll_table::{
    Error,
    extension::ModelChoice,
    model::{Model, ModelEvent, ModelProvider, ModelRequest, ThinkingLevel},
};
use futures::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use serde_json::Value;

use crate::{assemble::Parts, assembled::Assembled, loaded::Plugins};

/// What programs that tools start are told of the session.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    id: String,
    file: String,
}

impl Programs {
    pub(crate) fn of(session: &Session) -> Self {
        let file = session.path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        Self { id: session.id().to_owned(), file }
    }

    /// Their variables while this model is asked.
    pub(crate) fn variables(&self, chosen: &Chosen) -> Vec<(String, String)> {
        let level = serde_json::to_value(chosen.thinking).ok().and_then(|level| Some(level.as_str()?.to_owned()));
        [
            ("AI_AGENT", "atoll".to_owned()),
            ("ATOLL_SESSION_ID", self.id.clone()),
            ("ATOLL_SESSION_FILE", self.file.clone()),
            ("ATOLL_PROVIDER", chosen.model.provider.clone()),
            ("ATOLL_MODEL", chosen.model.id.clone()),
            ("ATOLL_REASONING_LEVEL", level.unwrap_or_default()),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}

/// The models of this run.
pub(crate) struct Source {
    pub(crate) parts: Arc<Parts>,
    pub(crate) models: Models,
    pub(crate) plugins: Plugins,
    pub(crate) programs: Programs,
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

    fn asked(&self, chosen: &Chosen) {
        self.parts.host.set_process_env(self.programs.variables(chosen));
    }

    fn provider<'a>(&'a self, api: &'a str) -> BoxFuture<'a, Result<Arc<dyn ModelProvider>, Error>> {
        let (parts, plugins, api) = (Arc::clone(&self.parts), self.plugins.clone(), api.to_owned());
        // On a task of its own: who asks may be a plugin in the middle of its instance, inside of which no other can run.
        let loading = tokio::spawn(async move {
            parts.provider(&api, &plugins).await.map_err(|error| Error::NotFound(format!("{error:#}")))
        });
        async move {
            loading
                .await
                .unwrap_or_else(|error| Err(Error::Failed(format!("the provider could not be loaded: {error}"))))
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
