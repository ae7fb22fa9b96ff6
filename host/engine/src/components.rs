//! From a plugin's origin to its compiled component: an image that the build made, one from the cache, or the compiler.
//! Compiling is bounded in time, and what comes out was made from the bytes that were granted.
//!
//! Must never give a component of other bytes than those whose digest it was asked for.

use std::{
    fs::File,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    time::Duration,
};

use atoll_caps::Digest;
use atoll_table::Error;
use wasmtime::{Engine, component::Component};

use crate::{
    aot_cache::AotCache,
    code_in_place,
    description::Description,
    scripts::ScriptEngine,
    seen::{self, Identity, SeenComponent},
};

/// The largest component that is compiled.
pub(crate) const MAX_COMPONENT: u64 = 64 << 20;
/// How long compiling one may take, by the clock on the wall: a component with a whole language in it takes a minute where the
/// machine has much else to do. It can not be interrupted: past it the work is left to end by itself, unused.
const COMPILE_TIME: Duration = Duration::from_secs(180);

/// Where a plugin's component comes from.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// An image of the program's own.
    Image(&'static [u8]),
    /// A file, and the digest that its bytes must have.
    File { file: PathBuf, digest: Digest },
    /// The engine that all scripts share.
    Scripts(Arc<ScriptEngine>),
}

/// Loads components. Clones share everything.
#[derive(Clone)]
pub(crate) struct Components {
    pub(crate) engine: Engine,
    cache: AotCache,
}

impl Components {
    pub(crate) fn new(engine: Engine, cache: AotCache) -> Self {
        Self { engine, cache }
    }

    /// The component of the plugin `name`, when it is needed. A file is only read if there is no good image of it.
    ///
    /// # Errors
    /// `stale` if the file is not the one any more that was looked at, `unavailable` if it can not be read, and those of
    /// [`Self::compile`].
    pub(crate) async fn load(&self, name: &str, source: &Source) -> Result<Component, Error> {
        match source {
            Source::Image(image) => {
                let (engine, name, image) = (self.engine.clone(), name.to_owned(), *image);
                blocking(move || from_image(&engine, &name, image)).await?
            }
            Source::Scripts(engine) => engine.component(self).await,
            Source::File { file, digest } => {
                if let Some(component) = self.cached(digest).await? {
                    return Ok(component);
                }
                let bytes = self.bytes(name, file, digest).await?;
                self.compile_new(file, bytes, digest).await
            }
        }
    }

    /// The component that these bytes are, from the cache if it was compiled before. `digest` is that of the bytes, `file`
    /// is for messages.
    ///
    /// # Errors
    /// `failed` if they are no component, `timeout` if they take too long to compile.
    pub(crate) async fn compile(&self, file: &Path, bytes: &[u8], digest: &Digest) -> Result<Component, Error> {
        match self.cached(digest).await? {
            Some(component) => Ok(component),
            None => self.compile_new(file, bytes.to_vec(), digest).await,
        }
    }

    /// The bytes of a component's file that have this digest.
    ///
    /// # Errors
    /// `stale` if they are not those any more, `unavailable` if it can not be read.
    pub(crate) async fn bytes(&self, name: &str, file: &Path, digest: &Digest) -> Result<Vec<u8>, Error> {
        let (name, file, digest) = (name.to_owned(), file.to_owned(), digest.clone());
        blocking(move || read_again(&name, &file, &digest)).await?
    }

    async fn cached(&self, digest: &Digest) -> Result<Option<Component>, Error> {
        let (this, digest) = (self.clone(), digest.clone());
        blocking(move || this.cache.load(&this.engine, &digest)).await
    }

    async fn compile_new(&self, file: &Path, bytes: Vec<u8>, digest: &Digest) -> Result<Component, Error> {
        // On a thread of its own, for a compilation that runs away must not hold up the end of the program.
        let (sender, receiver) = mpsc::channel();
        let engine = self.engine.clone();
        std::thread::spawn(move || {
            let _ = sender.send(Component::from_binary(&engine, &bytes));
        });
        let waited = tokio::task::spawn_blocking(move || receiver.recv_timeout(COMPILE_TIME)).await;
        let component = match waited {
            Ok(Ok(Ok(component))) => component,
            Ok(Ok(Err(reason))) => {
                return Err(Error::Failed(format!(
                    "{} is not a usable component: {}",
                    file.display(),
                    reason.root_cause()
                )));
            }
            Ok(Err(mpsc::RecvTimeoutError::Disconnected)) => {
                return Err(Error::Failed(format!(
                    "{} can not be compiled: the compiler gave up on it",
                    file.display()
                )));
            }
            _ => {
                return Err(Error::Timeout(format!(
                    "{} takes more than {} s to compile; try again when the machine has less to do, or make the component smaller",
                    file.display(),
                    COMPILE_TIME.as_secs()
                )));
            }
        };
        let (this, digest, compiled) = (self.clone(), digest.clone(), component.clone());
        if let Err(reason) = blocking(move || this.cache.store(&this.engine, &digest, &compiled)).await? {
            tracing::warn!(%reason, "a compiled plugin could not be cached; it will be compiled again");
        }
        Ok(component)
    }

    /// Looks at a component's file. It is only read if it is not the one that was read before. May block.
    ///
    /// # Errors
    /// As [`read_component`].
    pub(crate) fn see(&self, file: &Path) -> Result<SeenComponent, Error> {
        let remembered = std::fs::metadata(file).ok().and_then(|facts| self.cache.recall(&Identity::of(&facts)?));
        let mut seen = match remembered {
            Some(memory) => SeenComponent::from(memory),
            None => {
                let (seen, memory) = seen::read(file)?;
                if let Some(memory) = memory
                    && let Err(reason) = self.cache.remember(&memory)
                {
                    tracing::debug!(%reason, "a plugin's digest could not be kept; its file will be read again");
                }
                seen
            }
        };
        seen.description = self.cache.load_description(&self.engine, &seen.digest);
        Ok(seen)
    }

    /// Keeps a component's description. That it can not be is no more than a warning.
    pub(crate) async fn keep_description(&self, digest: &Digest, description: Description) {
        let (this, digest) = (self.clone(), digest.clone());
        let stored = blocking(move || this.cache.store_description(&this.engine, &digest, &description)).await;
        if let Ok(Err(reason)) = stored {
            tracing::warn!(%reason, "a plugin's description could not be kept; the plugin will be asked again");
        }
    }
}

/// The component of one of the program's own images.
///
/// # Errors
/// `failed` if the processor lacks what images rely on.
pub(crate) fn from_image(engine: &Engine, name: &str, image: &'static [u8]) -> Result<Component, Error> {
    let in_place = code_in_place::component(engine, image);
    // SAFETY: the bytes were made by the build and are part of this program.
    let loaded = in_place.map_or_else(|| unsafe { Component::deserialize(engine, image) }, Ok);
    loaded.map_err(|reason| {
        Error::Failed(format!("the built-in plugin {name} can not be used on this machine: {reason:#}"))
    })
}

/// Reads a file that was read before, if it is still the same.
fn read_again(name: &str, file: &Path, digest: &Digest) -> Result<Vec<u8>, Error> {
    let bytes = read_component(file).map_err(|error| {
        Error::Unavailable(format!("the plugin {name} can not be loaded any more: {error}; install it again"))
    })?;
    if Digest::of(&bytes) == *digest {
        return Ok(bytes);
    }
    Err(Error::Stale(format!(
        "the plugin {name} has changed since Atoll was started ({}); start Atoll again",
        file.display()
    )))
}

/// Does work that keeps a thread busy off the async ones.
pub(crate) async fn blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Result<R, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|reason| Error::Failed(format!("the host failed to load a plugin: {reason}")))
}

/// Reads a file that claims to be a component, after looking at its kind, its size and its first bytes.
///
/// # Errors
/// `not-found` or `failed`, with what it is instead.
pub fn read_component(file: &Path) -> Result<Vec<u8>, Error> {
    read_open(&mut open_component(file)?, file)
}

/// Opens a file that claims to be a component.
///
/// # Errors
/// `not-found`, or `failed` if it is no regular file.
pub(crate) fn open_component(file: &Path) -> Result<File, Error> {
    let facts = std::fs::metadata(file).map_err(|error| unreadable(file, &error))?;
    if !facts.is_file() {
        return Err(Error::Failed(format!("{} is not a file", file.display())));
    }
    File::open(file).map_err(|error| unreadable(file, &error))
}

/// Reads what [`open_component`] opened.
///
/// # Errors
/// As [`read_component`].
pub(crate) fn read_open(source: &mut File, file: &Path) -> Result<Vec<u8>, Error> {
    use std::io::Read as _;
    let shown = file.display();
    let unreadable = |error: std::io::Error| unreadable(file, &error);
    let length = source.metadata().map_err(unreadable)?.len();
    // As much as it says it has, so that it is read at once; what it really has is found out below.
    let mut bytes = Vec::with_capacity(usize::try_from(length.min(MAX_COMPONENT)).unwrap_or(0) + 1);
    source.take(8).read_to_end(&mut bytes).map_err(unreadable)?;
    check_head(&bytes, &shown.to_string())?;
    if length > MAX_COMPONENT {
        return Err(Error::Failed(format!("{shown} has {length} bytes; a component may have at most {MAX_COMPONENT}")));
    }
    source.take(MAX_COMPONENT).read_to_end(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}

fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => Error::NotFound(format!("{} does not exist", file.display())),
        _ => Error::Failed(format!("{} can not be read: {error}", file.display())),
    }
}

/// Looks at the size and the first bytes of something that claims to be a component. `shown` is what messages call it.
///
/// # Errors
/// `failed`, with what it is instead.
pub fn check_component(bytes: &[u8], shown: &str) -> Result<(), Error> {
    check_head(bytes.get(..8).unwrap_or(bytes), shown)?;
    if bytes.len() as u64 > MAX_COMPONENT {
        let length = bytes.len();
        return Err(Error::Failed(format!("{shown} has {length} bytes; a component may have at most {MAX_COMPONENT}")));
    }
    Ok(())
}

fn check_head(head: &[u8], shown: &str) -> Result<(), Error> {
    let hint = "a plugin is a WebAssembly component, such as `cargo build --target wasm32-wasip2` makes";
    match head {
        [] => return Err(Error::Failed(format!("{shown} is empty; {hint}"))),
        [0, b'a', b's', b'm', 1, 0, 0, 0] => {
            return Err(Error::Failed(format!("{shown} is a core WebAssembly module, not a component; {hint}")));
        }
        [0, b'a', b's', b'm', _, _, 1, 0] => {}
        [0, b'a', b's', b'm', ..] => {
            return Err(Error::Failed(format!("{shown} is cut off or of an unknown kind; {hint}")));
        }
        _ => return Err(Error::Failed(format!("{shown} is not WebAssembly; {hint}"))),
    }
    Ok(())
}
