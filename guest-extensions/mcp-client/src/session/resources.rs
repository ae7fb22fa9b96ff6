//! Resources of a server: what there is to read, and reading it.

use rmcp::model::{
    ClientRequest, ListResourceTemplatesRequest, ListResourcesRequest, ReadResourceRequest, ReadResourceRequestParams,
};
use serde_json::Value;

use super::{Failure, Session, answer, requests::from};
use crate::result::is_shown;

/// A part of a list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What is in it, objects as the server describes them, without what is not for a model.
    pub items: Vec<Value>,
    /// What to ask for the next part with.
    pub next: Option<String>,
}

/// The page that an answer is; the list is under this key.
fn page(mut answer: Value, key: &str) -> Result<Page, Failure> {
    let Some(Value::Array(items)) = answer.get_mut(key).map(Value::take) else {
        return Err(Failure::Strange(format!("its answer has no {key}")));
    };
    let shown = items.into_iter().filter(|item| item.is_object() && is_shown(item)).map(|mut item| {
        if let Some(fields) = item.as_object_mut() {
            // Pictures for people, and what is nobody's but the protocol's.
            fields.shift_remove("icons");
            fields.shift_remove("_meta");
        }
        item
    });
    let next = answer["nextCursor"].as_str().filter(|next| !next.is_empty()).map(str::to_owned);
    Ok(Page { items: shown.collect(), next })
}

impl Session {
    /// The resources, from a cursor on.
    ///
    /// # Errors
    /// Why there is no list.
    pub async fn resources(&self, cursor: Option<&str>) -> Result<Page, Failure> {
        let params = from(cursor.map(str::to_owned));
        let request = ListResourcesRequest { params, ..ListResourcesRequest::default() };
        let asked = self.peer.send_request(ClientRequest::ListResourcesRequest(request)).await;
        page(answer(asked)?, "resources")
    }

    /// The templates of resources, from a cursor on.
    ///
    /// # Errors
    /// Why there is no list.
    pub async fn resource_templates(&self, cursor: Option<&str>) -> Result<Page, Failure> {
        let params = from(cursor.map(str::to_owned));
        let request = ListResourceTemplatesRequest { params, ..ListResourceTemplatesRequest::default() };
        let asked = self.peer.send_request(ClientRequest::ListResourceTemplatesRequest(request)).await;
        page(answer(asked)?, "resourceTemplates")
    }

    /// What a resource holds, in parts.
    ///
    /// # Errors
    /// Why it can not be read.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<Value>, Failure> {
        let answer = self.in_rounds(|known| {
            let mut params = ReadResourceRequestParams::new(uri);
            (params.input_responses, params.request_state) = (known.responses, known.state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        });
        Ok(page(answer.await?, "contents")?.items)
    }
}
