//! One script, from its first line to its result.
//!
//! Everything of it that hangs on the host (calls, the one sleep) is held by the driver in here and dropped with it, so that
//! nothing of it is left when the result is given.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use atoll_js::rquickjs::{Constructor, Ctx, Result as ScriptResult, Value};
use atoll_js::{Body, Ending, ScriptError, ScriptErrorKind, frame};
use atoll_plugin::{Error, ToolOutput};
use futures::StreamExt as _;
use futures::channel::oneshot;
use futures::future::{Either, LocalBoxFuture, select};
use futures::stream::FuturesUnordered;
use serde_json::json;

use crate::calls::{Calls, Gate, MOST};
use crate::failure::{self, Limit};
use crate::names::Names;
use crate::options::Options;
use crate::output::{Full, Output};
use crate::realm::{self, MEMORY, Realm};
use crate::sleeps::Sleeps;
use crate::source::{self, Prepared};
use crate::store::{DEEPEST, Store, depth};
use crate::{bridge, hints, host};

/// How long before the host would end it a script is ended, so that it ends with its output; in milliseconds. Less where it is
/// not allowed much.
const BEFORE: u64 = 250;
/// How long what a script did not wait for may take once its body has ended.
const REST: Duration = Duration::from_secs(10);
/// How many promises that failed unseen are noted one by one.
const NOTED: usize = 10;
/// Whoever looks on is shown something new at most this often, in nanoseconds.
const SHOWN_EVERY: u64 = 100 * MILLISECOND;
/// The first things that are said are shown at once, and later ones if it is so long ago, in nanoseconds: what was shown is
/// all that is left of a script that the host has to end.
const SHOWN_AT_ONCE: u32 = 16;
const SHOWN_SOON: u64 = 20 * MILLISECOND;
/// A timer that is due so soon after the end is one that the script may have meant to wait for, in nanoseconds.
const SOON: u64 = 1_000 * MILLISECOND;
/// How many of them are noted with their line.
const FRAMED: usize = 3;
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

/// Notes timers that the script may have meant to wait for: many a one is left behind that was only to end its waiting.
fn note_timers(run: &Run, timers: u32) {
    let returned = run.returned.borrow().0.is_some() && !run.only_if_silent.get();
    let is_silent = run.output.borrow().is_empty();
    if timers == 0 || returned || !(is_silent || run.sleeps.borrow().has_by(host::monotonic().saturating_add(SOON))) {
        return;
    }
    let were = if timers == 1 { "1 timer was".to_owned() } else { format!("{timers} timers were") };
    run.note(format!("{were} not waited for: `await new Promise((done) => setTimeout(done, 100))` waits."));
}

/// Notes what failed without anybody ever looking at it. What has no name of what called it is a promise.
fn note_lost(run: &Run, lost: &[(String, ScriptError)]) {
    struct Note {
        text: String,
        times: usize,
        frame: Option<Box<str>>,
    }
    let mut notes: Vec<Note> = Vec::new();
    for (from, error) in lost {
        let at = error.place().map_or_else(String::new, |at| format!(" (line {}:{})", at.line, at.column));
        let name = if error.name.is_empty() { String::new() } else { format!("{}: ", error.name) };
        let what = if from.is_empty() {
            "A promise failed and nothing waited for it".to_owned()
        } else {
            format!("The callback of {from} failed")
        };
        let text = format!("{what}{at}: {name}{}", error.message);
        match notes.iter_mut().find(|known| known.text == text) {
            Some(known) => known.times += 1,
            None => notes.push(Note { text, times: 1, frame: error.frame.clone() }),
        }
    }
    let more: usize = notes.iter().skip(NOTED).map(|note| note.times).sum();
    for (at, Note { text, times, frame }) in notes.into_iter().take(NOTED).enumerate() {
        let times = if times == 1 { String::new() } else { format!(" ({times} times)") };
        let frame = frame.filter(|_| at < FRAMED).map_or_else(String::new, |frame| format!("\n{frame}"));
        run.note(format!("{text}{times}{frame}"));
    }
    if more > 0 {
        run.note(format!("{more} more of these failed and nothing waited for them."));
    }
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

/// How often what woke itself goes on at once, before the host has its turn.
const AT_ONCE: u32 = 64;

/// Notes that what is polled woke itself, instead of telling the host: going to the host and back takes longer than most
/// scripts have to do.
struct Woken {
    /// It is being polled.
    polled: AtomicBool,
    woken: AtomicBool,
    /// Tells the host.
    outer: Waker,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.polled.load(Relaxed) {
            self.woken.store(true, Relaxed);
        } else {
            self.outer.wake_by_ref();
        }
    }
}

/// Drives the engine, the calls and the timers, until the script is over.
async fn drive(
    realm: &Realm,
    run: &Rc<Run>,
    script: impl Future<Output = Result<(), ScriptError>>,
) -> Result<(), ScriptError> {
    let mut script = pin!(script);
    let mut asked: FuturesUnordered<LocalBoxFuture<'static, ()>> = FuturesUnordered::new();
    let mut alarm: Option<(u64, LocalBoxFuture<'static, ()>)> = None;
    let ending = realm.engine.ending();
    poll_fn(|context| {
        let outer = context.waker().clone();
        let woken = Arc::new(Woken { polled: AtomicBool::new(true), woken: AtomicBool::new(false), outer });
        let waker = Waker::from(Arc::clone(&woken));
        let mut inner = Context::from_waker(&waker);
        let mut at_once = 0;
        let polled = loop {
            let context = &mut inner;
            let begun = host::monotonic();
            run.computing_since.set(Some(begun));
            let polled = script.as_mut().poll(context);
            let now = host::monotonic();
            run.computing_since.set(None);
            run.computed.set(run.computed.get().saturating_add(now.saturating_sub(begun)));
            if polled.is_ready() {
                break polled;
            }
            asked.extend(run.fresh.take());
            let mut went_on = false;
            while let Poll::Ready(Some(())) = asked.poll_next_unpin(context) {
                went_on = true;
            }
            let now = host::monotonic();
            let was_over = ending.is_over();
            run.look_at_limits(now);
            went_on |= !was_over && ending.is_over();
            went_on |= run.sleeps.borrow_mut().wake(now);
            run.show(now);
            at_once += 1;
            if went_on || (at_once <= AT_ONCE && woken.woken.swap(false, Relaxed)) {
                continue;
            }
            let due = run.sleeps.borrow().next().into_iter().chain(run.deadline()).chain(run.has_to_show()).min();
            if alarm.as_ref().map(|(due, _)| *due) != due {
                alarm = due.map(|due| {
                    // Rounded up, so that it is due when it rings.
                    let milliseconds = due.saturating_sub(now).div_ceil(MILLISECOND);
                    (due, Box::pin(host::sleep(milliseconds)) as LocalBoxFuture<'static, ()>)
                });
            }
            let rang = alarm.as_mut().is_some_and(|(_, ringing)| ringing.as_mut().poll(context).is_ready());
            if !rang {
                break Poll::Pending;
            }
            alarm = None;
        };
        woken.polled.store(false, Relaxed);
        if polled.is_pending() && woken.woken.load(Relaxed) {
            context.waker().wake_by_ref();
        }
        polled
    })
    .await
}

/// The result of a script.
fn result(run: &Run, ended: Result<(), ScriptError>, about: &About) -> ToolOutput {
    let now = host::monotonic();
    let mut calls = run.calls.borrow_mut();
    let awaited: Vec<String> = calls.under_way().into_iter().map(str::to_owned).collect();
    let (stopped, not_begun) = calls.stop(now);
    let mut output = run.output.take();
    let (mut returned, mut structured) = run.returned.take();
    if run.only_if_silent.get() && !output.is_empty() {
        (returned, structured) = (None, None);
    }
    let mut limit = run.limit.get();
    let error = match ended {
        Err(error) if error.kind == ScriptErrorKind::Ended => None,
        ended => ended.err(),
    };
    if let Some(text) = returned
        && output.text(text).is_err()
    {
        limit = limit.or(Some(Limit::Output));
    }
    if error.is_none() {
        if !stopped.is_empty() {
            output.note(format!("Stopped with the script: {}.", short_list(&stopped)));
        }
        if !not_begun.is_empty() {
            output.note(format!("Not begun when the script ended: {}.", short_list(&not_begun)));
        }
    }
    limit = limit.or(match error.as_ref().map(|error| error.kind) {
        Some(ScriptErrorKind::Memory) => Some(Limit::Memory(MEMORY)),
        Some(ScriptErrorKind::Stack) => Some(Limit::Stack),
        _ => None,
    });
    let error = error.or_else(|| limit.map(|_| ScriptError::interrupted()));
    let awaited: Vec<&str> = awaited.iter().take(5).map(String::as_str).collect();
    host::shape(&run.id, run.options.max_output_tokens.saturating_mul(4));
    let failure =
        error.as_ref().map(|error| failure::said(error, limit, &awaited, &calls.done(), about.hint.as_deref()));
    let seconds = Duration::from_nanos(now.saturating_sub(run.begun)).as_secs_f64();
    let made = match calls.count_made() {
        0 => String::new(),
        1 => ", 1 call".to_owned(),
        many => format!(", {many} calls"),
    };
    let status = match failure {
        None => format!("Completed in {seconds:.2} s{made}."),
        Some(_) => format!("Failed after {seconds:.2} s{made}."),
    };
    let is_error = failure.is_some();
    let (content, parts) = output.into_content(status, failure);
    let (records, omitted) = calls.details(&run.id);
    let mut details = json!({"calls": records, "parts": parts});
    if let Some(fields) = details.as_object_mut() {
        if omitted > 0 {
            fields.insert("callsOmitted".to_owned(), omitted.into());
        }
        if let Some(limit) = limit {
            fields.insert("limit".to_owned(), limit.name().into());
        }
        if let Some(error) = &error {
            let code = match limit {
                Some(Limit::Timeout(_)) => "timeout",
                Some(_) => "limit",
                None => about.code.unwrap_or("failed"),
            };
            fields.insert("error".to_owned(), json!({"code": code, "message": error.message}));
        }
    }
    ToolOutput {
        content,
        details: Some(details.to_string()),
        structured: structured.filter(|_| !is_error),
        is_error,
        terminate: false,
        usage: None,
    }
}

fn short_list(names: &[String]) -> String {
    const MOST: usize = 10;
    let shown = names.iter().take(MOST).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > MOST { format!("{shown} and {} more", names.len() - MOST) } else { shown }
}
