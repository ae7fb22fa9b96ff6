//! Plugins as a user has them: in a folder of Atoll's directory, with or without a grant.

use std::{
    fs,
    path::{Path, PathBuf},
};

use sha2::{Digest as _, Sha256};

use super::Sandbox;

pub(crate) fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The component of the plugin that does what it must not do.
pub(crate) fn misbehave() -> Vec<u8> {
    test_plugin("misbehave")
}

/// The component of a plugin in `tests/plugins/`.
pub(crate) fn test_plugin(name: &str) -> Vec<u8> {
    let path = workspace_root().join(format!("target/guests/wasm32-wasip2/guest/atoll_test_{name}.wasm"));
    fs::read(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; run the tests with `cargo xtask test`, which builds the test plugins", path.display())
    })
}

/// Its manifest.
pub(crate) const MISBEHAVE_TOML: &str = include_str!("../plugins/misbehave/plugin.toml");

/// The manifest of the provider that breaks.
pub(crate) const MOODY_TOML: &str = include_str!("../plugins/moody/plugin.toml");

pub(crate) fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Sandbox {
    /// Puts a plugin where Atoll looks for it; gives the path of its component.
    pub(crate) fn plugin(&self, name: &str, component: &[u8], manifest: Option<&str>) -> PathBuf {
        if let Some(manifest) = manifest {
            self.home_file(&format!("plugins/{name}/plugin.toml"), manifest);
        }
        self.home_file(&format!("plugins/{name}/plugin.wasm"), component)
    }

    /// Grants a plugin what `wants` says, in the form of `grants.toml` below its table.
    pub(crate) fn grant(&self, name: &str, component: &[u8], wants: &str) {
        let text = format!("[plugin.{name}]\nsha256 = \"{}\"\n{wants}\n", digest(component));
        self.home_file("grants.toml", text);
    }

    /// A component and its manifest in a folder of the workspace, as a user has them before installing; gives the
    /// component's path.
    pub(crate) fn offered(&self, folder: &str, component: &[u8], manifest: Option<&str>) -> PathBuf {
        if let Some(manifest) = manifest {
            self.file(&format!("{folder}/plugin.toml"), manifest);
        }
        self.file(&format!("{folder}/offered.wasm"), component)
    }

    /// The file of grants.
    pub(crate) fn grants(&self) -> String {
        fs::read_to_string(self.atoll_home().join("grants.toml")).unwrap_or_default()
    }

    /// A sandbox with the misbehaving plugin, granted all it asks for.
    pub(crate) fn with_misbehave() -> Self {
        let sandbox = Self::new();
        let component = misbehave();
        sandbox.plugin("misbehave", &component, Some(MISBEHAVE_TOML));
        sandbox.grant("misbehave", &component, "all = true");
        sandbox
    }
}
