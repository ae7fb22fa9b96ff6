//! Who may reach which tool: the one place that says so.

use serde::Serialize;

use crate::tool::Exposure;

/// Who wants to call a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Caller {
    /// A model, through a call in its answer.
    Model,
    /// A script of the codemode tool.
    Script,
    /// Another tool, or an extension, in the middle of its own work.
    NestedTool,
    /// A person at the command line.
    Person,
}

/// Where a tool stands now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is active.
    Active,
    /// It is not.
    Inactive,
    /// The user has switched it off.
    Off,
}

/// Whether `caller` may call a tool of this exposure that stands so.
///
/// Switching a tool off has to hold for scripts and nested calls too, or a script would be a way around it; so a
/// tool that is made for declaring is theirs only while it is active, and one that is made for them unless the user has
/// switched it off. What a search activates is declared from then on, so the model may call it. A person may call whatever
/// there is.
pub fn may_reach(caller: Caller, exposure: Exposure, standing: Standing) -> bool {
    match (caller, exposure) {
        (_, Exposure::Hidden) | (Caller::Script | Caller::NestedTool, Exposure::ModelOnly) => false,
        (Caller::Person, _) => true,
        (Caller::Script | Caller::NestedTool, Exposure::Codemode | Exposure::Deferred) => standing != Standing::Off,
        (Caller::Model, _) | (Caller::Script | Caller::NestedTool, Exposure::Direct) => standing == Standing::Active,
    }
}

impl Exposure {
    /// It is made to be declared to the model: registering it makes it active unless it says otherwise.
    pub fn is_declared(self) -> bool {
        matches!(self, Self::Direct | Self::ModelOnly)
    }

    /// A search may find it and make it active.
    pub fn is_searched(self) -> bool {
        matches!(self, Self::Codemode | Self::Deferred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_reaches_what_the_exposure_says() {
        use Exposure::{Codemode, Deferred, Direct, Hidden, ModelOnly};
        // For each exposure: reached while inactive, reached while active.
        let table = [
            (Caller::Model, Direct, false, true),
            (Caller::Model, ModelOnly, false, true),
            (Caller::Model, Codemode, false, true),
            (Caller::Model, Deferred, false, true),
            (Caller::Model, Hidden, false, false),
            (Caller::Script, Direct, false, true),
            (Caller::Script, ModelOnly, false, false),
            (Caller::Script, Codemode, true, true),
            (Caller::Script, Deferred, true, true),
            (Caller::Script, Hidden, false, false),
            (Caller::NestedTool, Direct, false, true),
            (Caller::NestedTool, ModelOnly, false, false),
            (Caller::NestedTool, Codemode, true, true),
            (Caller::NestedTool, Deferred, true, true),
            (Caller::NestedTool, Hidden, false, false),
            (Caller::Person, Direct, true, true),
            (Caller::Person, ModelOnly, true, true),
            (Caller::Person, Codemode, true, true),
            (Caller::Person, Deferred, true, true),
            (Caller::Person, Hidden, false, false),
        ];
        for (caller, exposure, inactive, active) in table {
            let reaches = |standing| may_reach(caller, exposure, standing);
            assert_eq!(reaches(Standing::Inactive), inactive, "{caller:?} {exposure:?} inactive");
            assert_eq!(reaches(Standing::Active), active, "{caller:?} {exposure:?} active");
            let off = caller == Caller::Person && exposure != Hidden;
            assert_eq!(reaches(Standing::Off), off, "{caller:?} {exposure:?} switched off");
        }
    }
}
