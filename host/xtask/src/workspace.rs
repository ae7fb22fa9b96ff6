//! What xtask knows about the workspace it runs in.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cargo_metadata::{Metadata, MetadataCommand, Package, TargetKind};

/// The profile of the host's crates. Guests have one profile of their own, `guest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// Quick to build: `target/debug`.
    Dev,
    /// Quick to run: `target/release`.
    Release,
}

impl Profile {
    pub(crate) fn new(release: bool) -> Self {
        if release { Self::Release } else { Self::Dev }
    }

    /// The directory of this profile below the target directory.
    fn directory(self) -> &'static str {
        match self {
            Self::Dev => "debug",
            Self::Release => "release",
        }
    }
}

/// A crate that is compiled to a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Guest {
    /// The package's name.
    pub(crate) package: String,
    /// The directory that holds its `Cargo.toml` and its `plugin.toml`.
    pub(crate) directory: PathBuf,
    /// The component that the build leaves.
    pub(crate) wasm: PathBuf,
    /// It becomes part of the program; the others are for tests.
    pub(crate) built_in: bool,
    /// It is started when it is built, so that a call finds it begun.
    pub(crate) pre_initialised: bool,
}

/// The workspace around the current directory.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The directory of the root manifest.
    pub(crate) root: PathBuf,
    metadata: Metadata,
}

impl Workspace {
    /// Reads the workspace's manifests; no dependency is resolved, so this needs no network.
    ///
    /// # Errors
    /// The current directory is in no workspace, or a manifest is wrong.
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .no_deps()
            .exec()
            .context("cannot read the workspace: run this inside it, and see what `cargo metadata --no-deps` says")?;
        Ok(Self { root: metadata.workspace_root.clone().into_std_path_buf(), metadata })
    }

    /// The same workspace with its dependencies resolved for one target.
    ///
    /// # Errors
    /// The dependencies cannot be resolved.
    pub(crate) fn resolved(&self, target: &str) -> Result<Metadata> {
        let mut options = vec!["--filter-platform".to_owned(), target.to_owned()];
        options.extend(self.locked().map(str::to_owned));
        MetadataCommand::new()
            .current_dir(&self.root)
            .other_options(options)
            .exec()
            .context("cannot resolve the workspace's dependencies; see what `cargo metadata` says")
    }

    /// `--locked` when there is a lock file to keep to.
    pub(crate) fn locked(&self) -> Option<&'static str> {
        self.root.join("Cargo.lock").is_file().then_some("--locked")
    }

    /// Where a binary of ours is after a build.
    pub(crate) fn binary(&self, profile: Profile, name: &str) -> PathBuf {
        let directory = self.metadata.target_directory.as_std_path().join(profile.directory());
        directory.join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }

    /// The target directory of the guests. Always below the workspace, because the host's build looks for the images
    /// there; separate from the host's, so that a build of one never waits for or invalidates the other.
    pub(crate) fn guest_target(&self) -> PathBuf {
        self.root.join("target/guests")
    }

    /// Whether a guest has C in it: it, or a member that it is built from, says `c = true` in `[package.metadata.atoll]`.
    pub(crate) fn guests_need_c(&self) -> bool {
        let members = self.metadata.workspace_packages();
        let mut open: Vec<String> = self.guests().into_iter().map(|guest| guest.package).collect();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(name) = open.pop() {
            let Some(package) = members.iter().find(|member| *member.name == name) else { continue };
            if package.metadata["atoll"]["c"] == true {
                return true;
            }
            if seen.insert(name) {
                open.extend(package.dependencies.iter().map(|dependency| dependency.name.clone()));
            }
        }
        false
    }

    /// Every member below `guest-tools/`, `guest-extensions/` or `tests/plugins/` that is a `cdylib`, by name.
    pub(crate) fn guests(&self) -> Vec<Guest> {
        let built = self.guest_target().join("wasm32-wasip2/guest");
        let mut guests: Vec<Guest> = self
            .metadata
            .workspace_packages()
            .into_iter()
            .filter(|package| is_guest_member(&self.root, package))
            .filter_map(|package| {
                let library = package.targets.iter().find(|target| target.kind.contains(&TargetKind::CDyLib))?;
                Some(Guest {
                    package: package.name.to_string(),
                    directory: package.manifest_path.as_std_path().parent()?.to_path_buf(),
                    wasm: built.join(format!("{}.wasm", library.name.replace('-', "_"))),
                    pre_initialised: package.metadata["atoll"]["pre-initialise"] == true,
                    built_in: package.metadata["atoll"]["built-in"] != false
                        && !NOT_BUILT_IN.iter().any(|directory| is_below(&self.root, package, directory)),
                })
            })
            .collect();
        guests.sort_by(|a, b| a.package.cmp(&b.package));
        guests
    }
}

/// Where guests are that are only run by tests. Elsewhere, one that is no part of the program says `built-in = false` in
/// `[package.metadata.atoll]`.
const NOT_BUILT_IN: [&str; 2] = ["tests", "guest-extensions/examples"];

/// Whether a package lives where the guests live (libraries that guests share included).
pub(crate) fn is_guest_member(root: &Path, package: &Package) -> bool {
    ["guest-tools", "guest-extensions", "tests/plugins"].iter().any(|directory| is_below(root, package, directory))
}

fn is_below(root: &Path, package: &Package, directory: &str) -> bool {
    package.manifest_path.as_std_path().starts_with(root.join(directory))
}
