//! The tools of all servers, as they are in the table.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use atoll_mcp_client::{
    exposure::Exposure,
    names::{aliases, namespace, tool_names},
    result::whole_schema,
    session::ServerTool,
};
use atoll_mcp_connection::{server::Server, shown::annotations};
use atoll_plugin::{Error, table, types};
use serde_json::Value;

/// Where a tool of the table comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) server: String,
    pub(crate) tool: String,
}

/// The tools.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    /// By their names in the table.
    tools: RefCell<BTreeMap<String, Source>>,
    /// A digest of each definition that is in the table, so that what has not changed is not put there again.
    known: RefCell<HashMap<String, u64>>,
}

impl Registry {
    /// Where a tool comes from.
    pub(crate) fn source(&self, name: &str) -> Option<Source> {
        self.tools.borrow().get(name).cloned()
    }

    /// The tools of a server that are in the table, by their names on the server.
    pub(crate) fn tools_of(&self, server: &str) -> Vec<String> {
        let tools = self.tools.borrow();
        tools.values().filter(|source| source.server == server).map(|source| source.tool.clone()).collect()
    }

    /// Says that tools of a server are to come.
    pub(crate) fn coming(server: &str) {
        let _ = table::expect(&namespace(server), true);
    }

    /// Says that none are to come for now.
    pub(crate) fn settled(server: &str) {
        let _ = table::expect(&namespace(server), false);
    }

    /// Has the tools of a server, and no others of it. Gives a line for each that could not be had.
    pub(crate) async fn have(
        &self,
        server: &Server,
        instructions: Option<&str>,
        tools: Vec<ServerTool>,
    ) -> Vec<String> {
        let shown: Vec<(ServerTool, Exposure)> = tools
            .into_iter()
            .map(|tool| {
                let exposure = server.entry.exposure.of(&tool.name);
                (tool, exposure)
            })
            .filter(|(_, exposure)| *exposure != Exposure::Hidden)
            .collect();
        let names: Vec<&str> = shown.iter().map(|(tool, _)| tool.name.as_str()).collect();
        let is_others = |name: &str| self.tools.borrow().get(name).is_some_and(|source| source.server != server.name);
        let names = tool_names(&server.name, &names, is_others);
        let group = types::Namespace {
            name: namespace(&server.name),
            aliases: aliases(&server.name),
            description: server.entry.description.clone(),
            instructions: instructions.map(str::to_owned),
        };
        let mut gone: Vec<String> = {
            let all = self.tools.borrow();
            let own = all.iter().filter(|(_, source)| source.server == server.name).map(|(name, _)| name.clone());
            own.filter(|name| !names.contains(name)).collect()
        };
        let mut fresh = Vec::new();
        for (name, (tool, exposure)) in names.iter().zip(&shown) {
            let definition = definition(name, tool, *exposure, &group);
            let digest = digest(&definition);
            if self.known.borrow().get(name) != Some(&digest) {
                fresh.push((definition, digest));
            }
            let source = Source { server: server.name.clone(), tool: tool.name.clone() };
            self.tools.borrow_mut().insert(name.clone(), source);
        }
        let mut lost = Vec::new();
        let all: Vec<types::Tool> = fresh.iter().map(|(definition, _)| definition.clone()).collect();
        if !all.is_empty() && table::register(all).await.is_err() {
            // One that the table does not take must not cost the others.
            let mut taken = Vec::new();
            for (definition, digest) in fresh {
                match table::register(vec![definition.clone()]).await {
                    Ok(()) => taken.push((definition, digest)),
                    Err(error) => {
                        lost.push(format!("the tool {} can not be had: {}", definition.name, error.message()));
                        gone.push(definition.name);
                    }
                }
            }
            fresh = taken;
        }
        self.known.borrow_mut().extend(fresh.into_iter().map(|(definition, digest)| (definition.name, digest)));
        for name in &gone {
            self.tools.borrow_mut().remove(name);
            self.known.borrow_mut().remove(name);
        }
        if !gone.is_empty() {
            // Of those that were never there nothing is withdrawn.
            let _: Result<(), Error> = table::unregister(gone).await;
        }
        lost
    }
}

fn digest(definition: &types::Tool) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{definition:?}").hash(&mut hasher);
    hasher.finish()
}

fn definition(name: &str, tool: &ServerTool, exposure: Exposure, group: &types::Namespace) -> types::Tool {
    let is_direct = exposure == Exposure::Direct;
    let description = match (&tool.description, &tool.title) {
        (description, Some(title)) if description.is_empty() => title.clone(),
        (description, _) => description.clone(),
    };
    types::Tool {
        name: name.to_owned(),
        label: tool.title.clone().unwrap_or_else(|| tool.name.clone()),
        description,
        parameters: Value::Object(tool.input_schema.clone()).to_string(),
        output_schema: Some(whole_schema(tool.output_schema.as_ref()).to_string()),
        prompt_snippet: None,
        prompt_guidelines: Vec::new(),
        // What scripts find by searching is not listed for them: what comes late would change what the model was told.
        exposure: if is_direct { types::Exposure::Direct } else { types::Exposure::Deferred },
        default_active: is_direct,
        execution_mode: types::ExecutionMode::Parallel,
        namespace: Some(group.clone()),
        annotations: annotations(&tool.annotations),
        prepares: false,
    }
}
