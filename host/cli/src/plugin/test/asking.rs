//! Asks the provider under test, as the agent would.

use atoll_table::{
    Content, Error,
    model::{Declaration, Model, ModelEvent, ModelProvider, ModelRequest, PromptMessage, Secret},
};
use futures::StreamExt as _;
use serde_json::json;

use super::{
    check::Said,
    scenario::{DeclaredTool, ModelSetup, Step},
};

/// Asks the plugin's provider once.
pub(super) async fn ask(provider: &dyn ModelProvider, prompt: &str, step: &Step, number: usize) -> Result<Said, Error> {
    let setup = step.model.as_ref();
    let default = ModelSetup::default();
    let setup = setup.unwrap_or(&default);
    let api = setup.api.clone().or_else(|| provider.apis().into_iter().next()).unwrap_or_default();
    let thinking = setup.thinking.as_ref().map(|level| serde_json::from_value(json!(level)));
    let thinking = thinking.transpose().map_err(|_| {
        Error::InvalidArguments("`model.thinking` is off, minimal, low, medium, high, xhigh or max".to_owned())
    })?;
    let system = step.system.clone().map(PromptMessage::System);
    let user = PromptMessage::User(vec![Content::text(prompt)]);
    let declare = |tool: &DeclaredTool| Declaration {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: tool.parameters.clone().unwrap_or_else(|| json!({"type": "object"})),
    };
    let request = ModelRequest {
        id: format!("request-{number}"),
        model: Model {
            id: setup.id.clone(),
            name: setup.id.clone(),
            provider: "test".to_owned(),
            api,
            base_url: setup.base_url.clone(),
            reasoning: setup.reasoning,
            images: setup.images,
            context_window: setup.context_window,
            max_tokens: setup.max_tokens,
            headers: Vec::new(),
            compat: setup.compat.clone().unwrap_or_else(|| json!({})),
            is_users: true,
        },
        key: setup.key.as_ref().map(Secret::new),
        header_secrets: Vec::new(),
        messages: system.into_iter().chain([user]).collect(),
        tools: step.tools.iter().map(declare).collect(),
        thinking: thinking.unwrap_or_default(),
        idle_timeout_ms: 60_000,
    };
    let mut said = Said::default();
    let mut events = provider.complete(request).await?;
    while let Some(event) = events.next().await {
        match event {
            ModelEvent::TextDelta(_, delta) => said.text.push_str(&delta),
            ModelEvent::ThinkingDelta(_, delta) => said.thinking.push_str(&delta),
            ModelEvent::CallStart { name, .. } => said.calls.push((name, String::new())),
            ModelEvent::CallDelta(_, delta) => {
                if let Some((_, arguments)) = said.calls.last_mut() {
                    arguments.push_str(&delta);
                }
            }
            ModelEvent::Done { reason, .. } => {
                said.stop = Some(reason);
                return Ok(said);
            }
            ModelEvent::Failed { error, .. } => return Err(error),
            _ => {}
        }
    }
    Err(Error::Failed(format!("the answer has no end; so far: {:?}", said.text)))
}
