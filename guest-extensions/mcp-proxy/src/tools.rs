//! The tools of this adapter in the table, and what each of them stands for.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use atoll_mcp_client::{names::aliases, result::whole_schema};
use atoll_mcp_connection::shown::annotations;
use atoll_plugin::{Error, table, types};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::{
    catalog::{Catalog, Item},
    gateway,
    settings::{Direct, Proxied, Settings},
};

/// How many tools a table takes of a plugin, where the user does not say fewer.
const MOST: usize = 10_000;
/// The limit that says so.
const TOOLS: &str = "tools";
/// How many are put into the table at once.
const AT_ONCE: usize = 250;
/// The longest text of a tool that stands in lists, in characters.
const MAX_LINE: usize = 120;

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
    /// The tool that calls those of a server, by server; none where it can not have one.
    namespaces: HashMap<String, Option<String>>,
    stands: RefCell<BTreeMap<String, Stands>>,
    /// A digest of each definition in the table, so that what has not changed is not put there again.
    known: RefCell<HashMap<String, u64>>,
    /// Those that a search has switched on.
    found: RefCell<BTreeSet<String>>,
    /// All that were ever in the table: to it, one that was withdrawn still counts.
    ever: RefCell<HashSet<String>>,
    /// How many the table takes, where it has said that it takes fewer.
    most: Cell<Option<usize>>,
    /// Held while the table is changed: changes come one after the other.
    changing: Mutex<()>,
}

/// What came of changing the table.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    /// A line for each tool that could not be had.
    pub(crate) lost: Vec<String>,
    /// How many tools had no room.
    pub(crate) left: usize,
    /// How many tools of servers are declared to the model from the start.
    pub(crate) declared: usize,
}

/// Whether a tool of a server is one of the table.
pub(crate) fn is_direct(server: &Proxied, item: &Item) -> bool {
    server.direct.takes(&item.local) || server.direct.takes(&item.name)
}

impl Tools {
    /// None yet. `namespaces`: what the tool that calls those of a server is called, by server, where there may be one.
    pub(crate) fn new(namespaces: HashMap<String, Option<String>>) -> Self {
        Self { namespaces, ..Self::default() }
    }

    /// What a tool stands for.
    pub(crate) fn stands_for(&self, name: &str) -> Option<Stands> {
        self.stands.borrow().get(name).cloned()
    }

    /// The tool in the table that calls those of a server.
    pub(crate) fn namespace_of(&self, server: &str) -> Option<String> {
        let name = self.namespaces.get(server)?.as_ref()?;
        matches!(self.stands.borrow().get(name), Some(Stands::Namespace(of)) if of == server).then(|| name.clone())
    }

    /// Whether a search has switched it on.
    pub(crate) fn is_found(&self, name: &str) -> bool {
        self.found.borrow().contains(name)
    }

    /// Has the tools in the table that there are to be, as many as it takes, and no others.
    pub(crate) async fn settle(&self, servers: &[Proxied], settings: &Settings, catalog: &RefCell<Catalog>) -> Settled {
        let _alone = self.changing.lock().await;
        loop {
            let most = self.most.get().unwrap_or(MOST);
            let (fresh, gone, mut settled) = self.changes(servers, settings, &catalog.borrow(), most);
            let said = self.put(fresh, most, &mut settled.lost).await;
            let there = self.ever.borrow().len();
            match said {
                // The user lets this plugin have fewer, or there are some of before that it does not know of.
                Err(said) if said < most || there < most => self.most.set(Some(if said < most { said } else { there })),
                Ok(()) | Err(_) => {
                    self.withdraw(gone).await;
                    return settled;
                }
            }
        }
    }

    /// What is to be put into the table, what is to be taken out of it, and what there is to say of that.
    fn changes(
        &self,
        servers: &[Proxied],
        settings: &Settings,
        catalog: &Catalog,
        most: usize,
    ) -> (Vec<Fresh>, Vec<String>, Settled) {
        let (wanted, left) = fitting(servers, settings, catalog, &self.namespaces, &self.ever.borrow(), most);
        let declared = wanted.iter().filter(|wanted| wanted.is_declared()).count();
        let (stands, known) = (self.stands.borrow(), self.known.borrow());
        let names: HashSet<&str> = wanted.iter().map(|wanted| wanted.name.as_str()).collect();
        let gone = stands.keys().filter(|name| !names.contains(name.as_str())).cloned().collect();
        let fresh = wanted.iter().map(|wanted| (wanted, wanted.digest()));
        let fresh = fresh.filter(|(wanted, digest)| known.get(&wanted.name) != Some(digest));
        let fresh = fresh.map(|(wanted, digest)| Fresh { stands: wanted.stands(), tool: wanted.tool(), digest });
        (fresh.collect(), gone, Settled { left, declared, ..Settled::default() })
    }

    /// Puts tools into the table, some at a time: what is put there in one go holds up all servers for as long.
    ///
    /// # Errors
    /// How many it takes at most, if that is fewer than there were to be.
    async fn put(&self, mut fresh: Vec<Fresh>, most: usize, lost: &mut Vec<String>) -> Result<(), usize> {
        // From the end of each list: what is there first is put first.
        fresh.reverse();
        while !fresh.is_empty() {
            let mut batches = vec![fresh.split_off(fresh.len().saturating_sub(AT_ONCE))];
            while let Some(mut batch) = batches.pop() {
                let tools = batch.iter().rev().map(|fresh| fresh.tool.clone()).collect();
                let error = match table::register(tools).await {
                    Ok(()) => {
                        self.took(batch).await;
                        continue;
                    }
                    Err(error) => error,
                };
                match room(&error) {
                    // With fewer to begin with, others may be the ones that fit. Else as many are in as fit.
                    Some(room) if room < most || batch.len() == 1 => return Err(room),
                    // One that the table does not take must not cost the others.
                    _ if batch.len() > 1 => {
                        let first = batch.split_off(batch.len() / 2);
                        batches.extend([batch, first]);
                    }
                    _ => {
                        let names = batch.iter().map(|fresh| fresh.tool.name.as_str());
                        lost.extend(names.map(|name| format!("the tool {name} can not be had: {}", error.message())));
                    }
                }
            }
        }
        Ok(())
    }

    /// These are in the table.
    async fn took(&self, batch: Vec<Fresh>) {
        let mut again = Vec::new();
        for Fresh { stands, tool, digest } in batch {
            if self.is_found(&tool.name) {
                again.push(tool.name.clone());
            }
            self.ever.borrow_mut().insert(tool.name.clone());
            self.known.borrow_mut().insert(tool.name.clone(), digest);
            self.stands.borrow_mut().insert(tool.name, stands);
        }
        if !again.is_empty() {
            let _: Result<(), Error> = table::activate(again, true).await;
        }
    }

    async fn withdraw(&self, mut gone: Vec<String>) {
        while !gone.is_empty() {
            let batch = gone.split_off(gone.len().saturating_sub(AT_ONCE));
            for name in &batch {
                self.stands.borrow_mut().remove(name);
                self.known.borrow_mut().remove(name);
                self.found.borrow_mut().remove(name);
            }
            let _: Result<(), Error> = table::unregister(batch).await;
        }
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

/// How many tools the table takes, where that is why it does not take more.
fn room(error: &Error) -> Option<usize> {
    match error {
        Error::Limit(limit) if limit.name == TOOLS => Some(usize::try_from(limit.value).unwrap_or(usize::MAX)),
        _ => None,
    }
}

/// A tool that is new to the table, or another one than it was.
#[derive(Debug)]
struct Fresh {
    stands: Stands,
    tool: types::Tool,
    digest: u64,
}

/// A tool that there is to be.
#[derive(Debug)]
struct Wanted<'a> {
    name: String,
    what: What<'a>,
}

#[derive(Debug)]
enum What<'a> {
    Gateway,
    Namespace(&'a Proxied),
    Direct(&'a Proxied, &'a Item),
}

impl Wanted<'_> {
    fn is_declared(&self) -> bool {
        matches!(self.what, What::Direct(server, _) if server.direct != Direct::Search)
    }

    fn stands(&self) -> Stands {
        match self.what {
            What::Gateway => Stands::Gateway,
            What::Namespace(server) => Stands::Namespace(server.name.clone()),
            What::Direct(server, _) => Stands::Direct(server.name.clone()),
        }
    }

    fn tool(&self) -> types::Tool {
        match self.what {
            What::Gateway => gateway_tool(),
            What::Namespace(server) => namespace_tool(&self.name, server),
            What::Direct(server, item) => direct_tool(server, item),
        }
    }

    /// Differs for what differs in the table. What the configuration says does not change while it is there.
    fn digest(&self) -> u64 {
        match self.what {
            What::Gateway | What::Namespace(_) => 0,
            What::Direct(server, item) => {
                let mut hasher = DefaultHasher::new();
                (&server.name, item.digest).hash(&mut hasher);
                hasher.finish()
            }
        }
    }
}

/// The tools that there are to be, in their order: those that reach others, then those of servers, as many as there is room
/// for. Also how many are left out. `ever`: those that were in the table before, which have their room there.
fn fitting<'a>(
    servers: &'a [Proxied],
    settings: &Settings,
    catalog: &'a Catalog,
    namespaces: &HashMap<String, Option<String>>,
    ever: &HashSet<String>,
    most: usize,
) -> (Vec<Wanted<'a>>, usize) {
    let fit = |needs_gateway: bool| {
        let mut all = wanted(servers, catalog, namespaces, settings, needs_gateway);
        let (before, mut room) = (all.len(), most.saturating_sub(ever.len()));
        all.retain(|wanted| {
            let has_room = ever.contains(&wanted.name) || room > 0;
            if has_room && !ever.contains(&wanted.name) {
                room -= 1;
            }
            has_room
        });
        let left = before - all.len();
        (all, left)
    };
    match fit(needs_gateway(servers, settings, catalog)) {
        (all, 0) => (all, 0),
        // What is left out has to be reached in another way.
        _ => fit(true),
    }
}

/// All tools that there would be if there was room for all.
fn wanted<'a>(
    servers: &'a [Proxied],
    catalog: &'a Catalog,
    namespaces: &HashMap<String, Option<String>>,
    settings: &Settings,
    needs_gateway: bool,
) -> Vec<Wanted<'a>> {
    let mut all = Vec::new();
    if needs_gateway {
        all.push(Wanted { name: gateway::NAME.to_owned(), what: What::Gateway });
    }
    for server in servers {
        let is_wanted = settings.namespaces && server.direct == Direct::None && catalog.of(&server.name).is_some();
        if let Some(Some(name)) = namespaces.get(&server.name).filter(|_| is_wanted) {
            all.push(Wanted { name: name.clone(), what: What::Namespace(server) });
        }
    }
    for server in servers.iter().filter(|server| server.direct != Direct::None) {
        let items = catalog.of(&server.name).into_iter().flat_map(|known| &known.items);
        let direct = items.filter(|item| is_direct(server, item));
        all.extend(direct.map(|item| Wanted { name: item.name.clone(), what: What::Direct(server, item) }));
    }
    // The names are all different; if they were not, the first tool of a name is the one that it stands for.
    let mut seen = HashSet::new();
    all.retain(|wanted| seen.insert(wanted.name.clone()));
    all
}

/// Whether something can be reached by the gateway alone, or somebody wants it all the same.
fn needs_gateway(servers: &[Proxied], settings: &Settings, catalog: &Catalog) -> bool {
    let is_reached = |server: &Proxied| catalog.of(&server.name).is_some() && server.direct == Direct::All;
    !settings.no_gateway || servers.is_empty() || !servers.iter().all(is_reached)
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
    tool.output_schema = Some(whole_schema(None).into_owned());
    tool
}

fn direct_tool(server: &Proxied, item: &Item) -> types::Tool {
    let description = match (&item.tool.description, &item.tool.title) {
        (description, Some(title)) if description.is_empty() => title.clone(),
        (description, _) => description.clone(),
    };
    let first = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(&item.local);
    let snippet: String = first.chars().take(MAX_LINE).collect();
    let parameters = Value::Object(item.tool.input_schema.read());
    let mut tool = plain(&item.name, description, &parameters, &snippet);
    tool.label = item.tool.title.as_ref().unwrap_or(&item.local).chars().take(MAX_LINE).collect();
    tool.output_schema = Some(whole_schema(item.tool.output_schema.as_ref()).into_owned());
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
        shown(&servers, settings, &catalog, 100).0
    }

    /// The same of this catalog, if there is so much room. Also how many are left out.
    fn shown(servers: &[Proxied], settings: &Settings, catalog: &Catalog, most: usize) -> (Vec<String>, usize) {
        let namespaces = crate::prefix::namespaces(servers.iter().map(|server| server.name.as_str()));
        let (wanted, left) = fitting(servers, settings, catalog, &namespaces, &HashSet::new(), most);
        let tools = wanted.iter().map(Wanted::tool);
        let shown = tools.map(|tool| if tool.default_active { tool.name } else { format!("({})", tool.name) });
        (shown.collect(), left)
    }

    #[test]
    fn what_has_no_room_is_left_to_the_gateway() {
        let servers = servers(r#"{"a": {"command": "a", "directTools": true}, "b": {"command": "b"}}"#);
        let mut catalog = Catalog::new(servers.iter().map(|server| server.name.clone()));
        let tools: Vec<Value> = (0..20).map(|at| json!({"name": format!("t{at}")})).collect();
        catalog.put(&servers[0], Prefix::Server, &kept(&json!(tools)), |_| false);
        let without = Settings { no_gateway: true, ..Settings::default() };
        let (names, left) = shown(&servers[..1], &without, &catalog, 20);
        assert_eq!((names.len(), names[0].as_str(), left), (20, "a_t0", 0), "all are reached");
        let (names, left) = shown(&servers[..1], &without, &catalog, 19);
        assert_eq!((names.len(), names[0].as_str(), names[18].as_str(), left), (19, "mcp", "a_t17", 2));
        // What was there before and is not any more has its room all the same.
        let namespaces = crate::prefix::namespaces(["a", "b"].into_iter());
        let ever = ["a_t3".to_owned(), "a_gone".to_owned()].into_iter().collect();
        let (wanted, left) = fitting(&servers, &without, &catalog, &namespaces, &ever, 5);
        let names: Vec<&str> = wanted.iter().map(|wanted| wanted.name.as_str()).collect();
        assert_eq!((names, left), (vec!["mcp", "a_t0", "a_t1", "a_t3"], 17));
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
