//! What scripts reach for that is not there, and what is there in its place: of tools only those that can be called.

/// Whether a tool can be called.
pub(crate) type Has<'a> = &'a dyn Fn(&str) -> bool;

/// In a hint, the tools for that which are there.
const FOR_FILES: &str = "{files}";
const FOR_PROGRAMS: &str = "{programs}";

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

const FILES: &str = "files are reached through tools{files}; `ALL_TOOLS` lists what there is";
const PROGRAMS: &str = "programs are started through tools{programs}; `ALL_TOOLS` lists what there is";
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

/// A hint with the tools that are there.
fn filled(hint: &str, has: Has<'_>) -> String {
    let such_as = |names: &[&str]| {
        let there: Vec<String> =
            names.iter().filter(|name| has(name)).take(3).map(|name| format!("`tools.{name}`")).collect();
        if there.is_empty() { ", if one is there for it".to_owned() } else { format!(" such as {}", there.join(", ")) }
    };
    hint.replace(FOR_FILES, &such_as(&["read", "write", "edit", "ls", "find", "grep", "bash"]))
        .replace(FOR_PROGRAMS, &such_as(&["bash"]))
}

/// What to do without a module.
pub(crate) fn for_module(module: &str, has: Has<'_>) -> String {
    let is_it = |name: &&str| module == *name || module.strip_prefix(*name).is_some_and(|rest| rest.starts_with('/'));
    let found = MODULES.iter().find(|(names, _)| names.iter().any(is_it));
    filled(found.map_or("write out what you need of it", |(_, hint)| hint), has)
}

/// What to do without a name that an error says is not defined.
pub(crate) fn for_error(name: &str, message: &str, has: Has<'_>) -> Option<String> {
    if name != "ReferenceError" {
        return None;
    }
    let wanted = message.split_whitespace().next()?.trim_matches(['\'', '`', '"']);
    NAMES.iter().find(|(known, _)| *known == wanted).map(|(_, hint)| filled(hint, has))
}

/// What an error says that comes of the promise of a call in the place of its value, where calls were not waited for.
pub(crate) fn for_promise(name: &str, message: &str, unsettled: &[String]) -> Option<String> {
    let comes_of_it = match name {
        "TypeError" => ["of undefined", "not a function", "not iterable", "not an object"]
            .iter()
            .any(|part| message.contains(part)),
        // JSON of a promise is that of the text that it is shown as.
        "SyntaxError" => message.contains("token") || message.contains("JSON"),
        _ => false,
    };
    let first = unsettled.first().filter(|_| comes_of_it)?;
    Some(format!(
        "`{first}` was called and nothing has waited for it: a call gives a promise, and `await tools.{first}(…)` its value"
    ))
}

/// The tool that an error says there is none of.
pub(crate) fn missing_tool<'a>(name: &str, message: &'a str) -> Option<&'a str> {
    if name != "NotFoundError" {
        return None;
    }
    message.strip_prefix("there is no tool `")?.split('`').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_way_round_that_is_there() {
        let all = |_: &str| true;
        let none = |_: &str| false;
        assert_eq!(for_error("ReferenceError", "fetch is not defined", &all).as_deref(), Some(NETWORK));
        let process = for_error("ReferenceError", "'process' is not defined", &all);
        assert!(process.is_some_and(|hint| hint.contains("exit()")));
        assert_eq!(for_error("TypeError", "fetch is not defined", &all), None);
        assert_eq!(for_error("ReferenceError", "mine is not defined", &all), None);
        assert_eq!(for_module("fsx", &all), "write out what you need of it");
        let some = |name: &str| name == "ls" || name == "bash";
        assert!(
            for_module("fs/promises", &some)
                .starts_with("files are reached through tools such as `tools.ls`, `tools.bash`;")
        );
        assert!(for_module("execa", &none).starts_with("programs are started through tools, if one is there for it;"));
    }

    #[test]
    fn a_call_that_was_not_waited_for_is_named_where_that_may_be_why() {
        let calls = ["read".to_owned()];
        let hint = for_promise("TypeError", "cannot read property 'trim' of undefined", &calls).unwrap();
        assert!(hint.contains("`await tools.read(…)`"), "{hint}");
        assert_eq!(for_promise("TypeError", "cannot read property 'trim' of undefined", &[]), None);
        assert_eq!(for_promise("Error", "of undefined", &calls), None);
        assert_eq!(missing_tool("NotFoundError", "there is no tool `ls`; x"), Some("ls"));
        assert_eq!(missing_tool("ToolError", "there is no tool `ls`; x"), None);
    }
}
