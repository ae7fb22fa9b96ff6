//! What the tool `mcp` answers, for a model to read.

use std::fmt::Write as _;

use serde_json::Value;

use crate::{
    catalog::{Catalog, Item},
    gateway::Search,
    shape,
};

/// The longest description in a list, in characters.
const MAX_DESCRIPTION: usize = 400;
/// The longest name of a tool on its server that is shown, in characters.
const MAX_LOCAL: usize = 100;
/// The most tools that a name is said to stand for.
const MAX_CANDIDATES: usize = 10;
/// The longest instructions of a server, in characters.
const MAX_INSTRUCTIONS: usize = 20_000;

/// How it is with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Connected,
    Connecting,
    /// It is connected to when it is called.
    Resting,
    /// It is not there, and why.
    Gone(String),
}

/// A server, as the model is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Server<'a> {
    pub(crate) name: &'a str,
    pub(crate) description: Option<&'a str>,
    pub(crate) standing: Standing,
    /// The tool that calls its tools, if there is one.
    pub(crate) namespace: Option<String>,
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A text of somebody's in one line, not too long.
fn line(text: &str) -> String {
    // No more is looked at than may be shown, with room for what is between words.
    let begun: String = text.chars().take(4 * MAX_DESCRIPTION).collect();
    beginning(&begun.split_whitespace().collect::<Vec<_>>().join(" "), MAX_DESCRIPTION)
}

/// So many characters of a text, and what says that there are more.
fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The name that a tool of a server is called by through the tool of that server: its own, or, where that is long, the one
/// that it has here.
fn by_server(item: &Item) -> &str {
    if item.local.chars().nth(MAX_LOCAL).is_none() { &item.local } else { &item.name }
}

/// Which servers there are.
pub(crate) fn status(servers: &[Server<'_>], catalog: &Catalog) -> String {
    if servers.is_empty() {
        return "There are no MCP servers: none is configured and switched on.".to_owned();
    }
    let connected = servers.iter().filter(|server| server.standing == Standing::Connected).count();
    let mut text = format!("{}, {connected} connected.\n", count(servers.len(), "MCP server"));
    for server in servers {
        let tools = catalog.of(server.name).map(|known| count(known.items.len(), "tool"));
        let connect = format!("mcp({{ connect: {} }})", Value::from(server.name));
        let _ = match (&server.standing, tools) {
            (Standing::Connected, tools) => {
                write!(text, "- {}: connected, {}", server.name, tools.unwrap_or_else(|| count(0, "tool")))
            }
            (Standing::Connecting, _) => write!(text, "- {}: being connected to", server.name),
            (Standing::Resting, Some(tools)) => {
                write!(text, "- {}: not connected before it is called, {tools}", server.name)
            }
            (Standing::Resting, None) => {
                write!(text, "- {}: its tools are not known yet; {connect} asks for them", server.name)
            }
            (Standing::Gone(why), _) => {
                write!(text, "- {}: can not be reached: {}; {connect} tries again", server.name, line(why))
            }
        };
        if let Some(description) = server.description {
            let _ = write!(text, ". {}", line(description));
        }
        text.push('\n');
    }
    text.push_str("\nmcp({ search: \"words\" }) finds tools.");
    text
}

/// The tools that a search shows, with their servers, and how many there are in all.
pub(crate) fn found(search: &Search, server: Option<&str>, catalog: &Catalog) -> (Vec<(String, Item)>, usize) {
    let all = catalog.search(&search.query, server);
    let shown = all.iter().skip(search.offset).take(search.limit);
    (shown.map(|(server, item)| ((*server).to_owned(), (*item).clone())).collect(), all.len())
}

/// What the model reads of a search that found these, of so many.
pub(crate) fn search(
    search: &Search,
    server: Option<&str>,
    servers: &[Server<'_>],
    catalog: &Catalog,
    (shown, all): &(Vec<(String, Item)>, usize),
    is_declared: impl Fn(&str, &Item) -> bool,
) -> String {
    let all = *all;
    let of = server.map(|server| format!(" of {server}")).unwrap_or_default();
    let query = Value::from(search.query.as_str());
    let mut text = match (all, search.query.is_empty()) {
        (0, true) => format!("No tools{of} are known.\n"),
        (0, false) => format!("No tool{of} matches {query}.\n"),
        (number, true) => format!("{}{of}:\n", count(number, "tool")),
        (1, false) => format!("1 tool{of} matches {query}:\n"),
        (number, false) => format!("{number} tools{of} match {query}:\n"),
    };
    for (_, item) in shown {
        let _ = write!(text, "\n{}\n", item.name);
        let description = line(&item.tool.description);
        if !description.is_empty() {
            let _ = writeln!(text, "  {description}");
        }
        if search.with_arguments {
            let _ = writeln!(text, "  Arguments: {}", shape::line(&item.tool.input_schema.read()));
        }
    }
    let end = search.offset + shown.len();
    if end < all {
        let _ = writeln!(text, "\n{} more: the same search with offset: {end}.", all - end);
    }
    let (direct, called): (Vec<_>, Vec<_>) = shown.iter().partition(|(server, item)| is_declared(server, item));
    if !direct.is_empty() {
        let names: Vec<&str> = direct.iter().map(|(_, item)| item.name.as_str()).collect();
        let _ = writeln!(text, "\nDeclared to you from the next call on: {}.", names.join(", "));
    }
    if let Some((server, item)) = called.first() {
        let (name, local) = (Value::from(item.name.as_str()), Value::from(by_server(item)));
        let by_namespace =
            servers.iter().find(|known| known.name == server.as_str()).and_then(|known| known.namespace.as_deref());
        let way = by_namespace.map(|tool| format!(" or {tool}({{ tool: {local}, args: … }})")).unwrap_or_default();
        let _ = writeln!(text, "\nCall one: mcp({{ tool: {name}, args: … }}){way}.");
    }
    for server in servers.iter().filter(|known| server.is_none_or(|server| server == known.name)) {
        let (name, is_known) = (server.name, catalog.of(server.name).is_some());
        let connect = format!("mcp({{ connect: {} }})", Value::from(name));
        let _ = match &server.standing {
            _ if is_known => Ok(()),
            Standing::Connecting => {
                writeln!(text, "\n{name} is still being connected to: its tools are not among these.")
            }
            Standing::Resting => writeln!(text, "\nThe tools of {name} are not known yet: {connect} asks for them."),
            Standing::Gone(why) => {
                writeln!(
                    text,
                    "\nThe tools of {name} are not known, for it can not be reached: {}. {connect} tries again.",
                    line(why)
                )
            }
            Standing::Connected => Ok(()),
        };
    }
    text.trim_end().to_owned()
}

/// All of one tool.
pub(crate) fn describe(server: &str, item: &Item) -> String {
    let local = Value::from(beginning(&item.local, MAX_LOCAL));
    let mut text = format!("{}: {local} of the MCP server {server}\n", item.name);
    if !item.tool.description.is_empty() {
        let _ = writeln!(text, "\n{}", item.tool.description);
    }
    let _ = write!(text, "\nArguments:\n{}", shape::lines(&item.tool.input_schema.read()));
    if let Some(schema) = &item.tool.output_schema {
        let _ = writeln!(text, "\nGives: {}", shape::line(&schema.read()));
    }
    let claims = [
        ("readOnlyHint", true, "changes nothing"),
        ("destructiveHint", true, "may destroy something"),
        ("idempotentHint", true, "does the same when called twice as once"),
    ];
    let claims: Vec<&str> = (claims.iter())
        .filter(|(name, value, _)| item.tool.annotations.get(*name).and_then(Value::as_bool) == Some(*value))
        .map(|(_, _, says)| *says)
        .collect();
    if !claims.is_empty() {
        let _ = writeln!(text, "\nIt says of itself that it {}.", claims.join(", "));
    }
    text.trim_end().to_owned()
}

/// What a tool wants, to be put after its failure.
pub(crate) fn wanted(item: &Item) -> String {
    format!("Arguments of {}: {}", item.name, shape::line(&item.tool.input_schema.read()))
}

/// What a server says of its use.
pub(crate) fn instructions(server: &str, said: Option<&str>) -> String {
    match said.map(str::trim).filter(|said| !said.is_empty()) {
        Some(said) => said.chars().take(MAX_INSTRUCTIONS).collect(),
        None => format!("The MCP server {server} gives no instructions."),
    }
}

/// That there is no such tool.
pub(crate) fn no_tool(name: &str, near: &[String]) -> String {
    let name = Value::from(beginning(name, MAX_LOCAL));
    let near = if near.is_empty() { String::new() } else { format!(" Is {} meant?", near.join(" or ")) };
    format!("There is no tool {name}.{near} mcp({{ search: \"words\" }}) finds tools.")
}

/// That several servers have such a tool.
pub(crate) fn several(name: &str, candidates: &[String]) -> String {
    let shown: Vec<&str> = candidates.iter().take(MAX_CANDIDATES).map(String::as_str).collect();
    let more = candidates.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let name = Value::from(beginning(name, MAX_LOCAL));
    format!("Several servers have a tool {name}: it is one of {}{more}.", shown.join(", "))
}

/// That there is no such server.
pub(crate) fn no_server(name: &str, catalog: &Catalog, servers: &[Server<'_>]) -> String {
    let near = catalog.servers_like(name);
    let all: Vec<&str> = servers.iter().map(|server| server.name).collect();
    let known = match (near.is_empty(), all.is_empty()) {
        (_, true) => "none is configured.".to_owned(),
        (true, _) => format!("there is {}.", all.join(", ")),
        (false, _) => format!("is {} meant?", near.join(" or ")),
    };
    format!("There is no MCP server {}; {known}", Value::from(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        catalog::tests::{kept, servers},
        catalog::{Catalog, Found},
        prefix::Prefix,
    };
    use serde_json::json;

    fn catalog() -> Catalog {
        let all = servers(
            r#"{"github": {"command": "a"}, "files": {"command": "b"}, "slow": {"command": "c"}, "new": {"command": "d"}}"#,
        );
        let mut catalog = Catalog::new(all.iter().map(|server| server.name.clone()));
        let tools = json!([
            {"name": "get_issue", "description": "Gets one issue\nof a repository.", "annotations": {"readOnlyHint": true},
             "inputSchema": {"type": "object", "required": ["id"], "properties": {
                "id": {"type": "integer", "description": "Its number"}, "owner": {"type": "string"}}},
             "outputSchema": {"type": "object", "properties": {"title": {"type": "string"}}}},
            {"name": "list_issues", "description": "Lists issues."},
            {"name": "close_issue"},
        ]);
        catalog.put(&all[0], Prefix::Server, &kept(&tools), |_| false);
        catalog.put(&all[1], Prefix::Server, &kept(&json!([{"name": "read", "description": "Reads."}])), |_| false);
        catalog
    }

    fn told() -> Vec<Server<'static>> {
        let server = |name, description, standing, namespace: Option<&str>| Server {
            name,
            description,
            standing,
            namespace: namespace.map(str::to_owned),
        };
        vec![
            server("github", Some("Issues and\ncode"), Standing::Resting, Some("mcp__github")),
            server("files", None, Standing::Connected, None),
            server("slow", None, Standing::Connecting, None),
            server("new", None, Standing::Resting, None),
            server("dead", None, Standing::Gone("it exited with 4".to_owned()), None),
        ]
    }

    fn found(query: &str, server: Option<&str>, limit: usize, is_declared: bool) -> String {
        let search = Search { query: query.to_owned(), limit, offset: 0, with_arguments: true };
        let (catalog, servers) = (catalog(), told());
        let found = super::found(&search, server, &catalog);
        super::search(&search, server, &servers, &catalog, &found, |_, _| is_declared)
    }

    #[test]
    fn what_the_model_reads_of_servers() {
        insta::assert_snapshot!(status(&told(), &catalog()));
        assert!(status(&[], &catalog()).starts_with("There are no MCP servers"));
    }

    #[test]
    fn what_the_model_reads_of_a_search() {
        insta::assert_snapshot!(format!(
            "{}\n=======\n{}\n=======\n{}\n=======\n{}",
            found("get issues", Some("github"), 2, false),
            found("read", Some("files"), 12, true),
            found("nonsense", None, 12, false),
            found("", Some("new"), 12, false),
        ));
    }

    #[test]
    fn what_the_model_reads_of_a_tool() {
        let Found::One(server, item) = catalog().find("get_issue", None) else { panic!() };
        insta::assert_snapshot!(format!("{}\n\n{}", describe(&server, &item), wanted(&item)));
    }

    #[test]
    fn what_the_model_reads_where_something_is_not_there() {
        insta::assert_snapshot!(
            [
                no_tool("github_get_isue", &["github_get_issue".to_owned()]),
                no_tool("x", &[]),
                several("get", &["a_get".to_owned(), "b_get".to_owned()]),
                no_server("githib", &catalog(), &told()),
                no_server("quite-another", &catalog(), &told()),
                no_server("x", &catalog(), &[]),
                instructions("a", Some(" Be kind. ")),
                instructions("a", None),
            ]
            .join("\n")
        );
    }
}
