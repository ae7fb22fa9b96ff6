//! The tools by which a model reads what servers hold: one lists it, one lists the patterns of it, one reads it. They are there
//! once a server has resources, for whoever may reach one that has.

use std::{cell::RefCell, collections::BTreeSet, rc::Rc};

use atoll_mcp_client::{
    exposure::Exposure,
    result::{Piece, resource},
    session::Page,
};
use atoll_mcp_connection::server::Server;
use atoll_plugin::{Error, table, types};
use futures::future::join_all;
use serde_json::{Map, Value, json};

const LIST: &str = "list_mcp_resources";
const TEMPLATES: &str = "list_mcp_resource_templates";
const READ: &str = "read_mcp_resource";

/// The most pages of one server's list that are read for a list of all.
const MAX_PAGES: usize = 100;
/// The most items of a list of all.
const MAX_ITEMS: usize = 10_000;

/// The tools that list and read them.
pub(crate) const TOOLS: [&str; 3] = [LIST, TEMPLATES, READ];

/// Whether it is one of these tools.
pub(crate) fn is_one(tool: &str) -> bool {
    TOOLS.contains(&tool)
}

/// Which servers have resources, and who may reach the tools.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    servers: RefCell<BTreeSet<String>>,
    /// What they are in the table as.
    exposure: RefCell<Option<Exposure>>,
}

/// What a call of one of the tools gives.
pub(crate) struct Given {
    /// What a model reads.
    pub(crate) pieces: Vec<Piece>,
    /// What scripts get.
    pub(crate) whole: Value,
}

/// Who may reach what the server holds: whoever may reach its tools, where nothing else is said of some of them.
fn exposure(server: &Server) -> Exposure {
    server.entry.exposure.server
}

impl Resources {
    /// Says whether a server has resources.
    pub(crate) async fn note(&self, server: &Server, has_resources: bool, all: &[Rc<Server>]) {
        let is_new = match has_resources {
            true => self.servers.borrow_mut().insert(server.name.clone()),
            false => self.servers.borrow_mut().remove(&server.name),
        };
        if !is_new {
            return;
        }
        let with = all.iter().filter(|server| self.servers.borrow().contains(&server.name));
        let exposure = with.map(|server| exposure(server)).max().filter(|exposure| *exposure != Exposure::Hidden);
        if *self.exposure.borrow() == exposure {
            return;
        }
        *self.exposure.borrow_mut() = exposure;
        // That there is no table to put them into is said where the servers' own tools are put there.
        let _: Result<(), Error> = match exposure {
            Some(exposure) => table::register(tools(exposure)).await,
            None => table::unregister([LIST, TEMPLATES, READ].map(str::to_owned).to_vec()).await,
        };
    }

    /// Runs one of the tools.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        all: &[Rc<Server>],
    ) -> Result<Given, Error> {
        let text = |key: &str| arguments.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (server, cursor) = (text("server"), text("cursor"));
        if tool == READ {
            let (Some(server), Some(uri)) = (server, text("uri")) else {
                return Err(Error::invalid_arguments(format!("{READ} needs \"server\" and \"uri\".")));
            };
            let contents = named(server, all)?.read_resource(uri).await?;
            let pieces: Vec<Piece> = contents.iter().filter_map(resource).collect();
            let nothing = || vec![Piece::Text(format!("The resource {uri} is empty."))];
            return Ok(Given {
                pieces: if pieces.is_empty() { nothing() } else { pieces },
                whole: json!({"server": server, "uri": uri, "contents": contents}),
            });
        }
        let key = if tool == LIST { "resources" } else { "resourceTemplates" };
        let whole = match (server, cursor) {
            (Some(name), _) => {
                let page = page(named(name, all)?, tool, cursor).await?;
                let mut whole = json!({"server": name, key: of(name, page.items)});
                if let Some(next) = page.next {
                    whole["nextCursor"] = json!(next);
                }
                whole
            }
            (None, Some(_)) => {
                return Err(Error::invalid_arguments(
                    "\"cursor\" goes on with the list of one server: give \"server\", too.",
                ));
            }
            (None, None) => self.of_all(tool, key, all).await,
        };
        Ok(Given { pieces: vec![Piece::Text(whole.to_string())], whole })
    }

    /// What all servers have that may be reached, and why some of it is missing.
    async fn of_all(&self, tool: &str, key: &str, all: &[Rc<Server>]) -> Value {
        let has =
            |server: &&Rc<Server>| self.servers.borrow().contains(&server.name) && exposure(server) != Exposure::Hidden;
        let lists = all.iter().filter(has).map(async |server| {
            let (mut items, mut cursor) = (Vec::new(), None::<String>);
            for _ in 0..MAX_PAGES {
                match page(server, tool, cursor.as_deref()).await {
                    Ok(page) => {
                        items.extend(of(&server.name, page.items));
                        cursor = page.next;
                    }
                    // A server need not have templates.
                    Err(_) if tool == TEMPLATES && items.is_empty() => break,
                    Err(error) => return (items, Some(format!("{}: {}", server.name, error.message()))),
                }
                if cursor.is_none() {
                    return (items, None);
                }
            }
            let more = cursor.is_some().then(|| format!("{}: there is more; ask for it with \"server\"", server.name));
            (items, more)
        });
        let (mut items, mut errors) = (Vec::new(), Vec::new());
        for (some, error) in join_all(lists).await {
            items.extend(some);
            errors.extend(error);
        }
        if items.len() > MAX_ITEMS {
            items.truncate(MAX_ITEMS);
            errors.push(format!("these are the first {MAX_ITEMS}; ask for those of one server with \"server\""));
        }
        let mut whole = json!({key: items});
        if !errors.is_empty() {
            whole["errors"] = json!(errors);
        }
        whole
    }
}

/// Each item says whose it is.
fn of(server: &str, items: Vec<Value>) -> Vec<Value> {
    let with = |item: Value| {
        let mut with = Map::new();
        with.insert("server".to_owned(), json!(server));
        if let Value::Object(fields) = item {
            with.extend(fields);
        }
        Value::Object(with)
    };
    items.into_iter().map(with).collect()
}

async fn page(server: &Server, tool: &str, cursor: Option<&str>) -> Result<Page, Error> {
    match tool {
        LIST => server.resources(cursor).await,
        _ => server.resource_templates(cursor).await,
    }
}

/// The server of a name, by any spelling that its tools have.
fn named<'a>(name: &str, all: &'a [Rc<Server>]) -> Result<&'a Server, Error> {
    let is_reachable = |server: &&Rc<Server>| exposure(server) != Exposure::Hidden;
    let identifier = name.replace('-', "_");
    let is_it = |server: &&Rc<Server>| {
        let own = server.name.replace('-', "_");
        own == identifier || Some(own.as_str()) == identifier.strip_prefix("mcp__")
    };
    all.iter().filter(is_reachable).find(is_it).map(|server| &**server).ok_or_else(|| {
        let names: Vec<&str> = all.iter().filter(is_reachable).map(|server| server.name.as_str()).collect();
        Error::not_found(format!("There is no MCP server {name:?}. There are: {}.", names.join(", ")))
    })
}

fn tools(exposure: Exposure) -> Vec<types::Tool> {
    let server = json!({"type": "string", "description": "The name of one MCP server."});
    let cursor = json!({"type": "string", "description": "Goes on with the list of one server: its nextCursor."});
    let list = json!({"type": "object", "properties": {"server": server, "cursor": cursor}});
    let uri = json!({"type": "string", "description": "The resource, as a list or a tool's result names it."});
    let read = json!({"type": "object", "properties": {"server": server, "uri": uri}, "required": ["server", "uri"]});
    let items = json!({"type": "array", "items": {"type": "object"}});
    let errors = json!({"type": "array", "items": {"type": "string"}});
    let listed = |key: &str| {
        json!({"type": "object", "properties": {"server": {"type": "string"}, key: items, "nextCursor": {"type": "string"}, "errors": errors},
               "required": [key]})
    };
    let contents = json!({"type": "object", "properties": {"server": {"type": "string"}, "uri": {"type": "string"}, "contents": items},
        "required": ["contents"]});
    let tool = |name: &str, label: &str, description: &str, parameters: &Value, output: Value| types::Tool {
        name: name.to_owned(),
        label: label.to_owned(),
        description: description.to_owned(),
        parameters: parameters.to_string(),
        output_schema: Some(output.to_string()),
        prompt_snippet: None,
        prompt_guidelines: Vec::new(),
        exposure: if exposure == Exposure::Direct { types::Exposure::Direct } else { types::Exposure::Deferred },
        default_active: exposure == Exposure::Direct,
        execution_mode: types::ExecutionMode::Parallel,
        namespace: None,
        annotations: types::Annotations {
            read_only: Some(true),
            destructive: Some(false),
            idempotent: Some(true),
            open_world: None,
        },
        prepares: false,
    };
    vec![
        tool(
            LIST,
            "MCP resources",
            "Lists what MCP servers hold that can be read: files, records and other data, with their URIs. Without \"server\": \
             of all servers.",
            &list,
            listed("resources"),
        ),
        tool(
            TEMPLATES,
            "MCP resource templates",
            "Lists the patterns of URIs by which MCP servers give data that depends on parameters. Without \"server\": of all \
             servers.",
            &list,
            listed("resourceTemplates"),
        ),
        tool(READ, "MCP resource", "Reads a resource of an MCP server, by its URI.", &read, contents),
    ]
}
