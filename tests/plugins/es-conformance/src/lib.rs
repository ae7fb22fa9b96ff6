//! The engine of scripts, as tests of the language need it: one script after the other in the global scope, and built-in
//! objects that are not frozen, because many tests change them. Everything else is as scripts of codemode have it.
//!
//! It must never run two tests in one instance: what one changes would be there for the next.

use std::cell::{Cell, OnceCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::time::Duration;

use atoll_js::rquickjs::context::EvalOptions;
use atoll_js::rquickjs::{Ctx, Function, Value};
use atoll_js::{Engine, Host, Level, Limits, ScriptError};
use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, clock, export_tools};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use serde_json::json;

/// As scripts of codemode have it, with less memory.
const LIMITS: Limits = Limits { memory_bytes: 128 << 20, stack_bytes: 768 << 10 };

/// How long a test may take, in nanoseconds.
const LONGEST: u64 = 20_000_000_000;

thread_local! {
    /// Never taken down: its instance is.
    static REALM: OnceCell<ManuallyDrop<Rc<Realm>>> = const { OnceCell::new() };
}

/// The engine, and what it reaches.
struct Realm {
    engine: Engine,
    world: Rc<World>,
}

#[derive(Default)]
struct World {
    /// When the test has to be over.
    until: Cell<Option<u64>>,
}

impl Host for World {
    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Box::pin(clock::sleep(milliseconds))
    }

    fn console(&self, _: Level, _: &str) {}

    fn random(&self, bytes: &mut [u8]) {
        // What the system has nothing for stays as it is; WASI always has.
        let _ = getrandom::fill(bytes);
    }

    fn interrupted(&self) -> bool {
        self.until.get().is_some_and(|until| clock::monotonic() > until)
    }
}

/// Runs a script in the global scope.
fn evaluate<'js>(ctx: &Ctx<'js>, source: &str) -> atoll_js::rquickjs::Result<Value<'js>> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some("test".to_owned());
    ctx.eval_with_options(source, options)
}

async fn make() -> Result<Rc<Realm>, ScriptError> {
    let world = Rc::new(World::default());
    let engine = Engine::open(Rc::clone(&world) as Rc<dyn Host>, LIMITS).await?;
    let made = |ctx: &Ctx<'_>| {
        let script = Function::new(ctx.clone(), |ctx: Ctx<'_>, source: String| evaluate(&ctx, &source).map(drop))?;
        ctx.globals().set("evaluateScript", script)?;
        ctx.globals().remove("__atoll")
    };
    engine.context().with(|ctx| engine.caught(&ctx, made(&ctx))).await?;
    engine.settle(8 << 20).await;
    Ok(Rc::new(Realm { engine, world }))
}

/// The engine of this instance, which is made when it is first asked for, so that a picture of the instance has it.
fn warm() -> Result<Rc<Realm>, Error> {
    REALM.with(|realm| {
        if let Some(realm) = realm.get() {
            return Ok(Rc::clone(realm));
        }
        let made = make().now_or_never().ok_or_else(|| Error::failed("the engine waits for itself"))?;
        let made = made.map_err(|error| Error::failed(format!("the engine can not be made: {error}")))?;
        Ok(Rc::clone(realm.get_or_init(|| ManuallyDrop::new(made))))
    })
}

struct Run;

#[derive(serde::Deserialize)]
struct Arguments {
    /// What the test is built upon.
    harness: String,
    source: String,
}

impl Tool for Run {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        let _ = warm();
        ToolInfo::new("run", "Runs one test.").parameters(&json!({"type": "object"}))
    }

    async fn run(arguments: Arguments, _: Call) -> Result<ToolOutput, Error> {
        let realm = warm()?;
        let Realm { engine, world } = &*realm;
        world.until.set(Some(clock::monotonic().saturating_add(LONGEST)));
        let said = match test(engine, &arguments).await {
            Ok(done) => json!({"done": done}),
            Err(error) => json!({"name": error.name, "message": error.message}),
        };
        Ok(ToolOutput::text(said.to_string()))
    }
}

/// Runs a test; what it said when it was done, if it says so.
async fn test(engine: &Engine, arguments: &Arguments) -> Result<Option<String>, ScriptError> {
    let run = |source: String| async move {
        engine.context().with(|ctx| engine.caught(&ctx, evaluate(&ctx, &source).map(drop))).await
    };
    run(arguments.harness.clone()).await?;
    run(arguments.source.clone()).await?;
    engine.drain().await?;
    engine
        .context()
        .with(|ctx| {
            engine.caught(
                &ctx,
                ctx.eval::<Option<String>, _>("globalThis.__done === undefined ? null : String(globalThis.__done)"),
            )
        })
        .await
}

export_tools!(Run);
