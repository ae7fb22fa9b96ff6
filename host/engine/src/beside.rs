//! A call of a tool, and beside it, in the same task, one of the calls that it makes.
//!
//! An instance can not be run inside of the poll of another one, so what a call makes needs a task of its own, or a place
//! beside the call. Handing work to another thread and being woken by it takes longer than a small call does; a call that
//! makes others one after the other is spared both. Those that it makes at once have tasks of their own but for one, so that
//! all cores work on them.

use std::{
    future::poll_fn,
    panic::AssertUnwindSafe,
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
};

use atoll_table::Error;
use futures::{FutureExt as _, future::BoxFuture};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Something that is done to its end.
type Work = BoxFuture<'static, ()>;

/// The place beside a call.
#[derive(Clone)]
pub(crate) struct Beside {
    sender: mpsc::UnboundedSender<Work>,
    place: Arc<Semaphore>,
}

/// That place, taken.
pub(crate) struct Place {
    sender: mpsc::UnboundedSender<Work>,
    permit: OwnedSemaphorePermit,
}

/// Runs a call, and what it hands over. What is left of that when the call has ended is dropped.
pub(crate) async fn with<F: Future>(call: impl FnOnce(Beside) -> F) -> F::Output {
    let (sender, mut handed) = mpsc::unbounded_channel();
    let mut call = pin!(call(Beside { sender, place: Arc::new(Semaphore::new(1)) }));
    let mut work: Option<Work> = None;
    poll_fn(|context| {
        loop {
            if let Poll::Ready(output) = call.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            if !goes_on(&mut work, &mut handed, context) {
                return Poll::Pending;
            }
        }
    })
    .await
}

/// Polls what was handed over. Gives whether it was done, so that the call may have something to do now.
fn goes_on(work: &mut Option<Work>, handed: &mut mpsc::UnboundedReceiver<Work>, context: &mut Context<'_>) -> bool {
    if work.is_none() {
        let Poll::Ready(Some(new)) = handed.poll_recv(context) else { return false };
        *work = Some(new);
    }
    let done = work.as_mut().is_some_and(|work| work.as_mut().poll(context).is_ready());
    if done {
        *work = None;
    }
    done
}

impl Beside {
    /// The place, if nothing else has it.
    pub(crate) fn place(&self) -> Option<Place> {
        let permit = Arc::clone(&self.place).try_acquire_owned().ok()?;
        Some(Place { sender: self.sender.clone(), permit })
    }
}

impl Place {
    /// Has something done there. Dropped before it is done: it ends.
    ///
    /// # Errors
    /// `failed` if it panicked, or the call has ended.
    pub(crate) async fn run<R: Send + 'static>(
        self,
        work: impl Future<Output = R> + Send + 'static,
    ) -> Result<R, Error> {
        let Self { sender, permit } = self;
        let (mut answer, answered) = oneshot::channel();
        let work = async move {
            // Free again before whoever waits can ask for it the next time.
            let _permit = permit;
            let done = tokio::select! {
                biased;
                () = answer.closed() => return,
                done = AssertUnwindSafe(work).catch_unwind() => done,
            };
            let _ = answer.send(done);
        };
        // If it fails, nothing is answered either.
        let _ = sender.send(Box::pin(work));
        match answered.await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(_)) => Err(Error::Failed("the host failed: a call panicked".to_owned())),
            Err(_) => Err(Error::Failed("the host failed: a call was lost".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// In a task of its own, as calls are.
    async fn in_task<F>(call: impl FnOnce(Beside) -> F + Send + 'static) -> F::Output
    where
        F: Future<Output: Send> + Send + 'static,
    {
        tokio::spawn(with(call)).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_at_a_time_is_done_in_the_same_task() {
        in_task(|beside| async move {
            for _ in 0..3 {
                let place = beside.place().unwrap();
                assert!(beside.place().is_none());
                let there = place.run(async {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    tokio::task::id()
                });
                assert_eq!(there.await.unwrap(), tokio::task::id());
            }
        })
        .await;
    }

    #[tokio::test]
    async fn a_panic_is_an_error_of_the_one_that_panics() {
        in_task(|beside| async move {
            let failed = beside.place().unwrap().run(async { panic!("as asked") });
            assert_eq!(failed.await.map(|()| "done").unwrap_err().code(), "failed");
            assert_eq!(beside.place().unwrap().run(async { 1 }).await.unwrap(), 1);
        })
        .await;
    }

    #[tokio::test]
    async fn what_nobody_waits_for_ends() {
        in_task(|beside| async move {
            let (held, dropped) = oneshot::channel::<()>();
            let endless = beside.place().unwrap().run(async move {
                let _held = held;
                std::future::pending::<()>().await;
            });
            assert!(tokio::time::timeout(Duration::from_millis(1), endless).await.is_err());
            assert!(dropped.await.is_err());
            assert!(beside.place().is_some());
        })
        .await;
    }
}
