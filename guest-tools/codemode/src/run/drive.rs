//! What lets a script, its calls and its timers go on, until the script is over.
//!
//! Nothing in here may go on without looking at the limits.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use atoll_js::ScriptError;
use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;

use super::{MILLISECOND, Run};
use crate::host;
use crate::realm::Realm;

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

/// Carries on with calls. Gives whether one of them is over.
fn advance(
    asked: &mut FuturesUnordered<LocalBoxFuture<'static, ()>>,
    context: &mut Context<'_>,
    woken: &Woken,
) -> bool {
    let mut went_on = false;
    for _ in 0..AT_ONCE {
        woken.woken.store(false, Relaxed);
        while let Poll::Ready(Some(())) = asked.poll_next_unpin(context) {
            went_on = true;
        }
        // When it has looked at each, it asks to be asked again, though there may be nothing left to do.
        if !woken.woken.load(Relaxed) {
            break;
        }
    }
    went_on
}

/// Drives the engine, the calls and the timers, until the script is over.
pub(super) async fn drive(
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
            // First what the host has brought, so that the script goes on with all of it at once.
            advance(&mut asked, context, &woken);
            let is_busy = woken.woken.swap(false, Relaxed);
            let begun = host::monotonic();
            run.computing_since.set(Some(begun));
            let polled = script.as_mut().poll(context);
            let now = host::monotonic();
            run.computing_since.set(None);
            run.computed.set(run.computed.get().saturating_add(now.saturating_sub(begun)));
            if polled.is_ready() {
                break polled;
            }
            let mut goes_on = is_busy || woken.woken.load(Relaxed);
            let fresh = run.fresh.take();
            let mut went_on = false;
            if !fresh.is_empty() {
                asked.extend(fresh);
                went_on = advance(&mut asked, context, &woken);
                goes_on |= woken.woken.load(Relaxed);
            }
            let was_over = ending.is_over();
            run.look_at_limits(now);
            went_on |= !was_over && ending.is_over();
            went_on |= run.sleeps.borrow_mut().wake(now);
            run.show(now);
            at_once += 1;
            if went_on || (goes_on && at_once <= AT_ONCE) {
                continue;
            }
            woken.woken.store(goes_on, Relaxed);
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
