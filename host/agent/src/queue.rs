//! Messages that wait for their moment: steering ones for the next request, follow-ups for the end of what is running,
//! others for the user's next prompt.
//!
//! Nothing here is in the session yet: what is taken out has to be appended by whoever takes it, or it is lost.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use atoll_table::{Content, Error, extension::Delivery};
use serde::{Deserialize, Serialize};

use crate::{
    message::{CustomMessage, Message, UserMessage},
    time::now_ms,
};

/// The most messages that wait at once. Whoever sends more is going round in circles.
pub const MOST: usize = 1_000;

/// How many of those that wait are delivered together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QueueMode {
    /// One; the others wait on.
    #[default]
    OneAtATime,
    /// All of them.
    All,
}

/// A message that waits.
#[derive(Clone, Debug, PartialEq)]
pub enum Waiting {
    /// As the user would say it.
    User(Vec<Content>),
    /// A plugin's own kind.
    Custom(CustomMessage),
}

impl Waiting {
    /// The message, as of now.
    pub fn into_message(self) -> Message {
        match self {
            Self::User(content) => Message::User(UserMessage { content, timestamp: now_ms() }),
            Self::Custom(message) => Message::Custom(CustomMessage { timestamp: now_ms(), ..message }),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::User(content) => Content::joined_text(content),
            Self::Custom(message) => Content::joined_text(&message.content),
        }
    }
}

#[derive(Debug, Default)]
struct Lines {
    steering: VecDeque<Waiting>,
    follow_up: VecDeque<Waiting>,
    next_turn: VecDeque<Waiting>,
}

/// What waits. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    lines: Arc<Mutex<Lines>>,
    steering: QueueMode,
    follow_up: QueueMode,
}

impl Queue {
    /// Nothing waits yet.
    pub fn new(steering: QueueMode, follow_up: QueueMode) -> Self {
        Self { lines: Arc::default(), steering, follow_up }
    }

    fn lines<R>(&self, act: impl FnOnce(&mut Lines) -> R) -> R {
        act(&mut self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts a message behind those that wait for the same moment.
    ///
    /// # Errors
    /// `limit` `queue` if [`MOST`] wait already.
    pub fn push(&self, message: Waiting, delivery: Delivery) -> Result<(), Error> {
        self.lines(|lines| {
            if lines.steering.len() + lines.follow_up.len() + lines.next_turn.len() >= MOST {
                return Err(Error::Limit { name: "queue".to_owned(), value: MOST as u64 });
            }
            match delivery {
                Delivery::Steer => lines.steering.push_back(message),
                Delivery::FollowUp => lines.follow_up.push_back(message),
                Delivery::NextTurn => lines.next_turn.push_back(message),
            }
            Ok(())
        })
    }

    /// What is to be said before the next request of what is running.
    pub fn take_steering(&self) -> Vec<Waiting> {
        self.lines(|lines| take(&mut lines.steering, self.steering))
    }

    /// What is to be said where the agent would stop: what came too late to steer, first.
    pub fn take_at_end(&self) -> Vec<Waiting> {
        self.lines(|lines| match take(&mut lines.steering, self.steering) {
            late if late.is_empty() => take(&mut lines.follow_up, self.follow_up),
            late => late,
        })
    }

    /// What goes with the user's next prompt.
    pub fn take_next_turn(&self) -> Vec<Waiting> {
        self.lines(|lines| lines.next_turn.drain(..).collect())
    }

    /// Whether anything waits.
    pub fn is_empty(&self) -> bool {
        self.lines(|lines| lines.steering.is_empty() && lines.follow_up.is_empty() && lines.next_turn.is_empty())
    }

    /// Drops what would start something by itself: the user has stopped it.
    pub fn clear_due(&self) {
        self.lines(|lines| {
            lines.steering.clear();
            lines.follow_up.clear();
        });
    }

    /// The texts that steer and those that follow, as events show them.
    pub fn shown(&self) -> (Vec<String>, Vec<String>) {
        let texts = |line: &VecDeque<Waiting>| line.iter().map(Waiting::text).collect();
        self.lines(|lines| (texts(&lines.steering), texts(&lines.follow_up)))
    }
}

fn take(line: &mut VecDeque<Waiting>, mode: QueueMode) -> Vec<Waiting> {
    match mode {
        QueueMode::OneAtATime => line.pop_front().into_iter().collect(),
        QueueMode::All => line.drain(..).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Waiting {
        Waiting::User(vec![Content::text(text)])
    }

    fn texts(waiting: &[Waiting]) -> Vec<String> {
        waiting.iter().map(Waiting::text).collect()
    }

    #[test]
    fn each_message_comes_at_its_moment_and_one_at_a_time() {
        let queue = Queue::default();
        for (text, delivery) in [
            ("s1", Delivery::Steer),
            ("f1", Delivery::FollowUp),
            ("s2", Delivery::Steer),
            ("n1", Delivery::NextTurn),
            ("n2", Delivery::NextTurn),
            ("f2", Delivery::FollowUp),
        ] {
            queue.push(said(text), delivery).unwrap();
        }
        assert_eq!(queue.shown(), (vec!["s1".into(), "s2".into()], vec!["f1".into(), "f2".into()]));
        assert_eq!(texts(&queue.take_steering()), ["s1"]);
        assert_eq!(texts(&queue.take_at_end()), ["s2"], "what came too late to steer comes before follow-ups");
        assert_eq!(texts(&queue.take_at_end()), ["f1"]);
        assert_eq!(texts(&queue.take_next_turn()), ["n1", "n2"]);
        queue.clear_due();
        assert!(queue.is_empty() && queue.take_at_end().is_empty());
    }

    #[test]
    fn all_of_a_line_can_be_wanted_together() {
        let queue = Queue::new(QueueMode::All, QueueMode::All);
        queue.push(said("a"), Delivery::Steer).unwrap();
        queue.push(said("b"), Delivery::Steer).unwrap();
        assert_eq!(texts(&queue.take_steering()), ["a", "b"]);
        assert!(queue.is_empty());
    }

    #[test]
    fn a_flood_ends_at_a_limit_with_a_name() {
        let queue = Queue::default();
        for _ in 0..MOST {
            queue.push(said("x"), Delivery::NextTurn).unwrap();
        }
        let error = queue.push(said("x"), Delivery::Steer).unwrap_err();
        assert_eq!(error, Error::Limit { name: "queue".to_owned(), value: 1_000 });
    }
}
