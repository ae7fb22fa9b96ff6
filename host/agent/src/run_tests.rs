use std::{
    path::Path,
    sync::{Arc, Mutex},
};

use atoll_table::{
    Invocation, Progress, Table, ToolOutput, ToolRunner,
    model::{DoneReason, ModelProvider},
    tool::Tool,
};
use futures::{
    FutureExt as _,
    future::{BoxFuture, pending},
    stream::{self, BoxStream},
};
use serde_json::Value;

use super::{calls::STOPPED, *};
use crate::{message::UserMessage, models::Models, queue::Queue, session::Session};

/// A model that calls its tool each time it is asked, and that tool.
struct Restless {
    /// What the tool was told to do.
    ran: Mutex<Vec<&'static str>>,
    /// Preparing never ends; this is told that it began.
    hangs: Option<CancellationToken>,
}

impl ModelProvider for Restless {
    fn apis(&self) -> Vec<String> {
        Vec::new()
    }

    fn complete(&self, _: ModelRequest) -> BoxFuture<'_, Result<BoxStream<'static, ModelEvent>, Error>> {
        let done =
            ModelEvent::Done { reason: DoneReason::ToolUse, raw_reason: None, response_model: None, response_id: None };
        let call = ModelEvent::CallStart { index: 0, id: "c".to_owned(), name: "work".to_owned() };
        let events = [call, ModelEvent::CallEnd(0), done];
        async move { Ok(stream::iter(events).boxed()) }.boxed()
    }
}

impl ToolRunner for Restless {
    fn prepare(&self, _: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
        self.ran.lock().unwrap().push("prepare");
        async move {
            if let Some(began) = &self.hangs {
                began.cancel();
                pending::<()>().await;
            }
            Ok(arguments)
        }
        .boxed()
    }

    fn call(&self, _: Invocation, _: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>> {
        self.ran.lock().unwrap().push("call");
        async { Ok(ToolOutput::default()) }.boxed()
    }

    fn allowed(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The kinds of events so far.
type Seen = Arc<Mutex<Vec<String>>>;

fn agent(restless: &Arc<Restless>, session: Session) -> (Agent, Seen) {
    let tool = Tool { prepares: true, ..Tool::new("work", serde_json::json!({"type": "object"})) };
    let runner: Arc<dyn ToolRunner> = Arc::<Restless>::clone(restless);
    let mut table = Table::new();
    table.register("p", vec![tool], &runner).unwrap();
    let seen = Seen::default();
    let sink = Arc::clone(&seen);
    let agent = Agent {
        loadout: Loadout::default(),
        pipeline: Pipeline::new(table),
        conversation: Conversation::new(
            session,
            Queue::default(),
            Asked { provider: Arc::<Restless>::clone(restless), chosen: Models::playing("").unwrap() },
        ),
        extensions: Extensions::default(),
        context: Vec::new(),
        cwd: PathBuf::from("/p"),
        idle_timeout_ms: 1_000,
        sink: Arc::new(move |event: &Event| {
            let event = serde_json::to_value(event).unwrap();
            let mut shown = event["type"].as_str().unwrap().to_owned();
            for detail in [&event["message"]["role"], &event["willRetry"], &event["aborted"]] {
                if !detail.is_null() && shown != "turn_end" {
                    shown = format!("{shown} {detail}");
                }
            }
            sink.lock().unwrap().push(shown);
        }),
        stop: CancellationToken::new(),
    };
    (agent, seen)
}

/// Runs an agent whose session breaks at the event of this kind; the events from there on.
async fn broken_at(kind: &'static str, restless: &Arc<Restless>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut session = Session::new(Some(folder.path()), Path::new("/p"));
    session.append_message(&Message::User(UserMessage::default())).unwrap();
    // A limit on the size of files would do the same, but for the whole process.
    let (mut agent, seen) = agent(restless, session);
    let breaks = agent.conversation.session.with(|session| session.breaks());
    let sink = Arc::clone(&agent.sink);
    agent.sink = Arc::new(move |event: &Event| {
        sink(event);
        if serde_json::to_value(event).unwrap()["type"] == kind {
            breaks.cancel();
        }
    });
    let error = agent.prompt(vec![Content::text("go")]).await.unwrap_err();
    assert!(matches!(error, SessionError::Unwritable { .. }), "{error}");
    let seen = seen.lock().unwrap();
    let at = seen.iter().position(|shown| shown.split(' ').next() == Some(kind)).unwrap();
    seen[at..].to_vec()
}

const CLOSED: [&str; 2] = ["agent_end false", "agent_settled false"];

#[tokio::test]
async fn a_session_that_can_not_be_written_ends_the_run_in_order() {
    let restless = Arc::new(Restless { ran: Mutex::default(), hangs: None });
    assert_eq!(broken_at("agent_start", &restless).await[1..], CLOSED);
    assert_eq!(broken_at("turn_start", &restless).await[1..], CLOSED);
    assert!(restless.ran.lock().unwrap().is_empty());
}

/// The message used to be lost, the tools had run, and no event said that it was over.
#[tokio::test]
async fn calls_of_an_answer_that_can_not_be_kept_are_not_carried_out() {
    let restless = Arc::new(Restless { ran: Mutex::default(), hangs: None });
    let seen = broken_at("message_update", &restless).await;
    assert_eq!(seen[seen.len() - 4..], ["message_end \"assistant\"", "turn_end", CLOSED[0], CLOSED[1]]);
    assert!(restless.ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_result_that_can_not_be_kept_ends_the_run_in_order() {
    let restless = Arc::new(Restless { ran: Mutex::default(), hangs: None });
    let seen = broken_at("tool_execution_end", &restless).await;
    assert_eq!(seen[1..], ["turn_end", CLOSED[0], CLOSED[1]]);
    assert_eq!(*restless.ran.lock().unwrap(), ["prepare", "call"]);
}

/// Ctrl-C used to go unseen until the arguments were prepared.
#[tokio::test]
async fn a_run_can_be_stopped_while_arguments_are_prepared() {
    let began = CancellationToken::new();
    let restless = Arc::new(Restless { ran: Mutex::default(), hangs: Some(began.clone()) });
    let (agent, _) = agent(&restless, Session::new(None, Path::new("/p")));
    let stop = agent.stop.clone();
    tokio::spawn(async move {
        began.cancelled().await;
        stop.cancel();
    });
    let outcome = tokio::time::timeout(Duration::from_secs(30), agent.prompt(vec![Content::text("go")])).await;
    assert!(outcome.unwrap().unwrap().aborted);
    assert_eq!(*restless.ran.lock().unwrap(), ["prepare"]);
    let last = agent.conversation.session.with(|session| session.messages().last().cloned());
    let Some(Message::ToolResult(result)) = last else { panic!("no result") };
    assert_eq!((result.content.as_slice(), result.duration_ms), (&[Content::text(STOPPED)][..], None));
}
