//! The runtime: limits, modules, and running scripts to their end.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::Poll;

use rquickjs::context::EvalOptions;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::runtime::RejectionTracker;
use rquickjs::{
    AsyncContext, AsyncRuntime, CatchResultExt, CaughtError, Ctx, Error, Function, Module, Persistent, Promise, Value,
};

use crate::ends::{Ending, Ends, Idle, Watched};
use crate::error::{Insertion, ScriptError, ScriptErrorKind, Source, Sources};
use crate::gaps;
use crate::globals;
use crate::host::Host;

/// What comes before a body on its first line, so that it may `await` and `return`.
const BODY_OPENS: &str = "(async()=>{";

/// How much a script may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of values and code, in bytes.
    pub memory_bytes: usize,
    /// Stack, in bytes. It has to fit into that of the guest with room for the host's functions.
    pub stack_bytes: usize,
}

impl Default for Limits {
    /// 64 MiB for scripts that hold a large file, and a quarter of the 1 MiB of stack that a guest has in its memory.
    fn default() -> Self {
        Self { memory_bytes: 64 << 20, stack_bytes: 256 << 10 }
    }
}

/// A runtime with one global object.
pub struct Engine {
    context: AsyncContext,
    host: Rc<dyn Host>,
    sources: Rc<RefCell<Sources>>,
    ends: Rc<Ends>,
    /// Shared with what the runtime tells of promises.
    unhandled: Rc<RefCell<Vec<Unhandled>>>,
    memory_bytes: usize,
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Nothing of the runtime may outlive it.
        self.unhandled.take();
    }
}

impl Engine {
    /// Makes a runtime whose built-in objects scripts can use and not change.
    ///
    /// # Errors
    /// The limits are too small for the globals alone.
    pub async fn new(host: Rc<dyn Host>, limits: Limits) -> Result<Self, ScriptError> {
        let engine = Self::open(host, limits).await?;
        engine.freeze().await?;
        Ok(engine)
    }

    /// The same with built-in objects that can be changed, until [`Engine::freeze`]: for those who add to them. Until then
    /// the global `__atoll` has `show(value)`, which writes a value down as the console does.
    ///
    /// # Errors
    /// The limits are too small for the globals alone.
    pub async fn open(host: Rc<dyn Host>, limits: Limits) -> Result<Self, ScriptError> {
        let no_room = |error: Error| ScriptError::new(ScriptErrorKind::Memory, format!("no room to begin: {error}"));
        let runtime = AsyncRuntime::new().map_err(no_room)?;
        runtime.set_memory_limit(limits.memory_bytes).await;
        runtime.set_max_stack_size(limits.stack_bytes).await;
        let ends = Rc::new(Ends::default());
        let (asked, noted) = (Rc::clone(&host), Rc::clone(&ends));
        let handler = move || {
            if asked.interrupted() {
                noted.interrupt();
            }
            noted.reached().is_some()
        };
        runtime.set_interrupt_handler(Some(Box::new(handler))).await;
        let sources = Rc::new(RefCell::new(Sources::new()));
        let modules = Modules { host: Rc::clone(&host), sources: Rc::clone(&sources) };
        runtime.set_loader(modules.clone(), modules).await;
        let context = AsyncContext::full(&runtime).await.map_err(no_room)?;
        let memory_bytes = limits.memory_bytes;
        let engine = Self { context, host: Rc::clone(&host), sources, ends, unhandled: Rc::default(), memory_bytes };
        let installed = engine
            .context
            .with(|ctx| engine.caught(&ctx, globals::install(&ctx, &host, &engine.ends, &engine.sources)))
            .await;
        installed.map(|()| engine)
    }

    /// Freezes all built-in objects and globals that there are now.
    ///
    /// # Errors
    /// The limits are too small.
    pub async fn freeze(&self) -> Result<(), ScriptError> {
        self.context.with(|ctx| self.caught(&ctx, globals::freeze(&ctx))).await
    }

    /// Runs a function expression of a plugin's own, as one of the modules whose names begin with `atoll:`, and gives the
    /// function to `take`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub async fn shim<T: 'static>(
        &self,
        name: &str,
        source: &str,
        take: impl for<'js> FnOnce(&Ctx<'js>, Function<'js>) -> rquickjs::Result<T>,
    ) -> Result<T, ScriptError> {
        self.context
            .with(|ctx| {
                let taken = globals::shim(&ctx, name, source).and_then(|function| take(&ctx, function));
                self.caught(&ctx, taken)
            })
            .await
    }

    /// What ends the script from one of the host's functions.
    #[must_use]
    pub fn ending(&self) -> Ending {
        Ending(Rc::clone(&self.ends))
    }

    /// Makes the engine ready to be kept as a picture of memory: collects what nobody uses, fills the gaps between what is
    /// left, which takes about 1 MiB, and puts the next collection off until so many more bytes are in use. Once.
    pub async fn settle(&self, more_bytes: usize) {
        let runtime = self.context.runtime();
        runtime.run_gc().await;
        self.context.with(|ctx| gaps::fill(&ctx)).await;
        let used = runtime.memory_usage().await.malloc_size;
        runtime.set_gc_threshold(usize::try_from(used).unwrap_or(0).saturating_add(more_bytes)).await;
    }

    /// From here on [`crate::Host::unhandled`] hears of promises that fail while nobody looks at them, as soon as what was
    /// about to look at them has had its turn. For scripts without an end.
    pub async fn report_unhandled(&self) {
        let (host, unhandled, ends) = (Rc::clone(&self.host), Rc::clone(&self.unhandled), Rc::clone(&self.ends));
        self.track_rejections(move |ctx| {
            let (host, unhandled) = (Rc::clone(&host), Rc::clone(&unhandled));
            let pending = Rc::clone(&ends).pending(false);
            ctx.spawn(async move {
                // What is about to look at it is a job that runs before this is polled again.
                yield_once().await;
                for (_, error) in unhandled.take() {
                    host.unhandled(&error);
                }
                drop(pending);
            });
        })
        .await;
    }

    /// From here on promises that fail while nobody looks at them are kept for [`Engine::take_unhandled`], up to
    /// [`MOST_UNHANDLED`] at a time. For scripts with an end: until then somebody may still look.
    pub async fn keep_unhandled(&self) {
        self.track_rejections(|_| ()).await;
    }

    /// The errors of the promises that failed and that nobody has looked at so far, oldest first.
    #[must_use]
    pub fn take_unhandled(&self) -> Vec<ScriptError> {
        self.unhandled.take().into_iter().map(|(_, error)| error).collect()
    }

    /// Says that the engine itself looks at a promise, which it does not do as a script would if it has failed already.
    fn looks_at<'js>(&self, ctx: &Ctx<'js>, promise: &Promise<'js>) {
        forget(ctx, &mut self.unhandled.borrow_mut(), promise.as_value());
    }

    async fn track_rejections(&self, failed: impl Fn(&Ctx<'_>) + 'static) {
        let (sources, ends) = (Rc::clone(&self.sources), Rc::clone(&self.ends));
        let unhandled = Rc::clone(&self.unhandled);
        let tracker: RejectionTracker = Box::new(move |ctx, promise, reason, is_handled| {
            if is_handled {
                return forget(&ctx, &mut unhandled.borrow_mut(), &promise);
            }
            if unhandled.borrow().len() < MOST_UNHANDLED {
                let error = ScriptError::of_thrown(reason, ends.interrupted(), &sources);
                unhandled.borrow_mut().push((Persistent::save(&ctx, promise), error));
                failed(&ctx);
            }
        });
        self.context.runtime().set_host_promise_rejection_tracker(Some(tracker)).await;
    }

    /// The global object's context, to add functions of the host to. [`AsyncContext::async_with`] runs promises too.
    #[must_use]
    pub fn context(&self) -> &AsyncContext {
        &self.context
    }

    /// Runs JavaScript as the module `name`, to the end of its top-level `await`s.
    ///
    /// # Errors
    /// What the module throws, or the limit it is over.
    pub async fn run_module(&self, name: &str, source: &str) -> Result<(), ScriptError> {
        self.remember(name, source, Vec::new());
        self.watched(
            async |ctx| {
                let ran = async {
                    let promise = Module::evaluate(ctx.clone(), name, source)?;
                    self.looks_at(&ctx, &promise);
                    self.until(promise.into_future::<()>()).await
                };
                let ended = ran.await;
                self.caught(&ctx, ended)
            },
            Idle::Waits,
        )
        .await
    }

    /// Runs JavaScript as the body of an async function. Returns what it returns as JSON; `None` if JSON has nothing
    /// for it.
    ///
    /// # Errors
    /// What the body throws, or the limit it is over.
    pub async fn run_body(&self, name: &str, body: &str) -> Result<Option<String>, ScriptError> {
        self.run_body_with(&Body { name, code: body, text: body, insertions: &[] }, as_json).await
    }

    /// The same with a body that was changed before it is run. `take` is given what the body returns.
    ///
    /// The run ends, with [`ScriptErrorKind::Stuck`], when the body waits and nothing can settle what it waits for: neither
    /// a timer nor whatever holds a [`Pending`].
    ///
    /// # Errors
    /// What the body or `take` throws, or the limit it is over.
    pub async fn run_body_with<T: 'static>(
        &self,
        body: &Body<'_>,
        take: impl for<'js> FnOnce(&Ctx<'js>, Value<'js>) -> rquickjs::Result<T>,
    ) -> Result<T, ScriptError> {
        let opening = Insertion { line: 1, column: 0, bytes: u32::try_from(BODY_OPENS.len()).unwrap_or(0) };
        let mut insertions: Vec<Insertion> = std::iter::once(opening).chain(body.insertions.iter().copied()).collect();
        insertions.sort_by_key(|insertion| (insertion.line, insertion.column));
        self.remember(body.name, body.text, insertions);
        self.watched(
            async |ctx| {
                let ran = async {
                    let mut options = EvalOptions::default();
                    options.filename = Some(body.name.to_owned());
                    let source = format!("{BODY_OPENS}{}\n}})()", body.code);
                    let promise: Promise<'_> = ctx.eval_with_options(source, options)?;
                    self.looks_at(&ctx, &promise);
                    let value: Value<'_> = self.until(promise.into_future()).await?;
                    take(&ctx, value)
                };
                let ended = ran.await;
                self.caught(&ctx, ended)
            },
            Idle::Stuck,
        )
        .await
    }

    /// Lets everything that was begun and not waited for come to its end; timers do not count, though they run meanwhile.
    ///
    /// # Errors
    /// The limit it is over.
    pub async fn drain(&self) -> Result<(), ScriptError> {
        loop {
            let rest = std::future::pending::<rquickjs::Result<()>>();
            let ended = self.watched(async |_| self.until(rest).await.map_err(|_| self.over()), Idle::Done);
            match ended.await {
                Err(error) if error.kind == ScriptErrorKind::Stuck => {}
                ended => return ended,
            }
            // Timers that always have something to do keep jobs waiting.
            let mut ran = false;
            while !matches!(self.context.runtime().execute_pending_job().await, Ok(false)) {
                ran = true;
                if self.ends.reached().is_some() {
                    return Err(self.over());
                }
            }
            if !ran {
                return Ok(());
            }
        }
    }

    /// Runs `work` in the context, and ends it where nobody would come back to it.
    async fn watched<T: 'static>(
        &self,
        work: impl for<'js> AsyncFnOnce(Ctx<'js>) -> Result<T, ScriptError>,
        idle: Idle,
    ) -> Result<T, ScriptError> {
        let run = Watched { run: Box::pin(self.context.async_with(work)), ends: &self.ends, idle, was_idle: false };
        match run.await {
            Ok(ended) => ended,
            Err(ScriptErrorKind::Stuck) => Err(ScriptError::new(
                ScriptErrorKind::Stuck,
                "it waits for a promise that nothing is left to settle: no call, no timer",
            )),
            Err(_) => Err(self.over()),
        }
    }

    /// The end that was asked for.
    fn over(&self) -> ScriptError {
        match self.ends.reached() {
            Some(ScriptErrorKind::Ended) => ScriptError::new(ScriptErrorKind::Ended, "it ended itself"),
            _ => ScriptError::new(ScriptErrorKind::Interrupted, "it was interrupted"),
        }
    }

    /// A promise, unless the script is over before: an end can not be caught, so it settles nothing either.
    async fn until<T>(&self, future: impl Future<Output = rquickjs::Result<T>>) -> rquickjs::Result<T> {
        let mut future = std::pin::pin!(future);
        futures::future::poll_fn(|context| match self.ends.reached() {
            Some(_) => Poll::Ready(Err(Error::Unknown)),
            None => future.as_mut().poll(context),
        })
        .await
    }

    fn remember(&self, name: &str, text: &str, insertions: Vec<Insertion>) {
        self.sources.borrow_mut().insert(name.to_owned(), Source { text: text.to_owned(), insertions });
    }

    /// Whether the script ever had all the memory that it may have. A guest's memory never becomes smaller.
    fn was_full(&self) -> bool {
        #[cfg(target_arch = "wasm32")]
        let most = core::arch::wasm32::memory_size::<0>().saturating_mul(65_536);
        #[cfg(not(target_arch = "wasm32"))]
        let most = 0;
        most >= self.memory_bytes
    }

    /// The result of running something, with its error as the author of the script can use it.
    pub fn caught<T>(&self, ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Result<T, ScriptError> {
        result.catch(ctx).map_err(|caught| match self.ends.reached() {
            Some(ScriptErrorKind::Ended) => self.over(),
            Some(_) if matches!(caught, CaughtError::Error(_)) => self.over(),
            // What the engine throws when there is no room for an error either.
            _ if matches!(&caught, CaughtError::Value(value) if value.is_null()) && self.was_full() => {
                ScriptError::new(ScriptErrorKind::Memory, "out of memory")
            }
            _ => ScriptError::of(caught, self.ends.interrupted(), &self.sources),
        })
    }
}

/// A body of a function to run.
pub struct Body<'a> {
    /// What it is called in errors.
    pub name: &'a str,
    /// The code.
    pub code: &'a str,
    /// The text as its author knows it, with as many lines.
    pub text: &'a str,
    /// What was put into the text before it became the code, for the places in errors.
    pub insertions: &'a [Insertion],
}

fn as_json<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Option<String>> {
    ctx.json_stringify(value)?.map(|json| json.to_string()).transpose()
}

/// How many promises that failed are kept at a time.
pub const MOST_UNHANDLED: usize = 1_000;

/// A promise that failed, and why.
type Unhandled = (Persistent<Value<'static>>, ScriptError);

fn forget<'js>(ctx: &Ctx<'js>, unhandled: &mut Vec<Unhandled>, promise: &Value<'js>) {
    unhandled.retain(|(known, _)| known.clone().restore(ctx).is_ok_and(|known| known != *promise));
}

/// Lets everything else have its turn once.
async fn yield_once() {
    let mut yielded = false;
    futures::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The modules of the host.
#[derive(Clone)]
struct Modules {
    host: Rc<dyn Host>,
    sources: Rc<RefCell<Sources>>,
}

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        self.host.resolve(base, name).map_err(|reason| Error::new_resolving_message(base, name, reason))
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        let text = self.host.load(name).map_err(|reason| Error::new_loading_message(name, reason))?;
        let module = Module::declare(ctx.clone(), name, text.as_str());
        self.sources.borrow_mut().insert(name.to_owned(), Source { text, insertions: Vec::new() });
        module
    }
}
