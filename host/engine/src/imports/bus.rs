//! `bus`: what extensions say to each other.

use atoll_caps::Capability;
use atoll_table::Error;
use serde_json::Value;

use super::{contract, permitted_by, service};
use crate::state::PluginState;

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 64 << 10;
/// The longest topic, in bytes.
const MAX_TOPIC: usize = 256;

impl contract::bus::Host for PluginState {
    fn emit(&mut self, topic: String, data: String) -> wasmtime::Result<Result<(), contract::types::Error>> {
        let emit = || {
            self.plugin.check_bytes(topic.len() + data.len())?;
            let caller = permitted_by(self.caller(), Capability::Bus, "emit", &topic)?;
            if topic.is_empty() || topic.len() > MAX_TOPIC || data.len() > MAX_MESSAGE {
                return Err(Error::InvalidArguments(format!(
                    "a topic has 1 to {MAX_TOPIC} bytes and a message {MAX_MESSAGE} at most; these have {} and {}",
                    topic.len(),
                    data.len()
                )));
            }
            let value: Value = serde_json::from_str(&data)
                .map_err(|error| Error::InvalidArguments(format!("the message is not JSON: {error}")))?;
            let mut value = Some(value);
            caller.redact_parts(&mut [], [&mut value]);
            let bus = service(&caller, "bus", |services| services.bus.clone())?;
            bus.emit(&caller.who(), &topic, value.unwrap_or_default())
        };
        Ok(emit().map_err(Into::into))
    }
}
