//! Calls that a tool makes in the middle of its own, and the rest of what it may do to the table meanwhile.
//!
//! Everything here goes through the pipeline: a nested call must never reach what its caller's kind may not.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use atoll_table::{
    Content, Error, Listed, Origin, Registered, TableAccess, Tool, ToolOutput, ToolRunner,
    describe::Summary,
    extension::Who,
    nesting::{Depth, NestedIds, Ticket},
    reach::may_reach,
    search::Query,
    tool::Exposure,
};
use futures::future::BoxFuture;
use serde_json::Value;

use crate::pipeline::{Caller, Pipeline, Record, Request, failed};

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
        /// What it gave.
        output: ToolOutput,
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
    watch: Watch,
}

impl CallAccess {
    pub(crate) fn new(
        pipeline: Pipeline,
        entry: &Registered,
        id: &str,
        depth: Depth,
        record: Record,
        watch: Watch,
    ) -> Self {
        Self {
            pipeline,
            plugin: entry.plugin.clone(),
            origin: entry.origin,
            ids: Arc::new(NestedIds::new(id)),
            depth: Some(depth),
            record,
            watch,
        }
    }

    /// For what an extension does by itself, in a call of this depth or in none. Nothing is recorded.
    pub(crate) fn own(pipeline: Pipeline, who: &Who, ids: Arc<NestedIds>, depth: Option<Depth>, watch: Watch) -> Self {
        let record = Record::default();
        Self { pipeline, plugin: who.plugin.clone(), origin: who.origin, ids, depth, record, watch }
    }
}

/// A nested call that has begun. Dropped before it has ended: it was stopped, and whoever watches is told.
struct Under<'a> {
    access: &'a CallAccess,
    event: NestedEvent,
    ticket: Ticket,
    began: Instant,
    ended: bool,
}

impl Under<'_> {
    fn tell(&self, what: NestedStep) {
        (self.access.watch)(NestedEvent { what, ..self.event.clone() });
    }

    fn end(mut self, output: ToolOutput, duration_ms: Option<u64>) {
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

impl Drop for Under<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let output = ToolOutput::error("The call that made this one was stopped.");
            self.tell(NestedStep::End { output, duration_ms: None });
        }
    }
}

impl TableAccess for CallAccess {
    fn call(&self, nesting: u32, name: String, arguments: Value) -> BoxFuture<'_, Result<ToolOutput, Error>> {
        Box::pin(async move {
            let depth = match self.depth {
                Some(depth) => depth.deeper(nesting)?,
                None => Depth::OUTERMOST,
            };
            let id = self.ids.next_id();
            let ticket = self.record.change(|recorder| recorder.start(&id, &name, &arguments));
            let event = NestedEvent {
                call_id: id.clone(),
                parent_id: self.ids.parent().to_owned(),
                tool: name.clone(),
                arguments: arguments.clone(),
                what: NestedStep::Start,
            };
            let under = Under { access: self, event, ticket, began: Instant::now(), ended: false };
            under.tell(NestedStep::Start);
            let request = Request {
                caller: Caller::NestedTool,
                id: &id,
                parent_id: Some(self.ids.parent()),
                depth,
                name: &name,
                arguments,
                record: self.record.clone(),
            };
            let ready = match self.pipeline.ready_for(request).await {
                Ok(ready) => ready,
                Err(error) => {
                    under.end(failed(&error), None);
                    return Err(error);
                }
            };
            let (watch, event) = (Arc::clone(&self.watch), under.event.clone());
            let progress = Arc::new(move |content, details| {
                watch(NestedEvent { what: NestedStep::Update { content, details }, ..event.clone() });
            });
            let done = ready.run(progress, Arc::clone(&self.watch)).await;
            under.end(done.output.clone(), done.duration_ms);
            match done.error {
                Some(error) => Err(error),
                None => Ok(done.output),
            }
        })
    }

    fn search(&self, query: &str, max: usize) -> Result<Vec<Summary>, Error> {
        self.pipeline.table(|table| {
            let query = Query { limit: max, ..Query::new(query) };
            let reachable =
                |entry: &Registered, active: bool| may_reach(Caller::NestedTool, entry.tool.exposure, active);
            let found = table.search(&query, reachable)?;
            Ok(found.iter().map(|entry| table.summary(entry)).collect())
        })
    }

    fn list(&self) -> Vec<Listed> {
        self.pipeline.table(|table| {
            let shown = table.tools().iter().filter(|entry| entry.tool.exposure != Exposure::Hidden);
            shown.map(|entry| (Arc::clone(entry), table.is_active(&entry.tool.name))).collect()
        })
    }

    fn describe(&self, name: &str) -> Result<Summary, Error> {
        self.pipeline.table(|table| Ok(table.summary(&*table.reach(Caller::NestedTool, name)?)))
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
