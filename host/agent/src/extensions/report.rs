//! Failures of extensions, told once: the same failure at the same event is only counted after that.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use atoll_table::{Error, extension::EventKind};

/// Something an extension did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The plugin.
    pub extension: String,
    /// The event it failed at; none if it was at no event.
    pub event: Option<EventKind>,
    /// What went wrong, in one line.
    pub error: String,
}

/// Is told of failures. Must not block.
pub type Report = Arc<dyn Fn(&Failure) + Send + Sync>;

#[derive(Default)]
struct Seen {
    /// How often each failure came again, by extension, event and code.
    again: BTreeMap<(String, Option<EventKind>, &'static str), u64>,
    /// How many events were not told for want of room.
    dropped: BTreeMap<String, u64>,
}

/// Tells of failures once each. Clones share what was told.
#[derive(Clone, Default)]
pub(super) struct Reporter {
    report: Option<Report>,
    seen: Arc<Mutex<Seen>>,
}

impl Reporter {
    pub(super) fn new(report: Report) -> Self {
        Self { report: Some(report), seen: Arc::default() }
    }

    fn seen<R>(&self, look: impl FnOnce(&mut Seen) -> R) -> R {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tell(&self, extension: &str, event: Option<EventKind>, error: String) {
        tracing::warn!(extension, event = event.map(EventKind::as_str), %error, "an extension failed");
        if let Some(report) = &self.report {
            report(&Failure { extension: extension.to_owned(), event, error });
        }
    }

    pub(super) fn report(&self, extension: &str, event: Option<EventKind>, error: &Error) {
        let key = (extension.to_owned(), event, error.code());
        let is_new = self.seen(|seen| match seen.again.get_mut(&key) {
            Some(again) => {
                *again += 1;
                false
            }
            None => seen.again.insert(key, 0).is_none(),
        });
        if is_new {
            self.tell(extension, event, error.to_string());
        }
    }

    /// An event was not told, for the extension has too many before it.
    pub(super) fn dropped(&self, extension: &str) {
        self.seen(|seen| *seen.dropped.entry(extension.to_owned()).or_default() += 1);
    }

    /// Tells how often what was told came again, and how much was dropped, since this was last called.
    pub(super) fn repeated(&self) {
        let (again, dropped) = self.seen(|seen| {
            let again: Vec<_> = seen
                .again
                .iter_mut()
                .filter(|(_, again)| **again > 0)
                .map(|(key, again)| (key.clone(), std::mem::take(again)))
                .collect();
            (again, std::mem::take(&mut seen.dropped))
        });
        for ((extension, event, code), again) in again {
            let times = if again == 1 { "once".to_owned() } else { format!("{again} times") };
            self.tell(&extension, event, format!("it failed in the same way ({code}) {times} more"));
        }
        for (extension, count) in dropped {
            let events = if count == 1 { "event was" } else { "events were" };
            self.tell(&extension, None, format!("{count} {events} not told to it, for it does not keep up"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_once_and_then_counted() {
        let told: Arc<Mutex<Vec<String>>> = Arc::default();
        let to = Arc::clone(&told);
        let reporter = Reporter::new(Arc::new(move |failure: &Failure| {
            let event = failure.event.map_or("-", EventKind::as_str);
            to.lock().unwrap().push(format!("{} {event} {}", failure.extension, failure.error));
        }));
        for n in 0..1_000 {
            reporter.report("gate", Some(EventKind::Input), &Error::Failed(format!("no {n}")));
        }
        reporter.report("gate", Some(EventKind::Context), &Error::Failed("no".into()));
        reporter.report("gate", Some(EventKind::Input), &Error::Timeout("late".into()));
        reporter.dropped("slow");
        reporter.dropped("slow");
        reporter.repeated();
        reporter.repeated();
        assert_eq!(
            *told.lock().unwrap(),
            [
                "gate input no 0",
                "gate context no",
                "gate input late",
                "gate input it failed in the same way (failed) 999 times more",
                "slow - 2 events were not told to it, for it does not keep up",
            ]
        );
    }
}
