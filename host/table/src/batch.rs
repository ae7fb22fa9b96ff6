//! Rules for the calls of one assistant message, taken together.

use crate::{ToolOutput, tool::ExecutionMode};

/// Whether a run ends after these results: only if there are any and every one asks for it.
pub fn ends_run<'a>(outputs: impl IntoIterator<Item = &'a ToolOutput>) -> bool {
    let mut outputs = outputs.into_iter().peekable();
    outputs.peek().is_some() && outputs.all(|output| output.terminate)
}

/// Whether calls have to run one after the other: one that has to makes all of them.
pub fn runs_in_order(modes: impl IntoIterator<Item = ExecutionMode>) -> bool {
    modes.into_iter().any(|mode| mode == ExecutionMode::Sequential)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_batch_ends_a_run() {
        let asks = ToolOutput { terminate: true, ..ToolOutput::default() };
        let does_not = ToolOutput::default();
        assert!(!ends_run([]));
        assert!(ends_run([&asks]));
        assert!(ends_run([&asks, &asks]));
        assert!(!ends_run([&asks, &does_not]));
    }

    #[test]
    fn one_sequential_call_orders_all() {
        use ExecutionMode::{Parallel, Sequential};
        assert!(!runs_in_order([]));
        assert!(!runs_in_order([Parallel, Parallel]));
        assert!(runs_in_order([Parallel, Sequential]));
    }
}
