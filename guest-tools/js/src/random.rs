//! The numbers of `Math.random`: xoshiro256++, seeded by the host when the first one is wanted.
//!
//! The engine seeds its own when it is made, which for an engine that is kept as a picture of memory is the same for all.

use std::cell::Cell;
use std::rc::Rc;

use crate::host::Host;

pub(crate) struct Random {
    host: Rc<dyn Host>,
    state: Cell<Option<[u64; 4]>>,
}

impl Random {
    pub(crate) fn new(host: Rc<dyn Host>) -> Self {
        Self { host, state: Cell::new(None) }
    }

    /// A number from 0 to below 1.
    #[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
    pub(crate) fn next(&self) -> f64 {
        let mut state = self.state.get().unwrap_or_else(|| self.seed());
        let drawn = step(&mut state);
        self.state.set(Some(state));
        (drawn >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn seed(&self) -> [u64; 4] {
        // All zeros would stay so.
        [0; 4].map(|_: u64| {
            let mut bytes = [0; 8];
            self.host.random(&mut bytes);
            u64::from_le_bytes(bytes) | 1
        })
    }
}

fn step(state: &mut [u64; 4]) -> u64 {
    let [a, b, c, d] = *state;
    let drawn = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
    let (c, d) = (c ^ a, d ^ b);
    *state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
    drawn
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let mut state = [1, 2, 3, 4];
        let drawn: Vec<u64> = (0..4).map(|_| step(&mut state)).collect();
        assert_eq!(drawn, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }
}
