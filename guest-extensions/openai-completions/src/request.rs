//! The body of a request, from the transcript, the tools and the options.
//!
//! Must never put anything into a request that depends on the clock or on chance: equal inputs give equal bytes,
//! which is what servers' prompt caches live on.

use atoll_plugin::Error;
use atoll_plugin::provider::{Declaration, Request, ThinkingLevel};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::compat::{Compat, MaxTokensField, ThinkingFormat};
use crate::messages::{Wire, messages};

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Wire>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(flatten)]
    thinking: Thinking<'a>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

/// How hard to think, in the words of one kind of server.
#[derive(Default, Serialize)]
struct Thinking<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Switch<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enable_thinking: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<TemplateArguments>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Reasoning<'a> {
    Effort(&'a str),
    Enabled(bool),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Switch<'a> {
    Typed { r#type: &'static str },
    Named(&'a str),
}

#[derive(Serialize)]
struct TemplateArguments {
    enable_thinking: bool,
    preserve_thinking: bool,
}

/// The body of `request` as JSON.
pub fn body(request: &Request, compat: &Compat) -> Result<Vec<u8>, Error> {
    let bound = request.max_tokens;
    let (max_tokens, max_completion_tokens) = match compat.max_tokens_field {
        MaxTokensField::MaxTokens => (bound, None),
        MaxTokensField::MaxCompletionTokens => (None, bound),
    };
    let body = Body {
        model: &request.model.id,
        messages: messages(&request.messages, &request.model, compat),
        stream: true,
        stream_options: compat.usage_in_streaming.then_some(StreamOptions { include_usage: true }),
        store: compat.store.then_some(false),
        max_completion_tokens,
        max_tokens,
        tools: request.tools.iter().map(|tool| declare(tool, compat)).collect::<Result<_, _>>()?,
        thinking: thinking(request, compat),
    };
    serde_json::to_vec(&body).map_err(|error| Error::Failed(format!("The request can not be written: {error}.")))
}

/// Where to send it.
pub fn url(base_url: &str) -> String {
    let base_url = if base_url.is_empty() { "https://api.openai.com/v1" } else { base_url };
    let (path, query) = match base_url.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (base_url, None),
    };
    let path = path.trim_end_matches('/');
    match query {
        Some(query) => format!("{path}/chat/completions?{query}"),
        None => format!("{path}/chat/completions"),
    }
}

/// The headers to send, names in lower case. The model's own win; a key is named, never held.
pub fn headers(request: &Request) -> Vec<(String, String)> {
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("accept".to_owned(), "text/event-stream".to_owned()),
    ];
    if let Some(secret) = &request.key_secret {
        headers.push(("authorization".to_owned(), format!("Bearer {{{{secret:{secret}}}}}")));
    }
    for (name, value) in &request.model.headers {
        let name = name.to_ascii_lowercase();
        headers.retain(|(other, _)| *other != name);
        headers.push((name, value.clone()));
    }
    headers
}

fn declare<'a>(tool: &'a Declaration, compat: &Compat) -> Result<Tool<'a>, Error> {
    let parameters = serde_json::from_str(&tool.parameters).map_err(|error| {
        Error::InvalidArguments(format!("The parameters of the tool {} are not JSON: {error}.", tool.name))
    })?;
    Ok(Tool {
        r#type: "function",
        function: Function {
            name: &tool.name,
            description: &tool.description,
            parameters,
            strict: compat.strict_mode.then_some(false),
        },
    })
}

fn thinking<'a>(request: &Request, compat: &'a Compat) -> Thinking<'a> {
    let mut out = Thinking::default();
    if !request.model.reasoning {
        return out;
    }
    let on = request.thinking != ThinkingLevel::Off;
    let effort = compat.effort(request.thinking);
    let typed = Switch::Typed { r#type: if on { "enabled" } else { "disabled" } };
    let named = if on { effort } else { compat.off_effort("none") };
    match compat.thinking_format {
        ThinkingFormat::OpenAi => {}
        ThinkingFormat::OpenRouter => out.reasoning = named.map(Reasoning::Effort),
        ThinkingFormat::Together => out.reasoning = Some(Reasoning::Enabled(on)),
        ThinkingFormat::DeepSeek | ThinkingFormat::Zai => out.thinking = Some(typed),
        ThinkingFormat::StringThinking => out.thinking = named.map(Switch::Named),
        ThinkingFormat::Qwen => out.enable_thinking = Some(on),
        ThinkingFormat::QwenChatTemplate => {
            out.chat_template_kwargs = Some(TemplateArguments { enable_thinking: on, preserve_thinking: true });
        }
    }
    let by_effort = match compat.thinking_format {
        ThinkingFormat::OpenAi => true,
        ThinkingFormat::DeepSeek | ThinkingFormat::Together => on,
        _ => false,
    };
    if by_effort && compat.reasoning_effort {
        out.reasoning_effort = effort;
    }
    out
}
