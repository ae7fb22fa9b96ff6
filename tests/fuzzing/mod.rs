//! Fuzzing of everything that reads what others wrote: components, manifests, grants, patterns, schemas, results. Each target
//! gets known good inputs, changed in ways that are likely to hurt, and may answer what it likes but must not panic,
//! overflow the stack or run without end.
//!
//! A short run is always made; `ATOLL_LONG_TESTS=1` makes ten minutes of it, over all targets. What was ever found is
//! kept in `tests/seeds/`, and every run begins with it. The input under way is in `target/fuzz/`, for what ends the
//! whole process.

mod components;
mod mutation;
mod results;
mod texts;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    time::{Duration, Instant},
};

use proptest::{
    strategy::{Strategy as _, ValueTree as _},
    test_runner::{Config, TestRunner},
};

use crate::common::{is_long, plugins::workspace_root};
use mutation::{Mutation, any_mutations};

/// What to try an input on; an error is what went wrong.
type Target<'a> = &'a dyn Fn(&[u8]) -> Result<(), String>;

/// How long a target is fuzzed: a moment, or its part of ten minutes.
fn budget(long_seconds: u64) -> Duration {
    if is_long() { Duration::from_secs(long_seconds) } else { Duration::from_secs(2) }
}

/// Tries changed inputs on a target until its time is up; says how many.
fn fuzz(name: &str, budget: Duration, mut inputs: Vec<Vec<u8>>, target: Target<'_>) {
    let seeds = workspace_root().join("tests/seeds").join(name);
    fs::create_dir_all(&seeds).unwrap();
    let mut names: Vec<PathBuf> = fs::read_dir(&seeds).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    inputs.extend(names.iter().map(|file| fs::read(file).unwrap()));
    let current = workspace_root().join("target/fuzz");
    fs::create_dir_all(&current).unwrap();
    let current = current.join(format!("{name}-{}", std::process::id()));
    let attempt = |input: &[u8]| -> Result<(), String> {
        fs::write(&current, input).unwrap();
        catch_unwind(AssertUnwindSafe(|| target(input))).unwrap_or_else(|panic| {
            let said = panic.downcast_ref::<String>().cloned();
            Err(said.or_else(|| panic.downcast_ref::<&str>().map(|said| (*said).to_owned())).unwrap_or_default())
        })
    };
    for input in &inputs {
        attempt(input).unwrap_or_else(|reason| panic!("{name}: {reason}: as it was given"));
    }
    let mut runner = TestRunner::new(Config::default());
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let strategy = (0..inputs.len(), any_mutations());
    let make = |(index, mutations): &(usize, Vec<Mutation>)| {
        mutations.iter().fold(inputs[*index].to_vec(), |input, mutation| mutation.apply(input, &inputs))
    };
    let (start, mut count) = (Instant::now(), 0_u64);
    while start.elapsed() < budget {
        let mut tree = strategy.new_tree(&mut runner).unwrap();
        count += 1;
        let Err(mut reason) = attempt(&make(&tree.current())) else { continue };
        // The smallest change that still does it.
        let mut smallest = make(&tree.current());
        let mut more = tree.simplify();
        while more {
            let input = make(&tree.current());
            match attempt(&input) {
                Err(again) => {
                    (reason, smallest) = (again, input);
                    more = tree.simplify();
                }
                Ok(()) => more = tree.complicate(),
            }
        }
        let file = seeds.join(format!("{}.bin", &crate::common::plugins::digest(&smallest)[..16]));
        fs::write(&file, &smallest).unwrap();
        panic!("{name}: {reason}\nthe input is kept as {}", file.display());
    }
    let _ = fs::remove_file(&current);
    eprintln!("fuzzed {name}: {count} cases in {} s", start.elapsed().as_secs());
}
