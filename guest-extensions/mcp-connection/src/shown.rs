//! What servers gave, as content of the host.

use atoll_mcp_client::{result::Piece, session::Progress};
use atoll_plugin::{Content, types::Blob};

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
