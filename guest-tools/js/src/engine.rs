//! The runtime: limits, modules, and running scripts to their end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Poll;

use rquickjs::context::EvalOptions;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::runtime::RejectionTracker;
use rquickjs::{AsyncContext, AsyncRuntime, CatchResultExt, Ctx, Error, Module, Persistent, Promise, Value};

use crate::error::{ScriptError, ScriptErrorKind, Source, Sources};
use crate::globals;
use crate::host::{Host, Level};

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
    /// 64 MiB for scripts that hold a large file, and half of the 512 KiB of stack that a guest has.
    fn default() -> Self {
        Self { memory_bytes: 64 << 20, stack_bytes: 256 << 10 }
    }
}

/// A runtime with one global object.
pub struct Engine {
    context: AsyncContext,
    host: Rc<dyn Host>,
    sources: Rc<RefCell<Sources>>,
    interrupted: Rc<Cell<bool>>,
}

impl Engine {
    /// Makes a runtime whose built-in objects scripts can use and not change.
    ///
    /// # Errors
    /// The limits are too small for the globals alone.
    pub async fn new(host: Rc<dyn Host>, limits: Limits) -> Result<Self, ScriptError> {
        let no_room = |error: Error| ScriptError::new(ScriptErrorKind::Memory, format!("no room to begin: {error}"));
        let runtime = AsyncRuntime::new().map_err(no_room)?;
        runtime.set_memory_limit(limits.memory_bytes).await;
        runtime.set_max_stack_size(limits.stack_bytes).await;
        let interrupted = Rc::new(Cell::new(false));
        let (asked, noted) = (Rc::clone(&host), Rc::clone(&interrupted));
        let handler = move || {
            let interrupted = asked.interrupted();
            noted.set(noted.get() || interrupted);
            interrupted
        };
        runtime.set_interrupt_handler(Some(Box::new(handler))).await;
        let sources = Rc::new(RefCell::new(Sources::new()));
        let modules = Modules { host: Rc::clone(&host), sources: Rc::clone(&sources) };
        runtime.set_loader(modules.clone(), modules).await;
        let context = AsyncContext::full(&runtime).await.map_err(no_room)?;
        let engine = Self { context, host: Rc::clone(&host), sources, interrupted };
        let installed = engine.context.with(|ctx| engine.caught(&ctx, globals::install(&ctx, &host))).await;
        installed.map(|()| engine)
    }

    /// From here on [`crate::Host::console`] hears of promises that fail while nobody looks at them, once it is clear that
    /// nobody does.
    pub async fn report_unhandled(&self) {
        let unhandled: Rc<RefCell<Vec<Unhandled>>> = Rc::default();
        let (host, sources, interrupted) =
            (Rc::clone(&self.host), Rc::clone(&self.sources), Rc::clone(&self.interrupted));
        let tracker: RejectionTracker = Box::new(move |ctx, promise, reason, is_handled| {
            if is_handled {
                let is_other = |(known, _): &Unhandled| known.clone().restore(&ctx).is_ok_and(|known| known != promise);
                unhandled.borrow_mut().retain(is_other);
                return;
            }
            let error = ScriptError::of_thrown(reason, interrupted.get(), &sources.borrow());
            unhandled.borrow_mut().push((Persistent::save(&ctx, promise), error));
            let (host, unhandled) = (Rc::clone(&host), Rc::clone(&unhandled));
            ctx.spawn(async move {
                // What is about to look at it is a job that runs before this is polled again.
                yield_once().await;
                for (_, error) in unhandled.take() {
                    host.console(Level::Error, &format!("a promise failed and nothing waits for it: {error}"));
                }
            });
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
        self.remember(name, source, 0);
        self.context
            .async_with(async |ctx| {
                let run = async {
                    let promise = Module::evaluate(ctx.clone(), name, source)?;
                    promise.into_future::<()>().await
                };
                let ended = run.await;
                self.caught(&ctx, ended)
            })
            .await
    }

    /// Runs JavaScript as the body of an async function. Returns what it returns as JSON; `None` if JSON has nothing
    /// for it.
    ///
    /// # Errors
    /// What the body throws, or the limit it is over.
    pub async fn run_body(&self, name: &str, body: &str) -> Result<Option<String>, ScriptError> {
        self.remember(name, body, u32::try_from(BODY_OPENS.len()).unwrap_or(0));
        self.context
            .async_with(async |ctx| {
                let run = async {
                    let mut options = EvalOptions::default();
                    options.filename = Some(name.to_owned());
                    let source = format!("{BODY_OPENS}{body}\n}})()");
                    let promise: Promise<'_> = ctx.eval_with_options(source, options)?;
                    let value: Value<'_> = promise.into_future().await?;
                    ctx.json_stringify(value)?.map(|json| json.to_string()).transpose()
                };
                let ended = run.await;
                self.caught(&ctx, ended)
            })
            .await
    }

    fn remember(&self, name: &str, text: &str, offset: u32) {
        self.sources.borrow_mut().insert(name.to_owned(), Source { text: text.to_owned(), offset });
    }

    /// The result of running something, with its error as the author of the script can use it.
    pub fn caught<T>(&self, ctx: &Ctx<'_>, result: rquickjs::Result<T>) -> Result<T, ScriptError> {
        result.catch(ctx).map_err(|caught| ScriptError::of(caught, self.interrupted.get(), &self.sources.borrow()))
    }
}

/// A promise that failed, and why.
type Unhandled = (Persistent<Value<'static>>, ScriptError);

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
        self.sources.borrow_mut().insert(name.to_owned(), Source { text, offset: 0 });
        module
    }
}
