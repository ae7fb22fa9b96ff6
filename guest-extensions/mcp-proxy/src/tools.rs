//! The tools of this adapter in the table, and what each of them stands for.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use atoll_mcp_client::{names::aliases, result::whole_schema};
use atoll_mcp_connection::shown::annotations;
use atoll_plugin::{Error, table, types};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::{
    catalog::{Catalog, Item},
    gateway, prefix,
    settings::{Direct, Proxied, Settings},
};

/// What a tool of the table stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stands {
    /// For those of all servers.
    Gateway,
    /// For those of this server.
    Namespace(String),
    /// For this one.
    Direct(String),
}

/// The tools in the table.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    stands: RefCell<BTreeMap<String, Stands>>,
    /// A digest of each definition in the table, so that what has not changed is not put there again.
    known: RefCell<HashMap<String, u64>>,
    /// Those that a search has switched on.
    found: RefCell<BTreeSet<String>>,
    /// Held while the table is changed: changes come one after the other.
    changing: Mutex<()>,
}

/// The tool that calls those of a server, where there is one.
pub(crate) fn namespace_of(server: &Proxied, settings: &Settings, catalog: &Catalog) -> Option<String> {
    let is_wanted = settings.namespaces && server.direct == Direct::None && catalog.of(&server.name).is_some();
    is_wanted.then(|| prefix::of_namespace(&server.name))
}

/// Whether a tool of a server is one of the table.
pub(crate) fn is_direct(server: &Proxied, item: &Item) -> bool {
    server.direct.takes(&item.local) || server.direct.takes(&item.name)
}

impl Tools {
    /// What a tool stands for.
    pub(crate) fn stands_for(&self, name: &str) -> Option<Stands> {
        self.stands.borrow().get(name).cloned()
    }

    /// Whether a search has switched it on.
    pub(crate) fn is_found(&self, name: &str) -> bool {
        self.found.borrow().contains(name)
    }

    /// Has the tools in the table that there are to be, and no others. Gives a line for each that could not be had.
    pub(crate) async fn settle(
        &self,
        servers: &[Proxied],
        settings: &Settings,
        catalog: &RefCell<Catalog>,
    ) -> Vec<String> {
        let _alone = self.changing.lock().await;
        let wanted = wanted(servers, settings, &catalog.borrow());
        let names: BTreeSet<&str> = wanted.iter().map(|(_, tool)| tool.name.as_str()).collect();
        let gone: Vec<String> =
            self.stands.borrow().keys().filter(|name| !names.contains(name.as_str())).cloned().collect();
        let mut fresh: Vec<(Stands, types::Tool, u64)> = Vec::new();
        for (stands, tool) in wanted {
            let digest = digest(&tool);
            if self.known.borrow().get(&tool.name) != Some(&digest) {
                fresh.push((stands, tool, digest));
            }
        }
        let mut lost = Vec::new();
        let all: Vec<types::Tool> = fresh.iter().map(|(_, tool, _)| tool.clone()).collect();
        if !all.is_empty() && table::register(all).await.is_err() {
            // One that the table does not take must not cost the others.
            let mut taken = Vec::new();
            for one in fresh {
                match table::register(vec![one.1.clone()]).await {
                    Ok(()) => taken.push(one),
                    Err(error) => lost.push(format!("the tool {} can not be had: {}", one.1.name, error.message())),
                }
            }
            fresh = taken;
        }
        let again: Vec<String> = {
            let found = self.found.borrow();
            fresh.iter().map(|(_, tool, _)| tool.name.clone()).filter(|name| found.contains(name)).collect()
        };
        for (stands, tool, digest) in fresh {
            self.known.borrow_mut().insert(tool.name.clone(), digest);
            self.stands.borrow_mut().insert(tool.name, stands);
        }
        if !again.is_empty() {
            let _: Result<(), Error> = table::activate(again, true).await;
        }
        for name in &gone {
            self.stands.borrow_mut().remove(name);
            self.known.borrow_mut().remove(name);
            self.found.borrow_mut().remove(name);
        }
        if !gone.is_empty() {
            let _: Result<(), Error> = table::unregister(gone).await;
        }
        lost
    }

    /// Has these tools declared to the model, those of them that are in the table.
    ///
    /// # Errors
    /// Why they can not be.
    pub(crate) async fn declare(&self, names: Vec<String>) -> Result<(), Error> {
        let names: Vec<String> = names.into_iter().filter(|name| self.stands.borrow().contains_key(name)).collect();
        if names.is_empty() {
            return Ok(());
        }
        table::activate(names.clone(), true).await?;
        self.found.borrow_mut().extend(names);
        Ok(())
    }
}

/// The tools that there are to be, in their order.
fn wanted(servers: &[Proxied], settings: &Settings, catalog: &Catalog) -> Vec<(Stands, types::Tool)> {
    let direct: Vec<(&Proxied, &Item)> = (servers.iter())
        .flat_map(|server| {
            catalog
                .of(&server.name)
                .into_iter()
                .flat_map(move |known| known.items.iter().map(move |item| (server, item)))
        })
        .filter(|(server, item)| is_direct(server, item))
        .collect();
    let taken: BTreeSet<&str> = direct.iter().map(|(_, item)| item.name.as_str()).collect();
    let mut all = Vec::new();
    if needs_gateway(servers, settings, catalog) {
        all.push((Stands::Gateway, gateway_tool()));
    }
    for server in servers {
        let name = namespace_of(server, settings, catalog);
        if let Some(name) = name.filter(|name| !taken.contains(name.as_str())) {
            all.push((Stands::Namespace(server.name.clone()), namespace_tool(&name, server)));
        }
    }
    for (server, item) in direct {
        all.push((Stands::Direct(server.name.clone()), direct_tool(server, item)));
    }
    all
}

/// Whether something can be reached by the gateway alone, or somebody wants it all the same.
fn needs_gateway(servers: &[Proxied], settings: &Settings, catalog: &Catalog) -> bool {
    let is_reached = |server: &Proxied| catalog.of(&server.name).is_some() && server.direct == Direct::All;
    !settings.no_gateway || servers.is_empty() || !servers.iter().all(is_reached)
}

fn digest(tool: &types::Tool) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{tool:?}").hash(&mut hasher);
    hasher.finish()
}

fn plain(name: &str, description: String, parameters: &Value, snippet: &str) -> types::Tool {
    types::Tool {
        name: name.to_owned(),
        label: name.to_owned(),
        description,
        parameters: parameters.to_string(),
        output_schema: None,
        prompt_snippet: Some(snippet.to_owned()),
        prompt_guidelines: Vec::new(),
        exposure: types::Exposure::Direct,
        default_active: true,
        execution_mode: types::ExecutionMode::Parallel,
        namespace: None,
        annotations: types::Annotations { read_only: None, destructive: None, idempotent: None, open_world: None },
        prepares: false,
    }
}

fn gateway_tool() -> types::Tool {
    plain(gateway::NAME, gateway::DESCRIPTION.to_owned(), &gateway::parameters(), gateway::SNIPPET)
}

fn namespace_tool(name: &str, server: &Proxied) -> types::Tool {
    let what = server.entry.description.as_deref().map(|what| format!(" It is for: {what}")).unwrap_or_default();
    let description = format!(
        "Calls a tool of the MCP server {}, by the name that it has there. mcp({{ server: {} }}) lists them.{what}",
        server.name,
        Value::from(server.name.as_str())
    );
    let snippet = format!("Calls tools of the MCP server {}", server.name);
    let mut tool = plain(name, description, &gateway::namespace_parameters(), &snippet);
    tool.output_schema = Some(whole_schema(None).to_string());
    tool
}

fn direct_tool(server: &Proxied, item: &Item) -> types::Tool {
    let description = match (&item.tool.description, &item.tool.title) {
        (description, Some(title)) if description.is_empty() => title.clone(),
        (description, _) => description.clone(),
    };
    let first = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(&item.local);
    let snippet: String = first.chars().take(120).collect();
    let parameters = Value::Object(item.tool.input_schema.clone());
    let mut tool = plain(&item.name, description, &parameters, &snippet);
    tool.label = item.tool.title.clone().unwrap_or_else(|| item.local.clone());
    tool.output_schema = Some(whole_schema(item.tool.output_schema.as_ref()).to_string());
    tool.default_active = server.direct != Direct::Search;
    tool.annotations = annotations(&item.tool.annotations);
    tool.namespace = Some(types::Namespace {
        name: atoll_mcp_client::names::namespace(&server.name),
        aliases: aliases(&server.name),
        description: server.entry.description.clone(),
        instructions: None,
    });
    tool
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::tests::{kept, servers},
        prefix::Prefix,
    };
    use serde_json::json;

    /// The names in the table, those that are not declared in brackets.
    fn names(entries: &str, settings: &Settings, known: &[&str]) -> Vec<String> {
        let servers = servers(entries);
        let mut catalog = Catalog::new(servers.iter().map(|server| server.name.clone()));
        for server in servers.iter().filter(|server| known.contains(&server.name.as_str())) {
            catalog.put(server, Prefix::Server, &kept(&json!([{"name": "t1"}, {"name": "t2"}])), |_| false);
        }
        let shown =
            |(_, tool): (Stands, types::Tool)| if tool.default_active { tool.name } else { format!("({})", tool.name) };
        wanted(&servers, settings, &catalog).into_iter().map(shown).collect()
    }

    #[test]
    fn what_is_in_the_table_is_what_the_configuration_and_what_is_known_come_to() {
        let usual = Settings::default();
        let entry =
            |direct: &str| format!(r#"{{"a": {{"command": "a", "directTools": {direct}}}, "b": {{"command": "b"}}}}"#);
        let all = ["a", "b"];
        assert_eq!(names(&entry("false"), &usual, &all), ["mcp", "mcp__a", "mcp__b"]);
        assert_eq!(names(&entry("false"), &usual, &["b"]), ["mcp", "mcp__b"], "of a nothing is known");
        assert_eq!(names(&entry("true"), &usual, &all), ["mcp", "mcp__b", "a_t1", "a_t2"]);
        assert_eq!(names(&entry("[\"t2\"]"), &usual, &all), ["mcp", "mcp__b", "a_t2"]);
        assert_eq!(names(&entry("[\"a_t1\"]"), &usual, &all), ["mcp", "mcp__b", "a_t1"]);
        assert_eq!(names(&entry("\"search\""), &usual, &all), ["mcp", "mcp__b", "(a_t1)", "(a_t2)"]);
        let without = Settings { namespaces: false, ..Settings::default() };
        assert_eq!(names(&entry("true"), &without, &all), ["mcp", "a_t1", "a_t2"]);
    }

    #[test]
    fn there_is_no_gateway_only_where_everything_is_reached_without() {
        let settings = Settings { no_gateway: true, ..Settings::default() };
        let all = |direct: &str| format!(r#"{{"a": {{"command": "a", "directTools": {direct}}}}}"#);
        assert_eq!(names(&all("true"), &settings, &["a"]), ["a_t1", "a_t2"]);
        assert_eq!(names(&all("true"), &settings, &[]), ["mcp"]);
        assert_eq!(names(&all("\"search\""), &settings, &["a"])[0], "mcp");
        assert_eq!(names(&all("[\"t1\"]"), &settings, &["a"])[0], "mcp");
    }

    #[test]
    fn what_the_model_reads_of_the_tools() {
        let mut all = vec![gateway_tool()];
        let servers = servers(r#"{"a": {"command": "a", "description": "Tickets"}}"#);
        all.push(namespace_tool("mcp__a", &servers[0]));
        let shown: String = all
            .iter()
            .map(|tool| {
                format!(
                    "{}\n{}\n{}\n{}\n\n",
                    tool.name,
                    tool.description,
                    tool.prompt_snippet.as_deref().unwrap(),
                    tool.parameters
                )
            })
            .collect();
        insta::assert_snapshot!(shown);
    }
}
