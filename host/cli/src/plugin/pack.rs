//! `atoll plugin pack`: a component and its manifest as one file.

use std::{io::Write as _, path::Path, process::ExitCode};

use anyhow::Context as _;
use atoll_caps::{Digest, Manifest, read_small_file};
use atoll_table::Error;

use crate::{scripts, terminal};

pub(super) fn run(component: &Path, manifest: &Path, output: Option<&Path>) -> anyhow::Result<ExitCode> {
    let unreadable = || format!("{} can not be read", manifest.display());
    let text = read_small_file(manifest).with_context(unreadable)?;
    let text = text.ok_or_else(|| Error::NotFound("there is no such file".to_owned())).with_context(unreadable)?;
    let read = Manifest::parse(&text, &manifest.to_string_lossy())?;
    scripts::refuse(component)?;
    let bytes = atoll_engine::read_component(component)?;
    let packed = atoll_engine::embed_manifest(&bytes, &text)
        .and_then(|packed| atoll_engine::embedded_manifest(&packed).map(|_| packed))
        .with_context(|| format!("{} can not be packed", component.display()))?;
    let output = output.unwrap_or(component);
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let failed = || format!("{} can not be written", output.display());
    let mut file = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
    file.write_all(&packed).with_context(failed)?;
    // A component is no secret; what a temporary file is allowed is too little.
    let mode = std::fs::metadata(component).map(|facts| facts.permissions()).with_context(failed)?;
    std::fs::set_permissions(file.path(), mode).with_context(failed)?;
    file.persist(output).with_context(failed)?;
    terminal::line(format_args!(
        "{}: {} {}, {} bytes, sha256 {}",
        output.display(),
        read.name,
        atoll_caps::printable(&read.version),
        packed.len(),
        Digest::of(&packed)
    ))?;
    Ok(ExitCode::SUCCESS)
}
