//! Calls that a tool makes in the middle of its own, and the rest of what it may do to the table meanwhile.
//!
//! Everything here goes through the pipeline: a nested call must never reach what its caller's kind may not.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use atoll_table::{
    Content, Error, Found, Listed, Origin, Registered, TableAccess, Tool, ToolOutput, ToolRunner,
    callable::Callables,
    describe::Summary,
    extension::Who,
    nesting::{Depth, NestedIds, Ticket},
    reach::{Standing, may_reach},
    registry::Group,
    search::Query,
    tool::Exposure,
};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::pipeline::{Bounds, Caller, Pipeline, Record, Request, failed};

/// Something about a call that another call makes.
#[derive(Clone, Debug, PartialEq)]
pub struct NestedEvent {
    /// Its id.
    pub call_id: String,
    /// The call that makes it.
    pub parent_id: String,
    /// The tool, as it was named.
    pub tool: String,
    /// The arguments as they were given.
    pub arguments: Value,
    /// What happens.
    pub what: NestedStep,
}

/// What happens to a nested call. Each begins and ends, however it goes.
#[derive(Clone, Debug, PartialEq)]
pub enum NestedStep {
    /// It begins.
    Start,
    /// It has something to show.
    Update {
        /// What would be read.
        content: Vec<Content>,
        /// Data for whoever shows it.
        details: Option<Value>,
    },
    /// It has ended.
    End {
        /// What it gave. Shared, for it may be large.
        output: Arc<ToolOutput>,
        /// How long the tool ran; none if it did not, or was stopped.
        duration_ms: Option<u64>,
    },
}

/// Is told of nested calls. Must not block.
pub type Watch = Arc<dyn Fn(NestedEvent) + Send + Sync>;

/// The table, as one running call may use it.
pub(crate) struct CallAccess {
    pipeline: Pipeline,
    plugin: String,
    origin: Origin,
    ids: Arc<NestedIds>,
    /// The depth of the call that calls; none: what calls is no call.
    depth: Option<Depth>,
    record: Record,
    /// What the call may do, and so the calls that it makes; none: what extensions may do by themselves.
    bounds: Option<Bounds>,
    watch: Watch,
}

impl CallAccess {
    pub(crate) fn new(
        pipeline: Pipeline,
        entry: &Registered,
        id: &str,
        depth: Depth,
        (record, bounds): (Record, Bounds),
        watch: Watch,
    ) -> Self {
        Self {
            pipeline,
            plugin: entry.plugin.clone(),
            origin: entry.origin,
            ids: Arc::new(NestedIds::new(id)),
            depth: Some(depth),
            record,
            bounds: Some(bounds),
            watch,
        }
    }

    /// For what an extension does by itself, in a call of this depth or in none. Nothing is recorded.
    pub(crate) fn own(pipeline: Pipeline, who: &Who, ids: Arc<NestedIds>, depth: Option<Depth>, watch: Watch) -> Self {
        let (record, bounds) = (Record::default(), None);
        Self { pipeline, plugin: who.plugin.clone(), origin: who.origin, ids, depth, record, bounds, watch }
    }
}

/// A nested call that has begun. Dropped before it has ended: it was stopped, and whoever watches is told.
struct Under {
    access: Arc<CallAccess>,
    event: NestedEvent,
    ticket: Ticket,
    began: Instant,
    ended: bool,
}

impl Under {
    fn tell(&self, what: NestedStep) {
        (self.access.watch)(NestedEvent { what, ..self.event.clone() });
    }

    fn end(mut self, output: Arc<ToolOutput>, duration_ms: Option<u64>) {
        self.ended = true;
        if let Some(usage) = &output.usage {
            self.access.record.change(|recorder| recorder.add_usage(usage));
        }
        let text = output.is_error.then(|| Content::joined_text(&output.content));
        let took = duration_ms.map_or_else(|| self.began.elapsed(), Duration::from_millis);
        self.access.record.change(|recorder| recorder.finish(self.ticket, took, text.as_deref()));
        self.tell(NestedStep::End { output, duration_ms });
    }
}

impl Drop for Under {
    fn drop(&mut self) {
        if !self.ended {
            let output = Arc::new(ToolOutput::error("The call that made this one was stopped."));
            self.tell(NestedStep::End { output, duration_ms: None });
        }
    }
}

impl CallAccess {
    fn bounds(&self) -> Bounds {
        self.bounds.clone().unwrap_or_else(|| self.pipeline.bounds_of_own())
    }

    /// Whether it may call a tool.
    fn reaches(&self, entry: &Registered, standing: Standing) -> bool {
        may_reach(Caller::NestedTool, entry.tool.exposure, standing) && self.bounds().allow(&entry.tool.name)
    }

    /// Runs a call that has begun.
    async fn run(under: Under, depth: Depth, arguments: Value) -> Result<ToolOutput, Error> {
        let access = Arc::clone(&under.access);
        let (id, name) = (under.event.call_id.clone(), under.event.tool.clone());
        let request = Request {
            caller: Caller::NestedTool,
            id: &id,
            parent_id: Some(access.ids.parent()),
            depth,
            name: &name,
            arguments,
            record: access.record.clone(),
            bounds: access.bounds(),
        };
        let ready = match access.pipeline.ready_for(request).await {
            Ok(ready) => ready,
            Err(error) => {
                under.end(Arc::new(failed(&error)), None);
                return Err(error);
            }
        };
        let (watch, event) = (Arc::clone(&access.watch), under.event.clone());
        let progress = Arc::new(move |content, details| {
            watch(NestedEvent { what: NestedStep::Update { content, details }, ..event.clone() });
        });
        let done = ready.run(progress, Arc::clone(&access.watch)).await;
        let output = Arc::new(done.output);
        under.end(Arc::clone(&output), done.duration_ms);
        match done.error {
            Some(error) => Err(error),
            None => Ok(Arc::unwrap_or_clone(output)),
        }
    }
}

impl TableAccess for CallAccess {
    fn call(
        self: Arc<Self>,
        nesting: u32,
        name: String,
        arguments: Value,
    ) -> BoxFuture<'static, Result<ToolOutput, Error>> {
        let depth = match self.depth.map(|depth| depth.deeper(nesting)).transpose() {
            Ok(depth) => depth.unwrap_or(Depth::OUTERMOST),
            Err(error) => return Box::pin(async { Err(error) }),
        };
        // Before anything is waited for, so that calls made beside each other have their numbers in the order in which
        // they were made.
        let id = self.ids.next_id();
        let ticket = self.record.change(|recorder| recorder.start(&id, &name, &arguments));
        let event = NestedEvent {
            call_id: id,
            parent_id: self.ids.parent().to_owned(),
            tool: name,
            arguments: arguments.clone(),
            what: NestedStep::Start,
        };
        let under = Under { access: self, event, ticket, began: Instant::now(), ended: false };
        under.tell(NestedStep::Start);
        Box::pin(Self::run(under, depth, arguments))
    }

    fn callable(&self) -> Callables {
        self.pipeline.table_as_of(|table, version| Callables {
            version,
            tools: table.callable(|entry, standing| self.reaches(entry, standing)),
        })
    }

    fn find(&self, query: &str, max: usize, namespace: Option<&str>) -> Result<Found, Error> {
        self.pipeline.table(|table| {
            let query = Query { limit: max, namespace, ..Query::new(query) };
            let found = table.search(&query, |entry, standing| self.reaches(entry, standing))?;
            let tools = found.iter().map(|entry| table.summary(entry)).collect();
            Ok(Found { tools, waiting: table.expected() })
        })
    }

    fn group(&self, name: &str) -> Result<Group, Error> {
        self.pipeline.table(|table| {
            let mut group = table.namespace(name)?;
            group.tools.retain(|name| {
                table.find(name).is_ok_and(|entry| self.reaches(&entry, table.standing(&entry.tool.name)))
            });
            Ok(group)
        })
    }

    fn expect(&self, namespace: String, coming: bool) -> Result<(), Error> {
        self.pipeline.change(|table| table.expect(&self.plugin, self.origin, &namespace, coming))
    }

    fn list(&self) -> Vec<Listed> {
        self.pipeline.table(|table| {
            let shown = table.tools().iter().filter(|entry| entry.tool.exposure != Exposure::Hidden);
            shown.map(|entry| (Arc::clone(entry), table.is_active(&entry.tool.name))).collect()
        })
    }

    fn describe(&self, name: &str) -> Result<Summary, Error> {
        self.pipeline.table(|table| {
            let entry = table.reach(Caller::NestedTool, name)?;
            self.bounds().check(&entry.tool.name)?;
            Ok(table.summary(&entry))
        })
    }

    fn activate(&self, names: Vec<String>, active: bool) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.pipeline.change(|table| table.activate(&names, active)).map(drop) })
    }

    fn register(&self, tools: Vec<Tool>, runner: Arc<dyn ToolRunner>, most: u64) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.pipeline.change(|table| {
                let registration = table.registration(&self.plugin, self.origin).at_most(most);
                table.register(registration, tools, &runner)
            })
        })
    }

    fn unregister(&self, names: Vec<String>) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.pipeline.change(|table| table.unregister(&self.plugin, self.origin, &names)) })
    }
}

#[cfg(test)]
#[path = "nested_calls_tests.rs"]
mod tests;
