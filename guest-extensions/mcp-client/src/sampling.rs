//! What a server wants a model to say: read, put into the one question that a model can be asked here, and answered.
//!
//! What a model can not be asked here is refused, with the reason. What a server only wishes for (more context, a temperature)
//! it does not get: the protocol leaves that to the client.

use serde_json::{Value, json};

use crate::{
    result::{Piece, resource},
    text::shown,
};

/// The most messages of a request.
const MAX_MESSAGES: usize = 200;
/// The most text that a person is shown of a request before it is allowed, in characters.
const MAX_SHOWN: usize = 4_000;

/// A question for a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The instructions; empty if there are none.
    pub system: String,
    /// What is asked.
    pub prompt: Vec<Piece>,
    /// The most tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Names of models, or parts of them, the one wanted most first.
    pub hints: Vec<String>,
    /// The answer ends before the first of these.
    pub stops: Vec<String>,
}

/// Reads what a server sends.
///
/// # Errors
/// Why no model can be asked that.
pub fn read(params: &Value) -> Result<Question, String> {
    let is_there = |key: &str| match &params[key] {
        Value::Null => false,
        Value::Array(all) => !all.is_empty(),
        _ => true,
    };
    if is_there("tools") || (is_there("toolChoice") && params["toolChoice"]["mode"] != "none") {
        return Err("a model is asked without tools".to_owned());
    }
    if is_there("task") {
        return Err("a model is asked at once, and not as a task".to_owned());
    }
    let messages = params["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    if messages.is_empty() {
        return Err("there are no messages".to_owned());
    }
    if messages.len() > MAX_MESSAGES {
        return Err(format!("there are more than {MAX_MESSAGES} messages"));
    }
    let is_talk = messages.len() > 1 || messages.iter().any(|message| message["role"] != "user");
    let mut prompt = Vec::new();
    for message in messages {
        let who = match message["role"].as_str() {
            Some("user") => "User:",
            Some("assistant") => "Assistant:",
            other => return Err(format!("nobody speaks as {}", shown(other.unwrap_or_default()))),
        };
        if is_talk {
            prompt.push(Piece::Text(who.to_owned()));
        }
        match &message["content"] {
            Value::Array(blocks) => {
                for block in blocks {
                    prompt.push(piece(block)?);
                }
            }
            block => prompt.push(piece(block)?),
        }
    }
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().map(Vec::as_slice).unwrap_or_default();
        all.iter().filter_map(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    };
    let hints = params["modelPreferences"]["hints"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(Question {
        system: params["systemPrompt"].as_str().unwrap_or_default().to_owned(),
        prompt,
        max_tokens: params["maxTokens"].as_u64().map(|most| u32::try_from(most.max(1)).unwrap_or(u32::MAX)),
        hints: hints.iter().filter_map(|hint| hint["name"].as_str()).map(str::to_owned).collect(),
        stops: texts(&params["stopSequences"]),
    })
}

fn piece(block: &Value) -> Result<Piece, String> {
    match block["type"].as_str() {
        Some("text") => Ok(Piece::Text(block["text"].as_str().unwrap_or_default().to_owned())),
        Some("image") => {
            let mime_type = block["mimeType"].as_str().unwrap_or("image/png");
            // Read as resources are, whose pictures are pictures too.
            match resource(&json!({"blob": block["data"], "mimeType": mime_type})) {
                Some(picture @ Piece::Image { .. }) => Ok(picture),
                _ => Err("there is a picture that can not be read".to_owned()),
            }
        }
        Some(other) => Err(format!("a model is asked with text and pictures, and not with {}", shown(other))),
        None => Err("there is a message without content".to_owned()),
    }
}

impl Question {
    /// Whether there are pictures in it.
    pub fn has_images(&self) -> bool {
        self.prompt.iter().any(|piece| matches!(piece, Piece::Image { .. }))
    }

    /// Which of these models it is for; none if it does not say, or there is none of them.
    pub fn model<'a>(&self, available: &[&'a str]) -> Option<&'a str> {
        self.hints.iter().filter(|hint| !hint.trim().is_empty()).find_map(|hint| {
            let hint = hint.to_lowercase();
            available.iter().find(|name| name.to_lowercase().contains(&hint)).copied()
        })
    }

    /// What a person reads before it is asked.
    pub fn shown(&self) -> String {
        let mut text = String::new();
        if !self.system.is_empty() {
            text.push_str(&format!("Instructions: {}\n", self.system));
        }
        for piece in &self.prompt {
            match piece {
                Piece::Text(said) => text.push_str(said),
                Piece::Image { data, mime_type } => {
                    text.push_str(&format!("[picture, {mime_type}, {} bytes]", data.len()));
                }
                Piece::Blob { .. } => {}
            }
            text.push('\n');
        }
        let plain: String = text.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect();
        let count = plain.chars().count();
        if count <= MAX_SHOWN {
            return plain.trim_end().to_owned();
        }
        let head: String = plain.chars().take(MAX_SHOWN).collect();
        format!("{head}\n… and {} more characters", count - MAX_SHOWN)
    }

    /// What the server is told of an answer that took so many tokens.
    pub fn answer(&self, text: &str, model: &str, tokens: u64) -> Value {
        let stop = self.stops.iter().filter_map(|stop| text.find(stop.as_str())).min();
        let reason = match (stop, self.max_tokens) {
            (Some(_), _) => "stopSequence",
            (None, Some(most)) if tokens >= u64::from(most) => "maxTokens",
            _ => "endTurn",
        };
        let text = stop.and_then(|stop| text.get(..stop)).unwrap_or(text);
        json!({"role": "assistant", "content": {"type": "text", "text": text}, "model": model, "stopReason": reason})
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn user(content: &Value) -> Value {
        json!({"messages": [{"role": "user", "content": content}], "maxTokens": 9})
    }

    #[test]
    fn one_message_is_asked_as_it_is_and_a_talk_says_who_speaks() {
        let one = read(&user(&json!({"type": "text", "text": "Why?"}))).expect("a question");
        assert_eq!((one.prompt.as_slice(), one.max_tokens), (&[Piece::Text("Why?".to_owned())][..], Some(9)));
        let talk = read(&json!({
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image", "data": "AQID", "mimeType": "image/png"}]},
                {"role": "assistant", "content": {"type": "text", "text": "Nice."}},
            ],
            "systemPrompt": "Be brief.", "includeContext": "allServers", "temperature": 0.5, "toolChoice": {"mode": "none"},
        }));
        let talk = talk.expect("a question");
        assert!(talk.has_images());
        insta::assert_snapshot!(talk.shown());
    }

    #[test]
    fn what_no_model_can_be_asked_is_refused_with_the_reason() {
        let text = json!({"type": "text", "text": "x"});
        let with = |key: &str, value: Value| {
            let mut params = user(&text);
            params[key] = value;
            params
        };
        let wrong = [
            with("tools", json!([{"name": "x"}])),
            with("toolChoice", json!({"mode": "auto"})),
            with("task", json!({})),
            with("messages", json!([])),
            with("messages", json!(vec![json!({"role": "user", "content": text}); 201])),
            with("messages", json!([{"role": "system", "content": text}])),
            user(&json!({"type": "audio", "data": "", "mimeType": "audio/wav"})),
            user(&json!({"type": "image", "data": "*", "mimeType": "image/png"})),
            user(&json!({"type": "image", "data": "AQID", "mimeType": "text/html"})),
            user(&json!({"type": "tool_result"})),
            user(&json!(null)),
        ];
        let said: Vec<String> = wrong.iter().map(|params| read(params).expect_err("it is none")).collect();
        insta::assert_snapshot!(said.join("\n"));
        assert!(read(&with("tools", json!([]))).is_ok());
    }

    #[test]
    fn the_first_model_that_is_hinted_at_is_asked() {
        let mut params = user(&json!({"type": "text", "text": "x"}));
        params["modelPreferences"] =
            json!({"hints": [{"name": ""}, {"name": "gpt"}, {"name": "Sonnet"}], "costPriority": 1});
        let question = read(&params).expect("a question");
        assert_eq!(question.model(&["a/haiku", "a/sonnet-5"]), Some("a/sonnet-5"));
        assert_eq!(question.model(&["a/haiku"]), None);
    }

    #[test]
    fn an_answer_ends_where_it_is_to_end() {
        let mut params = user(&json!({"type": "text", "text": "x"}));
        params["stopSequences"] = json!(["END", "STOP", ""]);
        let question = read(&params).expect("a question");
        let answer = question.answer("one STOP two END", "a/b", 3);
        assert_eq!(
            answer,
            json!({"role": "assistant", "content": {"type": "text", "text": "one "}, "model": "a/b",
            "stopReason": "stopSequence"})
        );
        assert_eq!(question.answer("one", "a/b", 9)["stopReason"], "maxTokens");
        assert_eq!(question.answer("one", "a/b", 8)["stopReason"], "endTurn");
    }

    proptest! {
        #[test]
        fn a_person_is_never_shown_what_moves_the_cursor(text in any::<String>(), system in any::<String>()) {
            let mut params = user(&json!({"type": "text", "text": text}));
            params["systemPrompt"] = json!(system);
            if let Ok(question) = read(&params) {
                prop_assert!(question.shown().chars().all(|c| c == '\n' || !c.is_control()));
                prop_assert!(question.shown().chars().count() < MAX_SHOWN + 60);
            }
        }
    }
}
