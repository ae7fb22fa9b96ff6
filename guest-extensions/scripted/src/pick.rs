//! Which turn of a script comes next.
//!
//! Must never depend on anything but the script, the transcript and the turns that left nothing in it: the same
//! session plays the same way each time.

use std::collections::HashMap;

use atoll_plugin::provider::Message;
use atoll_plugin::types::Content;

use crate::script::{Script, Turn, When};

/// How often turns were played that leave no answer in the transcript, by script and turn.
#[derive(Debug, Default)]
pub struct Spent {
    counts: HashMap<(u64, usize), u32>,
}

impl Spent {
    /// The turn was played once more.
    pub fn count(&mut self, script: u64, turn: usize) {
        let count = self.counts.entry((script, turn)).or_default();
        *count = count.saturating_add(1);
    }

    fn of(&self, script: u64, turn: usize) -> u32 {
        self.counts.get(&(script, turn)).copied().unwrap_or_default()
    }
}

/// A turn that was picked.
#[derive(Debug, PartialEq, Eq)]
pub struct Picked {
    /// Its place in the script; `None`: no turn is left.
    pub turn: Option<usize>,
    /// How many answers the transcript holds.
    pub answers: usize,
}

/// Picks the turn that answers `transcript`: the first in the script that is not used up and whose conditions hold.
/// Which are used up follows from doing the same for each answer that the transcript holds already.
pub fn pick(script: &Script, id: u64, transcript: &[Message], spent: &Spent) -> Picked {
    let mut played = vec![0; script.turns.len()];
    let mut view = View::default();
    let mut answers = 0;
    for message in transcript {
        match message {
            Message::System(text) => view.system.push(text),
            Message::User(content) => {
                view.user = content;
                view.result = &[];
            }
            Message::ToolResult(result) => view.result = &result.content,
            Message::Assistant(_) => {
                answers += 1;
                replay(script, &view, &mut played);
            }
        }
    }
    let turn = script.turns.iter().zip(&played).enumerate().position(|(at, (turn, played))| {
        let turn = &turn.value;
        let played = if turn.leaves_nothing() { (*played).max(spent.of(id, at)) } else { *played };
        is_left(turn, played) && view.holds(turn.when.as_ref())
    });
    Picked { turn, answers }
}

fn replay(script: &Script, view: &View<'_>, played: &mut [u32]) {
    for (turn, played) in script.turns.iter().zip(played) {
        let turn = &turn.value;
        if !is_left(turn, *played) || !view.holds(turn.when.as_ref()) {
            continue;
        }
        if turn.leaves_nothing() {
            // It came first, so it must have been used up before there could be this answer.
            *played = turn.times.unwrap_or(1);
            continue;
        }
        *played += 1;
        return;
    }
}

fn is_left(turn: &Turn, played: u32) -> bool {
    turn.repeat || played < turn.times.unwrap_or(1)
}

/// What conditions look at.
#[derive(Default)]
struct View<'a> {
    system: Vec<&'a str>,
    user: &'a [Content],
    result: &'a [Content],
}

impl View<'_> {
    fn holds(&self, when: Option<&When>) -> bool {
        let Some(when) = when else { return true };
        let is_in = |wanted: &Option<String>, content: &[Content]| {
            wanted.as_ref().is_none_or(|wanted| {
                content.iter().any(|piece| matches!(piece, Content::Text(text) if text.contains(wanted.as_str())))
            })
        };
        is_in(&when.user_contains, self.user)
            && is_in(&when.last_tool_result_contains, self.result)
            && when
                .system_contains
                .as_ref()
                .is_none_or(|wanted| self.system.iter().any(|text| text.contains(wanted.as_str())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_plugin::provider::{AssistantBlock, ToolResult};

    fn user(text: &str) -> Message {
        Message::User(vec![Content::Text(text.into())])
    }

    fn answer() -> Message {
        Message::Assistant(vec![AssistantBlock::Text("…".into())])
    }

    fn result(text: &str) -> Message {
        Message::ToolResult(ToolResult {
            call_id: "a".into(),
            name: "t".into(),
            content: vec![Content::Text(text.into())],
            is_error: false,
        })
    }

    fn script(turns: &str) -> Script {
        Script::parse(&format!("turns: {turns}")).unwrap()
    }

    fn next(script: &Script, transcript: &[Message], spent: &Spent) -> Option<usize> {
        pick(script, 0, transcript, spent).turn
    }

    #[test]
    fn without_conditions_the_nth_answer_is_the_nth_turn() {
        let script = script("[{text: a}, {text: b}]");
        let none = Spent::default();
        let mut transcript = vec![Message::System("s".into()), user("x")];
        assert_eq!(next(&script, &transcript, &none), Some(0));
        transcript.extend([answer(), result("r")]);
        assert_eq!(next(&script, &transcript, &none), Some(1));
        transcript.extend([answer(), user("y")]);
        assert_eq!(pick(&script, 0, &transcript, &none), Picked { turn: None, answers: 2 });
    }

    #[test]
    fn a_turn_whose_conditions_do_not_hold_waits() {
        let script = script("[{when: {user-contains: two}, text: a}, {text: b}, {text: c}]");
        let none = Spent::default();
        assert_eq!(next(&script, &[user("one")], &none), Some(1));
        assert_eq!(next(&script, &[user("one"), answer(), user("two")], &none), Some(0));
        assert_eq!(next(&script, &[user("one"), answer(), user("two"), answer()], &none), Some(2));
        assert_eq!(next(&script, &[user("two"), answer()], &none), Some(1));
    }

    #[test]
    fn results_are_looked_at_until_the_next_user_message() {
        let script = script("[{when: {last-tool-result-contains: bad}, text: a}, {repeat: true, text: b}]");
        let none = Spent::default();
        assert_eq!(next(&script, &[user("x"), answer(), result("bad luck")], &none), Some(0));
        assert_eq!(next(&script, &[user("x"), answer(), result("bad"), result("good")], &none), Some(1));
        assert_eq!(next(&script, &[user("x"), answer(), result("bad"), user("y")], &none), Some(1));
    }

    #[test]
    fn instructions_can_be_told_apart() {
        let script = script("[{when: {system-contains: summar}, repeat: true, text: a}, {text: b}]");
        let none = Spent::default();
        let summary = [Message::System("You summarise.".into()), user("x")];
        assert_eq!(next(&script, &summary, &none), Some(0));
        assert_eq!(next(&script, &[user("x")], &none), Some(1));
    }

    #[test]
    fn times_and_repeat() {
        let script = script("[{times: 2, text: a}, {text: b}, {repeat: true, text: c}]");
        let none = Spent::default();
        let mut transcript = Vec::new();
        let turns: Vec<_> = (0..5)
            .map(|_| {
                transcript.push(user("x"));
                let turn = next(&script, &transcript, &none);
                transcript.push(answer());
                turn
            })
            .collect();
        assert_eq!(turns, [Some(0), Some(0), Some(1), Some(2), Some(2)]);
    }

    #[test]
    fn turns_that_leave_nothing_are_remembered() {
        let script = script("[{text: a}, {times: 2, fail: {message: m}}, {text: b}]");
        let mut spent = Spent::default();
        let transcript = [user("x"), answer(), user("y")];
        assert_eq!(next(&script, &[user("x")], &spent), Some(0));
        for _ in 0..2 {
            assert_eq!(next(&script, &transcript, &spent), Some(1));
            spent.count(0, 1);
        }
        assert_eq!(next(&script, &transcript, &spent), Some(2));
        // Another instance sees from the answer after it that the failure is over.
        let later = [user("x"), answer(), user("y"), answer()];
        assert_eq!(next(&script, &later, &Spent::default()), None);
    }

    #[test]
    fn a_failure_without_end_stays() {
        let script = script("[{repeat: true, when: {user-contains: bad}, fail: {message: m}}, {text: a}]");
        let mut spent = Spent::default();
        spent.count(0, 0);
        assert_eq!(next(&script, &[user("bad")], &spent), Some(0));
        assert_eq!(next(&script, &[user("good")], &spent), Some(1));
    }
}
