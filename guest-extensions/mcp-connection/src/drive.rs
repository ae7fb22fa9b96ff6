//! The one tokio runtime. The client's library wants its tasks to be there, and a component has nobody who runs a runtime
//! beside it: so it is run, for a moment, each time a future of ours is.
//!
//! Tasks of the runtime wait for channels only. Whoever waits for an import does it in a future that is driven here, never
//! in a task: an import's waker does not reach one. Timers of tokio fire late, with whatever else happens: nobody here relies
//! on one.

use std::{future::Future, pin::pin, rc::Rc};

use atoll_plugin::Error;
use tokio::runtime::{Builder, Runtime};

/// How often the runtime is let run on after a future of ours was: once for what is ready, with what becomes ready by it, and
/// again for tasks that gave way to others meanwhile. Each time it looks at its clock more than once, which is an import.
const ROUNDS: usize = 3;
/// How many tasks it runs each time at most.
const TASKS: u32 = 1_000;

/// The runtime. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Drive(Rc<Runtime>);

impl Drive {
    /// A runtime of its own.
    ///
    /// # Errors
    /// `failed` if there can be none.
    pub fn new() -> Result<Self, Error> {
        let runtime = Builder::new_current_thread().enable_time().event_interval(TASKS).build();
        runtime
            .map(|runtime| Self(Rc::new(runtime)))
            .map_err(|error| Error::failed(format!("There is no runtime: {error}")))
    }

    /// Runs a future that uses the runtime's tasks. Not inside of another one.
    pub async fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        std::future::poll_fn(|context| {
            let polled = {
                let _inside = self.0.enter();
                future.as_mut().poll(context)
            };
            self.0.block_on(async {
                for _ in 0..ROUNDS {
                    tokio::task::yield_now().await;
                }
            });
            // What a task has done for it meanwhile wakes it by its waker.
            polled
        })
        .await
    }
}
