//! Pieces of messages and results, in the shape session files and JSON events use.

use serde::{Deserialize, Serialize};

/// A piece of a user's message or of a tool's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    #[serde(rename_all = "camelCase")]
    Image {
        /// Its bytes in base64.
        data: String,
        /// Its media type.
        mime_type: String,
    },
}

impl Content {
    /// A text piece.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The texts of `content`, joined by line breaks.
    pub fn joined_text(content: &[Self]) -> String {
        let texts: Vec<&str> = content
            .iter()
            .filter_map(|piece| match piece {
                Self::Text { text } => Some(text.as_str()),
                Self::Image { .. } => None,
            })
            .collect();
        texts.join("\n")
    }
}
