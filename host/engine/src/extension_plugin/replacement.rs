//! Another component that takes over from a running one, without a call being lost: what is under way ends on the old one,
//! and what begins from then on is the new one's. A component that can not start leaves the old one as it is.

use std::{collections::BTreeSet, sync::Arc};

use atoll_table::{
    Error, Tool, ToolRunner,
    extension::{Extension as _, StartReason, Subscription},
};

use super::{ExtensionPlugin, Generation, Inner, Place, stop};
use crate::state::lock;

/// A component that was loaded to take over from a running extension.
pub struct Replacement(pub(crate) Generation);

/// A running extension, as whoever reloads it sees it. Clones are the same one.
#[derive(Clone)]
pub struct LiveExtension(pub(crate) ExtensionPlugin);

impl LiveExtension {
    /// What runs its tools, those that it adds later among them.
    pub fn runner(&self) -> Arc<dyn ToolRunner> {
        Arc::clone(self.0.inner().runner())
    }

    /// Starts the new component with the reason `reload`, and lets it take over. Its tools take the places of those of the
    /// same names; those it does not have are withdrawn. The old one ends in order once what it carries out has ended.
    /// Flags stay as they are.
    ///
    /// # Errors
    /// Why the new one could not start. The old one then goes on.
    pub async fn replace(&self, replacement: Replacement) -> Result<Arc<Subscription>, Error> {
        self.0.inner().replace(Arc::new(replacement.0)).await
    }

    /// Ends it in order, once what it carries out has ended. For one that is not to be there any more: nobody must call it
    /// from now on.
    pub async fn retire(&self) {
        let place = self.0.inner().place.borrow().clone();
        if let Place::Up(actor, _) = place {
            actor.idle().await;
        }
        self.0.stop().await;
    }
}

impl Generation {
    /// The names of its tools: those it brings, and those it added.
    pub(super) fn all_tools(&self) -> BTreeSet<String> {
        let mut names = lock(&self.context().added).clone();
        names.extend(self.tools.iter().map(|tool| tool.name.clone()));
        names
    }
}

impl Inner {
    async fn replace(self: &Arc<Self>, new: Arc<Generation>) -> Result<Arc<Subscription>, Error> {
        if new.context().name != self.who.plugin {
            return Err(Error::InvalidArguments(format!(
                "the extension {} can not be replaced by another plugin, {}",
                self.who.plugin,
                new.context().name
            )));
        }
        self.adopt(&new);
        // What the old one has seen may be in what it left to the new one.
        new.context().know_secrets_of(&self.context());
        let (actor, mut subscription) = self.bring_up(&new, StartReason::Reload).await?;
        if let Err(error) = self.register(&new.tools).await {
            actor.end();
            return Err(error);
        }
        subscription.flags.clone_from(&self.subscription().flags);
        let was_not_stopped = |place: &Place| !matches!(place, Place::Stopped);
        let (old, subscription) = self.come_up(&actor, &new, subscription, was_not_stopped)?;
        let before = {
            let mut generation = self.generation.write().unwrap_or_else(std::sync::PoisonError::into_inner);
            std::mem::replace(&mut *generation, Arc::clone(&new))
        };
        self.look_after(&actor);
        self.withdraw(before.all_tools().difference(&new.all_tools()).cloned().collect()).await;
        if let Place::Up(old, _) = old {
            tokio::spawn(async move {
                old.idle().await;
                stop(old).await;
            });
        }
        Ok(subscription)
    }

    async fn register(self: &Arc<Self>, tools: &[Tool]) -> Result<(), Error> {
        let context = self.context();
        match context.shared.services.get().and_then(|services| services.tables.clone()) {
            Some(tables) if !tools.is_empty() => {
                let table = tables.access(&self.who, None, 0);
                table.register(tools.to_vec(), Arc::clone(self.runner()), context.limits.tools).await
            }
            _ => Ok(()),
        }
    }

    /// Withdraws tools that are not there any more.
    pub(super) async fn withdraw(&self, names: Vec<String>) {
        let context = self.context();
        let tables = context.shared.services.get().and_then(|services| services.tables.clone());
        let Some(tables) = tables.filter(|_| !names.is_empty()) else { return };
        if let Err(error) = tables.access(&self.who, None, 0).unregister(names).await {
            self.report(None, &error);
        }
    }
}
