//! Getting something to an extension and its answer back: what is kept of it meanwhile, and what happens when nobody waits
//! any more.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use atoll_table::{
    Error, Progress,
    extension::{Event, StartReason},
};
use tokio::sync::{oneshot, watch};

use crate::{
    actor::{Actor, Job, Lifeline},
    bindings::exports::atoll::plugin::extension as wit,
    call::Clock,
    convert,
    state::{RunningCall, RunningCalls, lock},
};

/// How many handlers may run on although nobody waits for them, before the instance is given up.
const MOST_OVERDUE: usize = 8;
/// How long one of them may.
const LONGEST_OVERDUE: Duration = Duration::from_secs(30);
/// How long a call or a command may take to end once it is stopped, before that counts.
pub(crate) const TO_END: Duration = Duration::from_secs(5);

/// Something that an instance is to carry out.
pub(crate) struct Order {
    /// Goes with the job.
    pub(crate) entry: Entry,
    /// Stays with whoever waits.
    pub(crate) waiting: Waiting,
}

/// Stands for it among what the instance carries out. Dropped when the guest is done with it.
pub(crate) struct Entry {
    id: String,
    running: RunningCalls,
    lifeline: Arc<Lifeline>,
    _done: oneshot::Sender<()>,
}

/// Waits for its answer. Dropped before there was one: the guest is told, and the instance is given up if too much of it
/// does not end.
pub(crate) struct Waiting {
    lifeline: Arc<Lifeline>,
    wanted: Option<watch::Sender<()>>,
    done: Option<oneshot::Receiver<()>>,
    /// How long it may run on.
    grace: Duration,
    reason: Error,
}

/// Notes that an instance is to carry out `id`. `grace` is how long it may run on when nobody waits any more, `reason` the
/// death of an instance that lets too much run on.
pub(crate) fn order(
    actor: &Actor,
    id: String,
    call: impl FnOnce(watch::Receiver<()>) -> RunningCall,
    grace: Duration,
    reason: Error,
) -> Order {
    let (wanted, receiver) = watch::channel(());
    let (sender, done) = oneshot::channel();
    lock(&actor.running).insert(id.clone(), call(receiver));
    let lifeline = Arc::clone(&actor.lifeline);
    lifeline.busy.send_modify(|number| *number += 1);
    let entry = Entry { id, running: Arc::clone(&actor.running), lifeline: Arc::clone(&lifeline), _done: sender };
    Order { entry, waiting: Waiting { lifeline, wanted: Some(wanted), done: Some(done), grace, reason } }
}

/// What is known of an event or a command while it runs. `below`: how many calls are around those that it makes.
pub(crate) fn running(below: u32, clock: &Arc<Clock>, wanted: watch::Receiver<()>) -> RunningCall {
    let progress: Progress = Arc::new(|_, _| {});
    RunningCall { progress, table: None, wanted, clock: Arc::clone(clock), below, beside: None, wishes: None }
}

impl Entry {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        lock(&self.running).remove(&self.id);
        self.lifeline.busy.send_modify(|number| *number = number.saturating_sub(1));
    }
}

impl Waiting {
    /// There is an answer.
    pub(crate) fn answered(mut self) {
        self.done = None;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.wanted.take());
        let (Some(done), Ok(runtime)) = (self.done.take(), tokio::runtime::Handle::try_current()) else { return };
        let (lifeline, grace, reason) = (Arc::clone(&self.lifeline), self.grace, self.reason.clone());
        runtime.spawn(run_on(lifeline, done, grace, reason));
    }
}

/// Looks after something that runs on although nobody waits for it.
async fn run_on(lifeline: Arc<Lifeline>, mut done: oneshot::Receiver<()>, grace: Duration, reason: Error) {
    if tokio::time::timeout(grace, &mut done).await.is_ok() {
        return;
    }
    if lifeline.overdue.fetch_add(1, Ordering::SeqCst) + 1 >= MOST_OVERDUE
        || tokio::time::timeout(LONGEST_OVERDUE, &mut done).await.is_err()
    {
        lifeline.kill(reason);
    }
    lifeline.overdue.fetch_sub(1, Ordering::SeqCst);
}

/// The answer to something.
type Answer<R> = oneshot::Sender<Result<R, Error>>;

/// `start`.
pub(super) fn start(reason: StartReason, entry: Entry, answer: Answer<wit::Subscription>) -> Job {
    Box::new(move |accessor, guests| {
        Box::pin(async move {
            let _entry = entry;
            let Some(guest) = &guests.extension else { return Ok(()) };
            let started = guest.call_start(accessor, convert::extension::reason_to_wit(reason)).await?;
            let _ = answer.send(started.map_err(Error::from));
            Ok(())
        })
    })
}

/// `on-event`, for somebody who waits.
pub(super) fn asked(event: Event, entry: Entry, answer: Answer<wit::Outcome>) -> Job {
    Box::new(move |accessor, guests| {
        Box::pin(async move {
            let Some(guest) = &guests.extension else { return Ok(()) };
            // It waited so long that nobody waits for it.
            if answer.is_closed() {
                return Ok(());
            }
            let event = convert::extension::event_to_wit(event);
            let outcome = guest.call_on_event(accessor, entry.id().to_owned(), event).await?;
            let _ = answer.send(outcome.map_err(Error::from));
            Ok(())
        })
    })
}

/// `on-event`, for nobody but `failed`, which is told of a failure. `waiting` is held until it has ended.
pub(super) fn told(
    event: Event,
    entry: Entry,
    waiting: Waiting,
    held: impl Send + 'static,
    failed: impl FnOnce(Error) + Send + 'static,
) -> Job {
    Box::new(move |accessor, guests| {
        Box::pin(async move {
            let _held = held;
            let Some(guest) = &guests.extension else { return Ok(()) };
            let event = convert::extension::event_to_wit(event);
            let outcome = guest.call_on_event(accessor, entry.id().to_owned(), event).await?;
            waiting.answered();
            if let Err(error) = outcome {
                failed(error.into());
            }
            Ok(())
        })
    })
}

/// `run-command`.
pub(super) fn command(name: String, arguments: String, entry: Entry, answer: Answer<()>) -> Job {
    Box::new(move |accessor, guests| {
        Box::pin(async move {
            let Some(guest) = &guests.extension else { return Ok(()) };
            if answer.is_closed() {
                return Ok(());
            }
            let ran = guest.call_run_command(accessor, entry.id().to_owned(), name, arguments).await?;
            let _ = answer.send(ran.map_err(Error::from));
            Ok(())
        })
    })
}

/// `complete-command`.
pub(super) fn completion(name: String, arguments: String, entry: Entry, answer: Answer<Vec<wit::Completion>>) -> Job {
    Box::new(move |accessor, guests| {
        Box::pin(async move {
            let _entry = entry;
            let Some(guest) = &guests.extension else { return Ok(()) };
            if answer.is_closed() {
                return Ok(());
            }
            let completions = guest.call_complete_command(accessor, name, arguments).await?;
            let _ = answer.send(completions.map_err(Error::from));
            Ok(())
        })
    })
}

/// `stop`.
pub(super) fn stop(answer: oneshot::Sender<()>) -> Job {
    Box::new(move |accessor, guests| {
        Box::pin(async move {
            if let Some(guest) = &guests.extension {
                guest.call_stop(accessor).await?;
            }
            let _ = answer.send(());
            Ok(())
        })
    })
}
