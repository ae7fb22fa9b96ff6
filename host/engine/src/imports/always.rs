//! `types`, `log`, `clock` and `progress`: granted to every plugin.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use wasmtime::component::Accessor;

use super::{Host, contract};
use crate::{convert, state::PluginState, state::lock};

/// Lines of one instance beyond this are dropped.
const MAX_LOG_LINES: u32 = 10_000;
/// The longest line, in bytes.
const MAX_LOG_LINE: usize = 16 << 10;

impl contract::types::Host for PluginState {}

impl contract::log::Host for PluginState {
    fn write(&mut self, level: contract::log::Level, message: String) -> wasmtime::Result<()> {
        use contract::log::Level;
        self.plugin.trap_on_bytes(message.len())?;
        self.log_lines = self.log_lines.saturating_add(1);
        if self.log_lines > MAX_LOG_LINES {
            return Ok(());
        }
        let message = self.plugin.redacted(&message);
        let message = &message[..message.floor_char_boundary(MAX_LOG_LINE)];
        let plugin = self.plugin.name.as_str();
        match level {
            Level::Trace => tracing::trace!(target: "plugin", plugin, "{message}"),
            Level::Debug => tracing::debug!(target: "plugin", plugin, "{message}"),
            Level::Info => tracing::info!(target: "plugin", plugin, "{message}"),
            Level::Warn => tracing::warn!(target: "plugin", plugin, "{message}"),
            Level::Error => tracing::error!(target: "plugin", plugin, "{message}"),
        }
        Ok(())
    }
}

impl contract::clock::Host for PluginState {
    fn now(&mut self) -> wasmtime::Result<u64> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic(&mut self) -> wasmtime::Result<u64> {
        Ok(self.meter.since_start_ns())
    }
}

impl<T: Send + 'static> contract::clock::HostWithStore<T> for Host {
    async fn sleep(_: &Accessor<T, Self>, milliseconds: u64) -> wasmtime::Result<()> {
        tokio::time::sleep(Duration::from_millis(milliseconds)).await;
        Ok(())
    }
}

impl<T: Send + 'static> contract::progress::HostWithStore<T> for Host {
    async fn cancelled(accessor: &Accessor<T, Self>, id: String) -> wasmtime::Result<()> {
        let wanted = accessor.with(|mut access| lock(&access.get().running).get(&id).map(|call| call.wanted.clone()));
        if let Some(mut wanted) = wanted {
            // Nothing is ever sent: it fails when the other side is gone.
            while wanted.changed().await.is_ok() {}
        }
        Ok(())
    }
}

impl contract::progress::Host for PluginState {
    fn update(
        &mut self,
        call_id: String,
        content: Vec<contract::types::Content>,
        details: Option<String>,
    ) -> wasmtime::Result<()> {
        let size = |piece: &contract::types::Content| match piece {
            contract::types::Content::Text(text) => text.len(),
            contract::types::Content::Image(blob) => blob.data.len(),
        };
        self.plugin.trap_on_bytes(content.iter().map(size).sum::<usize>() + details.as_ref().map_or(0, String::len))?;
        let sink = lock(&self.running).get(&call_id).map(|call| Arc::clone(&call.progress));
        if let Some(sink) = sink {
            let mut details = details.and_then(|text| serde_json::from_str(&text).ok());
            let mut content: Vec<_> = content.into_iter().map(convert::content_from_wit).collect();
            self.plugin.redact_parts(&mut content, [&mut details]);
            sink(content, details);
        }
        Ok(())
    }
}
