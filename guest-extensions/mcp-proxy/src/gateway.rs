//! The tool `mcp`: what it is asked.

use serde_json::{Map, Value, json};

/// How many tools a search gives, where nothing says otherwise, and at most.
const USUAL: usize = 12;
const MOST: usize = 100;

/// The tool's name.
pub(crate) const NAME: &str = "mcp";

/// What begins to sign the user in to a server, and what ends that.
pub(crate) const START: &str = "auth-start";
pub(crate) const COMPLETE: &str = "auth-complete";

/// What it does, for the model.
pub(crate) const DESCRIPTION: &str = "Reaches the tools of MCP servers, which are not all declared to you. Without arguments it \
says which servers there are. `search` finds tools by words and gives their names and arguments; `tool` with `args` calls one; \
`describe` tells all of one; `connect` connects to a server whose tools are not known yet; `instructions` gives what a server \
says of its use; `action` with `server` signs the user in to one that wants that. Search before you call what you have not seen.";

/// One line for the list of tools.
pub(crate) const SNIPPET: &str = "Search, describe and call the tools of MCP servers";

/// The schema of its arguments.
pub(crate) fn parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "search": {"type": "string", "description": "Words to find tools by"},
            "tool": {"type": "string", "description": "A tool to call, by the name that a search gives"},
            "args": {
                "type": ["object", "string"],
                "description": "Its arguments: an object, or one as JSON text",
            },
            "describe": {"type": "string", "description": "A tool to describe"},
            "connect": {"type": "string", "description": "A server to connect to"},
            "instructions": {"type": "string", "description": "A server whose instructions to give"},
            "action": {"type": "string", "enum": [START, COMPLETE], "description": "Signing in to `server`: begin, which gives a \
    page for the user to open; or complete, with the `url` that their browser was led to"},
            "url": {"type": "string", "description": "The address for auth-complete"},
            "server": {"type": "string", "description": "Look at the tools of this server only; alone: list them"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "How many tools a search gives (12)"},
            "offset": {"type": "integer", "minimum": 0, "description": "How many a search leaves out at the beginning"},
            "includeSchemas": {"type": "boolean", "description": "Whether a search gives arguments (true)"},
        },
        "additionalProperties": false,
    })
}

/// What it is asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Request {
    Status,
    Search(Search),
    Call {
        tool: String,
        arguments: Map<String, Value>,
    },
    Describe(String),
    Connect(String),
    Instructions(String),
    /// Begin to sign in to a server.
    Start(String),
    /// End that with the address that a browser was led to.
    Complete(String, String),
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Search {
    pub(crate) query: String,
    pub(crate) limit: usize,
    pub(crate) offset: usize,
    pub(crate) with_arguments: bool,
}

impl Search {
    /// One that finds whatever there is.
    pub(crate) fn of_all() -> Self {
        Self { query: String::new(), limit: USUAL, offset: 0, with_arguments: true }
    }
}

/// Reads what the tool is asked, and which server it is to look at.
///
/// # Errors
/// What to do instead.
pub(crate) fn read(asked: &Map<String, Value>) -> Result<(Request, Option<String>), String> {
    let text = |key: &str| {
        asked.get(key).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let number = |key: &str| asked.get(key).and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
    let actions: Vec<&str> = ["tool", "search", "describe", "connect", "instructions", "action"]
        .into_iter()
        .filter(|key| text(key).is_some())
        .collect();
    let server = text("server");
    let request = match actions[..] {
        [] if asked.contains_key("args") => {
            return Err("There are arguments, and no `tool` that they are for.".to_owned());
        }
        [] if server.is_none() => Request::Status,
        [] | ["search"] => Request::Search(Search {
            query: text("search").unwrap_or_default(),
            limit: number("limit").unwrap_or(USUAL).clamp(1, MOST),
            offset: number("offset").unwrap_or_default(),
            with_arguments: asked.get("includeSchemas").and_then(Value::as_bool).unwrap_or(true),
        }),
        ["tool"] => Request::Call { tool: text("tool").unwrap_or_default(), arguments: arguments(asked.get("args"))? },
        ["describe"] => Request::Describe(text("describe").unwrap_or_default()),
        ["connect"] => Request::Connect(text("connect").unwrap_or_default()),
        ["instructions"] => Request::Instructions(text("instructions").unwrap_or_default()),
        ["action"] => action(&text("action").unwrap_or_default(), server.clone(), text("url"))?,
        _ => return Err(format!("One thing at a time: {} are several.", actions.join(", "))),
    };
    Ok((request, server))
}

fn action(action: &str, server: Option<String>, url: Option<String>) -> Result<Request, String> {
    let server = server.ok_or_else(|| format!("With `action` there has to be the `server` that {action} is for."))?;
    match (action, url) {
        (START, _) => Ok(Request::Start(server)),
        (COMPLETE, Some(url)) => Ok(Request::Complete(server, url)),
        (COMPLETE, None) => Err(format!(
            "{COMPLETE} needs `url`: the whole address of the page that the browser was led to. Without it there is nothing to do; \
             the browser ends the sign-in itself if it is on this machine."
        )),
        _ => Err(format!("There is no such action; there are {START} and {COMPLETE}.")),
    }
}

/// The arguments of a tool: an object, or one as text.
///
/// # Errors
/// That they are none.
pub(crate) fn arguments(given: Option<&Value>) -> Result<Map<String, Value>, String> {
    match given {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(arguments)) => Ok(arguments.clone()),
        Some(Value::String(text)) if text.trim().is_empty() => Ok(Map::new()),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(_) => Err("`args` is JSON, and no object.".to_owned()),
            Err(error) => Err(format!("`args` is no JSON: {error}")),
        },
        Some(_) => Err("`args` has to be an object.".to_owned()),
    }
}

/// The schema of a tool that calls those of one server.
pub(crate) fn namespace_parameters() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tool": {"type": "string", "description": "The tool, by the name that it has on the server"},
            "args": {"type": ["object", "string"], "description": "Its arguments: an object, or one as JSON text"},
        },
        "required": ["tool"],
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(asked: &Value) -> Result<(Request, Option<String>), String> {
        read(asked.as_object().unwrap())
    }

    #[test]
    fn each_way_of_asking_is_one_request() {
        let call = |asked: &Value| match of(asked) {
            Ok((Request::Call { tool, arguments }, server)) => {
                format!("{tool} {} {server:?}", Value::Object(arguments))
            }
            other => format!("{other:?}"),
        };
        assert_eq!(of(&json!({})), Ok((Request::Status, None)));
        assert_eq!(of(&json!({"search": " "})), Ok((Request::Status, None)));
        assert_eq!(call(&json!({"tool": "a_x", "args": {"n": 1}})), "a_x {\"n\":1} None");
        assert_eq!(call(&json!({"tool": "x", "args": "{\"n\": 1}", "server": "a"})), "x {\"n\":1} Some(\"a\")");
        assert_eq!(call(&json!({"tool": "x", "args": ""})), "x {} None");
        let begins = of(&json!({"action": "auth-start", "server": "a"})).map(|(request, _)| request);
        assert_eq!(begins, Ok(Request::Start("a".into())));
        let ends = of(&json!({"action": "auth-complete", "server": "a", "url": "http://x/?code=1"}))
            .map(|(request, _)| request);
        assert_eq!(ends, Ok(Request::Complete("a".into(), "http://x/?code=1".into())));
        assert_eq!(of(&json!({"connect": "a"})), Ok((Request::Connect("a".into()), None)));
        let listed = of(&json!({"server": "a", "limit": 1000, "offset": 3, "includeSchemas": false}));
        let search = Search { query: String::new(), limit: 100, offset: 3, with_arguments: false };
        assert_eq!(listed, Ok((Request::Search(search), Some("a".into()))));
        for (asked, says) in [
            (json!({"tool": "a", "search": "b"}), "tool, search are several"),
            (json!({"args": {}}), "no `tool`"),
            (json!({"tool": "a", "args": "[1]"}), "no object"),
            (json!({"tool": "a", "args": "{"}), "no JSON"),
            (json!({"action": "auth-start"}), "has to be the `server`"),
            (json!({"action": "auth-complete", "server": "a"}), "needs `url`"),
            (json!({"action": "install", "server": "a"}), "there are auth-start and auth-complete"),
            (json!({"action": "auth-start", "tool": "b"}), "tool, action are several"),
        ] {
            assert!(of(&asked).is_err_and(|why| why.contains(says)), "{asked}: {:?}", of(&asked));
        }
    }
}
