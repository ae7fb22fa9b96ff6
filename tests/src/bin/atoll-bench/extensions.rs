//! What extensions cost: an event that nobody wants, one that is asked about, and calls that many look at.

use std::{hint::black_box, path::Path, sync::Arc, time::Instant};

use anyhow::Context as _;
use atoll_agent::{Extensions, Pipeline, extensions::Failure};
use atoll_caps::{Digest, Effective, Manifest, Pin};
use atoll_engine::{LoadedPlugin, PluginHost, UserPlugin};
use atoll_table::{
    Origin,
    extension::{Event, EventKind, Extension, HostFacts, HostInfo, Mode, Services, StartReason, Subscription, Who},
    hooks::CallEvent,
    tool::Annotations,
};
use serde_json::{Value, json};

use crate::{
    Figure,
    concurrency::call,
    extension_life::Built,
    in_process::{Tools, resident_mb, with_small_file},
    median,
};

/// Wants to look at calls, and lets them pass.
pub(crate) struct Looks;

impl HostFacts for Looks {
    fn describe(&self) -> HostInfo {
        let cwd = "/".into();
        HostInfo { version: "0".to_owned(), mode: Mode::Command, has_person: false, cwd, trusted: false }
    }
    fn flag(&self, _: &Who, _: &str) -> Option<String> {
        None
    }
    fn settings(&self, _: &Who) -> Value {
        json!({"events": ["tool-call"]})
    }
    fn changed(&self, _: &Who, _: &Arc<Subscription>) {}
}

/// How many extensions look at each call in the end.
const MANY: usize = 10;

/// Measures extensions, and calls of `read` beside them.
pub(crate) async fn measure(quick: bool) -> anyhow::Result<Vec<Figure>> {
    let (_folder, Tools { host, pipeline }) = with_small_file().await?;
    let (host, pipeline) = (&host, &pipeline);
    host.set_services(Services { facts: Some(Arc::new(Looks)), ..Services::default() });
    let extensions = Extensions::new(Arc::new(|failure: &Failure| eprintln!("atoll-bench: {failure:?}")));
    let mut figures = vec![unwanted(&extensions)];

    figures.push(idle(host).await?);
    let mut plugins = Vec::new();
    for number in 0..MANY {
        plugins.push(load(host, &format!("looks-{number}")).await?);
    }
    for plugin in &plugins {
        extensions.add(Arc::clone(plugin.extension.as_ref().context("the puppet is no extension")?));
    }
    let failed = extensions.start().await;
    anyhow::ensure!(failed.is_empty(), "extensions can not be started: {failed:?}");
    figures.push(unwanted_beside(&extensions));

    let all = extensions.all();
    let first = all.first().context("there is no extension")?;
    let count = if quick { 1_000 } else { 10_000 };
    figures.push(asked(first, count).await?);

    let calls = if quick { 300 } else { 3_000 };
    let without = calls_take(pipeline, calls).await?;
    pipeline.set_hooks(extensions.hooks());
    let with = calls_take(pipeline, calls).await?;
    pipeline.set_hooks(Vec::new());
    let added = (with - without) / 1e3;
    figures.push(Figure::new("ten extensions on tool-call: a call takes more by", added, "ms", calls).below(0.5));
    extensions.end("quit").await;
    Ok(figures)
}

/// What one takes that has started and has nothing to do.
async fn idle(host: &PluginHost) -> anyhow::Result<Figure> {
    let (folder, note) = (tempfile::tempdir()?, Built::note()?);
    // The first one brings what all of them share.
    let first = note.load(host, folder.path(), "idle-first").await?;
    let extensions = Extensions::new(Arc::new(|failure: &Failure| eprintln!("atoll-bench: {failure:?}")));
    let first = first.extension.as_ref().context("the note is no extension")?;
    first.start(StartReason::Startup).await?;
    let before = resident_mb()?;
    for number in 0..MANY {
        let plugin = note.load(host, folder.path(), &format!("idle-{number}")).await?;
        extensions.add(Arc::clone(plugin.extension.as_ref().context("the note is no extension")?));
    }
    let failed = extensions.start().await;
    anyhow::ensure!(failed.is_empty(), "extensions can not be started: {failed:?}");
    let each = (resident_mb()? - before) / MANY as f64;
    extensions.end("quit").await;
    first.stop().await;
    let name = format!("idle extension of {} KB: resident memory", note.kilobytes());
    Ok(Figure::new(name, each, "MB", MANY).below(2.0))
}

/// An event where there are no extensions at all.
fn unwanted(extensions: &Extensions) -> Figure {
    let name = "event without a subscriber, no extensions";
    Figure::new(name, observe_takes(extensions, EventKind::MessageUpdate), "ns", ROUNDS).below(100.0)
}

/// The same beside extensions that want others.
fn unwanted_beside(extensions: &Extensions) -> Figure {
    let name = "event without a subscriber, ten extensions";
    Figure::new(name, observe_takes(extensions, EventKind::MessageUpdate), "ns", ROUNDS).below(100.0)
}

const ROUNDS: usize = 1_000_000;

fn observe_takes(extensions: &Extensions, kind: EventKind) -> f64 {
    let began = Instant::now();
    for round in 0..ROUNDS {
        black_box(extensions).observe(black_box(kind), || json!({"round": round}));
    }
    began.elapsed().as_secs_f64() * 1e9 / ROUNDS as f64
}

/// One question to one extension, and its answer.
async fn asked(extension: &Arc<dyn Extension>, count: usize) -> anyhow::Result<Figure> {
    let event = CallEvent {
        call_id: "c".to_owned(),
        parent_id: None,
        tool: "read".to_owned(),
        arguments: json!({"path": "small.txt"}),
        plugin: "read".to_owned(),
        annotations: Annotations::default(),
        depth: 0,
    };
    let mut times = Vec::new();
    for round in 0..count + 100 {
        let event = Event::ToolCall(event.clone());
        let began = Instant::now();
        extension.ask(event, 0).await?;
        if round >= 100 {
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(Figure::new("one subscriber on tool-call: median", median(&mut times), "µs", count).below(30.0))
}

/// How long a call takes, in microseconds.
async fn calls_take(pipeline: &Pipeline, count: usize) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for round in 0..count + 50 {
        let began = Instant::now();
        call(pipeline, "read", json!({"path": "small.txt"})).await?;
        if round >= 50 {
            times.push(began.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(median(&mut times))
}

/// The extension that does what its settings say, under a name.
async fn load(host: &PluginHost, name: &str) -> anyhow::Result<LoadedPlugin> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("../target/guests/wasm32-wasip2/guest/atoll_test_puppet.wasm");
    let bytes = std::fs::read(&file).context("there is no puppet; run `cargo xtask bench`")?;
    let component = host.see_component(&file)?;
    let text = std::fs::read_to_string(root.join("plugins/puppet/plugin.toml"))?;
    let text = text.replacen("name = \"puppet\"", &format!("name = \"{name}\""), 1);
    let manifest = Manifest::parse(&text, "plugin.toml")?;
    let effective = Effective::builtin(&manifest);
    let pin = Pin { component: Digest::of(&bytes), manifest: Digest::of(text.as_bytes()) };
    Ok(host.load_user(UserPlugin { file, component, manifest, effective, pin, origin: Origin::User }).await?)
}
