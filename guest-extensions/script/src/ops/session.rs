//! The session and what belongs to it: tools, messages, models, the person, the store, the bus.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
};

use atoll_plugin::{
    Error, bus, host, models, progress, session, store, table,
    types::{Annotations, Delivery, ExecutionMode, Exposure, Namespace, Tool},
    ui,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Done, arguments, unknown};
use crate::events::{self, content_from_script, read};

/// What the contract answers without waiting; none for anything else.
pub(super) fn at_once(name: &str, text: &str) -> Option<Result<Done, Error>> {
    Some(match name {
        "host.describe" => Ok(Done::data(host_facts())),
        "host.flag" => arguments(name, text).map(|Name { name }| Done::data(host::flag_value(&name).into())),
        "host.settings" => events::parsed("the settings", &host::settings()).map(Done::data),
        "host.print" => arguments(name, text).map(|Text { text }| {
            host::print(text.as_deref().unwrap_or_default());
            Done::default()
        }),
        "session.describe" => Ok(Done::data(session_facts())),
        "session.system-prompt" => Ok(Done::data(session::system_prompt().into())),
        "session.context-usage" => {
            let size = session::context_usage();
            Ok(Done::data(size.map(|size| json!({"tokens": size.tokens, "contextWindow": size.window})).into()))
        }
        "session.abort" => {
            session::abort();
            Ok(Done::default())
        }
        "session.shutdown" => {
            session::shutdown();
            Ok(Done::default())
        }
        "models.available" => {
            let choice = |choice: models::Choice| json!({"name": choice.name, "images": choice.images, "contextWindow": choice.context_window});
            Ok(Done::data(models::available().into_iter().map(choice).collect()))
        }
        "ui.available" => Ok(Done::data(ui::available().into())),
        "ui.notify" => arguments(name, text).map(|Notice { message, tone }| {
            let tone = match tone.as_deref() {
                Some("error") => ui::Tone::Error,
                Some("warning") => ui::Tone::Warning,
                _ => ui::Tone::Info,
            };
            ui::notify(&message, tone);
            Done::default()
        }),
        "ui.status" => arguments(name, text).map(|Text { text }| {
            ui::set_status(text.as_deref());
            Done::default()
        }),
        "store.unlock" => arguments(name, text).map(|Held { number }| {
            LEASES.with_borrow_mut(|leases| leases.remove(&number));
            Done::default()
        }),
        "bus.emit" => arguments(name, text)
            .and_then(|Emit { topic, data }| bus::emit(&topic, &data.to_string()).map(|()| Done::default())),
        "progress.update" => arguments(name, text).and_then(|Update { id, content, details }: Update| {
            let content = content_from_script(content)?;
            let details = Some(details).filter(|details| !details.is_null()).map(|details| details.to_string());
            progress::update(&id, &content, details.as_deref());
            Ok(Done::default())
        }),
        _ => return None,
    })
}

thread_local! {
    /// Locks that the script holds, by the numbers it knows them by.
    static LEASES: RefCell<HashMap<u32, store::Lease>> = RefCell::default();
    static LAST_LEASE: Cell<u32> = const { Cell::new(0) };
}

#[derive(Deserialize)]
struct Held {
    number: u32,
}

fn host_facts() -> Value {
    let facts = host::describe();
    let mode = match facts.mode {
        host::Mode::Print => "print",
        host::Mode::Json => "json",
        host::Mode::Rpc => "rpc",
        host::Mode::Terminal => "tui",
        host::Mode::Command => "command",
    };
    json!({
        "version": facts.version,
        "mode": mode,
        "hasPerson": facts.has_person,
        "cwd": facts.cwd,
        "trusted": facts.trusted,
        "plugin": facts.plugin,
    })
}

fn session_facts() -> Value {
    let facts = session::describe();
    json!({
        "id": facts.id,
        "file": facts.file,
        "cwd": facts.cwd,
        "name": facts.name,
        "idle": facts.idle,
        "pending": facts.pending,
        "model": facts.model,
        "thinking": facts.thinking,
    })
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

#[derive(Deserialize)]
struct Names {
    names: Vec<String>,
    #[serde(default)]
    active: bool,
}

#[derive(Deserialize)]
struct Text {
    text: Option<String>,
}

#[derive(Deserialize)]
struct Notice {
    message: String,
    tone: Option<String>,
}

#[derive(Deserialize)]
struct Emit {
    topic: String,
    data: Value,
}

#[derive(Deserialize)]
struct Update {
    id: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    details: Value,
}

#[derive(Deserialize)]
struct Id {
    id: String,
}

#[derive(Deserialize)]
struct Key {
    key: String,
}

#[derive(Deserialize)]
struct Search {
    query: String,
    max: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolCall {
    parent_id: Option<String>,
    name: String,
    arguments: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    custom_type: String,
    #[serde(default)]
    data: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Send {
    content: Value,
    deliver_as: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendCustom {
    custom_type: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    display: bool,
    #[serde(default)]
    details: Value,
    deliver_as: Option<String>,
    #[serde(default)]
    trigger: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Label {
    entry_id: String,
    label: Option<String>,
}

#[derive(Deserialize)]
struct Section {
    name: String,
    text: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Complete {
    model: Option<String>,
    #[serde(default)]
    system: String,
    prompt: Value,
    max_tokens: Option<u32>,
}

#[derive(Deserialize)]
struct Question {
    title: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    options: Vec<String>,
    timeout: Option<u64>,
}

fn delivery(word: Option<&str>) -> Result<Delivery, Error> {
    match word {
        None | Some("steer") => Ok(Delivery::Steer),
        Some("followUp" | "follow-up") => Ok(Delivery::FollowUp),
        Some("nextTurn" | "next-turn") => Ok(Delivery::NextTurn),
        Some(other) => {
            Err(Error::invalid_arguments(format!("`deliverAs` is `{other}`; it can be steer, followUp or nextTurn")))
        }
    }
}

pub(super) async fn perform(name: &str, value: Value, bytes: Vec<u8>) -> Result<Done, Error> {
    match name.split_once('.').map(|(interface, _)| interface) {
        Some("table") => perform_on_table(name, value).await,
        Some("session") => perform_on_session(name, value).await,
        Some("store") => perform_on_store(name, value, bytes).await,
        Some("ui") => ask(name, read(name, value)?).await,
        Some("models") if name == "models.complete" => {
            let Complete { model, system, prompt, max_tokens } = read(name, value)?;
            let answer = models::complete(model, system, content_from_script(prompt)?, max_tokens).await?;
            Ok(Done::data(json!({"text": answer.text, "usage": events::usage_to_script(answer.usage)})))
        }
        Some("host") if name == "host.subscribe" => {
            host::subscribe(events::subscription(&value)?).await.map(|()| Done::default())
        }
        Some("progress") if name == "progress.cancelled" => {
            let Id { id } = read(name, value)?;
            progress::cancelled(id).await;
            Ok(Done::default())
        }
        _ => Err(unknown(name)),
    }
}

async fn perform_on_store(name: &str, value: Value, bytes: Vec<u8>) -> Result<Done, Error> {
    let Key { key } = read(name, value)?;
    match name {
        "store.get" => Ok(Done { data: Value::Null, bytes: store::get(key).await? }),
        "store.set" => store::set(key, bytes).await.map(|()| Done::default()),
        "store.remove" => store::remove(key).await.map(|()| Done::default()),
        "store.lock" => {
            let lease = store::lock(key).await?;
            let number = LAST_LEASE.get().wrapping_add(1);
            LAST_LEASE.set(number);
            LEASES.with_borrow_mut(|leases| leases.insert(number, lease));
            Ok(Done::data(number.into()))
        }
        "store.keys" => store::keys(key).await.map(|keys| Done::data(json!(keys))),
        _ => Err(unknown(name)),
    }
}

async fn ask(name: &str, question: Question) -> Result<Done, Error> {
    let Question { title, text, options, timeout } = question;
    Ok(Done::data(match name {
        "ui.select" => ui::select(title, options, timeout).await?.into(),
        "ui.confirm" => ui::confirm(title, text, timeout).await?.into(),
        "ui.input" => ui::input(title, text, timeout).await?.into(),
        "ui.editor" => ui::editor(title, text).await?.into(),
        _ => return Err(unknown(name)),
    }))
}

async fn perform_on_session(name: &str, value: Value) -> Result<Done, Error> {
    match name {
        "session.entries" => {
            let entries = session::entries().await?;
            let entries = entries.iter().map(|entry| events::parsed("an entry", entry)).collect::<Result<_, _>>()?;
            return Ok(Done::data(entries));
        }
        "session.append" => {
            let Entry { custom_type, data } = read(name, value)?;
            return Ok(Done::data(session::append(custom_type, data.to_string()).await?.into()));
        }
        "session.send" => {
            let Send { content, deliver_as } = read(name, value)?;
            session::send(content_from_script(content)?, delivery(deliver_as.as_deref())?).await?;
        }
        "session.send-custom" => {
            let SendCustom { custom_type, content, display, details, deliver_as, trigger } = read(name, value)?;
            let details = Some(details).filter(|details| !details.is_null()).map(|details| details.to_string());
            let message =
                session::CustomMessage { custom_type, content: content_from_script(content)?, display, details };
            session::send_custom(message, delivery(deliver_as.as_deref())?, trigger).await?;
        }
        "session.set-label" => {
            let Label { entry_id, label } = read(name, value)?;
            session::set_label(entry_id, label).await?;
        }
        "session.set-name" => session::set_name(read::<Name>(name, value)?.name).await?,
        "session.set-model" => session::set_model(read::<Name>(name, value)?.name).await?,
        "session.set-thinking" => session::set_thinking(read::<Name>(name, value)?.name).await?,
        "session.set-prompt-section" => {
            let Section { name, text } = read(name, value)?;
            session::set_prompt_section(name, text).await?;
        }
        "session.compact" => session::compact(read::<Text>(name, value)?.text).await?,
        "session.wait-idle" => session::wait_idle().await?,
        "session.reload" => session::reload().await?,
        _ => return Err(unknown(name)),
    }
    Ok(Done::default())
}

async fn perform_on_table(name: &str, value: Value) -> Result<Done, Error> {
    match name {
        "table.register" => {
            let tools: Vec<ToolFields> = read("a tool", value)?;
            table::register(tools.into_iter().map(ToolFields::tool).collect()).await?;
        }
        "table.unregister" => table::unregister(read::<Names>(name, value)?.names).await?,
        "table.activate" => {
            let Names { names, active } = read(name, value)?;
            table::activate(names, active).await?;
        }
        "table.list" => {
            let entries = table::list().await?;
            return Ok(Done::data(entries.into_iter().map(entry).collect()));
        }
        "table.search" => {
            let Search { query, max } = read(name, value)?;
            return Ok(Done::data(table::search(query, max).await?.iter().map(summary).collect()));
        }
        "table.describe" => {
            return Ok(Done::data(summary(&table::describe(read::<Name>(name, value)?.name).await?)));
        }
        "table.call" => {
            let ToolCall { parent_id, name, arguments } = read(name, value)?;
            let output = table::call(parent_id, name, arguments.to_string()).await?;
            return events::output_to_script(output).map(Done::data);
        }
        _ => return Err(unknown(name)),
    }
    Ok(Done::default())
}

fn summary(found: &table::Summary) -> Value {
    json!({"name": found.name, "description": found.description, "shape": found.shape, "active": found.active})
}

fn entry(entry: table::Entry) -> Value {
    let Tool { name, label, description, parameters, exposure, .. } = entry.tool;
    let exposure = match exposure {
        Exposure::Direct => "direct",
        Exposure::ModelOnly => "model-only",
        Exposure::Codemode => "codemode",
        Exposure::Deferred => "deferred",
        Exposure::Hidden => "hidden",
    };
    json!({
        "name": name,
        "label": label,
        "description": description,
        "parameters": serde_json::from_str::<Value>(&parameters).unwrap_or_default(),
        "exposure": exposure,
        "plugin": entry.plugin,
        "active": entry.active,
    })
}

/// A tool as the script's side gives it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolFields {
    name: String,
    label: Option<String>,
    #[serde(default)]
    description: String,
    parameters: Value,
    output_schema: Option<Value>,
    prompt_snippet: Option<String>,
    #[serde(default)]
    prompt_guidelines: Vec<String>,
    #[serde(default)]
    exposure: ExposureWord,
    default_active: Option<bool>,
    #[serde(default)]
    execution_mode: ModeWord,
    namespace: Option<NamespaceFields>,
    #[serde(default)]
    annotations: AnnotationFields,
    #[serde(default)]
    prepares: bool,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ExposureWord {
    #[default]
    Direct,
    ModelOnly,
    Codemode,
    Deferred,
    Hidden,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ModeWord {
    #[default]
    Parallel,
    Sequential,
}

#[derive(Deserialize)]
struct NamespaceFields {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    description: Option<String>,
    instructions: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnnotationFields {
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
    idempotent_hint: Option<bool>,
    open_world_hint: Option<bool>,
}

impl ToolFields {
    fn tool(self) -> Tool {
        Tool {
            label: self.label.unwrap_or_else(|| self.name.clone()),
            name: self.name,
            description: self.description,
            parameters: self.parameters.to_string(),
            output_schema: self.output_schema.map(|schema| schema.to_string()),
            prompt_snippet: self.prompt_snippet,
            prompt_guidelines: self.prompt_guidelines,
            exposure: match self.exposure {
                ExposureWord::Direct => Exposure::Direct,
                ExposureWord::ModelOnly => Exposure::ModelOnly,
                ExposureWord::Codemode => Exposure::Codemode,
                ExposureWord::Deferred => Exposure::Deferred,
                ExposureWord::Hidden => Exposure::Hidden,
            },
            default_active: self.default_active.unwrap_or(true),
            execution_mode: match self.execution_mode {
                ModeWord::Parallel => ExecutionMode::Parallel,
                ModeWord::Sequential => ExecutionMode::Sequential,
            },
            namespace: self.namespace.map(|namespace| Namespace {
                name: namespace.name,
                aliases: namespace.aliases,
                description: namespace.description,
                instructions: namespace.instructions,
            }),
            annotations: Annotations {
                read_only: self.annotations.read_only_hint,
                destructive: self.annotations.destructive_hint,
                idempotent: self.annotations.idempotent_hint,
                open_world: self.annotations.open_world_hint,
            },
            prepares: self.prepares,
        }
    }
}
