//! What it takes until extensions are there: many that were compiled before, and one whose component has changed.

use std::{path::Path, sync::Arc, time::Instant};

use anyhow::Context as _;
use atoll_agent::{Extensions, extensions::Failure};
use atoll_caps::{Digest, Effective, Manifest, Pin};
use atoll_engine::{LoadedPlugin, Places, PluginHost, UserPlugin, embed_manifest};
use atoll_table::{
    Origin,
    extension::{HostFacts, Services},
};

use crate::{Figure, extensions::Looks, median};

/// How many are loaded together.
const MANY: usize = 20;

/// An extension as a build of it gave it.
pub(crate) struct Built {
    name: &'static str,
    component: Vec<u8>,
    manifest: String,
}

impl Built {
    /// The extension that does what its settings say; it imports all that there is.
    fn puppet() -> anyhow::Result<Self> {
        Self::read("puppet", "atoll_test_puppet", "plugins/puppet")
    }

    /// The example of a command with notes of its own.
    pub(crate) fn note() -> anyhow::Result<Self> {
        Self::read("note", "atoll_example_note", "../guest-extensions/examples/rust/note")
    }

    fn read(name: &'static str, component: &str, folder: &str) -> anyhow::Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let file = root.join(format!("../target/guests/wasm32-wasip2/guest/{component}.wasm"));
        let component = std::fs::read(&file).with_context(|| format!("there is no {name}; run `cargo xtask bench`"))?;
        Ok(Self { name, component, manifest: std::fs::read_to_string(root.join(folder).join("plugin.toml"))? })
    }

    /// The size of its component.
    pub(crate) fn kilobytes(&self) -> usize {
        self.component.len() / 1_000
    }

    /// Writes it under another name and loads it.
    pub(crate) async fn load(&self, host: &PluginHost, folder: &Path, name: &str) -> anyhow::Result<LoadedPlugin> {
        Ok(host.load_user(seen(host, &self.write(folder, name, 0)?)?).await?)
    }

    /// Writes it as a plugin of this name; its component is another one for each `build`.
    fn write(&self, folder: &Path, name: &str, build: usize) -> anyhow::Result<std::path::PathBuf> {
        let file = folder.join(format!("{name}.wasm"));
        let own = format!("name = \"{}\"", self.name);
        let manifest = self.manifest.replacen(&own, &format!("name = \"{name}\""), 1);
        let packed = embed_manifest(&self.component, &format!("# build {build}\n{manifest}"))?;
        std::fs::write(&file, packed)?;
        Ok(file)
    }
}

/// Reads a plugin's file as a start does.
fn seen(host: &PluginHost, file: &Path) -> anyhow::Result<UserPlugin> {
    let component = host.see_component(file)?;
    let text = component.manifest.clone()?.context("there is no manifest in it")?;
    let manifest = Manifest::parse(&text, "plugin.toml")?;
    let effective = Effective::builtin(&manifest);
    let pin = Pin { component: component.digest.clone(), manifest: Digest::of(text.as_bytes()) };
    Ok(UserPlugin { file: file.to_owned(), component, manifest, effective, pin, origin: Origin::User })
}

fn host(folder: &Path) -> anyhow::Result<Arc<PluginHost>> {
    let host = PluginHost::new(Places::all_in(folder))?;
    let facts: Arc<dyn HostFacts> = Arc::new(Looks);
    host.set_services(Services { facts: Some(facts), ..Services::default() });
    Ok(Arc::new(host))
}

/// Measures both.
pub(crate) async fn measure(quick: bool) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let runs = if quick { 3 } else { 15 };
    let puppet = Built::puppet()?;
    Ok(vec![
        start_of_many(folder.path(), &puppet, runs).await?,
        reload(folder.path(), &Built::note()?, runs).await?.below(200.0),
        reload(folder.path(), &puppet, runs).await?,
    ])
}

/// Loads and starts many that are in the cache, each time in a host of its own, as a process has it.
async fn start_of_many(folder: &Path, built: &Built, runs: usize) -> anyhow::Result<Figure> {
    let files: Vec<_> =
        (0..MANY).map(|number| built.write(folder, &format!("many-{number}"), number)).collect::<Result<_, _>>()?;
    let mut times = Vec::new();
    for run in 0..=runs {
        let host = host(folder)?;
        let began = Instant::now();
        let loading = files.iter().map(|file| {
            let (host, file) = (Arc::clone(&host), file.clone());
            tokio::spawn(async move { Ok::<_, anyhow::Error>(host.load_user(seen(&host, &file)?).await?) })
        });
        let loading: Vec<_> = loading.collect();
        let extensions = Extensions::new(Arc::new(|failure: &Failure| eprintln!("atoll-bench: {failure:?}")));
        let mut plugins = Vec::new();
        for loaded in loading {
            let plugin = loaded.await??;
            extensions.add(Arc::clone(plugin.extension.as_ref().context("it is no extension")?));
            plugins.push(plugin);
        }
        let failed = extensions.start().await;
        let took = began.elapsed().as_secs_f64() * 1e3;
        anyhow::ensure!(failed.is_empty(), "extensions can not be started: {failed:?}");
        // The first one compiles them.
        if run > 0 {
            times.push(took);
        }
        extensions.end("quit").await;
    }
    let name = format!("{MANY} extensions, compiled before: loaded and started");
    Ok(Figure::new(name, median(&mut times), "ms", runs).below(60.0))
}

/// Puts another build in the place of one that runs: read, compiled, started, and answering in its place.
async fn reload(folder: &Path, built: &Built, runs: usize) -> anyhow::Result<Figure> {
    let host = host(folder)?;
    let file = built.write(folder, "reloaded", 0)?;
    let plugin = host.load_user(seen(&host, &file)?).await?;
    let extension = plugin.extension.as_ref().context("it is no extension")?;
    extension.start(atoll_table::extension::StartReason::Startup).await?;
    let live = plugin.live.as_ref().context("it can not be replaced")?;
    let mut times = Vec::new();
    for run in 1..=runs {
        let file = built.write(folder, "reloaded", run)?;
        let began = Instant::now();
        let replacement = host.load_replacement(seen(&host, &file)?).await?;
        live.replace(replacement).await?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    extension.stop().await;
    let name = format!("reload of an extension of {} KB, compiled anew", built.kilobytes());
    Ok(Figure::new(name, median(&mut times), "ms", runs))
}
