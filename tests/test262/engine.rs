//! Running tests of the suite, each in an instance of its own, through the pipeline that all calls take.

use std::{
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use atoll_agent::Pipeline;
use atoll_caps::{Digest, Effective, Manifest, Pin};
use atoll_engine::{Builtin, LoadedPlugin, Places, PluginHost, UserPlugin, pre_initialise};
use atoll_table::{Caller, Content, Origin, Registration, Table};
use serde_json::{Value, json};

use super::suite::{Case, Suite};
use crate::common::plugins::workspace_root;

/// How a run ended: as it has to, or what it said in one line.
pub(super) type Outcome = Result<(), String>;

/// What runs tests.
#[derive(Clone, Copy)]
pub(super) enum Runner {
    /// The engine of scripts with built-in objects that can be changed.
    Loose,
    /// The tool `codemode` as it is in the program, which evaluates the test in its global scope.
    AsItIs,
}

impl Runner {
    fn tool(self) -> &'static str {
        match self {
            Self::Loose => "run",
            Self::AsItIs => "codemode",
        }
    }

    /// The arguments of a call that runs a test and gives `{"done": …}`, or `{"name": …, "message": …}` of an error.
    fn arguments(self, harness: &str, source: &str, case: &Case) -> Value {
        if matches!(self, Self::Loose) {
            return json!({"harness": harness, "source": source});
        }
        let (harness, source) = (Value::from(harness), Value::from(source));
        let code = format!(
            "const evaluate = eval;
            try {{
              evaluate({harness});
              evaluate({source});
            }} catch (error) {{
              const is = error instanceof Error;
              return JSON.stringify({{ name: is ? error.name : '', message: is ? error.message : String(error) }});
            }}
            for (let tries = 0; {} && globalThis.__done === undefined && tries < 50; tries += 1) {{
              await new Promise((done) => setTimeout(done, 1));
            }}
            return JSON.stringify({{ done: globalThis.__done ?? null }});",
            case.is_async
        );
        json!({"code": code})
    }

    async fn load(self, host: &PluginHost, folder: &Path) -> LoadedPlugin {
        let guests = workspace_root().join("target/guests");
        match self {
            Self::AsItIs => {
                let text = |extension| {
                    let file = guests.join(format!("images/codemode.{extension}"));
                    fs::read_to_string(file).unwrap().leak()
                };
                let image = fs::read(guests.join("images/codemode.image")).unwrap().leak();
                let plugin = Builtin { name: "codemode", manifest: text("toml"), image, description: text("json") };
                host.load_builtin(&plugin).await.unwrap()
            }
            Self::Loose => {
                const MANIFEST: &str = include_str!("../plugins/es-conformance/plugin.toml");
                let compiled = fs::read(guests.join("wasm32-wasip2/guest/atoll_test_es_conformance.wasm")).unwrap();
                let file = folder.join("plugin.wasm");
                fs::write(&file, pre_initialise(&compiled).await.unwrap()).unwrap();
                let component = host.see_component(&file).unwrap();
                let manifest = Manifest::parse(MANIFEST, "plugin.toml").unwrap();
                let effective = Effective::intersect(&manifest, Some(&manifest.wants));
                let pin = Pin { component: component.digest.clone(), manifest: Digest::of(MANIFEST.as_bytes()) };
                let plugin = UserPlugin { file, component, manifest, effective, pin, origin: Origin::User };
                host.load_user(plugin).await.unwrap()
            }
        }
    }
}

/// What a call goes through.
async fn pipeline(runner: Runner, folder: &Path) -> Pipeline {
    let at = |name: &str| folder.join(name);
    fs::create_dir(at("work")).unwrap();
    let host = PluginHost::new(Places {
        cwd: at("work"),
        home: at("home"),
        atoll_home: at("home/.atoll"),
        cache: at("cache"),
        sessions: at("home/.atoll/sessions"),
        spill: at("spill"),
        skills: Vec::new(),
        shell: None,
    })
    .unwrap();
    let (tools, called) = runner.load(&host, folder).await.tools.unwrap();
    let mut table = Table::new();
    table.register(Registration::user("tested"), tools, &called).unwrap();
    Pipeline::new(table)
}

/// Runs tests, as many at once as there are processors; what each gave, in their order.
pub(super) fn run_all(runner: Runner, suite: &Suite, cases: Vec<Case>) -> Vec<(Case, Outcome)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let pipeline = runtime.block_on(pipeline(runner, folder.path()));
    let next = AtomicUsize::new(0);
    let outcomes: Vec<Mutex<Option<Outcome>>> = cases.iter().map(|_| Mutex::new(None)).collect();
    let at_once = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some((case, outcome)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(at).zip(outcomes.get(at))
                } {
                    let ended = runtime.block_on(run(&pipeline, runner, suite, case));
                    *outcome.lock().unwrap() = Some(ended);
                }
            });
        }
    });
    let outcomes = outcomes.into_iter().map(|outcome| outcome.into_inner().unwrap().unwrap());
    cases.into_iter().zip(outcomes).collect()
}

async fn run(pipeline: &Pipeline, runner: Runner, suite: &Suite, case: &Case) -> Outcome {
    let (harness, source) = suite.scripts(case);
    let arguments = runner.arguments(&harness, &source, case);
    let ready = pipeline.ready(Caller::Person, "call", runner.tool(), arguments).await;
    let ready = ready.map_err(|error| one_line(&error.to_string()))?;
    let done = ready.run(Arc::new(|_, _| {}), Arc::new(|_| {})).await;
    let text = Content::joined_text(&done.output.content);
    // How long it took may be before it, and what was lost behind it.
    let said = text.find("{\"").and_then(|at| {
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        values.next()?.ok()
    });
    judged(case, &said.ok_or_else(|| one_line(&text))?)
}

/// Whether a test ended as it says that it has to.
fn judged(case: &Case, said: &Value) -> Outcome {
    let error = said["message"].as_str().map(|message| {
        let name = said["name"].as_str().unwrap_or_default();
        one_line(&format!("{name}{}{message}", if name.is_empty() { "" } else { ": " }))
    });
    match (&case.negative, error) {
        (Some(kind), Some(error)) if error.starts_with(kind.as_str()) => Ok(()),
        (Some(kind), Some(error)) => Err(format!("not {kind} but {error}")),
        (Some(kind), None) => Err(format!("no {kind}")),
        (None, Some(error)) => Err(error),
        (None, None) if case.is_async => match said["done"].as_str() {
            Some("") => Ok(()),
            Some(error) => Err(one_line(error)),
            None => Err("it was never done".to_owned()),
        },
        (None, None) => Ok(()),
    }
}

fn one_line(said: &str) -> String {
    const MOST: usize = 100;
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MOST).collect()
}
