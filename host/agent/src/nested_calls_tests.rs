use std::sync::Mutex;

use atoll_table::{
    Invocation, Progress, Table,
    hooks::{BeforeCall, CallEvent, Hook, ResultPatch},
    nesting::NestedStatus,
    tool::{Annotations, ExecutionMode, Exposure},
};
use futures::{FutureExt as _, future::pending};
use serde_json::json;

use super::*;

/// Tools that do something with the table.
struct Tools {
    ran: Mutex<Vec<Invocation>>,
}

impl ToolRunner for Tools {
    fn prepare(&self, _: String, arguments: Value) -> BoxFuture<'_, Result<Value, Error>> {
        async { Ok(arguments) }.boxed()
    }

    fn call(&self, invocation: Invocation, progress: Progress) -> BoxFuture<'_, Result<ToolOutput, Error>> {
        self.ran.lock().unwrap().push(invocation.clone());
        async move {
            let Invocation { tool, arguments, table, .. } = invocation;
            match tool.as_str() {
                "echo" => {
                    progress(vec![Content::text("half")], None);
                    Ok(ToolOutput {
                        content: vec![Content::text(arguments["text"].to_string())],
                        ..ToolOutput::default()
                    })
                }
                "fail" => Err(Error::Timeout("too slow".to_owned())),
                "hang" => pending().await,
                _ => {
                    let nesting = u32::try_from(arguments["nesting"].as_u64().unwrap_or(8)).unwrap();
                    let name = arguments["tool"].as_str().unwrap().to_owned();
                    table.call(nesting, name, arguments["with"].clone()).await
                }
            }
        }
        .boxed()
    }

    fn allowed(&self) -> Vec<String> {
        Vec::new()
    }
}

fn tool(name: &str) -> Tool {
    let parameters = match name {
        "echo" => json!({"type": "object", "properties": {"text": {"type": "integer"}}, "required": ["text"]}),
        _ => json!({"type": "object"}),
    };
    Tool {
        name: name.to_owned(),
        label: String::new(),
        description: format!("It does {name}."),
        parameters,
        output_schema: None,
        prompt_snippet: None,
        prompt_guidelines: Vec::new(),
        exposure: if name == "model_only" { Exposure::ModelOnly } else { Exposure::Direct },
        default_active: name != "inactive",
        execution_mode: ExecutionMode::Parallel,
        namespace: None,
        annotations: Annotations::default(),
        prepares: false,
    }
}

fn pipeline() -> (Pipeline, Arc<Tools>) {
    let tools = Arc::new(Tools { ran: Mutex::default() });
    let runner: Arc<dyn ToolRunner> = Arc::<Tools>::clone(&tools);
    let mut table = Table::new();
    let names = ["nest", "echo", "fail", "hang", "model_only", "inactive"];
    table.register("p", names.map(tool).to_vec(), &runner).unwrap();
    (Pipeline::new(table), tools)
}

type Seen = Arc<Mutex<Vec<NestedEvent>>>;

/// Calls `nest` as a model does; the result, the record and the events.
async fn nest(pipeline: &Pipeline, arguments: Value) -> (ToolOutput, Value, Vec<NestedEvent>) {
    let seen = Seen::default();
    let ready = pipeline.ready(Caller::Model, "c", "nest", arguments).await.unwrap();
    let record = ready.record();
    let watched = Arc::clone(&seen);
    let done = ready.run(Arc::new(|_, _| {}), Arc::new(move |event| watched.lock().unwrap().push(event))).await;
    let events = seen.lock().unwrap().clone();
    (done.output, serde_json::to_value(record.calls()).unwrap(), events)
}

#[tokio::test]
async fn a_nested_call_is_checked_watched_and_recorded() {
    let (pipeline, tools) = pipeline();
    let (output, mut record, events) = nest(&pipeline, json!({"tool": "echo", "with": {"text": "7"}})).await;
    assert_eq!(output.content, [Content::text("7")], "the number in the string was made one");
    let inner = tools.ran.lock().unwrap()[1].clone();
    assert_eq!((inner.id.as_str(), inner.parent_id.as_deref(), inner.depth), ("c/1", Some("c"), 1));
    record["calls"][0]["durationMs"] = json!(0);
    let call = json!({"id": "c/1", "name": "echo", "arguments": {"text": "7"}, "status": "ok", "durationMs": 0});
    assert_eq!(record, json!({"calls": [call], "complete": true}));
    let kinds: Vec<&str> = (events.iter())
        .map(|event| match event.what {
            NestedStep::Start => "start",
            NestedStep::Update { .. } => "update",
            NestedStep::End { .. } => "end",
        })
        .collect();
    assert_eq!(kinds, ["start", "update", "end"]);
    assert!(events.iter().all(|event| event.call_id == "c/1" && event.parent_id == "c"));
}

#[tokio::test]
async fn a_nested_call_that_does_not_fit_never_runs() {
    let (pipeline, tools) = pipeline();
    let (output, record, _) = nest(&pipeline, json!({"tool": "echo", "with": {}})).await;
    assert!(output.is_error && Content::joined_text(&output.content).contains("text"), "{output:?}");
    assert_eq!(record["calls"][0]["status"], "error");
    assert_eq!(tools.ran.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_failure_of_a_nested_tool_keeps_its_code() {
    let (pipeline, _) = pipeline();
    let (output, ..) = nest(&pipeline, json!({"tool": "fail", "with": {}})).await;
    assert_eq!(output.details.unwrap()["error"]["code"], "timeout");
}

#[tokio::test]
async fn a_nested_call_reaches_only_what_is_active_and_not_the_models_alone() {
    let (pipeline, tools) = pipeline();
    for name in ["model_only", "inactive", "nobody"] {
        let (output, ..) = nest(&pipeline, json!({"tool": name, "with": {}})).await;
        assert_eq!(output.details.unwrap()["error"]["code"], "not-found", "{name}");
    }
    assert!(tools.ran.lock().unwrap().iter().all(|call| call.tool == "nest"));
}

#[tokio::test]
async fn calls_nest_as_deep_as_the_calling_plugin_allows() {
    let (pipeline, tools) = pipeline();
    let mut arguments = json!({"tool": "echo", "with": {"text": 1}, "nesting": 2});
    let (output, ..) = nest(&pipeline, json!({"tool": "nest", "with": arguments.clone(), "nesting": 2})).await;
    assert!(!output.is_error, "{output:?}");
    arguments = json!({"tool": "nest", "with": arguments, "nesting": 2});
    let (output, record, _) = nest(&pipeline, json!({"tool": "nest", "with": arguments, "nesting": 2})).await;
    let error = output.details.unwrap()["error"].clone();
    assert_eq!(error["code"], "limit");
    assert!(error["message"].as_str().unwrap().contains("nesting"), "{error}");
    let ids: Vec<&str> = record["calls"].as_array().unwrap().iter().map(|call| call["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["c/1", "c/1/1"], "the record has the calls of all depths");
    assert_eq!(tools.ran.lock().unwrap().last().unwrap().depth, 2);
}

#[tokio::test]
async fn a_nested_call_that_is_dropped_with_its_caller_ends_for_whoever_watches() {
    let (pipeline, tools) = pipeline();
    let seen = Seen::default();
    let ready = pipeline.ready(Caller::Model, "c", "nest", json!({"tool": "hang", "with": {}})).await.unwrap();
    let record = ready.record();
    let watched = Arc::clone(&seen);
    let mut running =
        Box::pin(ready.run(Arc::new(|_, _| {}), Arc::new(move |event| watched.lock().unwrap().push(event))));
    while tools.ran.lock().unwrap().len() < 2 {
        assert!(futures::poll!(&mut running).is_pending());
    }
    drop(running);
    let Some(NestedStep::End { output, duration_ms: None }) =
        seen.lock().unwrap().last().map(|event| event.what.clone())
    else {
        panic!("it did not end")
    };
    assert!(output.is_error);
    let record = record.calls().unwrap();
    assert_eq!((record.calls[0].status, record.complete), (NestedStatus::Unfinished, false));
}

#[tokio::test]
async fn a_plugin_changes_its_own_tools_only() {
    let (pipeline, tools) = pipeline();
    let runner: Arc<dyn ToolRunner> = Arc::<Tools>::clone(&tools);
    pipeline.change(|table| table.register("other", vec![tool("theirs")], &runner)).unwrap();
    nest(&pipeline, json!({"tool": "echo", "with": {"text": 1}})).await;
    let table = tools.ran.lock().unwrap()[0].table.clone();
    assert_eq!(table.unregister(vec!["theirs".to_owned()]).await.unwrap_err().code(), "not-found");
    table.register(vec![tool("more")], Arc::clone(&runner), 100).await.unwrap();
    assert_eq!(pipeline.table(|table| table.find("more").unwrap().plugin.clone()), "p");
    table.unregister(vec!["more".to_owned()]).await.unwrap();
    assert!(pipeline.table(|table| table.find("more").is_err()));
    table.activate(vec!["inactive".to_owned()], true).await.unwrap();
    let listed: Vec<(String, bool)> =
        table.list().iter().map(|(entry, active)| (entry.tool.name.clone(), *active)).collect();
    assert!(listed.contains(&("inactive".to_owned(), true)), "{listed:?}");
    assert!(!listed.iter().any(|(name, _)| name == "more"), "withdrawn: {listed:?}");
    assert!(table.describe("inactive").unwrap().active);
    let found = table.search("does echo", 1).unwrap();
    assert_eq!(found[0].name, "echo");
}

/// Turns 1 into 2 and a result of 2 into "two"; blocks 13 and fails at 14.
struct Changes(Mutex<Vec<CallEvent>>);

impl Hook for Changes {
    fn name(&self) -> &str {
        "changes"
    }

    fn before_call(&self, call: CallEvent) -> BoxFuture<'_, Result<BeforeCall, Error>> {
        let answer = match call.arguments["text"].as_i64() {
            Some(1) => Ok(BeforeCall::Rewrite(json!({"text": 2}))),
            Some(13) => Ok(BeforeCall::Block { reason: Some("unlucky".to_owned()), terminate: false }),
            Some(14) => Err(Error::Failed("broken".to_owned())),
            _ => Ok(BeforeCall::Pass),
        };
        self.0.lock().unwrap().push(call);
        async { answer }.boxed()
    }

    fn after_call(&self, _: CallEvent, output: ToolOutput) -> BoxFuture<'_, Result<ResultPatch, Error>> {
        let content = (output.content == [Content::text("2")]).then(|| vec![Content::text("two")]);
        async { Ok(ResultPatch { content, ..ResultPatch::default() }) }.boxed()
    }
}

#[tokio::test]
async fn hooks_see_every_call_whoever_makes_it() {
    let (pipeline, tools) = pipeline();
    let hook = Arc::new(Changes(Mutex::default()));
    pipeline.set_hooks(vec![Arc::<Changes>::clone(&hook)]);
    let ready = pipeline.ready(Caller::Person, "p", "echo", json!({"text": 1})).await.unwrap();
    let done = ready.run(Arc::new(|_, _| {}), Arc::new(|_| {})).await;
    assert_eq!(done.output.content, [Content::text("two")]);
    let (output, ..) = nest(&pipeline, json!({"tool": "echo", "with": {"text": 1}})).await;
    assert_eq!(output.content, [Content::text("two")]);
    let ids: Vec<String> = hook.0.lock().unwrap().iter().map(|call| call.call_id.clone()).collect();
    assert_eq!(ids, ["p", "c", "c/1"]);
    let ran = tools.ran.lock().unwrap().len();
    for (text, reason) in [(13, "unlucky"), (14, "broken")] {
        let (output, record, _) = nest(&pipeline, json!({"tool": "echo", "with": {"text": text}})).await;
        assert!(output.is_error && Content::joined_text(&output.content).contains(reason), "{output:?}");
        assert_eq!(record["calls"][0]["status"], "error");
    }
    assert_eq!(tools.ran.lock().unwrap().len(), ran + 2, "only the callers ran");
}
