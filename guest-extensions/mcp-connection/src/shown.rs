//! What servers gave and claim, as the host has it.

use atoll_mcp_client::{
    result::{Piece, most_characters},
    session::Progress,
};
use atoll_plugin::{
    Content, progress,
    types::{Annotations, Blob},
};
use serde_json::{Map, Value};

/// As content. Bytes that are no picture are given as they are, with what they are said before: the host keeps them in a file
/// for a model.
pub fn content(pieces: Vec<Piece>) -> Vec<Content> {
    let mut content = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => content.push(Content::Text(text)),
            Piece::Image { data, mime_type } => content.push(Content::Image(Blob { data, mime_type })),
            Piece::Blob { uri, data, mime_type } => {
                content.push(Content::Text(format!("[Resource {uri} ({mime_type}, {} bytes)]", data.len())));
                content.push(Content::Image(Blob { data, mime_type }));
            }
        }
    }
    content
}

/// A step of a call, for a person.
pub fn step(step: &Progress) -> String {
    let of = step.total.map(|total| format!(" of {total}")).unwrap_or_default();
    match &step.message {
        Some(message) => format!("{}{of}: {message}", step.done),
        None => format!("{}{of}", step.done),
    }
}

/// Has a model get so much of the text of a call's result: its ends, and a file with the whole.
pub fn cut(call: &str, content: &[Content]) {
    let texts = content.iter().filter_map(|piece| match piece {
        Content::Text(text) => Some(text.as_str()),
        Content::Image(_) => None,
    });
    progress::shape(call, most_characters(&texts.collect::<Vec<_>>()), false);
}

/// What a server claims of a tool. A claim that is no truth value is none.
pub fn annotations(claims: &Map<String, Value>) -> Annotations {
    let claim = |name: &str| claims.get(name).and_then(Value::as_bool);
    Annotations {
        read_only: claim("readOnlyHint"),
        destructive: claim("destructiveHint"),
        idempotent: claim("idempotentHint"),
        open_world: claim("openWorldHint"),
    }
}
