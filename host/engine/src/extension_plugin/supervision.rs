//! The life of an extension: started again when it dies, disabled when it dies again and again, and replaced by another
//! component that takes over from it.

use std::sync::{Arc, Weak};

use atoll_table::{
    Error,
    extension::{EventKind, EventSet, StartReason, Subscription},
};
use tokio::sync::watch;

use super::{Generation, Inner, Place};
use crate::{
    actor::{Actor, Deaths},
    state::lock,
};

/// So many deaths in a row, and it is not started again.
const MOST_DEATHS: u32 = 5;

impl Inner {
    /// It lives, as this generation, and wants this; gives where it stood before. If it may not any more, because it was
    /// stopped meanwhile, the instance ends.
    pub(super) fn come_up(
        &self,
        actor: &Actor,
        generation: &Arc<Generation>,
        subscription: Subscription,
        may: impl FnOnce(&Place) -> bool,
    ) -> Result<(Place, Arc<Subscription>), Error> {
        let mut before = None;
        self.place.send_if_modified(|place| {
            if may(place) {
                before = Some(std::mem::replace(place, Place::Up(actor.clone(), Arc::clone(generation))));
            }
            before.is_some()
        });
        let Some(before) = before else {
            actor.end();
            return Err(self.ended());
        };
        Ok((before, self.wants(subscription)))
    }

    /// From here on its life is looked after, while it is the one that is up.
    pub(super) fn look_after(self: &Arc<Self>, actor: &Actor) {
        tokio::spawn(look_after(Arc::downgrade(self), actor.died.clone()));
    }

    /// Whether the instance that said so with its end is the one that is up, or was.
    fn is_current(&self, died: &watch::Receiver<Option<Error>>) -> Option<Actor> {
        match &*self.place.borrow() {
            Place::Up(actor, _) if actor.died.same_channel(died) => Some(actor.clone()),
            _ => None,
        }
    }

    /// It is not started again in this session. What it guards stays shut.
    fn disable(&self, deaths: u32, last: &Error) {
        let name = &self.who().plugin;
        let reason = Error::Unavailable(format!(
            "the extension {name} died {deaths} times in a row and is not started again (last: {last}); `atoll plugin \
             disable {name}` goes on without it"
        ));
        self.place.send_replace(Place::Gone(reason.clone()));
        let before = self.subscription();
        let events: EventSet = before.events.iter().filter(|kind| kind.fails_closed()).collect();
        let of_tools = before.of_tools.iter().filter(|(kind, _)| kind.fails_closed()).cloned().collect();
        self.wants(Subscription { events, of_tools, ..Subscription::default() });
        self.report(None::<EventKind>, &reason);
    }
}

/// Waits for the end of an instance, and starts the extension again if that was a death.
async fn look_after(extension: Weak<Inner>, mut died: watch::Receiver<Option<Error>>) {
    let mut deaths = Deaths::default();
    loop {
        let Ok(Some(mut reason)) = died.wait_for(Option::is_some).await.map(|known| known.clone()) else { return };
        let Some(inner) = extension.upgrade() else { return };
        let Some(actor) = inner.is_current(&died) else { return };
        let mut age = actor.age();
        drop(actor);
        inner.place.send_replace(Place::Starting);
        drop(inner);
        // Not starting again is a death too.
        loop {
            let pause = deaths.count(age);
            let Some(inner) = extension.upgrade() else { return };
            if deaths.in_a_row() >= MOST_DEATHS {
                inner.disable(deaths.in_a_row(), &reason);
                return;
            }
            inner.report(None, &reason);
            drop(inner);
            tokio::time::sleep(pause).await;
            let Some(inner) = extension.upgrade() else { return };
            if !matches!(&*inner.place.borrow(), Place::Starting) {
                return;
            }
            let began = tokio::time::Instant::now();
            let generation = inner.generation();
            // What it added in its last life it has to add again.
            let before = std::mem::take(&mut *lock(&generation.context().added));
            match inner.bring_up(&generation, StartReason::Restart).await {
                Ok((actor, mut subscription)) => {
                    // Flags were read from the command line once.
                    subscription.flags.clone_from(&inner.subscription().flags);
                    let is_starting = |place: &Place| matches!(place, Place::Starting);
                    if inner.come_up(&actor, &generation, subscription, is_starting).is_err() {
                        return;
                    }
                    died = actor.died.clone();
                    let now = generation.all_tools();
                    inner.withdraw(before.difference(&now).cloned().collect()).await;
                    break;
                }
                Err(error) => {
                    lock(&generation.context().added).extend(before);
                    reason = error;
                    age = began.elapsed();
                }
            }
        }
    }
}
