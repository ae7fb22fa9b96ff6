//! `plugin.toml`: what a plugin is and what it asks for.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::limits::{LIMIT_KEYS, LimitsSpec};
use crate::text::{printable, serialize_as_text};
use crate::toml_source::{ManifestError, Section, Source};
use crate::wants::Wants;

/// A plugin's name: a lower-case letter or digit, then up to 63 of those and `-`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PluginName(String);

impl PluginName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that is no plugin name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a plugin name: write lower-case letters, digits and `-`, starting with a letter or digit, at most 64", printable(.0))]
pub struct PluginNameError(pub String);

impl FromStr for PluginName {
    type Err = PluginNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let good = (1..=64).contains(&text.len())
            && text.bytes().next().is_some_and(plain)
            && text.bytes().all(|byte| plain(byte) || byte == b'-');
        if good { Ok(Self(text.to_owned())) } else { Err(PluginNameError(text.to_owned())) }
    }
}

/// The version of the contract a plugin was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContractVersion {
    /// Changes when old plugins no longer work.
    pub major: u32,
    /// Changes when there is something new; while `major` is 0, also when old plugins no longer work.
    pub minor: u32,
}

impl ContractVersion {
    /// The version this host is built with.
    pub const CURRENT: Self = Self { major: 0, minor: 1 };
}

impl fmt::Display for ContractVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A text that is no contract version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a contract version; write two numbers such as `0.1`", printable(.0))]
pub struct ContractVersionError(pub String);

impl FromStr for ContractVersion {
    type Err = ContractVersionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |digits: &str| {
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if plain { digits.parse().ok() } else { None }
        };
        text.split_once('.')
            .and_then(|(major, minor)| Some(Self { major: number(major)?, minor: number(minor)? }))
            .ok_or_else(|| ContractVersionError(text.to_owned()))
    }
}

/// The version of a plugin that does not say it.
const UNSAID_VERSION: &str = "0.0.0";

/// What a plugin says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// Its name.
    pub name: PluginName,
    /// Its version, as its author counts.
    pub version: String,
    /// What it is for, in a sentence.
    pub description: String,
    /// The contract it was built for.
    pub contract: ContractVersion,
    /// What it asks for.
    pub wants: Wants,
    /// The built-in tools that its own tools of the same names are to stand in for.
    pub replaces: Vec<String>,
    /// The limits it sets.
    pub limits: LimitsSpec,
    /// The one of its tools that runs scripts which call other tools: the host adds to its description how these look.
    /// It grants nothing.
    pub runs_scripts: Option<String>,
    /// It gives way to another plugin that claims what it claims. Only for what is part of the program.
    pub replaceable: Option<Claims>,
    /// When it is started, if not always. Only for what is part of the program.
    pub start_when: Option<StartWhen>,
    /// The commands of its that are also commands of the program, `atoll NAME …`.
    pub subcommands: Vec<Subcommand>,
}

/// The names that a replaceable plugin has, and gives up to another that has one of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    /// Tools.
    pub tools: Vec<String>,
    /// Commands, without the slash.
    pub commands: Vec<String>,
    /// Options of the command line, without dashes.
    pub flags: Vec<String>,
    /// Events that only one extension is to answer for.
    pub events: Vec<String>,
}

/// When an extension that is part of the program is started: with the session if one of these files is there, else when one
/// of these events, or a command that it claims, comes first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartWhen {
    /// Names of files in Atoll's directory, or in that of a trusted project.
    pub config: Vec<String>,
    /// Events.
    pub events: Vec<String>,
}

/// A command of a plugin's that is also one of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subcommand {
    /// Its name.
    pub name: String,
    /// What it does, for a list of commands.
    pub description: String,
}

impl Manifest {
    /// Reads a manifest. `file` is what error messages call it.
    pub fn parse(text: &str, file: &str) -> Result<Self, ManifestError> {
        Self::read(text, file, None)
    }

    fn read(text: &str, file: &str, script: Option<PluginName>) -> Result<Self, ManifestError> {
        let source = Source { file, text, reasons: true };
        let table = source.parse()?;
        let root = Section::root(source, table.get_ref());
        let mut keys = vec![
            "name",
            "version",
            "description",
            "contract",
            "replaces",
            "limits",
            "runs-scripts",
            "replaceable",
            "claims",
            "start-when",
            "subcommand",
        ];
        keys.extend(Wants::KEYS);
        root.only(&keys)?;
        let version = match (root.text("version")?, &script) {
            (Some(version), _) if version.value.trim().is_empty() => {
                return Err(source.error(version.span, "`version` is empty", "write one such as `\"0.1.0\"`"));
            }
            (Some(version), _) => version.value.to_owned(),
            (None, Some(_)) => UNSAID_VERSION.to_owned(),
            (None, None) => return Err(root.missing("version", "\"0.1.0\"")),
        };
        let (name, contract) = match script {
            Some(name) => {
                (root.parsed("name")?.unwrap_or(name), root.parsed("contract")?.unwrap_or(ContractVersion::CURRENT))
            }
            None => (
                root.required("name", "\"my-plugin\"")?,
                root.required("contract", &format!("\"{}\"", ContractVersion::CURRENT))?,
            ),
        };
        Ok(Self {
            name,
            version,
            description: root.text("description")?.map(|text| text.value.to_owned()).unwrap_or_default(),
            contract,
            wants: Wants::read(&root)?,
            replaces: read_tool_names(&root, "replaces")?,
            limits: root.table("limits")?.map_or(Ok(LimitsSpec::default()), |section| read_limits(&section))?,
            runs_scripts: read_tool_name(&root, "runs-scripts")?,
            replaceable: root
                .flag("replaceable")?
                .unwrap_or_default()
                .then(|| root.table("claims")?.map_or(Ok(Claims::default()), |section| read_claims(&section)))
                .transpose()?,
            start_when: root.table("start-when")?.map(|section| read_start(&section)).transpose()?,
            subcommands: root.tables("subcommand")?.iter().map(read_subcommand).collect::<Result<_, _>>()?,
        })
    }

    /// Reads the manifest of a script. What a component's has to say of itself may be left out of it: it is then called
    /// `name` and written for this host.
    pub fn parse_script(text: &str, file: &str, name: PluginName) -> Result<Self, ManifestError> {
        Self::read(text, file, Some(name))
    }

    /// The manifest of a plugin that has none: it asks for nothing.
    pub fn bare(name: PluginName) -> Self {
        Self {
            name,
            version: UNSAID_VERSION.to_owned(),
            description: String::new(),
            contract: ContractVersion::CURRENT,
            wants: Wants::default(),
            replaces: Vec::new(),
            limits: LimitsSpec::default(),
            runs_scripts: None,
            replaceable: None,
            start_when: None,
            subcommands: Vec::new(),
        }
    }
}

fn read_claims(section: &Section<'_>) -> Result<Claims, ManifestError> {
    section.only(&["tools", "commands", "flags", "events"])?;
    Ok(Claims {
        tools: read_tool_names(section, "tools")?,
        commands: read_tool_names(section, "commands")?,
        flags: read_tool_names(section, "flags")?,
        events: read_tool_names(section, "events")?,
    })
}

fn read_start(section: &Section<'_>) -> Result<StartWhen, ManifestError> {
    section.only(&["config", "events"])?;
    let mut config = Vec::new();
    if let Some(list) = section.texts("config")? {
        for name in list.value {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
            if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_plain) {
                let reason = format!("`config`: `{}` is no plain name of a file", printable(name));
                return Err(section.source().error(list.span.clone(), reason, "write one such as `\"mine.json\"`"));
            }
            config.push(name.to_owned());
        }
    }
    Ok(StartWhen { config, events: read_tool_names(section, "events")? })
}

fn read_subcommand(section: &Section<'_>) -> Result<Subcommand, ManifestError> {
    section.only(&["name", "description"])?;
    let Some(name) = read_tool_name(section, "name")? else { return Err(section.missing("name", "\"mine\"")) };
    let Some(description) = section.text("description")? else {
        return Err(section.missing("description", "\"What it does.\""));
    };
    Ok(Subcommand { name, description: description.value.to_owned() })
}

/// A list of tool names, each once.
pub(crate) fn read_tool_names(section: &Section<'_>, key: &str) -> Result<Vec<String>, ManifestError> {
    let Some(list) = section.texts(key)? else { return Ok(Vec::new()) };
    let mut names: Vec<String> = Vec::new();
    for name in list.value {
        check_tool_name(section, key, name, list.span.clone())?;
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

fn check_tool_name(section: &Section<'_>, key: &str, name: &str, span: Range<usize>) -> Result<(), ManifestError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(());
    }
    let reason = format!("`{key}`: `{name}` can not name a tool");
    Err(section.source().error(span, reason, "name tools as `atoll tool list` does"))
}

/// The name of one tool.
fn read_tool_name(section: &Section<'_>, key: &str) -> Result<Option<String>, ManifestError> {
    let Some(name) = section.text(key)? else { return Ok(None) };
    check_tool_name(section, key, name.value, name.span)?;
    Ok(Some(name.value.to_owned()))
}

fn read_limits(section: &Section<'_>) -> Result<LimitsSpec, ManifestError> {
    section.only(&LIMIT_KEYS.each_ref().map(|key| key.key))?;
    let mut spec = LimitsSpec::default();
    for key in &LIMIT_KEYS {
        if let Some(number) = section.number(key.key, key.range.clone())? {
            spec.set(key, number);
        }
    }
    Ok(spec)
}

serialize_as_text!(PluginName, ContractVersion);

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
