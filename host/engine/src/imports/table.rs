//! `table`: what a plugin may do to the one tool table in the middle of a call.

use std::sync::Arc;

use atoll_caps::Capability;
use atoll_table::{
    Error, Found, TableAccess, ToolOutput, ToolRunner,
    callable::{Callable, Callables},
};
use tokio::{sync::watch, task::JoinSet};
use wasmtime::component::Accessor;

use super::{Answer, Host, caller, contract};
use crate::{
    audit::Verdict,
    beside::Beside,
    call::{Clock, Use},
    convert,
    description::LastSchema,
    state::{PluginContext, PluginState, lock},
};

/// The most tools that one search gives.
const MAX_FOUND: u32 = 1_000;

/// The table as somebody may use it.
struct Access {
    table: Arc<dyn TableAccess>,
    /// The clock of whoever waits for what is done with it.
    clock: Arc<Clock>,
    /// Closed once nobody does.
    wanted: Option<watch::Receiver<()>>,
    /// Where one of its calls is done at a time.
    beside: Option<Beside>,
}

/// The table as what runs as `parent` may use it. Without a name: as an extension may of its own accord, and else as the
/// only running call may.
fn table<T: Send>(accessor: &Accessor<T, Host>, parent: Option<&str>) -> Result<Access, Error> {
    accessor.with(|mut access| access.get().table(parent))
}

impl PluginState {
    fn table(&mut self, parent: Option<&str>) -> Result<Access, Error> {
        let state = self;
        // It may be linked without a grant.
        if let Err(denied) = state.plugin.effective().check(Capability::Table) {
            let the_use = Use { capability: Capability::Table.as_str(), operation: "use", target: "" };
            state.caller().denied(the_use, Verdict::Denied);
            return Err(convert::denied(&denied));
        }
        let mut running = lock(&state.running);
        let found = match parent {
            Some(id) => running.get_mut(id),
            None if state.is_extension => {
                // Somewhere below all it carries out: so calls that handlers of theirs make again end some time.
                let below = running.values().map(|call| call.below).max().unwrap_or(0);
                let clock = Arc::clone(&state.call.clock);
                return Ok(Access { table: tables(&state.plugin, None, below)?, clock, wanted: None, beside: None });
            }
            None if running.len() == 1 => running.values_mut().next(),
            None => None,
        };
        let call = found.ok_or_else(|| match parent {
            Some(id) => Error::NotFound(format!("no call `{}` of this plugin is running", id.escape_debug())),
            None => Error::Unavailable("the table is only there during a call of one of the plugin's tools".to_owned()),
        })?;
        let table = match &call.table {
            Some(table) => Arc::clone(table),
            None => {
                let table = tables(&state.plugin, parent, call.below)?;
                Arc::clone(call.table.insert(table))
            }
        };
        let (clock, beside) = (Arc::clone(&call.clock), call.beside.clone());
        Ok(Access { table, clock, wanted: Some(call.wanted.clone()), beside })
    }
}

/// The table for an extension.
fn tables(plugin: &PluginContext, parent: Option<&str>, below: u32) -> Result<Arc<dyn TableAccess>, Error> {
    let tables = plugin.shared.services.get().and_then(|services| services.tables.as_ref());
    let tables = tables.ok_or_else(|| {
        Error::Unavailable(format!("there is no table here: the plugin {} runs outside of a session", plugin.name))
    })?;
    Ok(tables.access(&plugin.who(), parent, below))
}

/// Ends when nobody waits any more.
async fn unwanted(wanted: Option<watch::Receiver<()>>) {
    match wanted {
        Some(mut wanted) => while wanted.changed().await.is_ok() {},
        None => std::future::pending().await,
    }
}

/// Refuses arguments that are too long.
fn check(plugin: &PluginContext, texts: &[&str]) -> Result<(), Error> {
    plugin.check_bytes(texts.iter().map(|text| text.len()).sum())
}

fn runner(plugin: &PluginContext) -> Result<Arc<dyn ToolRunner>, Error> {
    let runner = plugin.runner.get().and_then(std::sync::Weak::upgrade);
    runner.ok_or_else(|| Error::Failed(format!("the plugin {} exports no tools, so it can add none", plugin.name)))
}

fn summary(found: atoll_table::describe::Summary) -> contract::table::Summary {
    contract::table::Summary {
        name: found.name,
        description: found.description,
        shape: found.shape,
        active: found.active,
    }
}

/// Makes a call beside the one that makes it, or in a task of its own, for an instance can not be run inside of the poll of
/// another one. Dropped: the call ends.
async fn nested(
    clock: Arc<Clock>,
    beside: Option<Beside>,
    call: impl Future<Output = Result<ToolOutput, Error>> + Send + 'static,
) -> Result<ToolOutput, Error> {
    if let Some(place) = beside.and_then(|beside| beside.place()) {
        return place.run(clock.above(call)).await?;
    }
    let mut task = JoinSet::new();
    task.spawn(clock.above(call));
    match task.join_next().await {
        Some(Ok(answer)) => answer,
        Some(Err(reason)) => Err(Error::Failed(format!("the host failed: {reason}"))),
        None => Err(Error::Failed("the host failed: a call was lost".to_owned())),
    }
}

impl contract::table::Host for PluginState {
    fn callable_now(&mut self, parent_id: Option<String>) -> Answer<contract::table::Callables> {
        let plugin = Arc::clone(&self.plugin);
        let look = || {
            let Callables { version, tools } = self.table(parent_id.as_deref())?.table.callable();
            let sizes = tools.iter().map(|tool| 2 * tool.name.len() + tool.summary.len());
            plugin.check_bytes(sizes.sum())?;
            let callable = |tool: Callable| contract::table::Callable {
                name: tool.name,
                identifier: tool.identifier,
                summary: tool.summary,
                namespace: tool.namespace,
                structured: tool.structured,
            };
            let tools = tools.into_iter().map(callable).collect();
            Ok::<_, Error>(contract::table::Callables { version, tools })
        };
        Ok({ look }().map_err(Into::into))
    }

    fn expect(&mut self, namespace: String, coming: bool) -> Answer<()> {
        Ok(self.table(None).and_then(|access| access.table.expect(namespace, coming)).map_err(Into::into))
    }
}

impl<T: Send + 'static> contract::table::HostWithStore<T> for Host {
    async fn register(accessor: &Accessor<T, Self>, tools: Vec<contract::types::Tool>) -> Answer<()> {
        let plugin = caller(accessor);
        let add = async {
            let sizes = tools.iter().map(|tool| tool.description.len() + tool.parameters.len());
            plugin.check_bytes(sizes.sum())?;
            let mut schemas = LastSchema::default();
            let tools = tools.into_iter().map(|tool| convert::tool_from_wit(&plugin.name, tool, &mut schemas));
            let tools = tools.collect::<Result<Vec<_>, _>>()?;
            let Access { table, clock, .. } = table(accessor, None)?;
            // It may have to wait for its turn, which is not its own time.
            let _pause = clock.pause();
            let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
            table.register(tools, runner(&plugin)?, plugin.limits.tools).await?;
            lock(&plugin.added).extend(names);
            Ok::<_, Error>(())
        };
        Ok(add.await.map_err(Into::into))
    }

    async fn unregister(accessor: &Accessor<T, Self>, names: Vec<String>) -> Answer<()> {
        let plugin = caller(accessor);
        let withdraw = async {
            let Access { table, clock, .. } = table(accessor, None)?;
            let _pause = clock.pause();
            table.unregister(names.clone()).await?;
            let mut added = lock(&plugin.added);
            for name in &names {
                added.remove(name);
            }
            Ok::<_, Error>(())
        };
        Ok(withdraw.await.map_err(Into::into))
    }

    async fn activate(accessor: &Accessor<T, Self>, names: Vec<String>, active: bool) -> Answer<()> {
        let switch = async {
            let Access { table, clock, .. } = table(accessor, None)?;
            let _pause = clock.pause();
            table.activate(names, active).await
        };
        Ok(switch.await.map_err(Into::into))
    }

    async fn list(accessor: &Accessor<T, Self>) -> Answer<Vec<contract::table::Entry>> {
        let plugin = caller(accessor);
        let find = || {
            let listed = table(accessor, None)?.table.list();
            let entries: Vec<_> = listed.iter().map(|(entry, active)| convert::entry_to_wit(entry, *active)).collect();
            let sizes = entries.iter().map(|entry| entry.tool.description.len() + entry.tool.parameters.len());
            plugin.check_bytes(sizes.sum())?;
            Ok::<_, Error>(entries)
        };
        Ok(find().map_err(Into::into))
    }

    async fn search(accessor: &Accessor<T, Self>, query: String, max: u32) -> Answer<Vec<contract::table::Summary>> {
        let plugin = caller(accessor);
        let find = || {
            check(&plugin, &[&query])?;
            let found = table(accessor, None)?.table.search(&query, max.min(MAX_FOUND) as usize)?;
            let sizes = found.iter().map(|tool| tool.description.len() + tool.shape.len());
            plugin.check_bytes(sizes.sum())?;
            Ok::<_, Error>(found.into_iter().map(summary).collect())
        };
        Ok(find().map_err(Into::into))
    }

    async fn find(
        accessor: &Accessor<T, Self>,
        query: String,
        max: u32,
        namespace: Option<String>,
    ) -> Answer<contract::table::Found> {
        let plugin = caller(accessor);
        let find = || {
            check(&plugin, &[&query, namespace.as_deref().unwrap_or_default()])?;
            let max = max.min(MAX_FOUND) as usize;
            let Found { tools, waiting } = table(accessor, None)?.table.find(&query, max, namespace.as_deref())?;
            let sizes = tools.iter().map(|tool| tool.description.len() + tool.shape.len());
            plugin.check_bytes(sizes.sum())?;
            let tools = tools.into_iter().map(summary).collect();
            Ok::<_, Error>(contract::table::Found { tools, waiting })
        };
        Ok(find().map_err(Into::into))
    }

    async fn group_of(accessor: &Accessor<T, Self>, namespace: String) -> Answer<contract::table::Group> {
        let plugin = caller(accessor);
        let find = || {
            check(&plugin, &[&namespace])?;
            let group = table(accessor, None)?.table.group(&namespace)?;
            let texts = [&group.description, &group.instructions].into_iter().flatten().map(String::len);
            plugin.check_bytes(texts.chain(group.tools.iter().map(String::len)).sum())?;
            let atoll_table::registry::Group { name, aliases, description, instructions, tools } = group;
            Ok::<_, Error>(contract::table::Group { name, aliases, description, instructions, tools })
        };
        Ok(find().map_err(Into::into))
    }

    async fn describe(accessor: &Accessor<T, Self>, name: String) -> Answer<contract::table::Summary> {
        Ok(table(accessor, None).and_then(|access| access.table.describe(&name)).map(summary).map_err(Into::into))
    }

    async fn call(
        accessor: &Accessor<T, Self>,
        parent_id: Option<String>,
        name: String,
        arguments: String,
    ) -> Answer<contract::types::ToolOutput> {
        let plugin = caller(accessor);
        let call = async {
            check(&plugin, &[&name, &arguments])?;
            let Access { table, clock, wanted, beside } = table(accessor, parent_id.as_deref())?;
            let arguments = serde_json::from_str(&arguments)
                .map_err(|error| Error::InvalidArguments(format!("the arguments are not JSON: {error}")))?;
            // What a call was given is kept and shown.
            let mut arguments = Some(arguments);
            plugin.redact_parts(&mut [], [&mut arguments]);
            let arguments = arguments.unwrap_or_default();
            let nobody_waits = || Error::Cancelled("nobody waits any more for what this call was made for".to_owned());
            // Nothing begins that nobody waits for.
            if wanted.as_ref().is_some_and(|wanted| wanted.has_changed().is_err()) {
                return Err(nobody_waits());
            }
            // Made here, before the task is, so that calls have their numbers in the order in which they are made.
            let call = table.call(plugin.limits.nesting, name, arguments);
            let output = tokio::select! {
                biased;
                () = unwanted(wanted) => return Err(nobody_waits()),
                output = nested(clock, beside, call) => output?,
            };
            let output = convert::output_to_wit(output);
            plugin.check_bytes(convert::output_size(&output))?;
            Ok::<_, Error>(output)
        };
        Ok(call.await.map_err(Into::into))
    }
}
