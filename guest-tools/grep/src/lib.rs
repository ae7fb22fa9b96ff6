//! The tool `grep`: the lines of files that match.
//!
//! The host walks the tree; the files are divided into shares, and each share is read and searched by a worker: an
//! instance of this component on another core. Shares are taken in the order of paths, so that the result does not
//! depend on who was faster, and no more are started once there is enough.

mod info;
mod line;
mod query;
mod read;
mod render;
mod search;
mod shares;
mod take;
mod tree;

use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools, files, worker};
use atoll_tool_text::{at_least, is_not_found, name_path, path_argument};

use query::{Query, Share};
use take::Taken;

/// Matches shown if the caller does not say.
const DEFAULT_LIMIT: usize = 100;

struct Grep;

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    context: Option<f64>,
    limit: Option<f64>,
}

impl Tool for Grep {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        info::info()
    }

    async fn run(arguments: Arguments, _call: Call) -> Result<ToolOutput, Error> {
        let limit = arguments.limit.map_or(DEFAULT_LIMIT, |limit| at_least(limit, 1));
        let query = Query {
            pattern: arguments.pattern,
            ignore_case: arguments.ignore_case,
            literal: arguments.literal,
            context: arguments.context.map_or(0, |context| at_least(context, 0)),
        };
        // Before anything is looked at: a pattern that can not be used is the first thing to hear of.
        query.matcher()?;
        let path = path_argument(arguments.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("."));
        let facts = files::stat(path.clone()).await.map_err(|error| {
            if is_not_found(&error) {
                Error::not_found(format!("Path not found: {path}"))
            } else {
                name_path(&path, error)
            }
        })?;
        let mut taken = Taken::new(limit);
        match facts.kind {
            files::Kind::Directory => tree::search(&query, path, arguments.glob, &mut taken).await?,
            _ => tree::search_file(&query, &path, &mut taken).await?,
        }
        Ok(ToolOutput::text(render::text(&taken)).with_structured(&render::structured(&taken)))
    }
}

export_tools!(Grep);

struct Worker;

impl worker::Guest for Worker {
    async fn run(input: Vec<u8>) -> Result<Vec<u8>, Error> {
        let share: Share = tree::decode(&input)?;
        tree::encode(&read::search(&share).await?)
    }
}

worker::export!(Worker);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_those_of_the_schema() {
        let arguments = r#"{"pattern": "x", "ignoreCase": true, "limit": 3}"#;
        let arguments: Arguments = serde_json::from_str(arguments).expect("parsed");
        assert!(arguments.ignore_case && !arguments.literal);
        assert_eq!(arguments.limit, Some(3.0));
    }
}
