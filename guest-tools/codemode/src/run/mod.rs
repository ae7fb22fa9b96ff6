//! One script, from its first line to its result.
//!
//! Everything of it that hangs on the host (calls, the one sleep) is held by the driver in here and dropped with it, so that
//! nothing of it is left when the result is given.

mod drive;
mod result;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use atoll_js::rquickjs::{Constructor, Ctx, Result as ScriptResult, Value};
use atoll_js::{Body, Ending, ScriptError, frame};
use atoll_plugin::{Error, ToolOutput};
use futures::channel::oneshot;
use futures::future::{Either, LocalBoxFuture, select};

use self::drive::drive;
use self::result::{note_lost, note_timers, result};
use crate::calls::{Calls, Gate, MOST};
use crate::failure::Limit;
use crate::names::Names;
use crate::options::Options;
use crate::output::{Full, Output};
use crate::realm::{self, Realm};
use crate::sleeps::Sleeps;
use crate::source::{self, Prepared};
use crate::store::{DEEPEST, Store, depth};
use crate::{bridge, hints, host};

/// How long before the host would end it a script is ended, so that it ends with its output; in milliseconds. Less where it is
/// not allowed much.
const BEFORE: u64 = 250;
/// How long what a script did not wait for may take once its body has ended.
const REST: Duration = Duration::from_secs(10);
/// Whoever looks on is shown something new at most this often, in nanoseconds.
const SHOWN_EVERY: u64 = 100 * MILLISECOND;
/// The first things that are said are shown at once, and later ones if it is so long ago, in nanoseconds: what was shown is
/// all that is left of a script that the host has to end.
const SHOWN_AT_ONCE: u32 = 16;
const SHOWN_SOON: u64 = 20 * MILLISECOND;
/// How many errors of calls are kept.
const FAILURES: usize = 100;
/// How many errors of callbacks are kept.
const LOST: usize = 1_000;
/// The longest result that is handed on as data too, in bytes.
const STRUCTURED: usize = 1 << 20;
/// In nanoseconds.
const MILLISECOND: u64 = 1_000_000;

/// A script that runs.
pub(crate) struct Run {
    pub(crate) id: String,
    begun: u64,
    options: Options,
    ending: Ending,
    limit: Cell<Option<Limit>>,
    /// Computing that it may do, in milliseconds.
    cpu_ms: u64,
    /// How long it may take, in milliseconds.
    wall_ms: Option<u64>,
    /// Nanoseconds that were spent computing before now, and since when there is more of it.
    computed: Cell<u64>,
    computing_since: Cell<Option<u64>>,
    output: RefCell<Output>,
    /// What the body returned, as the model reads it, and as data.
    returned: RefCell<(Option<String>, Option<String>)>,
    /// It only counts if nothing else was said, to the very end.
    only_if_silent: Cell<bool>,
    shown_at: Cell<u64>,
    /// How often something was shown as soon as it was said.
    shown_at_once: Cell<u32>,
    /// What callbacks of timers and the like threw, with what called them.
    lost: RefCell<Vec<(String, ScriptError)>>,
    /// What was asked of the table that is no call.
    questions: Cell<usize>,
    /// The last errors that calls gave the script: their messages and codes.
    failures: RefCell<VecDeque<(String, &'static str)>>,
    pub(crate) calls: RefCell<Calls>,
    pub(crate) gate: Rc<Gate>,
    /// What waits for the host and is not driven yet.
    fresh: RefCell<Vec<LocalBoxFuture<'static, ()>>>,
    sleeps: RefCell<Sleeps>,
    pub(crate) store: RefCell<Store>,
    /// What can be called, and when that was asked.
    names: RefCell<Option<(u64, Rc<Names>)>>,
}

impl Run {
    fn new(id: String, options: Options, ending: Ending) -> Rc<Self> {
        let (cpu_ms, wall_ms) = host::left(&id);
        let before = |milliseconds: u64| milliseconds - BEFORE.min(milliseconds / 4);
        let own = options.timeout_ms.map(u64::from);
        Rc::new(Self {
            id,
            begun: host::monotonic(),
            cpu_ms: before(cpu_ms),
            wall_ms: own.into_iter().chain(wall_ms.map(before)).min(),
            ending,
            limit: Cell::new(None),
            computed: Cell::new(0),
            computing_since: Cell::new(None),
            output: RefCell::default(),
            returned: RefCell::default(),
            only_if_silent: Cell::new(false),
            shown_at: Cell::new(0),
            shown_at_once: Cell::new(0),
            lost: RefCell::default(),
            questions: Cell::new(0),
            failures: RefCell::default(),
            calls: RefCell::default(),
            gate: Gate::new(options.max_parallel_calls as usize),
            options,
            fresh: RefCell::default(),
            sleeps: RefCell::default(),
            store: RefCell::default(),
            names: RefCell::default(),
        })
    }

    /// Milliseconds since it began.
    #[allow(clippy::cast_precision_loss, reason = "what is lost is less than a nanosecond for a hundred days")]
    pub(crate) fn elapsed_ms(&self) -> f64 {
        host::monotonic().saturating_sub(self.begun) as f64 / 1e6
    }

    /// Ready after so long, a millisecond at least: what is due at once, again and again, would let nothing else come in.
    pub(crate) fn sleep(&self, duration: Duration) -> oneshot::Receiver<()> {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX).max(MILLISECOND);
        self.sleeps.borrow_mut().add(host::monotonic().saturating_add(nanoseconds))
    }

    /// Has the driver bring something to its end; `None` comes out if the script is over before.
    pub(crate) fn ask<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> oneshot::Receiver<T> {
        let (sender, receiver) = oneshot::channel();
        self.fresh.borrow_mut().push(Box::pin(async move {
            // Nobody waits for it once the script is over.
            let _ = sender.send(work.await);
        }));
        receiver
    }

    /// Adds to the output. Too much of it ends the script; gives whether it did not.
    pub(crate) fn say(&self, what: impl FnOnce(&mut Output) -> Result<(), Full>) -> bool {
        if self.ending.is_over() {
            return false;
        }
        let said = what(&mut self.output.borrow_mut());
        if said.is_err() {
            self.end_at(Limit::Output);
            return false;
        }
        let now = host::monotonic();
        let at_once = self.shown_at_once.get();
        if at_once < SHOWN_AT_ONCE {
            self.shown_at_once.set(at_once + 1);
            self.show_now(now);
        } else if now >= self.shown_at.get().saturating_add(SHOWN_SOON) {
            self.show_now(now);
        }
        true
    }

    /// Keeps an error of a callback that nothing can catch.
    pub(crate) fn lose(&self, from: &str, error: &ScriptError) {
        let mut lost = self.lost.borrow_mut();
        if lost.len() < LOST {
            lost.push((from.to_owned(), error.clone()));
        }
    }

    /// Remembers what a call failed of, for the case that the script fails of it.
    pub(crate) fn failed(&self, message: &str, code: &'static str) {
        let mut failures = self.failures.borrow_mut();
        if failures.len() >= FAILURES {
            failures.pop_front();
        }
        failures.push_back((begin_of(message), code));
    }

    /// Whether the table may be asked once more.
    pub(crate) fn may_ask(&self) -> bool {
        let asked = self.questions.get();
        self.questions.set(asked.saturating_add(1));
        asked < MOST
    }

    /// Whether a tool can be called.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.names(false).is_ok_and(|names| names.find(name).is_some())
    }

    pub(crate) fn note(&self, note: String) {
        self.output.borrow_mut().note(note);
    }

    fn end_at(&self, limit: Limit) {
        if self.limit.get().is_none() {
            self.limit.set(Some(limit));
        }
        self.ending.interrupt();
    }

    /// Asked by the engine every few thousand steps.
    pub(crate) fn has_to_stop(&self) -> bool {
        let now = host::monotonic();
        self.look_at_limits(now);
        self.show(now);
        self.limit.get().is_some()
    }

    fn deadline(&self) -> Option<u64> {
        self.wall_ms.map(|limit| self.begun.saturating_add(limit.saturating_mul(MILLISECOND)))
    }

    fn look_at_limits(&self, now: u64) {
        if self.deadline().is_some_and(|deadline| now >= deadline) {
            let own = self.options.timeout_ms.filter(|own| self.wall_ms == Some(u64::from(*own)));
            self.end_at(Limit::Timeout(own));
        }
        let computing = self.computing_since.get().map_or(0, |since| now.saturating_sub(since));
        if self.computed.get().saturating_add(computing) >= self.cpu_ms.saturating_mul(MILLISECOND) {
            self.end_at(Limit::Cpu(self.cpu_ms));
        }
    }

    /// When what is new is to be shown, though nothing else happens until then.
    fn has_to_show(&self) -> Option<u64> {
        self.output.borrow().has_changed().then(|| self.shown_at.get().saturating_add(SHOWN_EVERY))
    }

    /// Shows what there is, if that is new and not too soon.
    fn show(&self, now: u64) {
        if now >= self.shown_at.get().saturating_add(SHOWN_EVERY) {
            self.show_now(now);
        }
    }

    fn show_now(&self, now: u64) {
        let Ok(mut output) = self.output.try_borrow_mut() else { return };
        if !output.take_changed() {
            return;
        }
        self.shown_at.set(now);
        let mut text = output.last();
        let calls = self.calls.borrow();
        let running = calls.under_way();
        if !running.is_empty() {
            let shown: Vec<&str> = running.iter().take(5).copied().collect();
            text.push_str(&format!("\n({} of {} calls running: {}", running.len(), calls.len(), shown.join(", ")));
            text.push_str(if running.len() > shown.len() { ", …)" } else { ")" });
        }
        host::show(&self.id, text);
    }

    /// The tools that can be called. They are asked for again if one is not among them, and the last time is a while ago.
    pub(crate) fn names(&self, again: bool) -> Result<Rc<Names>, Error> {
        let now = host::monotonic();
        if let Some((asked, names)) = &*self.names.borrow()
            && !(again && now > asked.saturating_add(10 * MILLISECOND))
        {
            return Ok(Rc::clone(names));
        }
        let names = Rc::new(host::callable(&self.id)?);
        *self.names.borrow_mut() = Some((now, Rc::clone(&names)));
        Ok(names)
    }
}

/// Runs a script as the call `id`.
///
/// # Errors
/// The component is broken. A script that fails is an output that says so.
pub(crate) async fn run(id: String, prepared: Prepared) -> Result<ToolOutput, Error> {
    let realm = realm::warm()?;
    let run = Run::new(id, prepared.options, realm.engine.ending());
    realm.world.begin(&run);
    let mut ended = drive(&realm, &run, body(&realm, &run, &prepared)).await;
    if let Err(error) = &mut ended
        && error.name == "SyntaxError"
        && error.place().is_none()
    {
        find_pattern(&realm, &prepared, error).await;
    }
    realm.world.end();
    let mut lost = run.lost.take();
    lost.extend(realm.engine.take_unhandled().into_iter().map(|error| (String::new(), error)));
    note_lost(&run, &lost);
    let about = match &ended {
        Err(error) => About::error(&run, error).await,
        Ok(()) => About::default(),
    };
    Ok(result(&run, ended, &about))
}

/// Finds the regular expression that the engine could not read when it read the script: it does not say where that is.
async fn find_pattern(realm: &Realm, prepared: &Prepared, error: &mut ScriptError) {
    for range in &prepared.patterns {
        let Some((pattern, flags)) =
            prepared.text.get(range.clone()).and_then(|literal| literal.get(1..)?.rsplit_once('/'))
        else {
            continue;
        };
        let is_read = |ctx: Ctx<'_>| {
            let made = ctx
                .globals()
                .get::<_, Constructor<'_>>("RegExp")
                .and_then(|regexp| regexp.construct::<_, Value<'_>>((pattern, flags)));
            if made.is_err() {
                drop(ctx.catch());
            }
            made.is_ok()
        };
        if !realm.engine.context().with(is_read).await {
            let place = source::place_of(&prepared.text, range.start);
            error.frame = frame(&prepared.text, &place).map(String::into_boxed_str);
            error.stack = Box::new([place]);
            return;
        }
    }
}

/// As much of a message as tells it from others.
fn begin_of(message: &str) -> String {
    message.chars().take(1_000).collect()
}

/// What is known of an error beside itself.
#[derive(Default)]
struct About {
    hint: Option<String>,
    /// Its stable code, if it is that of a call.
    code: Option<&'static str>,
}

impl About {
    async fn error(run: &Run, error: &ScriptError) -> Self {
        if let Some(tool) = hints::missing_tool(&error.name, &error.message) {
            return Self::missing(tool).await;
        }
        let unsettled = run.calls.borrow().unsettled();
        let hint = hints::for_error(&error.name, &error.message, &|name| run.has(name))
            .or_else(|| hints::for_promise(&error.name, &error.message, &unsettled));
        let (failures, said) = (run.failures.borrow(), begin_of(&error.message));
        let code = failures.iter().rev().find(|(message, _)| *message == said).map(|(_, code)| *code);
        Self { hint, code: code.filter(|_| ["ToolError", "NotFoundError"].contains(&error.name.as_str())) }
    }

    /// Of a tool that scripts can not call, and perhaps nobody else.
    async fn missing(tool: &str) -> Self {
        let (why, code) = match host::is_inactive(tool).await {
            None => return Self { hint: None, code: Some("not-found") },
            Some(true) => ("it is not active".to_owned(), "not-found"),
            Some(false) => match host::describe(tool.to_owned()).await {
                Err(Error::Denied(denial)) => (format!("it is not allowed here: {}", denial.hint), "denied"),
                _ => ("scripts can not call it here".to_owned(), "not-found"),
            },
        };
        Self { hint: Some(format!("`{tool}` is there, but {why}")), code: Some(code) }
    }
}

/// Runs the body and all that it leaves behind.
async fn body(realm: &Realm, run: &Rc<Run>, prepared: &Prepared) -> Result<(), ScriptError> {
    let body =
        Body { name: source::NAME, code: &prepared.code, text: &prepared.text, insertions: &prepared.insertions };
    let (own, world) = (Rc::clone(run), Rc::clone(&realm.world));
    let only_if_silent = prepared.is_last_expression;
    let taken = Taken { run: own, world, only_if_silent };
    realm.engine.run_body_with(&body, |ctx, value| taken.take(ctx, value)).await?;
    let late = run.sleep(REST);
    let ended = match select(pin!(realm.engine.drain()), late).await {
        Either::Left((ended, _)) => ended,
        Either::Right(_) => {
            run.note(format!("What the script did not wait for was stopped after {} s.", REST.as_secs()));
            Ok(())
        }
    };
    note_timers(run, realm.engine.ending().timers());
    ended
}

/// Takes what a body returns.
struct Taken {
    run: Rc<Run>,
    world: Rc<realm::World>,
    only_if_silent: bool,
}

impl Taken {
    fn take<'js>(self, ctx: &Ctx<'js>, value: Value<'js>) -> ScriptResult<()> {
        if value.is_undefined() {
            return Ok(());
        }
        self.run.only_if_silent.set(self.only_if_silent);
        if self.only_if_silent && !self.run.output.borrow().is_empty() {
            return Ok(());
        }
        let before = self.run.output.borrow().count();
        let Some(said) = bridge::said(ctx, &self.world, value.clone())? else { return Ok(()) };
        let is_picture = self.run.output.borrow().count() > before;
        let structured = if said.len() > STRUCTURED || is_picture {
            None
        } else {
            // What has no form as data is text alone, and so is what is too deep for those who read it.
            bridge::as_json(ctx, value).filter(|json| json.len() <= STRUCTURED && depth(json) <= DEEPEST)
        };
        *self.run.returned.borrow_mut() = (Some(said), structured);
        Ok(())
    }
}
