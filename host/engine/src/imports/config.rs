//! `config`: files that users write for plugins.
//!
//! What a plugin was given of a variable or a command must not be seen in anything it says from then on.

use std::sync::Arc;

use atoll_caps::Capability;
use atoll_table::{
    Error,
    config::{ConfigDocument, ConfigFiles, ConfigPlace},
};
use wasmtime::component::Accessor;

use super::{Answer, Host, caller, contract, secrets::learn};
use crate::{
    audit::Verdict,
    call::{Caller, Use},
    state::PluginState,
};
use contract::config as wit;

/// The longest value that is looked at, in bytes.
const MAX_VALUE: usize = 64 << 10;

/// The files, for a caller that may use this one; and how that came to be allowed.
async fn files<T: Send>(
    accessor: &Accessor<T, Host>,
    operation: &str,
    file: &str,
    more: usize,
) -> Result<(Caller, Arc<dyn ConfigFiles>, Verdict), Error> {
    let caller = caller(accessor);
    caller.check_bytes(file.len() + more)?;
    let shown = file.get(..file.floor_char_boundary(200)).unwrap_or_default();
    let the_use = Use { capability: Capability::Config.as_str(), operation, target: shown };
    let verdict = caller.permit(the_use, |effective| effective.check_config(file)).await?;
    let Some(files) = caller.shared.config.get().cloned() else {
        return Err(Error::Unavailable("there are no files of configuration here".to_owned()));
    };
    Ok((caller, files, verdict))
}

fn used(caller: &Caller, operation: &str, file: &str, verdict: Verdict, bytes: usize) {
    caller.call.uses.add(Capability::Config.as_str(), operation, file, verdict, 1, Some(bytes as u64));
}

fn document(document: ConfigDocument) -> wit::Document {
    wit::Document {
        place: match document.place {
            ConfigPlace::User => wit::Place::User,
            ConfigPlace::Project => wit::Place::Project,
        },
        path: document.path.to_string_lossy().into_owned(),
        text: document.text,
        version: document.version,
        trusted: document.trusted,
    }
}

impl wit::Host for PluginState {}

impl<T: Send + 'static> wit::HostWithStore<T> for Host {
    async fn read(accessor: &Accessor<T, Self>, file: String) -> Answer<Vec<wit::Document>> {
        let read = async {
            let (caller, files, verdict) = files(accessor, "read", &file, 0).await?;
            let name = file.clone();
            let found = caller.blocking(move || files.read(&name)).await?;
            let length = found.iter().map(|document| document.text.len()).sum();
            caller.check_bytes(length)?;
            used(&caller, "read", &file, verdict, length);
            Ok::<_, Error>(found.into_iter().map(document).collect())
        };
        Ok(read.await.map_err(Into::into))
    }

    async fn write(
        accessor: &Accessor<T, Self>,
        file: String,
        place: wit::Place,
        text: String,
        expected: Option<String>,
    ) -> Answer<wit::Document> {
        let write = async {
            let (caller, files, verdict) = files(accessor, "write", &file, text.len()).await?;
            let place = match place {
                wit::Place::User => ConfigPlace::User,
                wit::Place::Project => ConfigPlace::Project,
            };
            let (name, length) = (file.clone(), text.len());
            let written = caller.blocking(move || files.write(&name, place, &text, expected.as_deref())).await?;
            used(&caller, "write", &file, verdict, length);
            Ok::<_, Error>(document(written))
        };
        Ok(write.await.map_err(Into::into))
    }

    async fn resolve(accessor: &Accessor<T, Self>, file: String, value: String) -> Answer<String> {
        let resolve = async {
            let (caller, files, verdict) = files(accessor, "resolve", &file, value.len()).await?;
            if value.len() > MAX_VALUE {
                return Err(Error::InvalidArguments(format!(
                    "a value may have {MAX_VALUE} bytes; this one has {}",
                    value.len()
                )));
            }
            let name = file.clone();
            let found = caller.blocking(move || files.resolve(&name, &value)).await?;
            for (source, secret) in &found.private {
                learn(&caller, &format!("{file}: {source}"), secret);
            }
            used(&caller, "resolve", &file, verdict, found.value.len());
            Ok::<_, Error>(found.value)
        };
        Ok(resolve.await.map_err(Into::into))
    }
}
