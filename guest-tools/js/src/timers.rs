//! Timers: sleeps of the host that a script can end.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use futures::future::{AbortHandle, abortable};
use rquickjs::{CatchResultExt, Ctx, Function, Result};

use crate::ends::Ends;
use crate::host::{Host, Level};

/// The longest time a timer takes, in milliseconds; JavaScript has the same bound.
const LONGEST: f64 = 2_147_483_647.0;

/// How many timers wait at a time. What they hold is not counted as memory of the script.
pub(crate) const MOST: usize = 10_000;

#[derive(Default)]
struct Timers {
    next: Cell<u32>,
    running: RefCell<BTreeMap<u32, AbortHandle>>,
}

/// The functions that the shim makes `setTimeout`, `setInterval` and `clearTimeout` of. The first gives 0 if there are too many.
pub(crate) fn functions<'js>(
    ctx: &Ctx<'js>,
    host: &Rc<dyn Host>,
    ends: &Rc<Ends>,
) -> Result<(Function<'js>, Function<'js>)> {
    let timers = Rc::new(Timers::default());
    let stop_timers = Rc::clone(&timers);
    let (host, ends) = (Rc::clone(host), Rc::clone(ends));
    let start = Function::new(ctx.clone(), move |ctx: Ctx<'js>, run: Function<'js>, delay: f64, repeat: bool| {
        if timers.running.borrow().len() >= MOST {
            // The shim has the words for it.
            return 0;
        }
        let id = timers.next.get().wrapping_add(1).max(1);
        timers.next.set(id);
        let delay = if delay.is_finite() { delay.clamp(0.0, LONGEST) } else { 0.0 };
        let duration = Duration::from_secs_f64(delay / 1000.0);
        let host = Rc::clone(&host);
        let own = ctx.clone();
        let own_timers = Rc::clone(&timers);
        let own_ends = Rc::clone(&ends);
        // Whoever waits is not stuck while there is one, and nobody who is done waits for it.
        let pending = Rc::clone(&ends).pending(true);
        // The time counts from here, not from when the timer is first looked at.
        let mut sleep = host.sleep(duration);
        let (wait, handle) = abortable(async move {
            loop {
                sleep.await;
                if let Err(error) = run.call::<_, ()>(()).catch(&own)
                    && own_ends.reached().is_none()
                {
                    host.console(Level::Error, &format!("error in a timer: {error}"));
                }
                // A callback may clear its own timer, which must not start another round.
                if !repeat || !own_timers.running.borrow().contains_key(&id) {
                    break;
                }
                sleep = host.sleep(duration);
            }
        });
        timers.running.borrow_mut().insert(id, handle);
        let timers = Rc::clone(&timers);
        ctx.spawn(async move {
            let _ = wait.await;
            timers.running.borrow_mut().remove(&id);
            drop(pending);
        });
        id
    })?;
    let stop = Function::new(ctx.clone(), move |id: u32| {
        if let Some(handle) = stop_timers.running.borrow_mut().remove(&id) {
            handle.abort();
        }
    })?;
    Ok((start, stop))
}
