//! The build's compiler of built-in plugins: turns each guest's component into an image for any machine of this
//! architecture, and lays it where the binary's build embeds it from, with its manifest and with what it says of itself.
//!
//! Usage: `atoll-aot --out DIR [--pre-initialise NAME]… GUEST_DIR=COMPONENT …`. The guests that are named are started
//! before they are compiled. An image whose component and settings have not changed is left alone. Each plugin is asked anew what it is: an answer must never outlive the image or the program that it came
//! from.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line program of the build")]

use std::{
    fs,
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    process::ExitCode,
};

use atoll_caps::Digest;
use atoll_engine::{Builtin, PRE_INIT_VERSION, Places, PluginHost, Purpose, pre_initialise};
use tokio::runtime::Runtime;
use wasmtime::Engine;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("atoll-aot: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: atoll-aot --out DIR [--pre-initialise NAME]… GUEST_DIR=COMPONENT …";
    if arguments.next().as_deref() != Some("--out") {
        return Err(usage.to_owned());
    }
    let out = PathBuf::from(arguments.next().ok_or(usage)?);
    fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let engine = atoll_engine::engine(Purpose::Compile).map_err(|error| format!("{error:#}"))?;
    let mut kept = Vec::new();
    let host = host(&out)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no threads to run plugins on: {error}"))?;
    let mut begun = Vec::new();
    while let Some(pair) = arguments.next() {
        if pair == "--pre-initialise" {
            begun.push(arguments.next().ok_or(usage)?);
            continue;
        }
        let (folder, component) = pair.split_once('=').ok_or(usage)?;
        let (folder, component) = (Path::new(folder), Path::new(component));
        let name = folder.file_name().and_then(|name| name.to_str()).ok_or("a guest's folder has no name")?.to_owned();
        let begins = begun.contains(&name).then_some(&runtime);
        compile(&engine, &out, folder, component, &name, begins)?;
        runtime.block_on(describe(&host, &out, &name))?;
        kept.push(name);
    }
    remove_others(&out, &kept);
    Ok(())
}

/// Compiles one guest to the image `name`, begun before if there is something to run it on.
fn compile(
    engine: &Engine,
    out: &Path,
    folder: &Path,
    component: &Path,
    name: &str,
    begins: Option<&Runtime>,
) -> Result<(), String> {
    let wasm = fs::read(component).map_err(|error| format!("{}: {error}", component.display()))?;
    let manifest_path = folder.join("plugin.toml");
    let manifest =
        fs::read_to_string(&manifest_path).map_err(|error| format!("{}: {error}", manifest_path.display()))?;
    atoll_caps::Manifest::parse(&manifest, &manifest_path.to_string_lossy()).map_err(|error| error.to_string())?;
    write_if_changed(&out.join(format!("{name}.toml")), manifest.as_bytes())?;
    let how = if begins.is_some() { PRE_INIT_VERSION } else { "plain" };
    let stamp = format!("{} {} {how}", Digest::of(&wasm).as_str(), settings(engine));
    let stamp_path = out.join(format!("{name}.stamp"));
    let image_path = out.join(format!("{name}.image"));
    if image_path.exists() && fs::read_to_string(&stamp_path).is_ok_and(|old| old == stamp) {
        return Ok(());
    }
    println!("compiling {name} ({} KiB)", wasm.len() >> 10);
    let wasm = match begins {
        Some(runtime) => {
            runtime.block_on(pre_initialise(&wasm)).map_err(|error| format!("{}: {error}", component.display()))?
        }
        None => wasm,
    };
    // If this stops half-way, nothing can be embedded that does not belong together.
    let _ = fs::remove_file(out.join(format!("{name}.json")));
    let image = engine.precompile_component(&wasm).map_err(|error| format!("{}: {error:#}", component.display()))?;
    write_if_changed(&image_path, &image)?;
    write_if_changed(&stamp_path, stamp.as_bytes())
}

/// What plugins are asked in. They may use nothing while they describe themselves, so none of the places is looked at.
fn host(out: &Path) -> Result<PluginHost, String> {
    PluginHost::new(Places::all_in(&out.join("none"))).map_err(|error| error.to_string())
}

/// Asks the plugin behind an image what it is.
async fn describe(host: &PluginHost, out: &Path, name: &str) -> Result<(), String> {
    let file = |extension: &str| out.join(format!("{name}.{extension}"));
    let (manifest, image) = (file("toml"), file("image"));
    let manifest = fs::read_to_string(&manifest).map_err(|error| format!("{}: {error}", manifest.display()))?;
    let image = fs::read(&image).map_err(|error| format!("{}: {error}", image.display()))?;
    // Loaded plugins live as long as the program, as embedded ones do.
    let builtin =
        Builtin { name: name.to_owned().leak(), manifest: manifest.leak(), image: image.leak(), description: "" };
    let description = host.describe(&builtin).await.map_err(|error| format!("{name}: {error}"))?;
    write_if_changed(&file("json"), description.as_bytes())
}

/// What an image depends on beside its component. Only compared on this machine, by this program.
fn settings(engine: &Engine) -> String {
    #[expect(deprecated, reason = "the one hasher of std with a fixed key")]
    let mut hasher = std::hash::SipHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Leaves an unchanged file's time alone, so that the binary is not built again for nothing. Replaced as a whole.
fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let temporary = path.with_extension("new");
    fs::write(&temporary, bytes)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|error| format!("{}: {error}", path.display()))
}

/// Images of guests that are gone must not be embedded.
fn remove_others(out: &Path, kept: &[String]) {
    for entry in fs::read_dir(out).into_iter().flatten().flatten() {
        let path = entry.path();
        let known =
            path.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| kept.iter().any(|name| name == stem));
        if !known {
            let _ = fs::remove_file(path);
        }
    }
}
