//! The life of an instance as a future that its own task carries on, and that whoever waits for an answer may carry on in
//! its own turn: a question to an instance that has nothing else to do is then answered without another thread being woken.
//!
//! Must never wait for the life: it is somebody else's turn, or it is taken.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, TryLockError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::{Duration, Instant},
};

use futures::future::BoxFuture;

use crate::{limits::in_an_instance, state::lock};

/// The life, until it is over.
type Life = Mutex<Option<BoxFuture<'static, ()>>>;

struct Turns {
    life: Life,
    /// Wakes the task whose it is.
    waker: Mutex<Option<Waker>>,
    /// What is woken by what a visitor's turn has begun.
    visit: Arc<Visit>,
    /// That task was woken while it was somebody else's turn.
    missed: AtomicBool,
}

/// Wakes the task whose life it is, unless it is woken in the middle of a visitor's turn, who then goes on.
#[derive(Default)]
struct Visit {
    task: Mutex<Option<Waker>>,
    under_way: AtomicBool,
    woken: AtomicBool,
}

/// For how long a visitor begins to go on because of what it did itself. Who computes for long does so in its own task.
const VISIT: Duration = Duration::from_millis(1);

impl Wake for Visit {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if !self.under_way.load(Ordering::SeqCst)
            && let Some(task) = &*lock(&self.task)
        {
            task.wake_by_ref();
        }
    }
}

impl Visit {
    /// Polls until nothing more is to be done now. Whether the life is over, and whether more is to be done.
    fn poll(self: &Arc<Self>, life: &mut BoxFuture<'static, ()>, task: &Waker) -> (bool, bool) {
        lock(&self.task).get_or_insert_with(|| task.clone()).clone_from(task);
        let waker = Waker::from(Arc::clone(self));
        let mut context = Context::from_waker(&waker);
        self.under_way.store(true, Ordering::SeqCst);
        let (mut is_over, began) = (false, Instant::now());
        loop {
            self.woken.store(false, Ordering::SeqCst);
            // A panic is the end of that instance, and of nothing else, whoever's turn it is.
            let polled = catch_unwind(AssertUnwindSafe(|| life.as_mut().poll(&mut context)));
            is_over |= polled.map_or(true, |polled| polled.is_ready());
            if is_over || !self.woken.load(Ordering::SeqCst) || began.elapsed() > VISIT {
                break;
            }
        }
        self.under_way.store(false, Ordering::SeqCst);
        (is_over, self.woken.load(Ordering::SeqCst))
    }
}

/// Spawns the task of a life.
pub(crate) fn spawn(life: impl Future<Output = ()> + Send + 'static) -> Visitor {
    let turns = Arc::new(Turns {
        life: Mutex::new(Some(Box::pin(life))),
        waker: Mutex::new(None),
        visit: Arc::default(),
        missed: AtomicBool::new(false),
    });
    let visitor = Visitor(Arc::downgrade(&turns));
    tokio::spawn(Own(turns));
    visitor
}

/// Carries a life on now and then. Does not keep it.
#[derive(Clone)]
pub(crate) struct Visitor(Weak<Turns>);

impl Visitor {
    /// Carries the life on until it waits for something. Where it is being carried on already, it is seen to it that this
    /// happens once more. In the middle of another instance's turn its task does it: what is used of the processor would be
    /// counted as that one's.
    pub(crate) fn carry_on(&self) {
        let Some(turns) = self.0.upgrade() else { return };
        if !in_an_instance() {
            turns.visit();
        } else if let Some(waker) = &*lock(&turns.waker) {
            waker.wake_by_ref();
        }
    }
}

impl Turns {
    /// The life, if it is nobody else's turn.
    fn take(&self) -> Option<MutexGuard<'_, Option<BoxFuture<'static, ()>>>> {
        match self.life.try_lock() {
            Ok(life) => Some(life),
            Err(TryLockError::Poisoned(life)) => Some(life.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn visit(&self) {
        // Its own task has yet to begin, and will.
        let Some(waker) = lock(&self.waker).clone() else { return };
        let Some(mut life) = self.take() else { return waker.wake() };
        let Some(future) = life.as_mut() else { return };
        let (is_over, is_woken) = self.visit.poll(future, &waker);
        if is_over {
            *life = None;
        }
        drop(life);
        if self.missed.swap(false, Ordering::SeqCst) || is_over || is_woken {
            waker.wake();
        }
    }
}

/// The task whose life it is.
struct Own(Arc<Turns>);

impl Future for Own {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let turns = &self.0;
        {
            let mut waker = lock(&turns.waker);
            if !waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
                *waker = Some(context.waker().clone());
            }
        }
        let life = turns.take().or_else(|| {
            // Whoever has it looks at this once it is done; if that was just now, it can be taken.
            turns.missed.store(true, Ordering::SeqCst);
            turns.take()
        });
        let Some(mut life) = life else { return Poll::Pending };
        let Some(future) = life.as_mut() else { return Poll::Ready(()) };
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            *life = None;
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    type Question = (u32, oneshot::Sender<u32>);

    fn answering() -> (mpsc::Sender<Question>, Visitor) {
        let (sender, mut questions) = mpsc::channel::<Question>(8);
        let visitor = spawn(async move {
            while let Some((question, answer)) = questions.recv().await {
                let _ = answer.send(question + 1);
            }
        });
        (sender, visitor)
    }

    #[tokio::test]
    async fn a_visitor_has_its_answer_before_the_task_runs() {
        let (questions, visitor) = answering();
        // The task has to have begun.
        tokio::task::yield_now().await;
        let (answer, mut answered) = oneshot::channel();
        questions.try_send((1, answer)).unwrap();
        assert!(answered.try_recv().is_err());
        visitor.carry_on();
        assert_eq!(answered.try_recv(), Ok(2));
    }

    #[tokio::test]
    async fn a_life_ends_in_a_visit_too() {
        let (questions, visitor) = answering();
        tokio::task::yield_now().await;
        let turns = visitor.0.upgrade().unwrap();
        drop(questions);
        visitor.carry_on();
        assert!(lock(&turns.life).is_none());
        drop(turns);
        // Its task ends, and with it all that is left.
        while visitor.0.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
        visitor.carry_on();
    }

    #[tokio::test]
    async fn a_panic_in_a_visit_ends_the_life_and_nobody_else() {
        let (questions, mut asked) = mpsc::channel::<Question>(8);
        let visitor = spawn(async move {
            let _question = asked.recv().await;
            panic!("as asked");
        });
        tokio::task::yield_now().await;
        let (answer, answered) = oneshot::channel();
        questions.try_send((1, answer)).unwrap();
        visitor.carry_on();
        assert!(answered.await.is_err(), "nobody waits for ever");
        assert!(questions.is_closed());
        visitor.carry_on();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn no_question_is_lost_between_visitors_and_the_task() {
        let (questions, visitor) = answering();
        let asking = (0..8).map(|asker| {
            let (questions, visitor) = (questions.clone(), visitor.clone());
            tokio::spawn(async move {
                for round in 0..2_000 {
                    let (answer, answered) = oneshot::channel();
                    questions.send((round, answer)).await.unwrap();
                    if (round + asker) % 3 != 0 {
                        visitor.carry_on();
                    }
                    assert_eq!(answered.await, Ok(round + 1));
                }
            })
        });
        let all = futures::future::join_all(asking);
        let ended = tokio::time::timeout(Duration::from_secs(60), all).await.expect("a question has no answer");
        assert!(ended.into_iter().all(|asked| asked.is_ok()));
    }
}
