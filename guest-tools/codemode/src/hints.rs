//! What scripts reach for that is not there, and what is there in its place.

/// Modules by the beginning of their names, and what to do without them.
const MODULES: &[(&[&str], &str)] = &[
    (&["fs", "node:fs", "fs-extra", "path", "node:path", "glob", "fast-glob", "os", "node:os"], FILES),
    (&["child_process", "node:child_process", "execa", "shelljs", "zx"], PROGRAMS),
    (&["http", "https", "node:http", "node:https", "node-fetch", "axios", "got", "undici", "ky"], NETWORK),
    (
        &["crypto", "node:crypto", "uuid", "nanoid"],
        "`crypto.randomUUID()` and `crypto.getRandomValues()` are there without it",
    ),
    (&["util", "node:util", "assert", "node:assert", "buffer", "node:buffer"], PLAIN),
    (&["timers", "node:timers", "timers/promises", "node:timers/promises"], SLEEP),
];

const FILES: &str =
    "files are reached through tools such as `tools.read` and `tools.ls`; `ALL_TOOLS` lists what there is";
const PROGRAMS: &str = "programs are started through a tool such as `tools.bash`; `ALL_TOOLS` lists what there is";
const NETWORK: &str =
    "there is no network here; `await searchTools(\"fetch url\")` finds a tool that has it, if there is one";
const PLAIN: &str = "write it in plain JavaScript: the built-in objects are all there";
const SLEEP: &str = "`await new Promise((done) => setTimeout(done, 100))` waits";

/// Names that other engines have.
const NAMES: &[(&str, &str)] = &[
    ("fetch", NETWORK),
    ("XMLHttpRequest", NETWORK),
    ("WebSocket", NETWORK),
    ("require", "there are no modules; what tools do is in `tools`, and the rest is plain JavaScript"),
    ("module", "there are no modules; `return` the value"),
    ("exports", "there are no modules; `return` the value"),
    ("process", "there is no process; `exit()` ends the script, and tools do what needs the machine"),
    ("Buffer", "use `Uint8Array`, `TextEncoder`, `TextDecoder`, `atob` and `btoa`"),
    ("fs", FILES),
    ("path", FILES),
    ("__dirname", FILES),
    ("__filename", FILES),
    ("Deno", FILES),
    ("Bun", FILES),
    ("window", "this is no browser; the global object is `globalThis`"),
    ("document", "this is no browser; read a page's text through a tool"),
    ("localStorage", "`store(key, value)` and `load(key)` keep values for later scripts"),
    ("WebAssembly", PLAIN),
    ("Worker", "one script runs in one thread; tool calls run beside each other with `Promise.all`"),
    ("models", "models are not reached from scripts"),
    ("sleep", SLEEP),
];

/// What to do without a module.
pub(crate) fn for_module(module: &str) -> &'static str {
    let is_it = |name: &&str| module == *name || module.strip_prefix(*name).is_some_and(|rest| rest.starts_with('/'));
    let found = MODULES.iter().find(|(names, _)| names.iter().any(is_it));
    found.map_or("write out what you need of it", |(_, hint)| hint)
}

/// What to do without a name that an error says is not defined.
pub(crate) fn for_error(name: &str, message: &str) -> Option<&'static str> {
    if name != "ReferenceError" {
        return None;
    }
    let wanted = message.split_whitespace().next()?.trim_matches(['\'', '`', '"']);
    NAMES.iter().find(|(known, _)| *known == wanted).map(|(_, hint)| *hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_way_round() {
        assert_eq!(for_error("ReferenceError", "fetch is not defined"), Some(NETWORK));
        assert_eq!(
            for_error("ReferenceError", "'process' is not defined").map(|hint| hint.contains("exit()")),
            Some(true)
        );
        assert_eq!(for_error("TypeError", "fetch is not defined"), None);
        assert_eq!(for_error("ReferenceError", "mine is not defined"), None);
        assert_eq!(for_module("fs/promises"), FILES);
        assert_eq!(for_module("fsx"), "write out what you need of it");
    }
}
