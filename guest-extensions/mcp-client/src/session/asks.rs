//! What a server asks of us: of a person, or of a model. It is passed to whoever can ask them, and the answer is passed back.

use std::{future::Future, pin::pin};

use futures::future::{Either, select};
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, oneshot};

/// How many may wait to be taken; what is more is refused.
const WAITING: usize = 16;

/// What is asked, as the server sent it.
#[derive(Clone, Debug, PartialEq)]
pub enum Asked {
    /// A model is to be asked: `sampling/createMessage`.
    Sample(Value),
    /// A person is to be asked: `elicitation/create`.
    Elicit(Value),
}

impl Asked {
    /// Reads a request; gives it back if it is none of these.
    pub(super) fn read(method: &str, params: Value) -> Result<Self, Value> {
        match method {
            "sampling/createMessage" => Ok(Self::Sample(params)),
            "elicitation/create" => Ok(Self::Elicit(params)),
            _ => Err(params),
        }
    }

    /// Its name in the protocol.
    pub fn method(&self) -> &'static str {
        match self {
            Self::Sample(_) => "sampling/createMessage",
            Self::Elicit(_) => "elicitation/create",
        }
    }
}

/// Why a server does not get what it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The code, as in the protocol.
    pub code: i32,
    /// What the server is told.
    pub message: String,
}

impl Refusal {
    /// The person does not want it, or there is nobody.
    pub fn unwanted(message: impl Into<String>) -> Self {
        Self { code: -1, message: message.into() }
    }

    /// It is nothing that can be asked.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: -32602, message: message.into() }
    }

    /// It did not work.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: -32603, message: message.into() }
    }
}

/// Something a server asks.
#[derive(Debug)]
pub struct Ask {
    /// What.
    pub what: Asked,
    answer: oneshot::Sender<Result<Value, Refusal>>,
}

impl Ask {
    /// Answers with what this gives; it is dropped when the server does not want the answer any more.
    pub async fn answer_with(mut self, answer: impl Future<Output = Result<Value, Refusal>>) {
        let given = {
            let (answer, unwanted) = (pin!(answer), pin!(self.answer.closed()));
            match select(answer, unwanted).await {
                Either::Left((given, _)) => given,
                Either::Right(_) => return,
            }
        };
        let _ = self.answer.send(given);
    }
}

/// Where a client puts what is asked.
#[derive(Debug)]
pub(super) struct Asking(mpsc::Sender<Ask>);

/// The same for as long as the client is there.
#[derive(Debug)]
pub(super) struct AskingWhileThere(mpsc::WeakSender<Ask>);

impl AskingWhileThere {
    pub(super) fn get(&self) -> Option<Asking> {
        self.0.upgrade().map(Asking)
    }
}

impl Asking {
    pub(super) fn while_there(&self) -> AskingWhileThere {
        AskingWhileThere(self.0.downgrade())
    }

    /// The answer, unless the server does not want it any more.
    pub(super) async fn ask(&self, what: Asked, unwanted: impl Future<Output = ()>) -> Result<Value, Refusal> {
        let (answer, given) = oneshot::channel();
        if self.0.try_send(Ask { what, answer }).is_err() {
            return Err(Refusal::failed(format!("more than {WAITING} requests wait for an answer already")));
        }
        match select(pin!(given), pin!(unwanted)).await {
            Either::Left((given, _)) => given.unwrap_or_else(|_| Err(Refusal::failed("nobody answers any more"))),
            Either::Right(_) => Err(Refusal::unwanted("it was cancelled")),
        }
    }
}

/// Where they are taken from.
#[derive(Debug)]
pub(super) struct Asks(Mutex<mpsc::Receiver<Ask>>);

impl Asks {
    pub(super) async fn next(&self) -> Option<Ask> {
        self.0.lock().await.recv().await
    }
}

pub(super) fn channel() -> (Asking, Asks) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Asking(sender), Asks(Mutex::new(receiver)))
}
