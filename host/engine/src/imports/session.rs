//! `session`: what an extension may read and do in the session.

use std::sync::Arc;

use atoll_caps::Capability;
use atoll_table::{
    Content, Error,
    extension::{CustomMessage, SessionAccess},
};
use serde_json::Value;
use wasmtime::component::Accessor;

use super::{Answer, Host, contract, permitted, service};
use crate::{
    call::Caller,
    convert,
    state::{PluginState, lock},
};

/// The session, for a caller that may use it. `lengths`: of the texts that it hands over.
fn session<T: Send>(
    accessor: &Accessor<T, Host>,
    operation: &str,
    target: &str,
    lengths: usize,
) -> Result<(Caller, Arc<dyn SessionAccess>), Error> {
    let caller = permitted(accessor, Capability::Session, operation, target)?;
    caller.check_bytes(lengths)?;
    let session = service(&caller, "session", |services| services.session.clone())?;
    Ok((caller, session))
}

fn json(field: &str, text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::InvalidArguments(format!("{field} is not JSON: {error}")))
}

/// Content for the session, without secrets.
fn content(caller: &Caller, content: Vec<contract::types::Content>) -> Vec<Content> {
    let mut content: Vec<Content> = content.into_iter().map(convert::content_from_wit).collect();
    caller.redact_parts(&mut content, []);
    content
}

impl PluginState {
    /// The session, for imports that have no way to say no.
    fn session(&self, operation: &str, target: &str) -> Option<Arc<dyn SessionAccess>> {
        let session = self.plugin.shared.services.get()?.session.clone()?;
        self.may_use(Capability::Session, operation, target).then_some(session)
    }
}

impl contract::session::Host for PluginState {
    fn describe(&mut self) -> wasmtime::Result<contract::session::Info> {
        Ok(self.session("read", "facts").map_or_else(
            || contract::session::Info {
                id: String::new(),
                file: None,
                cwd: self.plugin.shared.places.cwd.to_string_lossy().into_owned(),
                name: None,
                idle: true,
                pending: false,
                model: None,
                thinking: "off".to_owned(),
            },
            |session| {
                let info = session.info();
                contract::session::Info {
                    id: info.id,
                    file: info.file.map(|file| file.to_string_lossy().into_owned()),
                    cwd: info.cwd.to_string_lossy().into_owned(),
                    name: info.name,
                    idle: info.idle,
                    pending: info.pending,
                    model: info.model,
                    thinking: info.thinking,
                }
            },
        ))
    }

    fn system_prompt(&mut self) -> wasmtime::Result<String> {
        Ok(self.session("read", "the system prompt").map_or_else(String::new, |session| session.system_prompt()))
    }

    fn context_usage(&mut self) -> wasmtime::Result<Option<contract::session::ContextSize>> {
        let usage = self.session("read", "how full the context is").and_then(|session| session.context_usage());
        Ok(usage.map(|usage| contract::session::ContextSize { tokens: usage.tokens, window: usage.window }))
    }

    fn abort(&mut self) -> wasmtime::Result<()> {
        if let Some(session) = self.session("abort", "what runs") {
            session.abort();
        }
        Ok(())
    }

    fn shutdown(&mut self) -> wasmtime::Result<()> {
        if let Some(session) = self.session("shutdown", "the program") {
            session.shutdown();
        }
        Ok(())
    }
}

impl<T: Send + 'static> contract::session::HostWithStore<T> for Host {
    async fn entries(accessor: &Accessor<T, Self>) -> Answer<Vec<String>> {
        let entries = async {
            let (caller, session) = session(accessor, "read", "entries", 0)?;
            let entries: Vec<String> = session.entries().await?.iter().map(Value::to_string).collect();
            caller.check_bytes(entries.iter().map(String::len).sum())?;
            Ok::<_, Error>(entries)
        };
        Ok(entries.await.map_err(Into::into))
    }

    async fn append(accessor: &Accessor<T, Self>, custom_type: String, data: String) -> Answer<String> {
        let append = async {
            let (caller, session) = session(accessor, "append", &custom_type, custom_type.len() + data.len())?;
            let mut data = Some(json("the entry's data", &data)?);
            caller.redact_parts(&mut [], [&mut data]);
            let data = data.unwrap_or_default();
            session.append(&caller.who(), custom_type, data).await
        };
        Ok(append.await.map_err(Into::into))
    }

    async fn send(
        accessor: &Accessor<T, Self>,
        pieces: Vec<contract::types::Content>,
        delivery: contract::types::Delivery,
    ) -> Answer<()> {
        let send = async {
            let (caller, session) = session(accessor, "send", "a message", convert::content_size(&pieces))?;
            let content = content(&caller, pieces);
            session.send(&caller.who(), content, convert::extension::delivery_from_wit(delivery)).await
        };
        Ok(send.await.map_err(Into::into))
    }

    async fn send_custom(
        accessor: &Accessor<T, Self>,
        message: contract::session::CustomMessage,
        delivery: contract::types::Delivery,
        trigger: bool,
    ) -> Answer<()> {
        let send = async {
            let lengths = convert::content_size(&message.content)
                + message.custom_type.len()
                + message.details.as_ref().map_or(0, String::len);
            let (caller, session) = session(accessor, "send", &message.custom_type, lengths)?;
            let mut details = message.details.map(|text| json("the message's details", &text)).transpose()?;
            caller.redact_parts(&mut [], [&mut details]);
            let message = CustomMessage {
                custom_type: message.custom_type,
                content: content(&caller, message.content),
                display: message.display,
                details,
            };
            let delivery = convert::extension::delivery_from_wit(delivery);
            session.send_custom(&caller.who(), message, delivery, trigger).await
        };
        Ok(send.await.map_err(Into::into))
    }

    async fn set_label(accessor: &Accessor<T, Self>, entry_id: String, label: Option<String>) -> Answer<()> {
        let set = async {
            let lengths = entry_id.len() + label.as_ref().map_or(0, String::len);
            let (_, session) = session(accessor, "label", &entry_id, lengths)?;
            session.set_label(entry_id, label).await
        };
        Ok(set.await.map_err(Into::into))
    }

    async fn set_name(accessor: &Accessor<T, Self>, name: String) -> Answer<()> {
        let set = async { session(accessor, "name", "the session", name.len())?.1.set_name(name).await };
        Ok(set.await.map_err(Into::into))
    }

    async fn set_model(accessor: &Accessor<T, Self>, name: String) -> Answer<()> {
        let set = async { session(accessor, "set model", &name, name.len())?.1.set_model(name).await };
        Ok(set.await.map_err(Into::into))
    }

    async fn set_thinking(accessor: &Accessor<T, Self>, level: String) -> Answer<()> {
        let set = async { session(accessor, "set thinking", &level, level.len())?.1.set_thinking(level).await };
        Ok(set.await.map_err(Into::into))
    }

    async fn set_prompt_section(accessor: &Accessor<T, Self>, name: String, text: Option<String>) -> Answer<()> {
        let set = async {
            let lengths = name.len() + text.as_ref().map_or(0, String::len);
            let (caller, session) = session(accessor, "set prompt section", &name, lengths)?;
            let text = text.map(|text| caller.redacted(&text));
            session.set_prompt_section(&caller.who(), name, text).await
        };
        Ok(set.await.map_err(Into::into))
    }

    async fn compact(accessor: &Accessor<T, Self>, instructions: Option<String>) -> Answer<()> {
        let compact = async {
            let length = instructions.as_ref().map_or(0, String::len);
            session(accessor, "compact", "the conversation", length)?.1.compact(instructions).await
        };
        Ok(compact.await.map_err(Into::into))
    }

    async fn wait_idle(accessor: &Accessor<T, Self>) -> Answer<()> {
        let is_waited_for = accessor.with(|mut access| lock(&access.get().running).values().any(|call| call.below > 0));
        let wait = async {
            let (_, session) = session(accessor, "wait for", "the end of what runs", 0)?;
            if is_waited_for {
                return Err(Error::InvalidArguments(
                    "what is running waits for this plugin, so that waiting for its end would never end; wait in a \
                     command, or outside of handlers and calls"
                        .to_owned(),
                ));
            }
            session.wait_idle().await
        };
        Ok(wait.await.map_err(Into::into))
    }

    async fn reload(accessor: &Accessor<T, Self>) -> Answer<()> {
        let reload = async { session(accessor, "reload", "all extensions", 0)?.1.reload().await };
        Ok(reload.await.map_err(Into::into))
    }
}
