//! The limits of a plugin, all together.

use std::fmt;
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
    /// Default: 100,000. Cost: a pointer each. Failure: growing past it traps; the call fails with `limit`
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
        }
    }
}

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
}

impl LimitName {
    /// Every limit.
    pub const ALL: [Self; 8] = [
        Self::Memory,
        Self::TableElements,
        Self::CpuMs,
        Self::WallMs,
        Self::HostCallBytes,
        Self::Handles,
        Self::OutputBytes,
        Self::Nesting,
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
    fn names() {
        for name in LimitName::ALL {
            assert_eq!(name.as_str().parse(), Ok(name));
            assert!(Limits::default().value(name).is_some());
        }
    }
}
