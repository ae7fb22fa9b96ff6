//! The tools of all servers, as far as they are known: by the names that they have here.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use atoll_mcp_client::{
    names::{fitting, namespace, near_matches},
    tool::ServerTool,
};
use serde_json::json;

use crate::{
    kept::Kept,
    prefix::{self, Prefix},
    search,
    settings::Proxied,
};

/// The most arguments of a tool that it is found by.
const MAX_ARGUMENTS: usize = 100;

/// What is done on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Its tool of this name is called.
    Call(String),
    /// Its resource at this address is read.
    Read(String),
}

/// A tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    /// Its name here.
    pub(crate) name: String,
    /// Its name among those of its server.
    pub(crate) local: String,
    pub(crate) what: What,
    /// How it is described.
    pub(crate) tool: ServerTool,
    /// Differs for tools that are described differently.
    pub(crate) digest: u64,
    keywords: Vec<String>,
    /// The names of its first arguments.
    arguments: Vec<String>,
}

fn arguments(tool: &ServerTool) -> Vec<String> {
    let schema = tool.input_schema.read();
    let properties = schema.get("properties").and_then(serde_json::Value::as_object);
    properties.into_iter().flat_map(|all| all.keys().take(MAX_ARGUMENTS).cloned()).collect()
}

fn digest(tool: &ServerTool) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_string(tool).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}

impl Item {
    fn document(&self) -> search::Document<'_> {
        let texts = [self.tool.title.as_deref().unwrap_or_default(), self.tool.description.as_str()];
        search::Document {
            names: vec![&self.name, &self.local],
            keywords: self.keywords.iter().map(String::as_str).collect(),
            texts: texts.into_iter().chain(self.arguments.iter().map(String::as_str)).collect(),
        }
    }
}

/// What is known of one server.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Known {
    pub(crate) items: Vec<Item>,
    pub(crate) instructions: Option<String>,
}

/// What is known, by server, in the order of the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Catalog(Vec<(String, Option<Known>)>);

/// What a name stands for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    /// A tool of this server.
    One(String, Box<Item>),
    /// Several have it; their full names.
    Several(Vec<String>),
    /// None; these are like it.
    Nothing(Vec<String>),
}

impl Catalog {
    /// Of nothing is anything known yet.
    pub(crate) fn new(servers: impl Iterator<Item = String>) -> Self {
        Self(servers.map(|server| (server, None)).collect())
    }

    /// What is known of a server.
    pub(crate) fn of(&self, server: &str) -> Option<&Known> {
        self.0.iter().find(|(name, _)| name == server).and_then(|(_, known)| known.as_ref())
    }

    /// A server's name, by that or by the way that it is part of other names.
    pub(crate) fn server(&self, name: &str) -> Option<&str> {
        let names = || self.0.iter().map(|(known, _)| known.as_str());
        let fits = |known: &&str| namespace(known) == namespace(name) || namespace(known) == name;
        names().find(|known| *known == name).or_else(|| names().find(fits))
    }

    /// Servers whose names are like this one.
    pub(crate) fn servers_like(&self, name: &str) -> Vec<&str> {
        near_matches(name, self.0.iter().map(|(known, _)| known.as_str()))
    }

    /// Has this of a server from here on. A name that another server has, or that is taken by somebody else, is not given
    /// again: whoever has it keeps it.
    pub(crate) fn put(&mut self, server: &Proxied, prefix: Prefix, kept: &Kept, is_taken: impl Fn(&str) -> bool) {
        let mut all: Vec<(What, ServerTool)> = Vec::new();
        let mut locals = HashSet::new();
        for tool in &kept.tools {
            if locals.insert(tool.name.clone()) {
                all.push((What::Call(tool.name.clone()), tool.clone()));
            }
        }
        for resource in kept.resources.iter().filter(|_| server.resources) {
            let mut local = prefix::of_resource(&resource.name);
            if !locals.insert(local.clone()) {
                local = fitting(&local, &server.name, &resource.uri, |_| true);
                if !locals.insert(local.clone()) {
                    continue;
                }
            }
            let mut description = format!("Reads the resource {} ({}).", resource.name, resource.uri);
            if !resource.description.is_empty() {
                description.push_str(&format!(" {}", resource.description));
            }
            let described = json!({"name": local, "description": description, "annotations": {"readOnlyHint": true},
                "inputSchema": {"type": "object", "properties": {}}});
            if let Ok(tool) = ServerTool::of(&described) {
                all.push((What::Read(resource.uri.clone()), tool));
            }
        }
        let others: HashSet<&str> = (self.0.iter())
            .filter(|(name, _)| *name != server.name)
            .flat_map(|(_, known)| known.iter().flat_map(|known| known.items.iter().map(|item| item.name.as_str())))
            .collect();
        let names: Vec<&str> = all.iter().map(|(_, tool)| tool.name.as_str()).collect();
        let names = prefix::names(prefix, &server.name, &names, |name| others.contains(name) || is_taken(name));
        let items = names.into_iter().zip(all).filter(|(name, (_, tool))| server.offers(&[&tool.name, name]));
        let items = items.map(|(name, (what, tool))| Item {
            name,
            local: tool.name.clone(),
            keywords: server.keywords(&tool.name),
            arguments: arguments(&tool),
            digest: digest(&tool),
            what,
            tool,
        });
        let known = Known { items: items.collect(), instructions: kept.instructions.clone() };
        if let Some(place) = self.0.iter_mut().find(|(name, _)| *name == server.name) {
            place.1 = Some(known);
        }
    }

    fn items<'a, 's>(&'a self, server: Option<&'s str>) -> impl Iterator<Item = (&'a str, &'a Item)> + use<'a, 's> {
        let wanted = self.0.iter().filter(move |(name, _)| server.is_none_or(|server| server == name));
        wanted.flat_map(|(name, known)| {
            known.iter().flat_map(move |known| known.items.iter().map(move |item| (name.as_str(), item)))
        })
    }

    /// What a name stands for, among all tools or those of one server: the full name, or the one on its server if no other
    /// server has a tool that is called so.
    pub(crate) fn find(&self, name: &str, server: Option<&str>) -> Found {
        let one = |(server, item): (&str, &Item)| Found::One(server.to_owned(), Box::new(item.clone()));
        if let Some(found) = self.items(server).find(|(_, item)| item.name == name) {
            return one(found);
        }
        let written = as_written(name);
        let same = |item: &Item| item.local == name || as_written(&item.name) == written;
        let alike: Vec<(&str, &Item)> = self.items(server).filter(|(_, item)| same(item)).collect();
        match alike[..] {
            [found] => one(found),
            [] => {
                let near = near_matches(name, self.items(server).map(|(_, item)| item.name.as_str()));
                let local = near_matches(name, self.items(server).map(|(_, item)| item.local.as_str()));
                let by_local = self.items(server).filter(|(_, item)| local.contains(&item.local.as_str()));
                let mut all: Vec<String> = near.into_iter().map(str::to_owned).collect();
                all.extend(by_local.map(|(_, item)| item.name.clone()));
                let mut seen = HashSet::new();
                all.retain(|name| seen.insert(name.clone()));
                all.truncate(3);
                Found::Nothing(all)
            }
            _ => Found::Several(alike.iter().map(|(_, item)| item.name.clone()).collect()),
        }
    }

    /// Tools that have words of the query, best first.
    pub(crate) fn search<'a>(&'a self, query: &str, server: Option<&str>) -> Vec<(&'a str, &'a Item)> {
        let all: Vec<(&str, &Item)> = self.items(server).collect();
        let documents: Vec<search::Document<'_>> = all.iter().map(|(_, item)| item.document()).collect();
        search::rank(query, &documents).into_iter().filter_map(|at| all.get(at).copied()).collect()
    }
}

/// A name in the one way that it could be written everywhere.
fn as_written(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::kept::Resource;
    use atoll_mcp_client::config::{Document, Place};
    use serde_json::Value;

    pub(crate) fn servers(text: &str) -> Vec<Proxied> {
        let text = format!("{{\"mcpServers\": {text}}}");
        crate::settings::read(&[Document { place: Place::User, path: "x", text: &text }]).servers
    }

    pub(crate) fn kept(tools: &Value) -> Kept {
        let tools = tools.as_array().unwrap().iter().map(|tool| ServerTool::of(tool).unwrap());
        Kept { tools: tools.collect(), instructions: Some("Ask kindly.".to_owned()), ..Kept::default() }
    }

    fn catalog(prefix: Prefix) -> Catalog {
        let servers =
            servers(r#"{"a": {"command": "a"}, "b-c": {"command": "b", "excludeTools": ["*_all", "read_n*"]}}"#);
        let mut all = Catalog::new(servers.iter().map(|server| server.name.clone()));
        all.put(&servers[0], prefix, &kept(&json!([{"name": "get"}, {"name": "only-a"}])), |_| false);
        let resource =
            |name: &str, uri: &str| Resource { uri: uri.into(), name: name.into(), description: "Notes.".into() };
        let more = Kept {
            resources: vec![resource("x.md", "f://x"), resource("x_md", "f://y"), resource("notes", "f://n")],
            ..kept(&json!([{"name": "get", "description": "Gets."}, {"name": "drop_all"}]))
        };
        all.put(&servers[1], prefix, &more, |_| false);
        all
    }

    fn names(catalog: &Catalog) -> Vec<String> {
        catalog.items(None).map(|(_, item)| item.name.clone()).collect()
    }

    #[test]
    fn tools_and_resources_have_names_and_what_is_excluded_is_not_there() {
        let all = catalog(Prefix::Server);
        assert_eq!(names(&all)[..4], ["a_get", "a_only-a", "b-c_get", "b-c_read_x_md"]);
        assert_eq!(names(&all).len(), 5);
        assert!(names(&all)[4].starts_with("b-c_read_x_md_"));
        let Found::One(server, item) = all.find("b-c_read_x_md", None) else { panic!() };
        assert_eq!((server.as_str(), &item.what), ("b-c", &What::Read("f://x".to_owned())));
        insta::assert_snapshot!(item.tool.description, @"Reads the resource x.md (f://x). Notes.");
    }

    #[test]
    fn a_tool_is_found_by_its_names_if_only_one_is_meant() {
        let all = catalog(Prefix::Server);
        let found = |name: &str, server: Option<&str>| match all.find(name, server) {
            Found::One(_, item) => item.name,
            other => format!("{other:?}"),
        };
        assert_eq!(found("a_get", None), "a_get");
        assert_eq!(found("only-a", None), "a_only-a");
        assert_eq!(found("b_c_get", None), "b-c_get");
        assert_eq!(found("get", Some("b-c")), "b-c_get");
        assert_eq!(found("get", None), r#"Several(["a_get", "b-c_get"])"#);
        assert_eq!(found("a_gett", None), r#"Nothing(["a_get"])"#);
        assert_eq!(found("onlya", None), r#"Nothing(["a_only-a"])"#);
        assert_eq!(found("a_get", Some("b-c")), r#"Nothing(["b-c_get"])"#);
        assert_eq!([all.server("b_c"), all.server("mcp__b_c"), all.server("c")], [Some("b-c"), Some("b-c"), None]);
    }

    #[test]
    fn a_name_that_somebody_has_is_not_given_again() {
        let mut all = catalog(Prefix::None);
        assert_eq!(names(&all)[..2], ["get", "only-a"]);
        assert!(names(&all)[2].starts_with("get_"), "{:?}", names(&all));
        // What is put once more keeps its names.
        let servers = servers(r#"{"a": {"command": "a"}}"#);
        all.put(&servers[0], Prefix::None, &kept(&json!([{"name": "get"}, {"name": "bash"}])), |name| name == "bash");
        assert_eq!(names(&all)[0], "get");
        assert!(names(&all)[1].starts_with("bash_"));
    }

    #[test]
    fn what_is_searched_is_of_all_servers_or_of_one() {
        let all = catalog(Prefix::Server);
        let found = |query, server| {
            all.search(query, server).into_iter().map(|(_, item)| item.name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(found("get", None), ["a_get", "b-c_get"]);
        assert_eq!(found("get", Some("a")), ["a_get"]);
        assert_eq!(found("", Some("a")), ["a_get", "a_only-a"]);
    }
}
