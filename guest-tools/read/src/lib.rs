//! The tool `read`: a part of a text file, or a picture.
//!
//! A file is read in pieces of 1 MiB and only the lines to show are kept, so its size costs time but no memory.

mod info;
mod kind;
mod render;
mod window;

use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, export_tools, files};
use atoll_tool_text::{is_not_found, name_path, path_argument, path_spellings, whole_number};
use base64::Engine;
use serde_json::json;

use crate::kind::Kind;
use crate::window::Window;

/// Bytes asked for at a time; the interface gives no more.
const PIECE: u32 = 1024 * 1024;

/// Bytes of a picture at most. Together with its base64 copy for scripts it must stay under the limit
/// `output-bytes` in plugin.toml.
const MAX_IMAGE_BYTES: u64 = 10 * 1024 * 1024;

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
            Kind::Image(mime_type) => image(&file, first, &path, mime_type).await,
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

/// Reads on to the end and shows the picture.
async fn image(file: &files::Reader, first: Vec<u8>, path: &str, mime_type: &'static str) -> Result<ToolOutput, Error> {
    let size = file.metadata().size;
    if size > MAX_IMAGE_BYTES {
        return Err(Error::failed(kind::too_large(path, mime_type, size, MAX_IMAGE_BYTES)));
    }
    let mut data = first;
    loop {
        let piece = file.read(PIECE).await.map_err(|error| name_path(path, error))?;
        if piece.is_empty() {
            break;
        }
        data.extend_from_slice(&piece);
        if data.len() as u64 > MAX_IMAGE_BYTES {
            return Err(Error::failed(kind::too_large(path, mime_type, data.len() as u64, MAX_IMAGE_BYTES)));
        }
    }
    let note = format!("Read image file [{mime_type}]");
    let structured = json!({
        "type": "image",
        "data": base64::engine::general_purpose::STANDARD.encode(&data),
        "mimeType": mime_type,
        "note": note,
    });
    Ok(ToolOutput::text(note).with_image(data, mime_type).with_structured(&structured))
}

export_tools!(Read);
