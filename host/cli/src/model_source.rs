//! Where models come from for extensions: the models file, and the providers that are loaded.

use std::sync::Arc;

use atoll_agent::{
    extensions::session_access::ModelSource,
    models::{Chosen, ModelError, Models},
};
use atoll_engine::LoadedPlugin;
use atoll_table::{Error, extension::ModelChoice, model::ModelProvider};
use futures::{FutureExt as _, future::BoxFuture};

use crate::assemble::Parts;

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
        async move {
            self.parts.provider(api, &self.plugins).await.map_err(|error| Error::NotFound(format!("{error:#}")))
        }
        .boxed()
    }
}
