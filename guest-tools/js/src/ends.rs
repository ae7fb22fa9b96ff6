//! What ends a script before its last line: an interruption, its own wish, and that nothing can go on.
//!
//! The engine does not hand an interruption after an `await` to anybody, so whoever drives a script looks here after each
//! step. Nothing in here may run code of a script.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use rquickjs::{Ctx, Error, Exception, qjs};

use crate::error::ScriptErrorKind;

/// The state that an engine, its timers and its handles share.
#[derive(Default)]
pub(crate) struct Ends {
    interrupted: Cell<bool>,
    ended: Cell<bool>,
    /// What can still settle a promise from outside, and how much of it are timers.
    pending: Cell<u32>,
    timers: Cell<u32>,
}

impl Ends {
    pub(crate) fn interrupt(&self) {
        self.interrupted.set(true);
    }

    pub(crate) fn interrupted(&self) -> bool {
        self.interrupted.get()
    }

    /// Whether the script has to stop, and of what.
    pub(crate) fn reached(&self) -> Option<ScriptErrorKind> {
        match (self.ended.get(), self.interrupted.get()) {
            (true, _) => Some(ScriptErrorKind::Ended),
            (false, true) => Some(ScriptErrorKind::Interrupted),
            (false, false) => None,
        }
    }

    pub(crate) fn pending(self: Rc<Self>, is_timer: bool) -> Pending {
        self.pending.set(self.pending.get().saturating_add(1));
        if is_timer {
            self.timers.set(self.timers.get().saturating_add(1));
        }
        Pending { ends: self, is_timer }
    }

    /// How many timers still wait.
    pub(crate) fn timers(&self) -> u32 {
        self.timers.get()
    }

    /// Nothing outside of the script can settle a promise any more.
    fn is_idle(&self) -> bool {
        self.pending.get() == 0
    }

    /// The same, without timers.
    fn is_done(&self) -> bool {
        self.pending.get() == self.timers.get()
    }
}

/// Says that something outside of the script can still settle one of its promises. As long as there is one, a script that
/// waits is not stuck.
pub struct Pending {
    ends: Rc<Ends>,
    is_timer: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.ends.pending.set(self.ends.pending.get().saturating_sub(1));
        if self.is_timer {
            self.ends.timers.set(self.ends.timers.get().saturating_sub(1));
        }
    }
}

/// Ends a script from one of the host's functions.
#[derive(Clone)]
pub struct Ending(pub(crate) Rc<Ends>);

impl Ending {
    /// Ends the script that calls the function that this is called in: nothing of it runs on, and it can not catch that. Its
    /// run ends with [`ScriptErrorKind::Ended`]. Return the error.
    #[must_use]
    pub fn end(&self, ctx: &Ctx<'_>) -> Error {
        self.0.ended.set(true);
        self.stop(ctx)
    }

    /// Stops what runs in the same way, without a change to how the run ends.
    #[must_use]
    pub fn stop(&self, ctx: &Ctx<'_>) -> Error {
        match Exception::from_message(ctx.clone(), "ended") {
            Ok(error) => {
                let error = error.into_value();
                // SAFETY: both are of this runtime, and alive. The call only marks the error.
                unsafe { qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), error.as_raw()) };
                ctx.throw(error)
            }
            Err(error) => error,
        }
    }

    /// Ends the script with [`ScriptErrorKind::Interrupted`], as [`crate::Host::interrupted`] does. What runs goes on up to
    /// its next step unless [`Ending::stop`] stops it.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }

    /// Says that something outside can still settle a promise, until it is dropped.
    #[must_use]
    pub fn pending(&self) -> Pending {
        Rc::clone(&self.0).pending(false)
    }

    /// How many timers of the script still wait.
    #[must_use]
    pub fn timers(&self) -> u32 {
        self.0.timers()
    }

    /// Whether the script was ended, by itself or by [`crate::Host::interrupted`]: what it still asks for has no effect.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.reached().is_some()
    }
}

/// When a run that waits is over by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// When nothing can settle a promise.
    Stuck,
    /// When nothing can settle a promise but timers. Many a script leaves one behind that only was to end its waiting.
    Done,
    /// Never: the caller has futures of its own that are not counted.
    Waits,
}

/// A run, with its early ends.
pub(crate) struct Watched<'a, F> {
    pub(crate) run: Pin<Box<F>>,
    pub(crate) ends: &'a Ends,
    pub(crate) idle: Idle,
    /// It was idle when it was last polled. Some of its jobs may have been left for the next time even so.
    pub(crate) was_idle: bool,
}

impl<F: Future> Future for Watched<'_, F> {
    type Output = Result<F::Output, ScriptErrorKind>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.run.as_mut().poll(context) {
            return Poll::Ready(Ok(output));
        }
        let idle = match self.idle {
            Idle::Stuck => self.ends.is_idle(),
            Idle::Done => self.ends.is_done(),
            Idle::Waits => false,
        };
        let was_idle = std::mem::replace(&mut self.was_idle, idle);
        match self.ends.reached() {
            Some(kind) => Poll::Ready(Err(kind)),
            None if idle && was_idle => Poll::Ready(Err(ScriptErrorKind::Stuck)),
            None if idle => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None => Poll::Pending,
        }
    }
}
