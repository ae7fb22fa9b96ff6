//! The limits of a plugin, all together.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::text::serialize_as_text;

const MIB: u64 = 1024 * 1024;

/// The limits in force for a plugin. Every one is always set; reaching one is the error `limit`, which names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Limits {
    /// Bytes of linear memory, over all memories of the instance.
    ///
    /// Default: 256 MiB. Cost: address space is reserved, pages are only taken when touched. Failure: growing
    /// past it traps the instance; the call fails with `limit` `memory`.
    pub memory_bytes: u64,

    /// Elements of all tables of the instance together.
    ///
    /// Default: 100,000; at most [`MAX_TABLE_ELEMENTS`]. Cost: a pointer each. Failure: growing past it traps; the call fails with `limit`
    /// `table-elements`.
    pub table_elements: u64,

    /// Milliseconds of computing that a call may use; waiting for the host is not counted.
    ///
    /// Default: 10,000. Cost: an epoch check on loop edges and calls, a few percent. Failure: the instance is
    /// stopped; the call fails with `limit` `cpu-ms`.
    pub cpu_ms: u64,

    /// Milliseconds from a call's start to its end, waiting included; `None` for no bound.
    ///
    /// Default: 120,000. Cost: one timer a call. Failure: the call is dropped and fails with `limit` `wall-ms`.
    pub wall_ms: Option<u64>,

    /// Bytes that one host call may bring into the instance.
    ///
    /// Default: 64 MiB. Cost: the host holds that much once for each call under way. Failure: the host call
    /// returns `limit` `host-call-bytes`; the instance goes on.
    pub host_call_bytes: u64,

    /// Resources (open files, processes, bodies, locks) that the instance may hold at once.
    ///
    /// Default: 10,000. Cost: the host's memory for each, and an operating-system handle for some. Failure: the
    /// host call that would make one more returns `limit` `handles`; the instance goes on.
    pub handles: u64,

    /// Bytes of a call's result.
    ///
    /// Default: 8 MiB. Cost: the host holds the result whole. Failure: the result is discarded and the call
    /// fails with `limit` `output-bytes`.
    pub output_bytes: u64,

    /// How deep calls may nest: a tool that calls a tool that calls a tool.
    ///
    /// Default: 8. Cost: one instance for each level. Failure: the innermost call fails with `limit` `nesting`.
    pub nesting: u32,

    /// How many tools the plugin may bring.
    ///
    /// Default: 10,000, which is also the most there can be. Cost: a description and a compiled schema for each.
    /// Failure: the plugin is left out, with `limit` `tools`.
    pub tools: u64,

    /// Bytes that one program which the plugin starts may print.
    ///
    /// Default: 1 GiB, more than a program prints on purpose. Cost: the time to take it, about ten seconds. Failure:
    /// the program and all it started are killed, and waiting for it returns `limit` `command-output-bytes`.
    pub command_output_bytes: u64,

    /// Milliseconds that an extension may take to answer an event; the time in which a person is asked is not counted.
    ///
    /// Default: 30,000. Cost: one timer an event. Failure: the handler is told that its answer is no longer wanted, and
    /// the event fails with `limit` `event-ms`; an event that guards something blocks it.
    pub event_ms: u64,

    /// Events, messages and entries that may wait at once: those on their way to an extension, and those on their way
    /// from it.
    ///
    /// Default: 1,000. Cost: the host's memory for each. Failure: what an extension sends beyond it fails with `limit`
    /// `queue`; what it would be told beyond it and nobody waits for is dropped, and counted.
    pub queue: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 256 * MIB,
            table_elements: 100_000,
            cpu_ms: 10_000,
            wall_ms: Some(120_000),
            host_call_bytes: 64 * MIB,
            handles: 10_000,
            output_bytes: 8 * MIB,
            nesting: 8,
            tools: 10_000,
            command_output_bytes: 1024 * MIB,
            event_ms: 30_000,
            queue: 1_000,
        }
    }
}

impl Limits {
    /// These limits with those that a manifest sets put in their place.
    #[must_use]
    pub fn with(self, spec: &LimitsSpec) -> Self {
        Self {
            memory_bytes: spec.memory_bytes.unwrap_or(self.memory_bytes),
            table_elements: spec.table_elements.unwrap_or(self.table_elements),
            cpu_ms: spec.cpu_ms.unwrap_or(self.cpu_ms),
            wall_ms: match spec.wall_ms {
                None => self.wall_ms,
                Some(0) => None,
                some => some,
            },
            host_call_bytes: spec.host_call_bytes.unwrap_or(self.host_call_bytes),
            handles: spec.handles.unwrap_or(self.handles),
            output_bytes: spec.output_bytes.unwrap_or(self.output_bytes),
            nesting: spec.nesting.unwrap_or(self.nesting),
            tools: spec.tools.unwrap_or(self.tools),
            command_output_bytes: spec.command_output_bytes.unwrap_or(self.command_output_bytes),
            event_ms: spec.event_ms.unwrap_or(self.event_ms),
            queue: spec.queue.unwrap_or(self.queue),
        }
    }

    /// The value of a limit, in the unit of its name; `None` where there is no bound.
    pub fn value(&self, name: LimitName) -> Option<u64> {
        match name {
            LimitName::Memory => Some(self.memory_bytes),
            LimitName::TableElements => Some(self.table_elements),
            LimitName::CpuMs => Some(self.cpu_ms),
            LimitName::WallMs => self.wall_ms,
            LimitName::HostCallBytes => Some(self.host_call_bytes),
            LimitName::Handles => Some(self.handles),
            LimitName::OutputBytes => Some(self.output_bytes),
            LimitName::Nesting => Some(u64::from(self.nesting)),
            LimitName::Tools => Some(self.tools),
            LimitName::CommandOutputBytes => Some(self.command_output_bytes),
            LimitName::EventMs => Some(self.event_ms),
            LimitName::Queue => Some(self.queue),
        }
    }
}

/// A limit as a manifest and the user's settings write it.
pub(crate) struct LimitKey {
    /// How it is written.
    pub(crate) key: &'static str,
    name: LimitName,
    /// The numbers it may have.
    pub(crate) range: RangeInclusive<u64>,
    /// What the number counts, in the unit of [`Limits`].
    unit: u64,
}

/// A day, in milliseconds: more is no limit, and `wall-ms = 0` says so.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The most table elements that an instance can be given: the pool has room for as many in each table.
pub const MAX_TABLE_ELEMENTS: u64 = 1_000_000;

/// Every limit, as it is written.
pub(crate) const LIMIT_KEYS: [LimitKey; 12] = [
    LimitKey { key: "memory-mib", name: LimitName::Memory, range: 1..=4096, unit: MIB },
    LimitKey { key: "table-elements", name: LimitName::TableElements, range: 1..=MAX_TABLE_ELEMENTS, unit: 1 },
    LimitKey { key: "cpu-ms", name: LimitName::CpuMs, range: 1..=DAY_MS, unit: 1 },
    LimitKey { key: "wall-ms", name: LimitName::WallMs, range: 0..=DAY_MS, unit: 1 },
    LimitKey { key: "host-call-mib", name: LimitName::HostCallBytes, range: 1..=1024, unit: MIB },
    LimitKey { key: "handles", name: LimitName::Handles, range: 1..=1_000_000, unit: 1 },
    LimitKey { key: "output-mib", name: LimitName::OutputBytes, range: 1..=1024, unit: MIB },
    LimitKey { key: "nesting", name: LimitName::Nesting, range: 1..=64, unit: 1 },
    LimitKey { key: "tools", name: LimitName::Tools, range: 1..=10_000, unit: 1 },
    LimitKey { key: "command-output-mib", name: LimitName::CommandOutputBytes, range: 1..=1_048_576, unit: MIB },
    LimitKey { key: "event-ms", name: LimitName::EventMs, range: 1..=DAY_MS, unit: 1 },
    LimitKey { key: "queue", name: LimitName::Queue, range: 1..=100_000, unit: 1 },
];

/// The limits that a manifest sets; see [`Limits`] for what each means. Those left out keep their defaults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitsSpec {
    /// `memory-mib`, in bytes.
    pub memory_bytes: Option<u64>,
    /// `table-elements`.
    pub table_elements: Option<u64>,
    /// `cpu-ms`.
    pub cpu_ms: Option<u64>,
    /// `wall-ms`; 0 for no bound.
    pub wall_ms: Option<u64>,
    /// `host-call-mib`, in bytes.
    pub host_call_bytes: Option<u64>,
    /// `handles`.
    pub handles: Option<u64>,
    /// `output-mib`, in bytes.
    pub output_bytes: Option<u64>,
    /// `nesting`.
    pub nesting: Option<u32>,
    /// `tools`.
    pub tools: Option<u64>,
    /// `command-output-mib`, in bytes.
    pub command_output_bytes: Option<u64>,
    /// `event-ms`.
    pub event_ms: Option<u64>,
    /// `queue`.
    pub queue: Option<u64>,
}

impl LimitsSpec {
    /// Sets a limit to a number in the unit of its key, which is in the key's range.
    pub(crate) fn set(&mut self, key: &LimitKey, number: u64) {
        let value = Some(number.saturating_mul(key.unit));
        match key.name {
            LimitName::Memory => self.memory_bytes = value,
            LimitName::TableElements => self.table_elements = value,
            LimitName::CpuMs => self.cpu_ms = value,
            LimitName::WallMs => self.wall_ms = value,
            LimitName::HostCallBytes => self.host_call_bytes = value,
            LimitName::Handles => self.handles = value,
            LimitName::OutputBytes => self.output_bytes = value,
            LimitName::Nesting => self.nesting = value.and_then(|value| u32::try_from(value).ok()),
            LimitName::Tools => self.tools = value,
            LimitName::CommandOutputBytes => self.command_output_bytes = value,
            LimitName::EventMs => self.event_ms = value,
            LimitName::Queue => self.queue = value,
        }
    }
}

impl<'de> serde::Deserialize<'de> for LimitsSpec {
    /// From a map with the keys of a manifest's `[limits]`, as the user's settings have it.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        let mut spec = Self::default();
        for (name, number) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            let Some(key) = LIMIT_KEYS.iter().find(|known| known.key == name) else {
                let known: Vec<&str> = LIMIT_KEYS.iter().map(|known| known.key).collect();
                return Err(D::Error::custom(format!("`{name}` is no limit; the limits are {}", known.join(", "))));
            };
            if !key.range.contains(&number) {
                let (least, most) = (key.range.start(), key.range.end());
                return Err(D::Error::custom(format!("`{name}` has to be a whole number from {least} to {most}")));
            }
            spec.set(key, number);
        }
        Ok(spec)
    }
}

/// The limits that the user sets, over those that manifests set: by plugin, and with `*` for all that are not named.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(transparent)]
pub struct UserLimits(BTreeMap<String, LimitsSpec>);

impl UserLimits {
    /// The same for all plugins.
    pub fn for_all(spec: LimitsSpec) -> Self {
        Self([("*".to_owned(), spec)].into())
    }

    /// The limits of a plugin: the defaults, then what its manifest sets, then what the user sets for all plugins,
    /// then what the user sets for this one.
    pub fn of(&self, plugin: &str, manifest: &LimitsSpec) -> Limits {
        let user = ["*", plugin].into_iter().filter_map(|name| self.0.get(name));
        user.fold(Limits::default().with(manifest), |limits, spec| limits.with(spec))
    }
}

/// A limit's name, as errors carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LimitName {
    /// [`Limits::memory_bytes`].
    Memory,
    /// [`Limits::table_elements`].
    TableElements,
    /// [`Limits::cpu_ms`].
    CpuMs,
    /// [`Limits::wall_ms`].
    WallMs,
    /// [`Limits::host_call_bytes`].
    HostCallBytes,
    /// [`Limits::handles`].
    Handles,
    /// [`Limits::output_bytes`].
    OutputBytes,
    /// [`Limits::nesting`].
    Nesting,
    /// [`Limits::tools`].
    Tools,
    /// [`Limits::command_output_bytes`].
    CommandOutputBytes,
    /// [`Limits::event_ms`].
    EventMs,
    /// [`Limits::queue`].
    Queue,
}

impl LimitName {
    /// Every limit.
    pub const ALL: [Self; 12] = [
        Self::Memory,
        Self::TableElements,
        Self::CpuMs,
        Self::WallMs,
        Self::HostCallBytes,
        Self::Handles,
        Self::OutputBytes,
        Self::Nesting,
        Self::Tools,
        Self::CommandOutputBytes,
        Self::EventMs,
        Self::Queue,
    ];

    /// The name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::TableElements => "table-elements",
            Self::CpuMs => "cpu-ms",
            Self::WallMs => "wall-ms",
            Self::HostCallBytes => "host-call-bytes",
            Self::Handles => "handles",
            Self::OutputBytes => "output-bytes",
            Self::Nesting => "nesting",
            Self::Tools => "tools",
            Self::CommandOutputBytes => "command-output-bytes",
            Self::EventMs => "event-ms",
            Self::Queue => "queue",
        }
    }
}

impl fmt::Display for LimitName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a limit")]
pub struct UnknownLimit(pub String);

impl FromStr for LimitName {
    type Err = UnknownLimit;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|name| name.as_str() == text).ok_or_else(|| UnknownLimit(text.to_owned()))
    }
}

serialize_as_text!(LimitName);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_replaces_what_it_sets() {
        let limits = Limits::default();
        assert_eq!(limits.with(&LimitsSpec::default()), limits);
        let spec = LimitsSpec { memory_bytes: Some(5), wall_ms: Some(0), nesting: Some(1), ..Default::default() };
        assert_eq!(limits.with(&spec), Limits { memory_bytes: 5, wall_ms: None, nesting: 1, ..limits });
        let spec = LimitsSpec { wall_ms: Some(7), ..Default::default() };
        assert_eq!(limits.with(&spec).value(LimitName::WallMs), Some(7));
    }

    #[test]
    fn the_user_has_the_last_word() {
        let user: UserLimits = serde_json::from_str(
            r#"{"*": {"cpu-ms": 5, "memory-mib": 1}, "mine": {"cpu-ms": 7, "wall-ms": 0, "command-output-mib": 2}}"#,
        )
        .unwrap();
        let manifest = LimitsSpec { cpu_ms: Some(9), handles: Some(3), ..Default::default() };
        let other = Limits { cpu_ms: 5, memory_bytes: MIB, handles: 3, ..Limits::default() };
        assert_eq!(user.of("other", &manifest), other);
        let mine = Limits { cpu_ms: 7, wall_ms: None, command_output_bytes: 2 * MIB, ..other };
        assert_eq!(user.of("mine", &manifest), mine);
    }

    #[test]
    fn a_limit_that_is_none_or_out_of_bounds_is_an_error_that_says_so() {
        for (text, says) in [
            (r#"{"x": {"memory": 1}}"#, "`memory` is no limit; the limits are memory-mib,"),
            (r#"{"x": {"nesting": 0}}"#, "`nesting` has to be a whole number from 1 to 64"),
            (r#"{"x": {"cpu-ms": -1}}"#, "u64"),
            (r#"{"x": 1}"#, "map"),
        ] {
            let error = serde_json::from_str::<UserLimits>(text).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn every_limit_can_be_written() {
        for name in LimitName::ALL {
            let key = LIMIT_KEYS.iter().find(|key| key.name == name).unwrap();
            let mut spec = LimitsSpec::default();
            spec.set(key, *key.range.end());
            let limits = Limits::default().with(&spec);
            assert_eq!(limits.value(name), Some(key.range.end() * key.unit));
            let user: UserLimits =
                serde_json::from_value(serde_json::json!({"x": {key.key: key.range.end()}})).unwrap();
            assert_eq!(user.of("x", &LimitsSpec::default()), limits);
        }
    }

    #[test]
    fn names() {
        for name in LimitName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
            assert!(Limits::default().value(name).is_some());
        }
    }
}
