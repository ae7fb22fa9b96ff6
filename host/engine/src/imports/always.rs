//! `types`, `log`, `clock`, `progress` and `source`: granted to every plugin.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use atoll_table::{Error, Shaping};
use wasmtime::component::Accessor;

use super::{Answer, Host, contract};
use crate::{convert, state::PluginState, state::lock, wishes::Wishes};

impl contract::types::Host for PluginState {}

impl contract::log::Host for PluginState {
    fn write(&mut self, level: contract::log::Level, message: String) -> wasmtime::Result<()> {
        use contract::log::Level;
        self.plugin.trap_on_bytes(message.len())?;
        let level = match level {
            Level::Trace => tracing::Level::TRACE,
            Level::Debug => tracing::Level::DEBUG,
            Level::Info => tracing::Level::INFO,
            Level::Warn => tracing::Level::WARN,
            Level::Error => tracing::Level::ERROR,
        };
        self.plugin.log_line(&self.log, level, &message);
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

impl contract::source::Host for PluginState {
    fn files(&mut self) -> wasmtime::Result<Vec<contract::source::File>> {
        let file = |file: &crate::scripts::SourceFile| contract::source::File {
            path: file.path.clone(),
            data: file.text.clone().into_bytes(),
        };
        Ok(self.plugin.files.iter().map(file).collect())
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

/// The error for an id that is not one of the instance's.
fn no_call(id: &str) -> Error {
    Error::NotFound(format!("no call `{}` of this plugin is running", id.escape_debug()))
}

impl PluginState {
    fn wishes(&self, call_id: &str) -> Option<Arc<Wishes>> {
        lock(&self.running).get(call_id).and_then(|call| call.wishes.clone())
    }
}

impl contract::progress::Host for PluginState {
    fn update(
        &mut self,
        call_id: String,
        content: Vec<contract::types::Content>,
        details: Option<String>,
    ) -> wasmtime::Result<()> {
        let size = convert::content_size(&content) + details.as_ref().map_or(0, String::len);
        self.plugin.trap_on_bytes(size)?;
        let sink = lock(&self.running).get(&call_id).map(|call| Arc::clone(&call.progress));
        if let Some(sink) = sink {
            let mut details = details.and_then(|text| serde_json::from_str(&text).ok());
            let mut content: Vec<_> = content.into_iter().map(convert::content_from_wit).collect();
            self.plugin.redact_parts(&mut content, [&mut details]);
            sink(content, details);
        }
        Ok(())
    }

    fn kept(&mut self, call_id: String, key: String) -> wasmtime::Result<Option<String>> {
        let value = self.wishes(&call_id).and_then(|wishes| wishes.kept(&key)).map(|value| value.to_string());
        self.plugin.trap_on_bytes(value.as_ref().map_or(0, String::len))?;
        Ok(value)
    }

    fn keep(&mut self, call_id: String, key: String, value: Option<String>) -> Answer<()> {
        self.plugin.trap_on_bytes(key.len() + value.as_ref().map_or(0, String::len))?;
        let keep = || {
            let wishes = self.wishes(&call_id).ok_or_else(|| no_call(&call_id))?;
            // What is kept is written down where others read it.
            let value = value.map(|text| self.plugin.redacted(&text));
            wishes.keep(&self.plugin.redacted(&key), value.as_deref())
        };
        Ok(keep().map_err(Into::into))
    }

    fn shape(&mut self, call_id: String, max_chars: u32, save_images: bool) -> wasmtime::Result<()> {
        if let Some(wishes) = self.wishes(&call_id) {
            wishes.shape(Shaping { max_chars: usize::try_from(max_chars).unwrap_or(usize::MAX), save_images });
        }
        Ok(())
    }

    fn left(&mut self, call_id: String) -> wasmtime::Result<contract::progress::Budget> {
        let known = lock(&self.running).get(&call_id).map(|call| (call.wishes.clone(), Arc::clone(&call.clock)));
        let Some((Some(wishes), clock)) = known else {
            return Ok(contract::progress::Budget { cpu_ms: 0, wall_ms: Some(0) });
        };
        let wall = wishes.wall_left(&clock, self.plugin.limits.wall_ms.map(Duration::from_millis));
        let wall_ms = wall.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX));
        Ok(contract::progress::Budget { cpu_ms: self.meter.left_ms(), wall_ms })
    }
}
