//! Prompts of a server: which there are, and what one gives.

use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest};
use serde_json::{Map, Value};

use super::{
    Failure, Session, answer,
    requests::{MAX_PAGES, from},
};
use crate::commands::{MAX_PROMPTS, ServerPrompt};

impl Session {
    /// All prompts, page by page, and what of them could not be read.
    ///
    /// # Errors
    /// Why there is no list.
    pub async fn prompts(&self) -> Result<(Vec<ServerPrompt>, Vec<String>), Failure> {
        let (mut prompts, mut strange): (Vec<ServerPrompt>, Vec<String>) = Default::default();
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let request = ListPromptsRequest { params: from(cursor.take()), ..ListPromptsRequest::default() };
            let page = answer(self.peer.send_request(ClientRequest::ListPromptsRequest(request)).await)?;
            let Some(listed) = page["prompts"].as_array() else {
                return Err(Failure::Strange("its answer to prompts/list has no prompts".to_owned()));
            };
            for prompt in listed {
                match ServerPrompt::read(prompt) {
                    Ok(prompt) if prompts.iter().any(|known| known.name == prompt.name) => {}
                    Ok(_) if prompts.len() == MAX_PROMPTS => {
                        strange.push(format!("it has more than {MAX_PROMPTS} prompts, and those are the first"));
                        return Ok((prompts, strange));
                    }
                    Ok(prompt) => prompts.push(prompt),
                    Err(why) => strange.push(why),
                }
            }
            match page["nextCursor"].as_str() {
                Some(next) if !next.is_empty() => cursor = Some(next.to_owned()),
                _ => return Ok((prompts, strange)),
            }
        }
        Err(Failure::Strange(format!("its list of prompts has more than {MAX_PAGES} pages")))
    }

    /// What a prompt gives, as the server answers.
    ///
    /// # Errors
    /// Why it gives nothing.
    pub async fn prompt(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, Failure> {
        self.in_rounds(|known| {
            let mut params = GetPromptRequestParams::new(name).with_arguments(arguments.clone());
            (params.input_responses, params.request_state) = (known.responses, known.state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        })
        .await
    }
}
