//! The engine, as it is before a script runs.
//!
//! [`warm`] may be called long before that, and what it makes kept as a picture of memory for many instances. So nothing in
//! here may be about one script or one moment: no clock, no random number, no deadline, no handle of the host, nothing of the
//! environment. All that is made for each script, in `run`. The engine is never taken down: its instance is.

use std::cell::{OnceCell, RefCell};
use std::mem::ManuallyDrop;
use std::rc::Rc;
use std::time::Duration;

use atoll_js::rquickjs::{Function, Persistent};
use atoll_js::{Engine, Host, Level, Limits, ScriptError};
use atoll_plugin::Error;
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use crate::run::Run;
use crate::{bridge, hints, host};

/// Values and code of a script, in bytes.
pub(crate) const MEMORY: usize = 256 << 20;

/// The stack is less than half of what `build.rs` gives: what is called at its end needs some, too.
const LIMITS: Limits = Limits { memory_bytes: MEMORY, stack_bytes: 768 << 10 };

/// How much a script makes before what it does not use is looked for the first time, in bytes.
const UNTIL_COLLECTED: usize = 8 << 20;

thread_local! {
    static REALM: OnceCell<ManuallyDrop<Rc<Realm>>> = const { OnceCell::new() };
}

/// The engine and what its functions reach.
pub(crate) struct Realm {
    pub(crate) engine: Engine,
    pub(crate) world: Rc<World>,
}

/// The engine of this instance, which is made when it is first asked for.
///
/// # Errors
/// It can not be made: the component is broken.
pub(crate) fn warm() -> Result<Rc<Realm>, Error> {
    REALM.with(|realm| {
        if let Some(realm) = realm.get() {
            return Ok(Rc::clone(realm));
        }
        // Nothing holds the engine while it is made, so nothing in there waits.
        let made = Realm::make().now_or_never();
        let broken = |why: &str| Error::failed(format!("The engine of scripts is broken: {why}."));
        let made = made.ok_or_else(|| broken("it waits for itself"))?.map_err(|error| broken(&error.to_string()))?;
        Ok(Rc::clone(realm.get_or_init(|| ManuallyDrop::new(Rc::new(made)))))
    })
}

impl Realm {
    async fn make() -> Result<Self, ScriptError> {
        let world = Rc::new(World::default());
        let engine = Engine::open(Rc::clone(&world) as Rc<dyn Host>, LIMITS).await?;
        engine.keep_unhandled().await;
        let ending = engine.ending();
        for (name, source) in bridge::SHIMS {
            let (world, ending) = (Rc::clone(&world), ending.clone());
            engine.shim(name, source, move |ctx, shim| bridge::install(ctx, &shim, &world, &ending)).await?;
        }
        engine.freeze().await?;
        engine.settle(UNTIL_COLLECTED).await;
        Ok(Self { engine, world })
    }
}

/// What the engine reaches: the script that runs, if there is one.
#[derive(Default)]
pub(crate) struct World {
    run: RefCell<Option<Rc<Run>>>,
    /// Shows a value to the model, or writes it down for it.
    pub(crate) said: OnceCell<Persistent<Function<'static>>>,
}

impl World {
    pub(crate) fn run(&self) -> Option<Rc<Run>> {
        self.run.borrow().clone()
    }

    /// From here on what the engine asks for is for this script.
    pub(crate) fn begin(&self, run: &Rc<Run>) {
        *self.run.borrow_mut() = Some(Rc::clone(run));
    }

    /// From here on it is for none.
    pub(crate) fn end(&self) {
        *self.run.borrow_mut() = None;
    }
}

/// What to say to who imports something.
pub(crate) fn no_module(run: Option<&Run>, specifier: &str) -> String {
    let shown: String = specifier.chars().take(80).collect::<String>().escape_debug().to_string();
    let hint = hints::for_module(specifier, &|name| run.is_some_and(|run| run.has(name)));
    format!("`{shown}` can not be imported: there are no modules here; {hint}")
}

impl Host for World {
    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        let Some(run) = self.run() else { return Box::pin(std::future::pending()) };
        let woken = run.sleep(duration);
        Box::pin(async move {
            // Nobody wakes it once the script is over, and nobody looks at it then.
            let _ = woken.await;
        })
    }

    fn console(&self, level: Level, message: &str) {
        if let Some(run) = self.run() {
            run.say(|output| output.line(level, message));
        }
    }

    fn uncaught(&self, from: &str, error: &ScriptError) {
        if let Some(run) = self.run() {
            run.lose(from, error);
        }
    }

    fn random(&self, bytes: &mut [u8]) {
        host::random(bytes);
    }

    fn interrupted(&self) -> bool {
        self.run().is_some_and(|run| run.has_to_stop())
    }

    fn resolve(&self, _: &str, specifier: &str) -> Result<String, String> {
        Err(no_module(self.run().as_deref(), specifier))
    }
}
