//! The tool `read`: a part of a text file, or a picture.
//!
//! A file is read in pieces of 1 MiB. Of a text only the lines to show are kept, so its size costs time but no memory;
//! a picture is held whole.

mod info;
mod kind;
mod picture;
mod render;
mod window;

use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools, files};
use atoll_tool_text::{is_not_found, name_path, path_argument, path_spellings, whole_number};
use serde_json::json;

use crate::kind::Kind;
use crate::window::Window;

/// Bytes asked for at a time; the interface gives no more.
const PIECE: u32 = 1024 * 1024;

struct Read;

#[derive(serde::Deserialize)]
struct Arguments {
    path: String,
    offset: Option<f64>,
    limit: Option<f64>,
}

impl Tool for Read {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        info::info()
    }

    async fn run(arguments: Arguments, _call: Call) -> Result<ToolOutput, Error> {
        let offset = whole_number("offset", arguments.offset, 0)?;
        let limit = whole_number("limit", arguments.limit, 1)?;
        let path = path_argument(&arguments.path);
        let file = open(&arguments.path).await.map_err(|error| name_path(&path, error))?;
        let size = file.metadata().size;
        let first = file.read(PIECE).await.map_err(|error| name_path(&path, error))?;
        match kind::of(&first) {
            Kind::Image(format) => picture::show(&file, first, &path, format).await,
            Kind::Other(what) => Err(Error::failed(kind::refusal(&path, what, size))),
            Kind::Text => text(&file, &first, &path, size, offset, limit).await,
        }
    }
}

/// Opens the file under the first spelling that exists.
async fn open(path: &str) -> Result<files::Reader, Error> {
    let mut missing = None;
    for spelling in path_spellings(path) {
        match files::open(spelling.clone()).await {
            Ok(file) => return Ok(file),
            Err(error) if is_not_found(&error) => missing = missing.or(Some(error)),
            Err(error) => {
                let is_directory =
                    matches!(files::stat(spelling).await, Ok(found) if found.kind == files::Kind::Directory);
                return Err(if is_directory {
                    Error::failed(format!("{} is a directory; list it with ls.", path_argument(path)))
                } else {
                    error
                });
            }
        }
    }
    Err(missing.unwrap_or_else(|| Error::not_found(format!("{path} does not exist."))))
}

/// Reads on to the end and shows the lines that were asked for.
async fn text(
    file: &files::Reader,
    first: &[u8],
    path: &str,
    size: u64,
    offset: Option<usize>,
    limit: Option<usize>,
) -> Result<ToolOutput, Error> {
    let mut window = Window::new(offset, limit);
    window.push(first);
    loop {
        let piece = file.read(PIECE).await.map_err(|error| name_path(path, error))?;
        if piece.is_empty() {
            break;
        }
        window.push(&piece);
    }
    let contents = window.finish();
    if contents.text.contains('\0') {
        return Err(Error::failed(kind::refusal(path, kind::BINARY, size)));
    }
    let rendered = render::render(&contents, path, limit)?;
    Ok(ToolOutput::text(rendered.for_model).with_structured(&json!(rendered.for_scripts)))
}

export_tools!(Read);
