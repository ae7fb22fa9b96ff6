//! A plugin that is loaded when it is first used. Until then nothing of it is read, mapped or run but its description.
//!
//! What is loaded is checked and linked as if there had been no description: that one decides what a plugin is known
//! for, never what it may do.

use std::sync::Arc;

use atoll_table::{Error, Invocation, Progress, ToolOutput, ToolRunner};
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::OnceCell;
use wasmtime::component::{Component, InstancePre};

use crate::{
    bindings::atoll::plugin::types as wit,
    components::{Components, Source, blocking},
    contract_check,
    linking::{self, Linking},
    state::{PluginContext, PluginState},
    tool_plugin::ToolPlugin,
    workers::WorkerPlugin,
};

/// A plugin's component, linked to what it was granted, once somebody needs it.
pub(crate) struct LazyComponent {
    components: Components,
    source: Source,
    context: Arc<PluginContext>,
    linking: Linking,
    linked: OnceCell<InstancePre<PluginState>>,
}

impl LazyComponent {
    pub(crate) fn new(components: Components, source: Source, context: Arc<PluginContext>, linking: Linking) -> Self {
        Self { components, source, context, linking, linked: OnceCell::new() }
    }

    /// The component, ready to be instantiated. Whoever comes first loads it, others wait for that; a failure is not
    /// kept, so that the next one tries again.
    ///
    /// # Errors
    /// Those of [`Components::load`], and whatever it is refused for.
    pub(crate) async fn get(self: &Arc<Self>) -> Result<InstancePre<PluginState>, Error> {
        let linked = self.linked.get_or_try_init(async || {
            tracing::debug!(plugin = self.context.name, "loading the component");
            let component = self.components.load(&self.context.name, &self.source).await?;
            self.link(component).await
        });
        linked.await.cloned()
    }

    /// The same with a component that is there already.
    pub(crate) async fn get_from(self: &Arc<Self>, component: Component) -> Result<InstancePre<PluginState>, Error> {
        self.linked.get_or_try_init(|| self.link(component)).await.cloned()
    }

    async fn link(self: &Arc<Self>, component: Component) -> Result<InstancePre<PluginState>, Error> {
        let this = Arc::clone(self);
        blocking(move || {
            let (engine, context) = (&this.components.engine, &this.context);
            // Opened here, where it may take as long as it likes.
            context.roots();
            let surface = contract_check::surface(engine, &component);
            let effective = context.effective();
            contract_check::check(&surface, &effective, this.linking)?;
            let pre = linking::linker(engine, &effective, this.linking)
                .and_then(|linker| linker.instantiate_pre(&component))
                .map_err(|reason| misfit(&context.name, &reason))?;
            if surface.exports.contains("worker") {
                let worker =
                    WorkerPlugin::new(engine.clone(), pre.clone()).map_err(|reason| misfit(&context.name, &reason))?;
                context.worker.get_or_init(|| worker);
            }
            Ok(pre)
        })
        .await?
    }
}

/// The tools of a plugin that is loaded when one of them is first used.
pub(crate) struct LazyTools {
    component: Arc<LazyComponent>,
    plugin: OnceCell<ToolPlugin>,
}

impl LazyTools {
    pub(crate) fn new(component: Arc<LazyComponent>) -> Self {
        Self { component, plugin: OnceCell::new() }
    }

    async fn plugin(&self) -> Result<&ToolPlugin, Error> {
        let load = async || {
            let pre = self.component.get().await?;
            let context = &self.component.context;
            ToolPlugin::new(self.component.components.engine.clone(), pre, Arc::clone(context))
                .map_err(|reason| misfit(&context.name, &reason))
        };
        self.plugin.get_or_try_init(load).await
    }

    /// What it says now that it brings.
    pub(crate) async fn list(&self) -> Result<Vec<wit::Tool>, Error> {
        self.plugin().await?.list().await
    }
}

impl ToolRunner for LazyTools {
    fn prepare(&self, tool: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
        Box::pin(async move { self.plugin().await?.prepare(&tool, &arguments).await })
    }

    fn call(&self, invocation: Invocation, progress: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>> {
        Box::pin(async move { self.plugin().await?.call(invocation, progress).await })
    }

    fn allowed(&self) -> Vec<String> {
        self.component.context.effective().describe()
    }
}

fn misfit(name: &str, reason: &wasmtime::Error) -> Error {
    Error::Failed(format!("the plugin {name} does not fit the contract: {reason:#}"))
}
