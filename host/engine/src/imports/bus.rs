//! `bus`: what extensions say to each other.

use atoll_caps::Capability;
use atoll_table::Error;

use super::contract;
use crate::{audit::Verdict, convert, state::PluginState};

/// The longest message, in bytes.
const MAX_MESSAGE: usize = 64 << 10;
/// The longest topic, in bytes.
const MAX_TOPIC: usize = 256;

impl contract::bus::Host for PluginState {
    fn emit(&mut self, topic: String, data: String) -> wasmtime::Result<Result<(), contract::types::Error>> {
        let emit = || {
            self.plugin.check_bytes(topic.len() + data.len())?;
            self.plugin.effective().check(Capability::Bus).map_err(|denied| convert::denied(&denied))?;
            if !self.call.asks() {
                return Err(Error::Unavailable("nothing is sent while the plugin only says what it is".to_owned()));
            }
            if topic.is_empty() || topic.len() > MAX_TOPIC || data.len() > MAX_MESSAGE {
                return Err(Error::InvalidArguments(format!(
                    "a topic has 1 to {MAX_TOPIC} bytes and a message {MAX_MESSAGE} at most; these have {} and {}",
                    topic.len(),
                    data.len()
                )));
            }
            let value = serde_json::from_str(&self.plugin.redacted(&data))
                .map_err(|error| Error::InvalidArguments(format!("the message is not JSON: {error}")))?;
            let bus = self.plugin.shared.services.get().and_then(|services| services.bus.clone());
            let bus = bus.ok_or_else(|| Error::Unavailable("there is no bus here".to_owned()))?;
            self.call.uses.used(Capability::Bus.as_str(), "emit", &topic, Verdict::Allowed);
            bus.emit(&self.plugin.who(), &topic, value)
        };
        Ok(emit().map_err(Into::into))
    }
}
