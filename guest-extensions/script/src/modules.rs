//! What a script can import: its own files, and the modules that come with this component.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    rc::Rc,
    time::Duration,
};

use atoll_js::{Host, Level};
use atoll_plugin::{Error, clock, log, source::File};
use atoll_ts_strip::{Options, strip};
use futures::future::LocalBoxFuture;

use crate::absent::{imported, with_absent};

/// The module that begins everything.
pub(crate) const API: &str = "atoll:api";

/// The modules of this component, by their own names.
const BUILT_IN: &[(&str, &str)] = &[
    (API, include_str!("js/api.js")),
    ("atoll:native", include_str!("js/native.js")),
    ("atoll:globals", include_str!("js/globals.js")),
    ("atoll:events", include_str!("js/events.js")),
    ("atoll:context", include_str!("js/context.js")),
    ("atoll:typebox", include_str!("js/typebox.js")),
    ("atoll:pi-coding-agent", include_str!("js/pi-coding-agent.js")),
    ("atoll:pi-ai", include_str!("js/pi-ai.js")),
    ("atoll:pi-tui", include_str!("js/pi-tui.js")),
    ("atoll:path", include_str!("js/node-path.js")),
    ("atoll:fs", include_str!("js/node-fs.js")),
    ("atoll:fs-promises", include_str!("js/node-fs-promises.js")),
    ("atoll:child-process", include_str!("js/node-child-process.js")),
    ("atoll:os", include_str!("js/node-os.js")),
    ("atoll:util", include_str!("js/node-util.js")),
    ("atoll:url", include_str!("js/node-url.js")),
    ("atoll:node-events", include_str!("js/node-events.js")),
    ("atoll:crypto", include_str!("js/node-crypto.js")),
    ("atoll:process", include_str!("js/node-process.js")),
    ("atoll:buffer", include_str!("js/node-buffer.js")),
    ("atoll:timers-promises", include_str!("js/node-timers-promises.js")),
];

/// What scripts call them.
const NAMES: &[(&str, &str)] = &[
    ("atoll", "atoll:pi-coding-agent"),
    ("typebox", "atoll:typebox"),
    ("@sinclair/typebox", "atoll:typebox"),
    ("@earendil-works/pi-coding-agent", "atoll:pi-coding-agent"),
    ("@mariozechner/pi-coding-agent", "atoll:pi-coding-agent"),
    ("@earendil-works/pi-ai", "atoll:pi-ai"),
    ("@mariozechner/pi-ai", "atoll:pi-ai"),
    ("@earendil-works/pi-tui", "atoll:pi-tui"),
    ("@mariozechner/pi-tui", "atoll:pi-tui"),
    ("@earendil-works/pi-agent-core", "atoll:pi-coding-agent"),
    ("@mariozechner/pi-agent-core", "atoll:pi-coding-agent"),
    ("path", "atoll:path"),
    ("path/posix", "atoll:path"),
    ("fs", "atoll:fs"),
    ("fs/promises", "atoll:fs-promises"),
    ("child_process", "atoll:child-process"),
    ("os", "atoll:os"),
    ("util", "atoll:util"),
    ("url", "atoll:url"),
    ("events", "atoll:node-events"),
    ("crypto", "atoll:crypto"),
    ("process", "atoll:process"),
    ("buffer", "atoll:buffer"),
    ("timers/promises", "atoll:timers-promises"),
];

/// The module that a script means by a name that is no path. Parts of Pi's packages are the packages.
fn named(specifier: &str) -> Option<&'static str> {
    let plain = specifier.strip_prefix("node:").unwrap_or(specifier);
    let package = plain.starts_with('@').then(|| plain.match_indices('/').nth(1)).flatten();
    let package = package.and_then(|(at, _)| plain.get(..at)).unwrap_or(plain);
    let found =
        NAMES.iter().find(|(name, _)| *name == plain).or_else(|| NAMES.iter().find(|(name, _)| *name == package));
    found.map(|(_, module)| *module)
}

/// The files of the script, and what was made of them.
pub(crate) struct Modules {
    files: HashMap<String, String>,
    /// The JavaScript of those that were asked for.
    read: RefCell<HashMap<String, Rc<str>>>,
}

impl Modules {
    pub(crate) fn new(files: Vec<File>) -> Result<Self, Error> {
        let text = |file: File| match String::from_utf8(file.data) {
            Ok(text) => Ok((file.path, text)),
            Err(_) => Err(Error::invalid_arguments(format!("{} is not UTF-8 text", file.path))),
        };
        Ok(Self { files: files.into_iter().map(text).collect::<Result<_, _>>()?, read: RefCell::default() })
    }

    /// The JavaScript of a file.
    ///
    /// # Errors
    /// What is wrong in it, with the place, in one line.
    pub(crate) fn read(&self, path: &str) -> Result<Rc<str>, String> {
        if let Some(code) = self.read.borrow().get(path) {
            return Ok(Rc::clone(code));
        }
        let text = self.files.get(path).ok_or_else(|| format!("there is no file {path}"))?;
        let code: Rc<str> = if path.ends_with(".json") {
            format!("export default {}", text.trim_start_matches('\u{feff}')).into()
        } else {
            let options = Options::module();
            let is_javascript = path.ends_with("js");
            let options = if is_javascript { options.javascript() } else { options };
            let stripped = strip(text, options)
                .map_err(|error| format!("{path}:{}:{}: {}", error.line, error.column, error.message))?;
            // A line of a shell is no line of JavaScript, and the first line has to stay the first.
            if stripped.code.starts_with("#!") { format!("//{}", stripped.code).into() } else { stripped.code.into() }
        };
        self.read.borrow_mut().insert(path.to_owned(), Rc::clone(&code));
        Ok(code)
    }

    /// The file that a relative name stands for, seen from another file.
    fn relative(&self, from: &str, name: &str) -> Option<String> {
        let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
        for part in name.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.last().is_some_and(|last| *last != "..") => {
                    parts.pop();
                }
                part => parts.push(part),
            }
        }
        let path = parts.join("/");
        let compiled = [(".js", ".ts"), (".mjs", ".mts"), (".cjs", ".cts")];
        let compiled = compiled.iter().filter_map(|(to, from)| Some(format!("{}{from}", path.strip_suffix(to)?)));
        let endings = [".ts", ".js", ".mjs", ".mts", ".cts", "/index.ts", "/index.js"];
        let mut spelt =
            std::iter::once(path.clone()).chain(compiled).chain(endings.iter().map(|ending| format!("{path}{ending}")));
        spelt.find(|path| self.files.contains_key(path))
    }
}

impl Host for Modules {
    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        Box::pin(clock::sleep(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }

    fn console(&self, level: Level, message: &str) {
        let level = match level {
            Level::Debug => log::Level::Debug,
            Level::Info => log::Level::Info,
            Level::Warn => log::Level::Warn,
            Level::Error => log::Level::Error,
        };
        log::write(level, message);
    }

    fn random(&self, bytes: &mut [u8]) {
        // What the system has nothing for stays as it is; WASI always has.
        let _ = getrandom::fill(bytes);
    }

    fn resolve(&self, from: &str, specifier: &str) -> Result<String, String> {
        if BUILT_IN.iter().any(|(name, _)| *name == specifier) && from.starts_with("atoll:") {
            return Ok(specifier.to_owned());
        }
        if self.files.contains_key(specifier) && from == API {
            return Ok(specifier.to_owned());
        }
        if specifier.starts_with("./") || specifier.starts_with("../") {
            return self.relative(from, specifier).ok_or_else(|| {
                format!("{from} can not import `{specifier}`: no such file was found below the script's folder; write the name as it is, not put together")
            });
        }
        if let Some(module) = named(specifier) {
            return Ok(module.to_owned());
        }
        let known: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
        Err(format!(
            "{from} can not import `{specifier}`: a script has its own files and {}; bundle anything else into it",
            known.join(", ")
        ))
    }

    fn load(&self, name: &str) -> Result<String, String> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            let Some(shown) = name.strip_prefix("atoll:").filter(|shown| shown.starts_with("pi-")) else {
                return Ok((*text).to_owned());
            };
            let is_it = |specifier: &str| named(specifier) == Some(name);
            let names: BTreeSet<&str> = self.files.values().flat_map(|file| imported(file, is_it)).collect();
            return Ok(with_absent(text, shown, names));
        }
        self.read(name).map(|code| code.to_string())
    }
}
