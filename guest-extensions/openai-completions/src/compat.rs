//! How a server deviates from OpenAI's own chat completions: what its address tells, and what the models file says.
//!
//! Must never guess from an answer of the server: the same model always gives the same settings.

use atoll_plugin::Error;
use atoll_plugin::provider::{Model, ThinkingLevel};
use serde_json::{Map, Value};

/// The field that bounds the length of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxTokensField {
    /// `max_completion_tokens`, OpenAI's current name.
    MaxCompletionTokens,
    /// `max_tokens`, its older name.
    MaxTokens,
}

/// How a request says how hard to think.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingFormat {
    /// `reasoning_effort: "high"`.
    OpenAi,
    /// `reasoning: {effort: "high"}`.
    OpenRouter,
    /// `thinking: {type: "enabled"}` and `reasoning_effort`.
    DeepSeek,
    /// `reasoning: {enabled: true}` and `reasoning_effort`.
    Together,
    /// `thinking: {type: "enabled"}`.
    Zai,
    /// `enable_thinking: true`.
    Qwen,
    /// `chat_template_kwargs: {enable_thinking: true}`.
    QwenChatTemplate,
    /// `thinking: "high"`.
    StringThinking,
}

/// The settings for one model.
#[derive(Clone, Debug)]
pub struct Compat {
    /// Knows the field `store`.
    pub store: bool,
    /// Takes instructions of thinking models under the role `developer`.
    pub developer_role: bool,
    /// Knows `reasoning_effort`.
    pub reasoning_effort: bool,
    /// Counts tokens in a streamed answer when asked to.
    pub usage_in_streaming: bool,
    /// Says why an answer ended.
    pub finish_reason: bool,
    /// Takes instructions in the middle of a conversation.
    pub mid_conversation_system: bool,
    /// Knows `strict` in the declaration of a tool.
    pub strict_mode: bool,
    /// Which field bounds the answer.
    pub max_tokens_field: MaxTokensField,
    /// Wants the tool's name with its result.
    pub tool_result_name: bool,
    /// Wants an assistant message between results and the next user message.
    pub assistant_after_tool_result: bool,
    /// Takes earlier thinking only as text.
    pub thinking_as_text: bool,
    /// Wants `reasoning_content` in every assistant message.
    pub reasoning_content: bool,
    /// How a request says how hard to think.
    pub thinking_format: ThinkingFormat,
    /// The server's own names of thinking levels; `None`: leave it out.
    efforts: Vec<(String, Option<String>)>,
}

impl Compat {
    /// The settings for `model`. Keys of its `compat` win over what its address tells; unknown keys are for others.
    pub fn of(model: &Model) -> Result<Self, Error> {
        let mut compat = Self::detect(&model.provider, &model.base_url);
        let text = model.compat.trim();
        if text.is_empty() {
            return Ok(compat);
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(keys)) => compat.apply(&keys)?,
            Ok(Value::Null) => {}
            Ok(_) => return Err(invalid(model, "compat must be an object")),
            Err(error) => return Err(invalid(model, &format!("compat is not JSON: {error}"))),
        }
        Ok(compat)
    }

    fn detect(provider: &str, base_url: &str) -> Self {
        let url = base_url.to_ascii_lowercase();
        let is =
            |names: &[&str], hosts: &[&str]| names.contains(&provider) || hosts.iter().any(|host| url.contains(host));
        let open_ai = is_open_ai(base_url);
        let zai = is(&["zai", "zai-coding-cn"], &["api.z.ai", "open.bigmodel.cn"]);
        let together = is(&["together"], &["api.together.ai", "api.together.xyz"]);
        let moonshot = is(&["moonshotai", "moonshotai-cn"], &["api.moonshot."]);
        let open_router = is(&["openrouter"], &["openrouter.ai"]);
        let gateway = is(&["cloudflare-ai-gateway"], &["gateway.ai.cloudflare.com"]);
        let nvidia = is(&["nvidia"], &["integrate.api.nvidia.com"]);
        let ant_ling = is(&["ant-ling"], &["api.ant-ling.com"]);
        let grok = is(&["xai"], &["api.x.ai"]);
        let deep_seek = is(&["deepseek"], &["deepseek.com"]);
        let chutes = is(&["chutes"], &["chutes.ai"]);
        let old_bound = deep_seek || moonshot || together || nvidia || zai || gateway || chutes || ant_ling;
        Self {
            store: open_ai,
            developer_role: open_ai,
            reasoning_effort: !(grok || zai || moonshot || together || gateway || nvidia || ant_ling),
            usage_in_streaming: true,
            finish_reason: true,
            mid_conversation_system: open_ai,
            strict_mode: false,
            max_tokens_field: if old_bound { MaxTokensField::MaxTokens } else { MaxTokensField::MaxCompletionTokens },
            tool_result_name: false,
            assistant_after_tool_result: false,
            thinking_as_text: false,
            reasoning_content: deep_seek,
            thinking_format: if deep_seek {
                ThinkingFormat::DeepSeek
            } else if zai {
                ThinkingFormat::Zai
            } else if together {
                ThinkingFormat::Together
            } else if open_router {
                ThinkingFormat::OpenRouter
            } else {
                ThinkingFormat::OpenAi
            },
            efforts: Vec::new(),
        }
    }

    fn apply(&mut self, keys: &Map<String, Value>) -> Result<(), Error> {
        for (key, field) in [
            ("supportsStore", &mut self.store),
            ("supportsDeveloperRole", &mut self.developer_role),
            ("supportsReasoningEffort", &mut self.reasoning_effort),
            ("supportsUsageInStreaming", &mut self.usage_in_streaming),
            ("supportsFinishReason", &mut self.finish_reason),
            ("supportsMidConvoSystemMessages", &mut self.mid_conversation_system),
            ("supportsStrictMode", &mut self.strict_mode),
            ("requiresToolResultName", &mut self.tool_result_name),
            ("requiresAssistantAfterToolResult", &mut self.assistant_after_tool_result),
            ("requiresThinkingAsText", &mut self.thinking_as_text),
            ("requiresReasoningContentOnAssistantMessages", &mut self.reasoning_content),
        ] {
            match keys.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::Bool(value)) => *field = *value,
                Some(_) => return Err(wrong(key, "true or false")),
            }
        }
        match keys.get("maxTokensField") {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) if name == "max_tokens" => self.max_tokens_field = MaxTokensField::MaxTokens,
            Some(Value::String(name)) if name == "max_completion_tokens" => {
                self.max_tokens_field = MaxTokensField::MaxCompletionTokens;
            }
            Some(_) => return Err(wrong("maxTokensField", "`max_tokens` or `max_completion_tokens`")),
        }
        match keys.get("thinkingFormat") {
            None | Some(Value::Null) => {}
            Some(Value::String(name)) => self.thinking_format = thinking_format(name)?,
            Some(_) => return Err(wrong("thinkingFormat", "a name")),
        }
        for key in ["thinkingLevelMap", "reasoningEffortMap"] {
            match keys.get(key) {
                None | Some(Value::Null) => {}
                Some(Value::Object(map)) => {
                    for (level, name) in map {
                        let name = match name {
                            Value::String(name) => Some(name.clone()),
                            Value::Null => None,
                            _ => return Err(wrong(key, "an object whose values are texts or null")),
                        };
                        self.efforts.push((level.clone(), name));
                    }
                }
                Some(_) => return Err(wrong(key, "an object")),
            }
        }
        Ok(())
    }

    /// What the server calls a thinking level; `None` if it has no name for it.
    pub fn effort(&self, level: ThinkingLevel) -> Option<&str> {
        let name = level_name(level);
        match self.efforts.iter().rfind(|(from, _)| from == name) {
            Some((_, to)) => to.as_deref(),
            None if name == "off" => None,
            None => Some(name),
        }
    }

    /// What the server is told to switch thinking off by name; `None` if the models file rules that out.
    pub fn off_effort<'a>(&'a self, default: &'a str) -> Option<&'a str> {
        match self.efforts.iter().rfind(|(from, _)| from == "off") {
            Some((_, to)) => to.as_deref(),
            None => Some(default),
        }
    }
}

/// The address is OpenAI's own.
pub fn is_open_ai(base_url: &str) -> bool {
    let rest = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
    let host = rest.split(['/', ':', '?', '#']).next().unwrap_or_default();
    rest.is_empty() || host.eq_ignore_ascii_case("api.openai.com")
}

fn level_name(level: ThinkingLevel) -> &'static str {
    match level {
        ThinkingLevel::Off => "off",
        ThinkingLevel::Minimal => "minimal",
        ThinkingLevel::Low => "low",
        ThinkingLevel::Medium => "medium",
        ThinkingLevel::High => "high",
        ThinkingLevel::Xhigh => "xhigh",
        ThinkingLevel::Max => "max",
    }
}

fn thinking_format(name: &str) -> Result<ThinkingFormat, Error> {
    Ok(match name {
        "openai" => ThinkingFormat::OpenAi,
        "openrouter" => ThinkingFormat::OpenRouter,
        "deepseek" => ThinkingFormat::DeepSeek,
        "together" => ThinkingFormat::Together,
        "zai" => ThinkingFormat::Zai,
        "qwen" => ThinkingFormat::Qwen,
        "qwen-chat-template" => ThinkingFormat::QwenChatTemplate,
        "string-thinking" => ThinkingFormat::StringThinking,
        _ => {
            return Err(wrong(
                "thinkingFormat",
                "one of openai, openrouter, deepseek, together, zai, qwen, qwen-chat-template, string-thinking",
            ));
        }
    })
}

fn wrong(key: &str, wanted: &str) -> Error {
    Error::InvalidArguments(format!("compat.{key} must be {wanted}."))
}

fn invalid(model: &Model, text: &str) -> Error {
    Error::InvalidArguments(format!("Model {}/{}: {text}.", model.provider, model.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::model;

    fn with(base_url: &str, compat: &str) -> Result<Compat, Error> {
        let mut model = model();
        model.base_url = base_url.into();
        model.compat = compat.into();
        Compat::of(&model)
    }

    #[test]
    fn only_open_ai_gets_store_and_the_developer_role() {
        let own = with("https://api.openai.com/v1", "{}").unwrap();
        assert!(own.store && own.developer_role && own.mid_conversation_system);
        for url in
            ["http://127.0.0.1:18765/v1", "https://evil.example/api.openai.com", "https://api.openai.com.evil/v1"]
        {
            let other = with(url, "").unwrap();
            assert!(!other.store && !other.developer_role && !other.mid_conversation_system, "{url}");
        }
    }

    #[test]
    fn the_older_bound_is_for_the_servers_of_the_table() {
        for url in [
            "https://api.deepseek.com",
            "https://api.moonshot.cn/v1",
            "https://api.together.xyz/v1",
            "https://integrate.api.nvidia.com/v1",
            "https://api.z.ai/api/paas/v4",
            "https://gateway.ai.cloudflare.com/v1/a/b/compat",
            "https://llm.chutes.ai/v1",
            "https://api.ant-ling.com/v1",
        ] {
            assert_eq!(with(url, "null").unwrap().max_tokens_field, MaxTokensField::MaxTokens, "{url}");
        }
        let plain = with("http://localhost:1/v1", "{}").unwrap();
        assert_eq!(plain.max_tokens_field, MaxTokensField::MaxCompletionTokens);
    }

    #[test]
    fn keys_of_the_models_file_win() {
        let compat = with(
            "http://localhost/v1",
            r#"{"supportsStore":true,"maxTokensField":"max_tokens","thinkingFormat":"qwen","someone":"else"}"#,
        )
        .unwrap();
        assert!(compat.store);
        assert_eq!(compat.max_tokens_field, MaxTokensField::MaxTokens);
        assert_eq!(compat.thinking_format, ThinkingFormat::Qwen);
    }

    #[test]
    fn mistakes_name_the_key() {
        for (compat, part) in [
            (r#"{"supportsStore":"yes"}"#, "compat.supportsStore must be true or false"),
            (r#"{"maxTokensField":"tokens"}"#, "compat.maxTokensField"),
            (r#"{"thinkingFormat":"loud"}"#, "qwen-chat-template"),
            ("[]", "compat must be an object"),
            ("{", "compat is not JSON"),
        ] {
            let Err(Error::InvalidArguments(text)) = with("http://x/v1", compat) else {
                panic!("{compat} was accepted");
            };
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn levels_can_be_renamed_and_left_out() {
        let compat = with("http://x", r#"{"thinkingLevelMap":{"high":"hard","low":null,"off":"none"}}"#).unwrap();
        assert_eq!(compat.effort(ThinkingLevel::High), Some("hard"));
        assert_eq!(compat.effort(ThinkingLevel::Low), None);
        assert_eq!(compat.effort(ThinkingLevel::Medium), Some("medium"));
        assert_eq!(compat.effort(ThinkingLevel::Off), Some("none"));
        assert_eq!(with("http://x", "").unwrap().effort(ThinkingLevel::Off), None);
    }
}
