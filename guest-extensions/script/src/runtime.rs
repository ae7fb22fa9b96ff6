//! The engine of this instance: its start, and how something is put to the script.
//!
//! One task polls everything that the script waits for, the one that was begun by `start`; others hand their question over
//! and wait for its answer. So whatever a handler waits for goes on while others begin and end.

use std::{cell::OnceCell, rc::Rc};

use atoll_js::{
    Engine, Limits, ScriptError,
    rquickjs::{Ctx, Function, Persistent, Promise},
};
use atoll_plugin::{Error, host, source, spawn_local, types::Subscription};
use futures::{FutureExt as _, channel::oneshot};
use serde_json::{Value, json};

use crate::{
    events,
    modules::{API, Modules},
    ops,
};

/// Limits of the engine. The stack is less than half of what `build.rs` gives: what is called at its end needs some, too. The
/// plugin's own limit on memory is lower or higher as the user says, and counts beside it.
const LIMITS: Limits = Limits { memory_bytes: 128 << 20, stack_bytes: 768 << 10 };

thread_local! {
    static RUNTIME: OnceCell<Rc<Runtime>> = const { OnceCell::new() };
}

/// The running script.
pub(crate) struct Runtime {
    engine: Engine,
    /// Answers whatever is put to the script.
    serve: Persistent<Function<'static>>,
    /// Rewrites the arguments of a tool, at once.
    prepare: Persistent<Function<'static>>,
}

/// What the script's side hands over when it is ready.
#[derive(Default)]
pub(crate) struct Entrances {
    pub(crate) serve: OnceCell<Persistent<Function<'static>>>,
    pub(crate) prepare: OnceCell<Persistent<Function<'static>>>,
}

/// Reads the script, runs it, and gives what it wants to be called for.
pub(crate) async fn start(reason: &str) -> Result<Subscription, Error> {
    let files = source::files();
    let Some(entry) = files.first().map(|file| file.path.clone()) else {
        return Err(Error::unavailable("There is no script to run; this component runs what others wrote."));
    };
    let modules = Rc::new(Modules::new(files)?);
    let engine = Engine::new(Rc::clone(&modules) as Rc<dyn atoll_js::Host>, LIMITS).await.map_err(failed)?;
    let entrances = Rc::new(Entrances::default());
    let installed = engine.context().with(|ctx| engine.caught(&ctx, ops::install(&ctx, &entrances))).await;
    installed.map_err(failed)?;
    engine.report_unhandled().await;
    engine.run_module("atoll:start", &format!("import '{API}';")).await.map_err(failed)?;
    let (Some(serve), Some(prepare)) = (entrances.serve.get().cloned(), entrances.prepare.get().cloned()) else {
        return Err(Error::failed("The engine for scripts is broken: it does not answer."));
    };
    let runtime = Rc::new(Runtime { engine, serve, prepare });
    RUNTIME.with(|own| own.get_or_init(|| Rc::clone(&runtime)).clone());
    // Lives as long as the instance: timers and late answers have to come to their end after `start` has.
    spawn_local(runtime.engine.context().runtime().drive());
    // Read before it runs, so that a mistake in it is named with its place, whoever imports it.
    modules.read(&entry).map_err(Error::invalid_arguments)?;
    let plugin = host::describe().plugin;
    let wanted = runtime.ask("start", &json!({"entry": entry, "reason": reason, "plugin": plugin})).await?;
    events::subscription(&wanted)
}

impl Runtime {
    /// The script of this instance.
    ///
    /// # Errors
    /// `unavailable` if it has not been started.
    pub(crate) fn get() -> Result<Rc<Self>, Error> {
        let own = RUNTIME.with(|own| own.get().cloned());
        own.ok_or_else(|| Error::unavailable("The script has not been started."))
    }

    /// Puts something to the script, and waits for its answer.
    ///
    /// # Errors
    /// What the script throws, with the place.
    pub(crate) async fn ask(self: &Rc<Self>, kind: &'static str, what: &Value) -> Result<Value, Error> {
        let (answer, answered) = oneshot::channel();
        let (own, what) = (Rc::clone(self), what.to_string());
        self.engine
            .context()
            .with(move |ctx| {
                let within = ctx.clone();
                ctx.spawn(async move {
                    let asked = own.asked(&within, kind, what).await;
                    // Nobody may wait any more.
                    let _ = answer.send(own.engine.caught(&within, asked));
                });
            })
            .await;
        let text = match answered.await {
            Ok(answer) => answer.map_err(failed)?,
            Err(_) => return Err(Error::failed("The script ended before it answered.")),
        };
        let mut answer = events::parsed("the answer of the script", &text)?;
        match answer.get_mut("denied").map(Value::take) {
            Some(denied) => Err(events::denied(denied)?),
            None => Ok(answer.get_mut("done").map(Value::take).unwrap_or_default()),
        }
    }

    async fn asked<'js>(&self, ctx: &Ctx<'js>, kind: &str, what: String) -> atoll_js::rquickjs::Result<String> {
        let serve = self.serve.clone().restore(ctx)?;
        let promise: Promise<'js> = serve.call((kind, what))?;
        promise.into_future().await
    }

    /// Has the script rewrite the arguments of a tool. Nothing can be waited for in there.
    ///
    /// # Errors
    /// What the script throws, with the place.
    pub(crate) fn prepare(&self, tool: &str, arguments: &str) -> Result<String, Error> {
        let prepared = self.engine.context().with(|ctx| {
            let prepare = || self.prepare.clone().restore(&ctx)?.call((tool, arguments));
            self.engine.caught(&ctx, prepare())
        });
        // Nothing holds the engine between two polls, so this never has to wait.
        let prepared = prepared.now_or_never();
        prepared.ok_or_else(|| Error::unavailable("The script is busy."))?.map_err(failed)
    }
}

/// An error of a script as one of the contract.
#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed(error: ScriptError) -> Error {
    let text = error.to_string();
    match error.code() {
        "cancelled" => Error::Cancelled(text),
        _ => Error::Failed(text),
    }
}
