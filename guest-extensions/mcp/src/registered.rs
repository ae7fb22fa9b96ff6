//! Servers that other extensions add to the session. What their entries say stands for itself: nothing of it is looked up, or
//! whoever adds one would have the user's variables and commands. See [`Place::Extension`].

use atoll_mcp_client::{
    config::{Configuration, Document, Place, Server},
    names::namespace,
};
use atoll_plugin::servers;
use serde_json::{Value, json};

/// What they come to.
#[derive(Default)]
pub(crate) struct Registered {
    /// The servers, each with the configuration that it is from.
    pub(crate) servers: Vec<(Server, Value)>,
    /// Lines about those that can not be had.
    pub(crate) problems: Vec<String>,
}

impl Registered {
    /// Those that there are now, without those whose names the files have.
    pub(crate) fn read(files: &Configuration) -> Self {
        Self::of(files, servers::list().into_iter().map(|server| (server.name, server.plugin, server.config)))
    }

    fn of(files: &Configuration, all: impl Iterator<Item = (String, String, String)>) -> Self {
        let mut found = Self::default();
        for (name, plugin, config) in all {
            let own = namespace(&name);
            if files.servers.iter().any(|server| namespace(&server.name) == own) {
                found
                    .problems
                    .push(format!("the server {name} of the extension {plugin} gives way to yours of that name"));
                continue;
            }
            if found.servers.iter().any(|(server, _)| namespace(&server.name) == own) {
                found.problems.push(format!("the server {name} of the extension {plugin} has the name of another"));
                continue;
            }
            let raw: Value = serde_json::from_str(&config).unwrap_or_default();
            let text = json!({"mcpServers": {&name: &raw}}).to_string();
            let path = format!("the extension {plugin}");
            let read = Configuration::read(&[Document { place: Place::Extension, path: &path, text: &text }]);
            found.problems.extend(read.problems.iter().map(ToString::to_string));
            found.servers.extend(read.servers.into_iter().map(|server| (server, raw.clone())));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_extensions_add_is_taken_as_it_is_and_gives_way_to_files() {
        let text = r#"{"mcpServers": {"my-docs": {"command": "x"}}}"#;
        let files = Configuration::read(&[Document { place: Place::User, path: "mcp.json", text }]);
        let server = |name: &str, config: Value| (name.to_owned(), "ext".to_owned(), config.to_string());
        let all = [
            server("my_docs", json!({"command": "y"})),
            server("a", json!({"command": "y", "env": {"KEY": "${HOME}", "B": "!echo", "C": "a$$b"}})),
            server("b", json!({"command": 1})),
            server("c", json!({"url": "https://x", "auth": {"provider": "openai"}})),
            // Other programs' words for the same.
            server("d", json!({"httpUrl": "https://x/$A", "http_headers": {"X": "Bearer ${env:TOKEN}", "Y": "!echo"}})),
            server("e", json!({"command": "y", "environment": {"KEY": "$HOME"}})),
            server("f", json!({"url": "https://x", "bearerTokenEnv": "TOKEN"})),
            server("g", json!({"url": "https://x", "oauth": {"clientId": "i", "clientSecret": "!echo"}})),
            server("h", json!({"command": "y", "inheritEnv": true})),
            server("i", json!({"url": "https://x/$A", "auth": "oauth"})),
            server("j", json!({"exposure": "direct"})),
        ];
        let read = Registered::of(&files, all.into_iter());
        let values = |server: &Server| {
            let values = server.entry.values().into_iter().map(|value| value.known().unwrap());
            format!("{} {:?}\n", server.name, values.collect::<Vec<_>>())
        };
        insta::assert_snapshot!(read.servers.iter().map(|(server, _)| values(server)).collect::<String>());
        insta::assert_snapshot!(read.problems.join("\n"));
    }
}
