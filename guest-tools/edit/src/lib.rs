//! The tool `edit`: puts texts in the place of others in a file.

mod diff;
mod document;
mod hint;
mod info;
mod loose;
mod plan;
mod prepare;

use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools, files};
use atoll_tool_text::{format_size, is_not_found, name_path, path_argument, path_spellings};
use serde_json::Value;

use crate::document::{Document, NotUtf8};
use crate::plan::{Edit, Plan};

/// Bytes of a file at most: it is held in memory several times over.
const MOST: u64 = 16 * 1024 * 1024;

/// Bytes asked for at a time; the interface gives no more.
const PIECE: u32 = 1024 * 1024;

struct EditTool;

#[derive(serde::Deserialize)]
struct Arguments {
    path: String,
    edits: Vec<Edit>,
}

impl Tool for EditTool {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        info::info()
    }

    fn prepare(arguments: Value) -> Result<Value, Error> {
        prepare::prepare(arguments)
    }

    async fn run(arguments: Arguments, _call: Call) -> Result<ToolOutput, Error> {
        let path = path_argument(&arguments.path);
        change(&arguments, &path).await.map_err(|error| name_path(&path, error))
    }
}

async fn change(arguments: &Arguments, path: &str) -> Result<ToolOutput, Error> {
    let spelling = find(&arguments.path).await?;
    // Held until the file is written: another call may be changing the same file.
    let _lock = files::lock(spelling.clone()).await?;
    let (bytes, version) = read(&spelling, path).await?;
    let document = Document::new(bytes).map_err(|problem| Error::failed(not_utf_8(path, problem)))?;
    let plan = plan::plan(&document, &arguments.edits, path)?;
    let content = document.replaced(&plan.replacements);
    if content == document.original() {
        return Err(Error::invalid_arguments(format!("The edits would leave {path} as it is.")));
    }
    let details = diff::details(path, document.original(), &content);
    let options = files::WriteOptions { create_parents: false, expected: Some(version), exclusive: false };
    match files::write(spelling, document.into_bytes(content), options).await {
        Ok(_) => Ok(ToolOutput::text(summary(path, &plan)).with_details(&details)),
        Err(Error::Stale(_)) => Err(Error::Stale(format!(
            "{path} was changed by something else meanwhile; read it again and repeat the edit."
        ))),
        Err(error) => Err(error),
    }
}

/// The first spelling under which there is a file.
async fn find(path: &str) -> Result<String, Error> {
    let mut missing = None;
    for spelling in path_spellings(path) {
        match files::stat(spelling.clone()).await {
            Ok(found) if found.kind == files::Kind::Directory => {
                return Err(Error::failed(format!("{path} is a directory, not a file.")));
            }
            Ok(_) => return Ok(spelling),
            Err(error) if is_not_found(&error) => missing = missing.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    Err(missing.unwrap_or_else(|| Error::not_found(format!("{path} does not exist."))))
}

/// All bytes of a file and the version they are of.
async fn read(spelling: &str, path: &str) -> Result<(Vec<u8>, String), Error> {
    let file = files::open(spelling.to_owned()).await?;
    let facts = file.metadata();
    let mut bytes = Vec::new();
    let mut size = facts.size;
    while size <= MOST {
        let piece = file.read(PIECE).await?;
        if piece.is_empty() {
            return Ok((bytes, facts.version));
        }
        bytes.extend_from_slice(&piece);
        size = size.max(bytes.len() as u64);
    }
    Err(Error::failed(format!(
        "{path} has {}, more than the {} that can be edited; change it with a shell command.",
        format_size(size),
        format_size(MOST)
    )))
}

/// What the model reads after success.
fn summary(path: &str, plan: &Plan) -> String {
    let count = plan.replacements.len();
    let plural = if count == 1 { "" } else { "s" };
    let loose = match plan.loose {
        0 => String::new(),
        loose if loose == count => {
            " The old text was not exactly as given: blanks, quotes or dashes differ.".to_owned()
        }
        loose => format!(" In {loose} of them the old text was not exactly as given: blanks, quotes or dashes differ."),
    };
    format!("Made {count} replacement{plural} in {path}.{loose}")
}

/// Why a file is not edited.
fn not_utf_8(path: &str, problem: NotUtf8) -> String {
    let what = if problem.utf_16 {
        "is text in UTF-16".to_owned()
    } else {
        format!("is not UTF-8 text (see the byte at offset {})", problem.offset)
    };
    format!("{path} {what}; editing it here would damage it. Use a program that keeps its encoding.")
}

export_tools!(EditTool);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Replacement;

    #[test]
    fn success_tells_what_was_loose() {
        let replacement = Replacement { start: 0, end: 0, new: String::new() };
        let plan = |count, loose| Plan { replacements: vec![replacement.clone(); count], loose };
        assert_eq!(summary("a", &plan(1, 0)), "Made 1 replacement in a.");
        assert_eq!(summary("a", &plan(3, 0)), "Made 3 replacements in a.");
        assert!(summary("a", &plan(1, 1)).starts_with("Made 1 replacement in a. The old text was not"));
        assert!(summary("a", &plan(3, 1)).contains(" In 1 of them the old text was not"));
    }

    #[test]
    fn other_encodings_are_named() {
        assert!(not_utf_8("a", NotUtf8 { offset: 3, utf_16: false }).contains("offset 3"));
        assert!(not_utf_8("a", NotUtf8 { offset: 0, utf_16: true }).contains("UTF-16"));
    }
}
