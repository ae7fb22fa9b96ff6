//! The plugins that are part of the program.

include!(concat!(env!("OUT_DIR"), "/builtins.rs"));

/// The name of what runs scripts.
const SCRIPT: &str = "script";

/// The order in which tools are declared; others follow by name.
const ORDER: [&str; 7] = ["read", "bash", "edit", "write", "grep", "find", "ls"];

/// Those that give way to the user's wishes and to other plugins.
pub(crate) const REPLACEABLE: [&str; 3] = ["tool-search", "codemode", "mcp"];

/// The built-in plugins that give way.
pub(crate) fn replaceable() -> impl Iterator<Item = &'static atoll_engine::Builtin> {
    REPLACEABLE.iter().filter_map(|name| by_name(name))
}

/// The built-in plugins that bring tools, in order, without those that give way.
pub(crate) fn tools() -> Vec<&'static atoll_engine::Builtin> {
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    let mut tools: Vec<_> = BUILTINS.iter().filter(|builtin| place(builtin.name).is_some()).collect();
    tools.sort_by_key(|builtin| place(builtin.name));
    tools
}

/// The built-in provider for a wire format: it has the format's name.
pub(crate) fn provider(api: &str) -> Option<&'static atoll_engine::Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == api && builtin.name != SCRIPT)
}

/// What runs scripts. It is no plugin by itself, and loaded with the first script.
pub(crate) fn script_engine() -> Option<&'static atoll_engine::Builtin> {
    by_name(SCRIPT)
}

/// Every built-in plugin, without what runs scripts.
pub(crate) fn all() -> impl Iterator<Item = &'static atoll_engine::Builtin> {
    BUILTINS.iter().filter(|builtin| builtin.name != SCRIPT)
}

/// The built-in plugin of this name.
pub(crate) fn by_name(name: &str) -> Option<&'static atoll_engine::Builtin> {
    BUILTINS.iter().find(|builtin| builtin.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_on_pages_of_their_own() {
        for builtin in BUILTINS {
            assert_eq!(builtin.image.as_ptr().addr() % 4096, 0, "{}", builtin.name);
        }
    }
}
