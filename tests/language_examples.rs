//! The examples of `guest-extensions/examples`: whatever language a gate or a redactor is written in, it passes the same
//! checks. Those whose toolchain is not there are skipped, and say so.

use std::{
    collections::BTreeSet,
    fs,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use serde_json::{Value, json};

use crate::{
    common::{
        Command, Sandbox, plugins::workspace_root, puppets::no_call, skipped_language, terminal::AtTerminal, text_of,
    },
    read_pictures::grey,
};

/// An example as a file that can be loaded, and its manifest if it has one beside it.
struct Example {
    language: &'static str,
    file: PathBuf,
    manifest: Option<PathBuf>,
}

impl Example {
    /// Where the build leaves it; none if it was not built here.
    fn find(language: &'static str, name: &str) -> Option<Self> {
        let root = workspace_root();
        let folder = root.join("guest-extensions/examples").join(language).join(name);
        let built = match language {
            "rust" => {
                root.join(format!("target/guests/wasm32-wasip2/guest/atoll_example_{}.wasm", name.replace('-', "_")))
            }
            _ => root.join(format!("target/guests/examples/{language}-{name}.wasm")),
        };
        if !built.is_file() {
            assert!(language != "rust", "{}: not built; run `cargo xtask build`", built.display());
            skipped_language(
                language,
                &format!("the example {name} in {language}: `cargo xtask examples` says why it could not be built"),
            );
            return None;
        }
        let example = Self { language, file: built, manifest: Some(folder.join("plugin.toml")) };
        example.compile();
        Some(example)
    }

    /// It as a user has it: the file, with its manifest beside it.
    fn offered(&self, sandbox: &Sandbox) -> String {
        let folder = format!("offered/{}", self.language);
        let manifest = self.manifest.as_ref().map(|path| fs::read_to_string(path).unwrap());
        sandbox.offered(&folder, &fs::read(&self.file).unwrap(), manifest.as_deref()).display().to_string()
    }

    /// A run of a scripted model with it.
    fn run(&self, sandbox: &Sandbox, script: &Value) -> Command {
        self.compiled_once(sandbox.scripted(script)).args(["-e".to_owned(), self.offered(sandbox)])
    }

    /// Compiles a component with a whole language in it, which takes long: once for all tests, and what was compiled is kept.
    #[track_caller]
    fn compile(&self) {
        static COMPILED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
        if ["rust", "c"].contains(&self.language) {
            return;
        }
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        if compiled.contains(&self.file) {
            return;
        }
        let sandbox = Sandbox::new();
        let inspect = sandbox.atoll().arg("plugin").arg("inspect").arg(&self.file).arg("--json").longest(300);
        let shown = self.compiled_once(inspect).run().json();
        assert!(!shown["exports"].is_null(), "{}: {shown:#}", self.file.display());
        compiled.insert(self.file.clone());
    }

    /// The same command, which finds what was compiled.
    fn compiled_once(&self, command: Command) -> Command {
        match self.language {
            "rust" | "c" => command,
            _ => command.env("XDG_CACHE_HOME", workspace_root().join("target/guests/examples/cache")),
        }
    }
}

/// The examples of this name in every language that was built here.
fn examples(name: &str) -> Vec<Example> {
    ["rust", "c", "python", "go", "javascript"]
        .into_iter()
        .filter_map(|language| Example::find(language, name))
        .collect()
}

/// Results of calls that a model makes at once, in order.
#[track_caller]
fn results(example: &Example, sandbox: &Sandbox, calls: &[(&str, Value)]) -> Vec<Value> {
    let calls: Vec<Value> =
        calls.iter().map(|(tool, arguments)| json!({"tool": tool, "arguments": arguments})).collect();
    let script = json!({"turns": [{"calls": calls}, {"text": "done"}]});
    let run = example.run(sandbox, &script).arg("go").run().ok();
    assert_eq!(run.stderr, "", "{}: {run:#?}", example.language);
    sandbox.results()
}

/// Command lines, and whether a gate stops them. Nothing here would do harm if it ran.
const LINES: [(&str, bool); 26] = [
    ("rm -rf gone", true),
    ("rm -fr gone", true),
    ("rm -r -f gone", true),
    ("rm -f -r gone", true),
    ("rm -Rf gone", true),
    ("rm -vrf gone", true),
    ("rm --recursive --force gone", true),
    ("rm --rec --fo gone", true),
    ("rm gone -rf", true),
    ("/bin/rm -rf gone", true),
    ("\\rm -rf gone", true),
    ("r\"m\" -rf gone", true),
    ("command rm -rf gone", true),
    ("sh -c 'rm -rf gone'", true),
    ("echo go; rm -rf gone", true),
    ("true && rm -rf gone", true),
    ("echo $(rm -rf gone)", true),
    ("echo gone | xargs rm -rf", true),
    ("rm \\\n -rf gone", true),
    ("rm -f gone", false),
    ("rm -r gone", false),
    ("rm -- -rf", false),
    ("rm -f gone; ls -r", false),
    ("ls -rf", false),
    ("echo farm -rf", false),
    ("rm --one-file-system --verbose gone", false),
];

#[test]
fn a_gate_stops_what_deletes_a_tree_however_it_is_spelled() {
    for example in examples("gate") {
        let sandbox = Sandbox::new();
        let calls: Vec<_> = LINES.iter().map(|(line, _)| ("bash", json!({"command": line}))).collect();
        let results = results(&example, &sandbox, &calls);
        let stopped = |result: &Value| {
            result["isError"] == true && text_of(&result["content"]).contains("(rm -rf) is not allowed")
        };
        let got: Vec<_> = LINES.iter().zip(&results).map(|((line, _), result)| (*line, stopped(result))).collect();
        assert_eq!(got, LINES, "{}", example.language);
    }
}

#[test]
fn a_gate_looks_at_command_lines_only() {
    for example in examples("gate") {
        let sandbox = Sandbox::new();
        let results = results(&example, &sandbox, &[("write", json!({"path": "notes.txt", "content": "rm -rf gone"}))]);
        assert_eq!(results[0]["isError"], false, "{}: {results:#?}", example.language);
        assert_eq!(sandbox.read("notes.txt"), "rm -rf gone", "{}", example.language);
    }
}

/// Contents of files, and what a model reads of them. The tokens are made up.
const TEXTS: [(&str, &str); 12] = [
    ("nothing to hide\n", "nothing to hide\n"),
    ("key: sk-abcdefghijklmnop0123\n", "key: [redacted]\n"),
    ("sk-abcdefghijklmnop0123", "[redacted]"),
    ("(ghp_0123456789abcdefABCDEF)", "([redacted])"),
    ("a=github_pat_0123456789abcdef, b=glpat-0123456789abcdef", "a=[redacted], b=[redacted]"),
    ("AKIAABCDEFGHIJKLMNOP", "[redacted]"),
    ("\"xoxb-0123456789-abcdef\"\nnext\n", "\"[redacted]\"\nnext\n"),
    ("too short: sk-abc", "too short: sk-abc"),
    ("task-management-of-all-things", "task-management-of-all-things"),
    ("é sk-abcdefghijklmnop0123 ü", "é [redacted] ü"),
    ("sk-abcdefghijklmnop0123 sk-abcdefghijklmnop0124", "[redacted] [redacted]"),
    ("sk-sk-abcdefghijklmnop0123", "[redacted]"),
];

#[test]
fn a_redactor_takes_tokens_out_of_results_and_leaves_the_rest() {
    for example in examples("redactor") {
        let sandbox = Sandbox::new();
        let mut calls = Vec::new();
        for (number, (content, _)) in TEXTS.iter().enumerate() {
            let name = format!("{number}.txt");
            sandbox.file(&name, content);
            calls.push(("read", json!({"path": name})));
        }
        let results = results(&example, &sandbox, &calls);
        let got: Vec<_> =
            TEXTS.iter().zip(&results).map(|((content, _), result)| (*content, text_of(&result["content"]))).collect();
        let expected: Vec<_> = TEXTS.iter().map(|(content, shown)| (*content, (*shown).to_owned())).collect();
        assert_eq!(got, expected, "{}", example.language);
    }
}

#[test]
fn a_redactor_takes_tokens_out_of_data_too_and_out_of_failures() {
    for example in examples("redactor") {
        let sandbox = Sandbox::new();
        sandbox.file("keys.txt", "first\nsk-abcdefghijklmnop0123\n");
        let command = json!({"command": "cat keys.txt; exit 1"});
        let result = results(&example, &sandbox, &[("bash", command)]).remove(0);
        assert_eq!(result["isError"], true, "{}: it stays a failure: {result:#}", example.language);
        assert!(!result.to_string().contains("sk-abc"), "{}: {result:#}", example.language);
        assert!(text_of(&result["content"]).contains("[redacted]"), "{}: {result:#}", example.language);
    }
}

#[test]
fn a_redactor_leaves_pictures_alone() {
    for example in examples("redactor") {
        let sandbox = Sandbox::new();
        sandbox.file("small.png", grey(4, 4));
        let result = results(&example, &sandbox, &[("read", json!({"path": "small.png"}))]).remove(0);
        let kinds: Vec<_> = result["content"].as_array().unwrap().iter().map(|piece| &piece["type"]).collect();
        assert!(kinds.contains(&&json!("image")), "{}: {result:#}", example.language);
    }
}

/// The examples that watch and change have no need of a grant, and import nothing that takes one.
#[test]
fn gates_and_redactors_ask_for_nothing() {
    for example in examples("gate").into_iter().chain(examples("redactor")) {
        let sandbox = Sandbox::new();
        let file = example.offered(&sandbox);
        let inspect = sandbox.atoll().args(["plugin", "inspect", &file, "--json"]);
        let shown = example.compiled_once(inspect).run().json();
        let imports = shown["imports"].to_string();
        for capability in ["files", "http", "process", "table", "session", "ui", "store"] {
            assert!(!imports.contains(&format!("/{capability}@")), "{} {capability}: {shown:#}", example.language);
        }
        assert!(!shown["imports"].is_null(), "{shown:#}");
    }
}

#[test]
fn the_note_example_asks_keeps_and_tells_the_model() {
    let example = Example::find("rust", "note").unwrap();
    let sandbox = Sandbox::new();
    let mut at = AtTerminal::start(example.run(&sandbox, &no_call()).args(["/note", "hello"]));
    at.wait_for("(such as buy milk)");
    at.press("call Ann\n");
    at.wait_for("2. the model reads it");
    at.wait_for("nothing declines:");
    at.press("2\n");
    let run = at.wait().ok();
    assert!(run.stderr.contains("Noted: call Ann"), "{run:#?}");
    let told: Vec<_> = sandbox.session().into_iter().filter(|entry| entry["customType"] == "note").collect();
    assert!(text_of(&told[0]["content"]).contains("call Ann"), "{told:#?}");
    // What was kept is there in another run, for the tool too, and nobody is asked without a terminal.
    let run = example.run(&sandbox, &no_call()).arg("/note  buy   milk").run().ok();
    assert!(run.stderr.contains("Noted: buy milk"), "{run:#?}");
    let file = example.offered(&sandbox);
    let call = sandbox.atoll().args(["-e", &file, "tool", "call", "notes", "{}", "--json"]).run().ok().json();
    assert_eq!(text_of(&call["content"]), "call Ann\nbuy milk\n");
}

#[test]
fn the_outline_example_reads_python_as_python_does() {
    let Some(example) = Example::find("python", "outline") else { return };
    let sandbox = Sandbox::new();
    let component = fs::read(&example.file).unwrap();
    let manifest = example.manifest.as_ref().map(|path| fs::read_to_string(path).unwrap());
    sandbox.plugin("outline", &component, manifest.as_deref());
    sandbox.grant("outline", &component, "all = true");
    sandbox.file(
        "a.py",
        "class A:\n    async def go(self, x):\n        def inner(): pass\n\nif True:\n    def f(): pass\n",
    );
    sandbox.file("broken.py", "x = 1\ndef f(:\n");
    let call = |path: &str| {
        let arguments = json!({"path": path}).to_string();
        let record =
            example.compiled_once(sandbox.atoll()).args(["tool", "call", "outline", &arguments, "--json"]).run().json();
        (text_of(&record["content"]), record["isError"] == true)
    };
    let outline = "1: class A\n2:   async def go(self, x)\n3:     def inner()\n6: def f()";
    assert_eq!(call("a.py"), (outline.to_owned(), false));
    let (text, failed) = call("broken.py");
    assert!(failed && text.contains("broken.py is no Python: line 2"), "{text}");
    // What the host refuses reaches the model as it is.
    let (text, failed) = call("missing.py");
    assert!(failed && text.contains("missing.py"), "{text}");
    let (text, failed) = call("/etc/passwd");
    assert!(failed && text.contains("files"), "{text}");
}
