//! Manifests, scopes, grants and the patterns they are written in.
//!
//! What a plugin may do is what its imports, its [`Manifest`] and the user's [`Grants`] all allow. This crate
//! decides the last two: it reads both files and answers every question about them through [`Effective`]. It runs
//! nothing and opens nothing but the user's own small files (grants, trust, which plugins are switched off), so that
//! all of it can be tested as plain values.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod address;
mod audit;
mod command_pattern;
mod config_file;
mod denied;
mod digest;
mod effective;
mod env_pattern;
mod error_code;
mod grant_argument;
mod grants;
mod limits;
mod manifest;
mod origin;
mod origin_pattern;
mod path_pattern;
mod pattern_error;
mod plugin_state;
mod private_file;
mod scope;
mod secret_pattern;
mod small_file;
mod text;
mod toml_source;
mod trust;
mod wants;

pub use address::is_public;
pub use audit::{AuditRecord, Redactor};
pub use command_pattern::{ArgumentPatterns, CommandPattern, ProgramPattern};
pub use config_file::ConfigFile;
pub use denied::{Denied, Offer};
pub use digest::{Digest, DigestError};
pub use effective::{Effective, ScopedRoot};
pub use env_pattern::EnvPattern;
pub use error_code::{ErrorCode, UnknownErrorCode};
pub use grants::{GrantState, Grants, GrantsError, Pin};
pub use limits::{LimitName, Limits, LimitsSpec, MAX_TABLE_ELEMENTS, UnknownLimit, UserLimits};
pub use manifest::{
    Claims, ContractVersion, ContractVersionError, Manifest, PluginName, PluginNameError, StartWhen, Subcommand,
};
pub use origin::Origin;
pub use origin_pattern::{HostPattern, OriginPattern, PortPattern, SchemePattern};
pub use path_pattern::{Access, RootPattern, RootVars, UnknownAccess};
pub use pattern_error::PatternError;
pub use plugin_state::{DisabledPlugins, DisabledPluginsError};
pub use private_file::{PrivateLock, write_private_file};
pub use scope::{Capability, UnknownCapability};
pub use secret_pattern::SecretPattern;
pub use small_file::{MAX_SMALL_FILE, read_small_file};
pub use text::{printable, shell_word};
pub use toml_source::ManifestError;
pub use trust::{
    Answer, DefaultTrust, TrustError, TrustQuestion, TrustStore, Trusted, project_resources, skill_folders,
};
pub use wants::{ConfigWant, FilesWant, HttpWant, Methods, ProcessWant, SecretWant, Wants};
