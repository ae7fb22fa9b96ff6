//! Asking a person about what is denied for want of a grant alone. Nothing that a plugin or a model can call leads here but
//! the use itself, and what is shown comes from the host.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use atoll_caps::{Effective, Pin, PluginName, Wants};
use futures::future::BoxFuture;
use tokio::sync::Mutex;

use crate::call::Caller;

/// What a person is asked.
///
/// `plugin`, `operation`, `target`, `reason` and `scope` hold text that a plugin or a model chose. Whoever shows them has
/// to escape control characters, so that a question can not be made to look like another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Who wants it.
    pub plugin: String,
    /// It is part of the program.
    pub is_builtin: bool,
    /// The capability: `files`, `http`, `process`, `store`.
    pub capability: &'static str,
    /// What would be done: `read`, `GET`, `spawn`.
    pub operation: String,
    /// On what exactly.
    pub target: String,
    /// Why, in the words of its manifest; may be empty.
    pub reason: String,
    /// What an answer for longer than once would allow, in the form of `atoll plugin inspect`.
    pub scope: String,
    /// What an answer of once would allow.
    pub once: Once,
    /// The command that would grant it.
    pub command: String,
}

/// What an answer of [`Answer::Once`] allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Once {
    /// What is asked about, and nothing else.
    This,
    /// All of this, until the call ends, in the form of `atoll plugin inspect`.
    More(String),
    /// It can not be given: it would open far more than what is asked about.
    Never,
}

/// What they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This use; files until the call ends. It is a no where the question says [`Once::Never`].
    Once,
    /// The scope, until the program ends.
    Session,
    /// The scope, from now on.
    Always,
    /// No.
    No,
}

/// What is to be granted from now on.
#[derive(Clone, Debug)]
pub struct LastingGrant {
    /// To whom.
    pub plugin: PluginName,
    /// The files it is pinned to; none for a built-in plugin.
    pub pin: Option<Pin>,
    /// What.
    pub wants: Wants,
}

/// Whoever can ask a person. Implemented by a host with a terminal, and reached by the engine only.
pub trait Approver: Send + Sync {
    /// Asks. Called for one question at a time. Dropping the future takes the question back.
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer>;

    /// Writes down what was answered with [`Answer::Always`].
    ///
    /// # Errors
    /// A line that says why it could not be written. It then holds until the program ends.
    fn remember(&self, grant: &LastingGrant) -> Result<(), String>;
}

/// How a use that was denied comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// This use is allowed.
    Once,
    /// The scope is granted now; in this word.
    Granted(&'static str),
    /// They said no.
    Refused,
    /// There is nobody to ask, or nothing that they could say.
    NotAsked,
}

/// Asks one question at a time, and the same one once.
#[derive(Default)]
pub(crate) struct Approvals {
    approver: OnceLock<Arc<dyn Approver>>,
    /// Held while a question is open.
    turn: Mutex<Answered>,
    answers: AtomicU64,
}

/// What was answered so far.
#[derive(Default)]
struct Answered {
    /// When each question was last answered with no, counted in answers.
    refused: HashMap<(String, &'static str, String, String), u64>,
    /// What was granted to which plugin, and in which word.
    granted: Vec<(String, Wants, &'static str)>,
}

impl Answered {
    /// In which word a use became allowed that was not `before`.
    fn word(
        &self,
        plugin: &str,
        before: &Effective,
        allowed: &(dyn Fn(&Effective) -> bool + Send + Sync),
    ) -> &'static str {
        let grants =
            self.granted.iter().filter(|(whose, wants, _)| whose == plugin && allowed(&before.with_granted(wants)));
        grants.map(|(_, _, word)| *word).next_back().unwrap_or("session")
    }
}

impl Approvals {
    /// From now on this one is asked. The first counts.
    pub(crate) fn set(&self, approver: Arc<dyn Approver>) {
        let _ = self.approver.set(approver);
    }

    /// Whether there is anybody to ask.
    pub(crate) fn can_ask(&self) -> bool {
        self.approver.get().is_some()
    }

    /// Asks, and grants what was answered. `allowed` says whether the use is allowed by now: somebody else may have asked
    /// the same.
    pub(crate) async fn decide(
        &self,
        caller: &Caller,
        question: Question,
        wants: &Wants,
        allowed: &(dyn Fn(&Effective) -> bool + Send + Sync),
    ) -> Decision {
        let Some(approver) = self.approver.get().filter(|_| caller.call.asks()) else { return Decision::NotAsked };
        let (capability, target) = (question.capability, question.target.clone());
        if caller.call.was_refused(capability, &target) {
            return Decision::Refused;
        }
        let _pause = caller.call.clock.pause();
        let arrived = self.answers.load(Ordering::SeqCst);
        let before = caller.effective();
        let mut answered = match self.turn.try_lock() {
            Ok(turn) => turn,
            Err(_) => {
                tracing::debug!(plugin = question.plugin, capability, "waits for the open question to be answered");
                self.turn.lock().await
            }
        };
        if allowed(&caller.effective()) {
            return Decision::Granted(answered.word(&caller.name, &before, allowed));
        }
        let key = (question.plugin.clone(), capability, question.operation.clone(), target.clone());
        let answer = match answered.refused.get(&key) {
            // Said of the same question while this one waited for its turn.
            Some(when) if *when > arrived => Answer::No,
            _ => {
                let never = question.once == Once::Never;
                let answer = match approver.ask(question).await {
                    Answer::Once if never => Answer::No,
                    answer => answer,
                };
                let now = self.answers.fetch_add(1, Ordering::SeqCst) + 1;
                if answer == Answer::No {
                    answered.refused.insert(key, now);
                }
                answer
            }
        };
        match answer {
            Answer::No => {
                caller.call.refuse(capability, &target);
                Decision::Refused
            }
            Answer::Once => Decision::Once,
            Answer::Session => {
                caller.plugin.grant(wants);
                answered.granted.push((caller.name.clone(), wants.clone(), "session"));
                Decision::Granted("session")
            }
            Answer::Always => {
                let plugin = caller.effective().plugin().clone();
                let grant = LastingGrant { plugin, pin: caller.pin.clone(), wants: wants.clone() };
                if let Err(reason) = approver.remember(&grant) {
                    tracing::warn!(%reason, "a grant could not be written; it holds until the program ends");
                }
                caller.plugin.grant(wants);
                answered.granted.push((caller.name.clone(), wants.clone(), "always"));
                Decision::Granted("always")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use atoll_caps::{Access, Manifest, RootVars};

    use super::*;

    #[test]
    fn what_somebody_elses_answer_allows_is_written_down_in_its_word() {
        let manifest = "name = \"x\"\nversion = \"1.0.0\"\ncontract = \"0.1\"\n\
                        [[files]]\nroot = \"/a\"\nreason = \"x\"\n[[files]]\nroot = \"/b\"\nreason = \"x\"\n";
        let manifest = Manifest::parse(manifest, "plugin.toml").unwrap();
        let before = Effective::intersect(&manifest, None);
        let only = |root: usize| Wants { files: vec![manifest.wants.files[root].clone()], ..Wants::default() };
        let mut answered = Answered::default();
        answered.granted.push(("x".to_owned(), only(0), "always"));
        answered.granted.push(("x".to_owned(), only(1), "session"));
        answered.granted.push(("y".to_owned(), only(0), "session"));
        let vars =
            RootVars { workspace: PathBuf::new(), skills: Vec::new(), spill: PathBuf::new(), home: PathBuf::new() };
        let word = |path: &str| {
            answered.word("x", &before, &|effective| effective.check_path(&vars, path.as_ref(), Access::Read).is_ok())
        };
        assert_eq!((word("/a/file"), word("/b/file")), ("always", "session"));
    }
}
