//! `atoll plugin install`: a plugin is shown, asked about, copied whole and pinned to its digests. What was granted to
//! an earlier version is never carried over.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use atoll_caps::{Digest, Effective, Grants, Pin, PluginName, printable, shell_word};
use atoll_engine::PluginHost;
use atoll_table::{Error, Origin};
use serde_json::json;

use super::{inspect::name_of, sheet::with_reasons, staging::PluginFolder};
use crate::{
    arguments::InstallArguments,
    assemble::Parts,
    catalog::user_name,
    directories::Directories,
    exit::{ExitStatus, FAILED},
    installed::Installed,
    plugin_files::{ManifestSource, PluginFiles},
    scripts, terminal,
};

pub(super) async fn run(arguments: InstallArguments) -> anyhow::Result<ExitCode> {
    let cwd = Directories::find()?.cwd;
    let parts = Parts::in_folder(&cwd)?;
    let new = fetched(&parts.host, &arguments).await?;
    check(&parts.host, &new).await?;
    let folder = parts.directories.plugins().join(new.manifest.name.as_str());
    let place = Installed::in_folder(new.manifest.name.clone(), Origin::User, folder, true);
    // Read before anything is changed: a file that is not understood must not be found out about halfway.
    let grants = Grants::load(&parts.directories.grants())?;
    let old = Old::at(&place);
    if let Old::Whole(old) = &old
        && old.pin == new.pin
        && !arguments.grant_all
        && grants.plugins().any(|(name, digest)| *name == place.name && *digest == new.pin.component)
    {
        let granted = old.granted(&grants).map(|wants| wants.describe()).unwrap_or_default();
        report(&arguments, &place, &new, &granted, "unchanged")?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(grant_all) = agreed(&arguments, &new, &old)? else { return Ok(ExitStatus(FAILED).into()) };
    let folder =
        PluginFolder::lock(&parts.directories.plugins()).context("the folder of plugins can not be changed")?;
    if Old::at(&place) != old {
        let name = &place.name;
        return Err(Error::Stale(format!("{name} was changed by someone else meanwhile; run the command again")).into());
    }
    let mut files = vec![("plugin.wasm", new.component.as_slice())];
    // What is inside of the component need not be beside it, where it could come to say something else.
    if let (Some(text), ManifestSource::Beside) = (&new.manifest_text, new.source) {
        files.push(("plugin.toml", text.as_bytes()));
    }
    folder.put(place.name.as_str(), &files).with_context(|| format!("{} can not be installed", place.name))?;
    let granted = Grants::update(&parts.directories.grants(), |grants| {
        grants.forget(&place.name);
        grants.pin(&place.name, &new.pin);
        if grant_all {
            grants.grant_all(&new.manifest, &new.pin);
        }
        let mut granted = new.granted(grants).unwrap_or_default().describe();
        granted.extend(grants.replaces(&new.manifest, &new.pin).iter().map(|tool| format!("replaces: {tool}")));
        granted
    })?;
    let outcome = if old == Old::Nothing { "installed" } else { "replaced" };
    report(&arguments, &place, &new, &granted, outcome)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads or fetches what is to be installed.
async fn fetched(host: &PluginHost, arguments: &InstallArguments) -> anyhow::Result<PluginFiles> {
    let source = arguments.source.as_str();
    let wanted: Option<Digest> = match &arguments.sha256 {
        Some(text) => Some(
            text.parse()
                .map_err(|error| Error::InvalidArguments(format!("--sha256: {error}, not `{}`", printable(text))))?,
        ),
        None => None,
    };
    let is_url = source.contains("://");
    // For messages, a URL is what it is called by; its query may hold a secret.
    let file = PathBuf::from(if is_url { source.split(['?', '#']).next().unwrap_or(source) } else { source });
    let component = if is_url {
        let bytes = host.download(source).await?;
        atoll_engine::check_component(&bytes, &file.to_string_lossy())?;
        bytes
    } else {
        scripts::refuse(&file)?;
        atoll_engine::read_component(&file)?
    };
    let digest = Digest::of(&component);
    if let Some(wanted) = wanted
        && wanted != digest
    {
        return Err(Error::Failed(format!(
            "{} has the SHA-256 {digest}, not {wanted}; it is not installed",
            file.display()
        ))
        .into());
    }
    let fallback = name_of(&file)?;
    let mut files = if is_url {
        PluginFiles::alone(&file, component, fallback)?
    } else {
        PluginFiles::of(&file, component, fallback)?
    };
    let name = arguments.name.as_deref().unwrap_or(files.manifest.name.as_str());
    files.manifest.name = user_name(name)
        .map_err(|reason| Error::InvalidArguments(format!("{reason}; --name gives it one of your choice")))?;
    Ok(files)
}

/// Checks that it is a component of our contract, and compiles. It is not run.
async fn check(host: &PluginHost, new: &PluginFiles) -> anyhow::Result<()> {
    let manifest = &new.manifest;
    // As if all it asks for were granted: what is missing then is missing in the plugin itself.
    let everything = Effective::intersect(manifest, Some(&manifest.wants));
    let inspection = host.inspect(&new.file, &new.component, manifest, &everything).await?;
    match inspection.refusal {
        None => Ok(()),
        Some(reason) => Err(anyhow::Error::new(reason).context(format!("{} can not be installed", new.file.display()))),
    }
}

/// What is there under the name already.
enum Old {
    Nothing,
    /// A folder that holds no usable plugin.
    Broken,
    Whole(Box<PluginFiles>),
}

impl Old {
    fn at(place: &Installed) -> Self {
        match place.read() {
            Ok(files) => Self::Whole(Box::new(files)),
            Err(_) if std::fs::symlink_metadata(&place.folder).is_ok() => Self::Broken,
            Err(_) => Self::Nothing,
        }
    }

    fn pin(&self) -> Option<&Pin> {
        match self {
            Self::Whole(files) => Some(&files.pin),
            Self::Nothing | Self::Broken => None,
        }
    }
}

impl PartialEq for Old {
    fn eq(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.pin() == other.pin()
    }
}

/// Shows what is to be installed and asks. Gives whether it is to be granted all it asks for; `None` if the answer is no.
///
/// # Errors
/// `denied` where nobody can be asked and nothing was said beforehand.
fn agreed(arguments: &InstallArguments, new: &PluginFiles, old: &Old) -> anyhow::Result<Option<bool>> {
    if arguments.yes {
        return Ok(Some(arguments.grant_all));
    }
    for line in summary(new, old) {
        terminal::plain(printable(&line));
    }
    if !terminal::can_ask() {
        return Err(Error::Denied {
            capability: format!("installing the plugin {}", new.manifest.name),
            target: String::new(),
            hint: command(arguments),
        }
        .into());
    }
    let verb = if *old == Old::Nothing { "Install it?" } else { "Install it in the place of the old one?" };
    if !terminal::confirm(verb) {
        terminal::note("nothing was installed");
        return Ok(None);
    }
    let asks = !new.manifest.wants.is_empty() || !new.manifest.replaces.is_empty();
    Ok(Some(asks && (arguments.grant_all || terminal::confirm("Grant it all that it asks for?"))))
}

/// The command that does the same without a question.
fn command(arguments: &InstallArguments) -> String {
    let mut command = format!("atoll plugin install {}", shell_word(&arguments.source));
    for (option, value) in [("--name", &arguments.name), ("--sha256", &arguments.sha256)] {
        if let Some(value) = value {
            command.push_str(&format!(" {option} {}", shell_word(value)));
        }
    }
    if arguments.grant_all {
        command.push_str(" --grant-all");
    }
    command + " --yes"
}

fn summary(new: &PluginFiles, old: &Old) -> Vec<String> {
    let manifest = &new.manifest;
    let mut lines = vec![format!("{} {}: {}", manifest.name, manifest.version, manifest.description)];
    lines.push(format!("  from {}, sha256 {}", new.file.display(), new.pin.component));
    if new.hides_another() {
        lines.push("  The plugin.toml beside it counts, not the one inside it, which says something else.".to_owned());
    }
    let mut list = |title: &str, items: Vec<String>| {
        if !items.is_empty() {
            lines.push(format!("{title}:"));
            lines.extend(items.into_iter().map(|item| format!("  {item}")));
        }
    };
    if manifest.wants.is_empty() {
        list("It asks for nothing", vec!["it can compute, and nothing else".to_owned()]);
    }
    list("It asks for", with_reasons(&manifest.wants));
    list("Its own tools are to stand in for the built-in", manifest.replaces.clone());
    match old {
        Old::Nothing => {}
        Old::Broken => lines.push("What is there under this name can not be used; it is replaced.".to_owned()),
        Old::Whole(old) => {
            lines.push(format!(
                "It replaces {} {}, sha256 {}, and has none of its grants.",
                old.manifest.name, old.manifest.version, old.pin.component
            ));
            let difference = |a: &PluginFiles, b: &PluginFiles| {
                let known = b.manifest.wants.describe();
                let mut new: Vec<String> =
                    a.manifest.wants.describe().into_iter().filter(|line| !known.contains(line)).collect();
                let tools = a.manifest.replaces.iter().filter(|tool| !b.manifest.replaces.contains(tool));
                new.extend(tools.map(|tool| format!("replaces: {tool}")));
                if new.is_empty() { "nothing".to_owned() } else { new.join(", ") }
            };
            if old.pin.component == new.pin.component {
                lines.push("  The component is the same; its manifest has changed.".to_owned());
            }
            lines.push(format!("  It newly asks for: {}", difference(new, old)));
            lines.push(format!("  It no longer asks for: {}", difference(old, new)));
        }
    }
    lines
}

fn report(
    arguments: &InstallArguments,
    place: &Installed,
    new: &PluginFiles,
    granted: &[String],
    outcome: &str,
) -> anyhow::Result<()> {
    let manifest = &new.manifest;
    let file: &Path = &place.file();
    if arguments.json {
        terminal::line(json!({
            "outcome": outcome,
            "name": manifest.name,
            "version": manifest.version,
            "sha256": new.pin.component,
            "file": file,
            "wants": manifest.wants.describe(),
            "replaces": manifest.replaces,
            "granted": granted,
        }))?;
        return Ok(());
    }
    let name: &PluginName = &manifest.name;
    terminal::line(format_args!(
        "{outcome}: {name} {}, sha256 {}, in {}",
        printable(&manifest.version),
        new.pin.component,
        file.display()
    ))?;
    if !granted.is_empty() {
        terminal::line(format_args!("granted: {}", printable(&granted.join(", "))))?;
    } else if manifest.wants.is_empty() && manifest.replaces.is_empty() {
        terminal::line("granted: nothing; it asks for nothing")?;
    } else {
        let asked = with_reasons(&manifest.wants);
        terminal::line(format_args!("granted: nothing; it asks for {}", printable(&asked.join(", "))))?;
        terminal::line(format_args!("to grant all of it: atoll plugin grant {name} --all"))?;
    }
    Ok(())
}
