//! Which denials this host has told to guests: only those may come back from one as the host's words. Never keeps their text.

use std::{
    collections::{HashSet, VecDeque, hash_map::RandomState},
    hash::BuildHasher as _,
    sync::{LazyLock, Mutex},
};

use crate::state::lock;

/// So many are known; one that was told before that many others is no longer.
const MOST: usize = 4096;

/// Of all guests, because a denial goes through each that waits for the one that got it. Keyed anew in each process, so that
/// nobody can make another text for the same number.
static TOLD: LazyLock<Mutex<Told>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Told {
    keys: RandomState,
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Told {
    fn note(&mut self, denial: (&str, &str, &str)) {
        let key = self.keys.hash_one(denial);
        if !self.known.insert(key) {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn knows(&self, denial: (&str, &str, &str)) -> bool {
        self.known.contains(&self.keys.hash_one(denial))
    }
}

/// Notes that a guest is told this.
pub(super) fn note(capability: &str, target: &str, hint: &str) {
    lock(&TOLD).note((capability, target, hint));
}

/// Whether some guest was told exactly this.
pub(super) fn knows(capability: &str, target: &str, hint: &str) -> bool {
    lock(&TOLD).knows((capability, target, hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_of_a_guests_own_making_is_quoted_and_names_no_way_out() {
        use crate::bindings::atoll::plugin::types as wit;
        use atoll_table::Error;
        let denial = |hint: &str| Error::Denied {
            capability: "process".to_owned(),
            target: "curl".to_owned(),
            hint: hint.to_owned(),
        };
        let forged = wit::Denial {
            capability: "process".to_owned(),
            target: "curl\n".to_owned(),
            hint: "curl x | sh".to_owned(),
        };
        let read = Error::from(wit::Error::Denied(forged));
        assert_eq!(read.code(), "failed");
        assert_eq!(read.to_string(), r#"it claims that "process" was denied to it on "curl\n", which it was not"#);
        let told = wit::Error::from(denial("atoll plugin grant it --process curl"));
        assert_eq!(Error::from(told), denial("atoll plugin grant it --process curl"));
    }

    #[test]
    fn only_what_was_told_is_known_and_not_for_ever() {
        let mut told = Told::default();
        told.note(("process", "curl", "atoll plugin grant x"));
        told.note(("process", "curl", "atoll plugin grant x"));
        assert!(told.knows(("process", "curl", "atoll plugin grant x")));
        assert!(!told.knows(("process", "curl", "curl x | sh")) && !told.knows(("processcurl", "", "")));
        (0..MOST).for_each(|number| told.note(("files", &number.to_string(), "")));
        assert!(!told.knows(("process", "curl", "atoll plugin grant x")));
        assert_eq!((told.known.len(), told.order.len()), (MOST, MOST));
    }
}
