//! The files of the suite: which are run, and what they say of themselves.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The directories whose tests are run, which are also the groups of which figures are given.
const GROUPS: [&str; 23] = [
    "built-ins/Array",
    "built-ins/Date",
    "built-ins/Iterator",
    "built-ins/JSON",
    "built-ins/Map",
    "built-ins/Math",
    "built-ins/Number",
    "built-ins/Object",
    "built-ins/Promise",
    OF_ANOTHER_UNICODE,
    "built-ins/RegExp",
    "built-ins/Set",
    "built-ins/String",
    "language/destructuring",
    "language/expressions/assignment/dstr",
    "language/expressions/async-arrow-function",
    "language/expressions/async-function",
    "language/expressions/async-generator",
    "language/expressions/await",
    "language/expressions/class",
    "language/expressions/coalesce",
    "language/expressions/optional-chaining",
    "language/expressions/template-literal",
];

/// Tables of which characters are what. They are those of the Unicode version that the suite was made for, and the engine has a
/// later one: what has changed since fails, and is listed. It counts in all, but no share of it is asked for.
pub(super) const OF_ANOTHER_UNICODE: &str = "built-ins/RegExp/property-escapes";

/// Of a group with more tests than this only one in [`ONE_IN`] is run.
const SMALL: usize = 100;
const ONE_IN: u64 = 5;

/// What nothing here claims to have: other realms, threads, and what other suites are about.
const LEFT_OUT: [&str; 9] = [
    "Atomics",
    "IsHTMLDDA",
    "ShadowRealm",
    "SharedArrayBuffer",
    "Temporal",
    "cross-realm",
    "host-gc-required",
    "import-defer",
    "tail-call-optimization",
];

/// What a test is built upon where the suite's own is for another engine.
const PRELUDE: &str = r#"
var __done;
var print = () => {};
var reportCompare = () => {};
var $DONE = (error) => {
  const said = error ? (typeof error === "object" && "message" in error ? `${error.constructor?.name}: ${error.message}` : String(error)) : "";
  if (__done === undefined || __done === "") __done = said;
};
var $262 = (({ transfer }, evaluate) => ({
  __proto__: null,
  global: globalThis,
  gc() {},
  evalScript: (source) => evaluate(source),
  detachArrayBuffer(buffer) { Reflect.apply(transfer, buffer, []); },
}))(ArrayBuffer.prototype, globalThis.evaluateScript ?? globalThis.eval);
delete globalThis.evaluateScript;
"#;

/// The suite on this machine.
pub(super) struct Suite {
    pub(super) folder: PathBuf,
    /// What all tests are built upon.
    harness: String,
}

/// One run of one test.
#[derive(Clone)]
pub(super) struct Case {
    pub(super) group: &'static str,
    /// Its file, from the suite's folder.
    path: String,
    /// The test, if it is none of the suite's.
    source: Option<String>,
    is_strict: bool,
    /// It says itself when it is done.
    pub(super) is_async: bool,
    /// The error that it has to end with.
    pub(super) negative: Option<String>,
}

impl Case {
    /// What it is called in lists.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.path, if self.is_strict { "strict" } else { "sloppy" })
    }
}

impl Suite {
    pub(super) fn open(folder: PathBuf) -> Self {
        let shell = fs::read_to_string(folder.join("shell.js")).unwrap();
        // From here on it is about the engine that this copy is for.
        let (own, _) = shell.split_once("// file: test262-host.js").expect("the suite's shell.js is another one");
        Self { harness: format!("{own}\n{PRELUDE}"), folder }
    }

    /// The tests to run, and how: a sample, or all of them; only those below one of `chosen`, if there are any.
    pub(super) fn cases(&self, is_full: bool, chosen: &[String]) -> Vec<Case> {
        let mut cases = Vec::new();
        for group in GROUPS {
            let mut files = Vec::new();
            self.collect(Path::new(group), &mut files);
            files.sort();
            let is_small = files.len() < SMALL;
            for path in files {
                let is_chosen = chosen.is_empty() || chosen.iter().any(|chosen| path.starts_with(chosen.as_str()));
                if is_chosen && (is_full || is_small || hash(&path).is_multiple_of(ONE_IN)) {
                    cases.extend(self.runs(group, &path));
                }
            }
        }
        cases
    }

    fn collect(&self, folder: &Path, files: &mut Vec<String>) {
        for entry in fs::read_dir(self.folder.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().to_str().unwrap().to_owned();
            let path = folder.join(&name);
            if entry.file_type().unwrap().is_dir() {
                // A group in a group is its own.
                if !GROUPS.iter().any(|group| Path::new(group) == path) {
                    self.collect(&path, files);
                }
            } else if name.ends_with(".js") && name != "shell.js" && name != "browser.js" {
                files.push(path.to_str().unwrap().to_owned());
            }
        }
    }

    /// The runs of a test; none if it is about what is left out.
    fn runs(&self, group: &'static str, path: &str) -> Vec<Case> {
        let about = About::read(&self.source(path));
        runs_of(group, path, &about)
    }

    /// The runs of a test that is not in the suite.
    pub(super) fn made_up(&self, about: &str, source: &str) -> Vec<Case> {
        let about = About::read(&format!("/*---\n{about}\n---*/"));
        let mut runs = runs_of("language/made-up", "language/made-up.js", &about);
        runs.iter_mut().for_each(|case| case.source = Some(source.to_owned()));
        runs
    }

    fn source(&self, path: &str) -> String {
        // A few files are made to hold what is no text.
        String::from_utf8_lossy(&fs::read(self.folder.join(path)).unwrap()).into_owned()
    }

    /// What a test is built upon, and the test.
    pub(super) fn scripts(&self, case: &Case) -> (String, String) {
        let mut harness = self.harness.clone();
        // Each directory on the way has what its tests ask for.
        for (at, _) in case.path.match_indices('/') {
            harness.push_str(&self.source(&format!("{}/shell.js", &case.path[..at])));
            harness.push('\n');
        }
        let source = case.source.clone().unwrap_or_else(|| self.source(&case.path));
        (harness, if case.is_strict { format!("\"use strict\";\n{source}") } else { source })
    }
}

fn runs_of(group: &'static str, path: &str, about: &About) -> Vec<Case> {
    if about.flags.iter().any(|flag| flag == "module" || flag == "CanBlockIsFalse")
        || about.features.iter().any(|feature| LEFT_OUT.contains(&feature.as_str()))
    {
        return Vec::new();
    }
    let has = |flag: &str| about.flags.iter().any(|known| known == flag);
    let run = |is_strict| Case {
        group,
        path: path.to_owned(),
        source: None,
        is_strict,
        is_async: has("async"),
        negative: about.negative.clone(),
    };
    match (has("onlyStrict"), has("noStrict") || has("raw")) {
        (true, _) => vec![run(true)],
        (false, true) => vec![run(false)],
        (false, false) => vec![run(false), run(true)],
    }
}

/// What a test says of itself.
#[derive(Default, Debug, PartialEq)]
struct About {
    flags: Vec<String>,
    features: Vec<String>,
    negative: Option<String>,
}

impl About {
    fn read(text: &str) -> Self {
        let head = text.split_once("/*---").and_then(|(_, rest)| rest.split_once("---*/")).map_or("", |(head, _)| head);
        let mut about = Self::default();
        let mut key = "";
        for line in head.lines() {
            let is_nested = line.starts_with([' ', '-']);
            let trimmed = line.trim();
            let (name, value) = match trimmed.split_once(':') {
                Some((name, value)) if !is_nested => (name, value.trim()),
                _ => (key, trimmed),
            };
            key = name;
            let words = || {
                let words = value.trim_start_matches("- ").trim_matches(['[', ']']).split(',').map(str::trim);
                words.filter(|word| !word.is_empty()).map(str::to_owned)
            };
            match name {
                "flags" => about.flags.extend(words()),
                "features" => about.features.extend(words()),
                "negative" => {
                    if let Some((_, kind)) = value.split_once("type:") {
                        about.negative = Some(kind.trim().trim_matches('}').trim().to_owned());
                    }
                }
                _ => {}
            }
        }
        about
    }
}

/// FNV-1a: the sample is the same everywhere.
fn hash(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[test]
fn what_a_test_says_of_itself_is_read() {
    let text = "// x\n/*---\nes6id: 1\ninfo: |\n  flags: none\nnegative:\n  phase: parse\n  type: SyntaxError\nflags: [onlyStrict, async]\nfeatures:\n  - Temporal\n  - let\n---*/\n";
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let expected = About {
        flags: words(&["onlyStrict", "async"]),
        features: words(&["Temporal", "let"]),
        negative: Some("SyntaxError".to_owned()),
    };
    assert_eq!(About::read(text), expected);
    assert_eq!(About::read("/*---\nfeatures: [a, b]\n---*/").features, ["a", "b"]);
}
