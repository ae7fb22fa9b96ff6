//! `atoll plugin new`: a project that builds, and passes its own test, before anything in it is changed.
//!
//! The toolchain is looked at first. What a project needs of ours is written into it, for it is on no registry: the
//! contract, and for Rust the library. Must never write into a folder that is there, and never leave a part of a project.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use atoll_caps::Manifest;
use atoll_table::Error;
use clap::ValueEnum;

use super::{templates, toolchain};
use crate::terminal;

/// A language that a plugin can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Rust, with the library `atoll-plugin`.
    Rust,
    /// Python, with componentize-py.
    Python,
    /// C, with clang.
    C,
    /// Go, the usual one.
    Go,
    /// TypeScript, without a build.
    Ts,
}

/// What a plugin brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A tool for models.
    Tool,
    /// An extension, which is told what happens and has a say in it.
    Extension,
    /// A provider of models.
    Provider,
}

/// What is wanted.
#[derive(Debug, clap::Args)]
pub(crate) struct NewArguments {
    /// The name of the plugin and of its new folder.
    pub(crate) name: String,
    /// The language.
    #[arg(long, value_enum)]
    pub(crate) lang: Language,
    /// What it brings.
    #[arg(long, value_enum, default_value = "tool")]
    pub(crate) kind: Kind,
    /// Write it although its toolchain is not here.
    #[arg(long)]
    pub(crate) without_toolchain: bool,
}

pub(super) fn run(arguments: &NewArguments) -> anyhow::Result<ExitCode> {
    let NewArguments { name, lang, kind, without_toolchain } = arguments;
    let Some(files) = templates::files(*lang, *kind, name) else {
        let text = "there is no template of a provider in this language, for its answers are streams; use --lang rust";
        return Err(Error::Unavailable(text.to_owned()).into());
    };
    // What is right in a manifest is right here: the name is part of commands, files and settings.
    let manifest = files.iter().find(|(path, _)| path == "plugin.toml").map_or("", |(_, text)| text);
    Manifest::parse(manifest, name).with_context(|| format!("`{name}` can not be the name of a plugin"))?;
    let folder = PathBuf::from(name);
    if fs::symlink_metadata(&folder).is_ok() {
        let text = format!("{} is there already; choose another name, or remove it", folder.display());
        return Err(Error::InvalidArguments(text).into());
    }
    if !without_toolchain {
        let missing = toolchain::missing(*lang);
        if !missing.is_empty() {
            for line in &missing {
                terminal::note(format_args!("missing: {line}"));
            }
            let text =
                "nothing was written, for it could not be built here; --without-toolchain writes it all the same";
            return Err(Error::Unavailable(text.to_owned()).into());
        }
    }
    write(&folder, &files)?;
    let file = templates::built(*lang);
    terminal::line(format_args!("{}: {} files. Next:", folder.display(), files.len()))?;
    terminal::line(format_args!("  cd {name}"))?;
    if *lang != Language::Ts {
        terminal::line(format_args!("  sh build.sh"))?;
    }
    terminal::line(format_args!("  atoll plugin test {file}"))?;
    Ok(ExitCode::SUCCESS)
}

/// Into a folder beside the final one, which only ever appears whole.
fn write(folder: &Path, files: &[(String, String)]) -> anyhow::Result<()> {
    let failed = || format!("{} can not be written", folder.display());
    let fresh = tempfile::Builder::new().prefix(".atoll-new-").tempdir_in(".").with_context(failed)?;
    for (path, text) in files {
        let path = fresh.path().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(failed)?;
        }
        fs::write(&path, text).with_context(failed)?;
    }
    // A temporary folder is its owner's alone; a project is as any other folder.
    fs::create_dir(folder).with_context(failed)?;
    let mode = fs::metadata(folder).with_context(failed)?.permissions();
    fs::set_permissions(fresh.path(), mode).with_context(failed)?;
    // Over the empty folder, which says that nobody else made one of this name meanwhile.
    fs::rename(fresh.path(), folder).with_context(failed)?;
    let _ = fresh.keep();
    Ok(())
}
