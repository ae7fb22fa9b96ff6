//! Making a tool's output.

use serde_json::Value;

use crate::types::{Blob, Content, ToolOutput};

impl ToolOutput {
    /// An output that is one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            details: None,
            structured: None,
            is_error: false,
            terminate: false,
            usage: None,
        }
    }

    /// An output that tells the model of a failure. An `Err` of the call does the same; use this where the
    /// failure also has `details` or `structured` data.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Adds a picture after what is there; `data` are the plain bytes.
    #[must_use]
    pub fn with_image(mut self, data: Vec<u8>, mime_type: impl Into<String>) -> Self {
        self.content.push(Content::Image(Blob { data, mime_type: mime_type.into() }));
        self
    }

    /// Sets the data for whoever shows the call. The model does not see it.
    #[must_use]
    pub fn with_details(mut self, details: &Value) -> Self {
        self.details = Some(details.to_string());
        self
    }

    /// Sets the result as data, for scripts; it must follow the tool's output schema.
    #[must_use]
    pub fn with_structured(mut self, structured: &Value) -> Self {
        self.structured = Some(structured.to_string());
        self
    }

    /// Says whether the model reads this as a failure.
    #[must_use]
    pub fn with_error(mut self, is_error: bool) -> Self {
        self.is_error = is_error;
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn builds_all_parts() {
        let output = ToolOutput::failure("no")
            .with_image(vec![1], "image/png")
            .with_details(&json!({"b": 1, "a": 2}))
            .with_structured(&json!("no"));
        assert_eq!(output.content.len(), 2);
        assert!(output.is_error);
        assert_eq!(output.structured.as_deref(), Some("\"no\""));
        assert!(output.details.is_some());
    }
}
