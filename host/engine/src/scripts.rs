//! Extensions that are text: what a script is, what it says of itself, and the one component that runs all of them.
//!
//! Nothing here reads a script's language, and nothing here may give a script more than it was granted: each is a plugin
//! of its own, and what runs it is linked so that every use is put to that one's grants.

use std::path::PathBuf;

use atoll_caps::{Capability, Digest, Effective, Manifest, Pin, PluginName, Wants};
use atoll_table::{Error, Origin};
use tokio::sync::OnceCell;
use wasmtime::component::Component;

use crate::{
    components::{self, Components, blocking},
    description::Description,
    loading::Builtin,
};

/// What a script asks for that does not say it: what it may do in the session, and nothing that reaches outside.
const UNSAID: [Capability; 6] =
    [Capability::Table, Capability::Session, Capability::Ui, Capability::Store, Capability::Bus, Capability::Models];
/// What a manifest in a script begins with.
const OPENS: &str = "/* atoll";
/// What it ends with.
const CLOSES: &str = "*/";

/// A file of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path, relative to the folder of the first file, with `/` between names.
    pub path: String,
    /// What is in it.
    pub text: String,
}

/// A script, with everything that decides what it may do.
#[derive(Clone, Debug)]
pub struct ScriptPlugin {
    /// Where it came from, for messages.
    pub file: PathBuf,
    /// Its files, the one to run first.
    pub files: Vec<SourceFile>,
    /// Its manifest, as [`script_manifest`] reads it.
    pub manifest: Manifest,
    /// What it may do.
    pub effective: Effective,
    /// What its grants are pinned to, as [`script_pin`] makes it.
    pub pin: Pin,
    /// Where it comes from: the user, or a project.
    pub origin: Origin,
    /// What its store is called, if not by its name: the name of a folder.
    pub store: Option<String>,
}

/// The manifest of a script, and its text if it has one: the one `beside` it, a file's name and its text, else the block
/// comment at the start of `entry` that begins with `/* atoll`, of which `file` is the name. Both are TOML, in which `name`,
/// `version` and `contract` may be left out. A script without either asks for `table`, `session`, `ui`, `store`, `bus` and
/// `models`.
///
/// # Errors
/// `invalid-arguments` if it can not be read, with the place.
pub fn script_manifest(
    beside: Option<(&str, &str)>,
    entry: &str,
    file: &str,
    name: PluginName,
) -> Result<(Manifest, Option<String>), Error> {
    let inside;
    let (shown, text) = match beside {
        Some(beside) => beside,
        None => match manifest_inside(entry, file)? {
            Some(text) => {
                inside = text;
                (file, inside.as_str())
            }
            None => {
                let flags = UNSAID.map(|capability| (capability, String::new())).into();
                let wants = Wants { flags, ..Wants::default() };
                return Ok((Manifest { wants, ..Manifest::bare(name) }, None));
            }
        },
    };
    let manifest = Manifest::parse_script(text, shown, name);
    let manifest = manifest.map_err(|error| Error::InvalidArguments(error.to_string()))?;
    Ok((manifest, Some(text.to_owned())))
}

/// The manifest at the start of a script, behind as many line breaks as there are before it, so that its lines are those of
/// the file.
fn manifest_inside(entry: &str, file: &str) -> Result<Option<String>, Error> {
    let mut rest = entry.trim_start_matches('\u{feff}');
    if rest.starts_with("#!") {
        rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
    }
    loop {
        rest = rest.trim_start();
        if !rest.starts_with("//") {
            break;
        }
        rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
    }
    let Some(text) = rest.strip_prefix(OPENS).filter(|text| text.starts_with(char::is_whitespace)) else {
        return Ok(None);
    };
    let Some((text, _)) = text.split_once(CLOSES) else {
        return Err(Error::InvalidArguments(format!(
            "{file}: the comment `{OPENS}` is not closed; end it with `{CLOSES}`"
        )));
    };
    let before = entry.get(..entry.len().saturating_sub(rest.len())).unwrap_or_default();
    Ok(Some("\n".repeat(before.matches('\n').count()) + text))
}

/// What the grants of a script are pinned to: all of its files, and the engine for scripts that this host has, by its
/// name and version.
pub fn script_pin(files: &[SourceFile], manifest: Option<&str>, engine: &Builtin) -> Result<Pin, Error> {
    let engine = engine.manifest()?;
    let mut all = format!("script of {} {}\0", engine.name, engine.version).into_bytes();
    for SourceFile { path, text } in files {
        // With their lengths, so that nothing can move from one to the next.
        all.extend(format!("{} {}\0", path.len(), text.len()).bytes());
        all.extend(path.bytes().chain(text.bytes()));
    }
    Ok(Pin { component: Digest::of(&all), manifest: Digest::of(manifest.unwrap_or_default().as_bytes()) })
}

/// The component that runs scripts. It is loaded when the first one starts, and once for all of them.
#[derive(Debug)]
pub(crate) struct ScriptEngine {
    builtin: Builtin,
    component: OnceCell<Component>,
}

impl ScriptEngine {
    pub(crate) fn new(builtin: Builtin) -> Self {
        Self { builtin, component: OnceCell::new() }
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// `failed` if the program was built wrongly.
    pub(crate) fn description(&self) -> Result<Description, Error> {
        self.builtin.read_description()
    }

    /// The component itself.
    ///
    /// # Errors
    /// `failed` if the processor lacks what images rely on.
    pub(crate) async fn component(&self, components: &Components) -> Result<Component, Error> {
        let Builtin { name, image, .. } = self.builtin;
        let engine = components.engine.clone();
        let load = || async { blocking(move || components::from_image(&engine, name, image)).await? };
        self.component.get_or_try_init(load).await.cloned()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    const ENGINE: Builtin = Builtin {
        name: "script",
        manifest: "name = \"script\"\nversion = \"1.2.3\"\ncontract = \"0.1\"",
        image: &[],
        description: "",
    };

    fn read(beside: Option<(&str, &str)>, entry: &str) -> Result<(Manifest, Option<String>), Error> {
        script_manifest(beside, entry, "hello.ts", "hello".parse().unwrap())
    }

    #[test]
    fn a_script_that_says_nothing_asks_for_the_session_and_nothing_outside() {
        for entry in ["", "export default () => {};", "/* atolls */", "/*atoll*/", "let a; /* atoll\n*/"] {
            let (manifest, text) = read(None, entry).unwrap();
            assert_eq!((manifest.name.as_str(), text), ("hello", None), "{entry}");
            let flags: Vec<Capability> = manifest.wants.flags.keys().copied().collect();
            assert!(flags.len() == UNSAID.len() && UNSAID.iter().all(|one| flags.contains(one)));
            assert!(
                manifest.wants.files.is_empty() && manifest.wants.http.is_empty() && manifest.wants.process.is_empty()
            );
        }
    }

    #[test]
    fn what_is_beside_it_counts_before_what_is_in_it() {
        let inside = "#!/usr/bin/env node\n// A gate.\n\n/* atoll\ndescription = \"inside\"\n[ui]\nreason = \"asks\"\n*/\nlet a;";
        let (manifest, text) = read(None, inside).unwrap();
        assert_eq!((manifest.description.as_str(), manifest.version.as_str()), ("inside", "0.0.0"));
        assert_eq!(manifest.wants.flags.keys().copied().collect::<Vec<_>>(), [Capability::Ui]);
        assert!(text.unwrap().starts_with("\n\n\n\ndescription"));
        let (manifest, text) = read(Some(("hello.toml", "name = \"other\"\nversion = \"2.0.0\"")), inside).unwrap();
        assert_eq!((manifest.name.as_str(), manifest.version.as_str()), ("other", "2.0.0"));
        assert!(manifest.wants.flags.is_empty() && text.is_some());
    }

    #[test]
    fn a_mistake_in_it_is_named_with_its_line_in_the_file() {
        let error = read(None, "// One\n/* atoll\ndescription = 1\n*/").unwrap_err().to_string();
        assert!(error.contains("hello.ts:3:"), "{error}");
        let error = read(None, "/* atoll\nname = \"a\"").unwrap_err().to_string();
        assert!(error.contains("not closed"), "{error}");
    }

    #[test]
    fn a_pin_is_of_every_file_the_manifest_and_the_engine() {
        let file = |path: &str, text: &str| SourceFile { path: path.to_owned(), text: text.to_owned() };
        let pin = |files: &[SourceFile], manifest, engine: &Builtin| script_pin(files, manifest, engine).unwrap();
        let files = [file("a.ts", "1"), file("b.ts", "2")];
        let one = pin(&files, Some("x"), &ENGINE);
        assert_eq!(pin(&files, Some("x"), &ENGINE), one);
        assert_eq!(pin(&files, None, &ENGINE).component, one.component);
        assert_ne!(pin(&files, None, &ENGINE).manifest, one.manifest);
        let newer = Builtin { manifest: "name = \"script\"\nversion = \"1.3.0\"\ncontract = \"0.1\"", ..ENGINE };
        let others = [
            pin(&files, Some("x"), &newer),
            pin(&[file("a.ts", "1"), file("b.ts", "3")], Some("x"), &ENGINE),
            pin(&[file("b.ts", "2"), file("a.ts", "1")], Some("x"), &ENGINE),
            pin(&[file("a.tsb", "1"), file(".ts", "2")], Some("x"), &ENGINE),
            pin(&[file("a.ts", "1")], Some("x"), &ENGINE),
        ];
        for (index, other) in others.iter().enumerate() {
            assert_ne!(other.component, one.component, "{index}");
        }
    }
}
