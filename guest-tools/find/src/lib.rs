//! The tool `find`: files by name.

mod info;
mod pattern;
mod render;

use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools, files};
use atoll_tool_text::{at_least, is_not_found, name_path, path_argument};

use pattern::{Named, Pattern};
use render::Paths;

/// Paths shown if the caller does not say.
const DEFAULT_LIMIT: usize = 1_000;

struct Find;

#[derive(serde::Deserialize)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    limit: Option<f64>,
}

impl Tool for Find {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        info::info()
    }

    async fn run(arguments: Arguments, call: Call) -> Result<ToolOutput, Error> {
        let limit = arguments.limit.map_or(DEFAULT_LIMIT, |limit| at_least(limit, 1));
        let root = path_argument(arguments.path.as_deref().filter(|path| !path.is_empty()).unwrap_or("."));
        let pattern = Pattern::new(&arguments.pattern, &absolute(&root, &call.cwd))?;
        let facts = files::stat(root.clone()).await.map_err(|error| {
            if is_not_found(&error) {
                Error::not_found(format!("Path not found: {root}"))
            } else {
                name_path(&root, error)
            }
        })?;
        if facts.kind != files::Kind::Directory {
            return Err(Error::failed(format!("Not a directory: {root}")));
        }
        let mut paths = Paths::new(limit);
        walk(&pattern, &root, "", &mut paths).await.map_err(|error| name_path(&root, error))?;
        if paths.is_empty() {
            named(&pattern, &root, &mut paths).await;
        }
        let shown = paths.finish();
        Ok(ToolOutput::text(render::text(&shown)).with_structured(&render::structured(&shown)))
    }
}

/// Finds what matches in the directory `below` the root.
async fn walk(pattern: &Pattern, root: &str, below: &str, paths: &mut Paths) -> Result<(), Error> {
    let walker = files::walk(files::WalkOptions {
        root: join(root, below),
        respect_ignore: true,
        hidden: true,
        follow_links: false,
        globs: Vec::new(),
        max_depth: None,
        directories: true,
        sizes: false,
    })
    .await?;
    loop {
        let step = walker.next(4_096).await?;
        if step.is_empty() {
            return Ok(());
        }
        for found in step {
            let path = if below.is_empty() { found.path } else { join(below, &found.path) };
            let is_directory = found.kind == files::Kind::Directory;
            if pattern.matches(path.strip_suffix('/').unwrap_or(&path), is_directory) {
                paths.push(path);
            }
        }
    }
}

/// What a pattern names is found even if it is ignored or behind a link: whoever writes it out means it.
async fn named(pattern: &Pattern, root: &str, paths: &mut Paths) {
    match pattern.named() {
        Named::Path(path) => {
            if let Ok(facts) = files::stat(join(root, path)).await {
                let is_directory = facts.kind == files::Kind::Directory;
                if pattern.matches(path, is_directory) {
                    paths.push(if is_directory { format!("{path}/") } else { path.to_owned() });
                }
            }
        }
        // If it is no directory, there is nothing below it.
        Named::Below(directory) => drop(walk(pattern, root, directory, paths).await),
        Named::Nothing => {}
    }
}

fn join(directory: &str, path: &str) -> String {
    match (directory, path) {
        (directory, "") => directory.to_owned(),
        (".", path) => path.to_owned(),
        (directory, path) => format!("{}/{path}", directory.trim_end_matches('/')),
    }
}

/// The searched directory as an absolute pattern may start with it.
fn absolute(root: &str, cwd: &str) -> String {
    match root.trim_start_matches("./") {
        absolute if absolute.starts_with('/') => absolute.to_owned(),
        "." => cwd.to_owned(),
        relative => join(cwd, relative),
    }
}

export_tools!(Find);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined() {
        assert_eq!(join(".", "a"), "a");
        assert_eq!(join("/x/", "a/b"), "/x/a/b");
        assert_eq!(join("x", ""), "x");
        assert_eq!(absolute(".", "/project"), "/project");
        assert_eq!(absolute("./src", "/project"), "/project/src");
        assert_eq!(absolute("/other", "/project"), "/other");
    }
}
