//! The steps: an object with one key each, which says what is done.

use atoll_plugin::{
    Content, Error, EventId, Exported as _, ToolInfo, ToolOutput, bus, clock, config, files, host, listener, log,
    models, process, progress, providers, secrets, servers, session, store, table,
    types::{Delivery, ToolOutput as Output},
    ui,
};
use serde_json::{Value, json};

/// Where steps are run.
pub(crate) struct Place {
    /// The call, event or command.
    id: Option<String>,
}

impl Place {
    pub(crate) fn own() -> Self {
        Self { id: None }
    }

    pub(crate) fn of(id: &str) -> Self {
        Self { id: Some(id.to_owned()) }
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn delivery(value: &Value) -> Delivery {
    match value.as_str() {
        Some("steer") => Delivery::Steer,
        Some("nextTurn") => Delivery::NextTurn,
        _ => Delivery::FollowUp,
    }
}

fn said(content: Vec<Content>) -> String {
    let texts = content.into_iter().filter_map(|piece| match piece {
        Content::Text(text) => Some(text),
        Content::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// What a call gave, as JSON.
fn called(result: Result<Output, Error>) -> Value {
    match result {
        Ok(ToolOutput { content, is_error, .. }) => json!({"text": said(content), "isError": is_error}),
        Err(error) => json!({"code": error.code(), "message": error.message()}),
    }
}

/// Runs steps one after the other; gives what each of them gave. One that may fail gives its error's code and message
/// with `try` around it; else its failure is that of all.
pub(crate) async fn run(steps: &Value, place: &Place) -> Result<Vec<Value>, Error> {
    let mut gave = Vec::new();
    for step in steps.as_array().into_iter().flatten() {
        let Some((name, with)) = step.as_object().and_then(|step| step.iter().next()) else {
            return Err(Error::invalid_arguments(format!("{step} is no step")));
        };
        gave.push(match name.as_str() {
            "try" => match Box::pin(run(&json!([with]), place)).await {
                Ok(mut gave) => gave.pop().unwrap_or_default(),
                Err(Error::Denied(denial)) => {
                    json!({"code": "denied", "message": format!("{}: {}", denial.target, denial.hint)})
                }
                Err(error) => json!({"code": error.code(), "message": error.message()}),
            },
            _ => one(name, with, place).await?,
        });
    }
    Ok(gave)
}

async fn one(name: &str, with: &Value, place: &Place) -> Result<Value, Error> {
    Ok(match name {
        "append" => json!(session::append(text(&with["type"]), with["data"].to_string()).await?),
        "entries" => json!(session::entries().await?.len()),
        "send" => {
            session::send(vec![Content::Text(text(&with["text"]))], delivery(&with["delivery"])).await?;
            Value::Null
        }
        "sendCustom" => {
            let message = session::CustomMessage {
                custom_type: text(&with["type"]),
                content: vec![Content::Text(text(&with["text"]))],
                display: true,
                details: with.get("details").map(Value::to_string),
            };
            let trigger = with["trigger"].as_bool().unwrap_or_default();
            session::send_custom(message, delivery(&with["delivery"]), trigger).await?;
            Value::Null
        }
        "label" => {
            session::set_label(text(&with["entry"]), with["label"].as_str().map(str::to_owned)).await?;
            Value::Null
        }
        "name" => {
            session::set_name(text(with)).await?;
            Value::Null
        }
        "model" => {
            session::set_model(text(with)).await?;
            Value::Null
        }
        "thinking" => {
            session::set_thinking(text(with)).await?;
            Value::Null
        }
        "section" => {
            session::set_prompt_section(text(&with["name"]), with["text"].as_str().map(str::to_owned)).await?;
            Value::Null
        }
        "describeSession" => {
            let info = session::describe();
            json!({"id": info.id, "file": info.file, "cwd": info.cwd, "name": info.name, "idle": info.idle,
                "pending": info.pending, "model": info.model, "thinking": info.thinking})
        }
        "systemPrompt" => json!(session::system_prompt()),
        "contextUsage" => {
            let usage = session::context_usage();
            json!(usage.map(|usage| json!({"tokens": usage.tokens, "window": usage.window})))
        }
        "compact" => {
            session::compact(with.as_str().map(str::to_owned)).await?;
            Value::Null
        }
        "waitIdle" => {
            session::wait_idle().await?;
            Value::Null
        }
        "reload" => {
            session::reload().await?;
            Value::Null
        }
        "abort" => {
            session::abort();
            Value::Null
        }
        "shutdown" => {
            session::shutdown();
            Value::Null
        }
        "describeHost" => {
            let info = host::describe();
            json!({"version": info.version, "mode": format!("{:?}", info.mode), "hasPerson": info.has_person,
                "cwd": info.cwd, "trusted": info.trusted, "plugin": info.plugin, "home": host::home(),
                "command": host::wanted_command()})
        }
        "flag" => json!(host::flag_value(&text(with))),
        "subscribe" => {
            host::subscribe(super::wanted(with)).await?;
            Value::Null
        }
        "told" => super::Puppet::instance().map_or(Value::Null, |puppet| puppet.told.borrow().clone().into()),
        _ => return reaching(name, with, place).await,
    })
}

/// Steps that reach beyond the session.
async fn reaching(name: &str, with: &Value, place: &Place) -> Result<Value, Error> {
    Ok(match name {
        "call" => {
            let (tool, arguments) = (text(&with["tool"]), with["arguments"].clone());
            let arguments = if arguments.is_null() { json!({}) } else { arguments };
            match &place.id {
                Some(id) if !with["own"].as_bool().unwrap_or_default() => {
                    called(EventId(id.clone()).call_tool(&tool, &arguments).await)
                }
                _ => called(table::call(None, tool, arguments.to_string()).await),
            }
        }
        "register" => {
            let tool = |name: &Value| ToolInfo::new(&text(name), "Was added.").into_tool();
            table::register(with.as_array().into_iter().flatten().map(tool).collect()).await?;
            Value::Null
        }
        "registerMany" => {
            let tool = |number: u64| ToolInfo::new(&format!("many_{number}"), "Was added.").inactive().into_tool();
            table::register((0..with.as_u64().unwrap_or_default()).map(tool).collect()).await?;
            Value::Null
        }
        "unregister" => {
            table::unregister(texts(with)).await?;
            Value::Null
        }
        "activate" => {
            table::activate(texts(with), true).await?;
            Value::Null
        }
        "deactivate" => {
            table::activate(texts(with), false).await?;
            Value::Null
        }
        "searchTools" => {
            let found = table::search(text(with), 10).await?;
            Value::from(found.into_iter().map(|found| json!([found.name, found.active])).collect::<Vec<_>>())
        }
        "describeTool" => {
            let found = table::describe(text(with)).await?;
            json!({"name": found.name, "description": found.description, "shape": found.shape})
        }
        "listTools" => {
            let tools = table::list().await?;
            Value::from(
                tools.into_iter().map(|entry| json!([entry.tool.name, entry.plugin, entry.active])).collect::<Vec<_>>(),
            )
        }
        "select" => json!(ui::select(text(&with["title"]), texts(&with["options"]), with["timeout"].as_u64()).await?),
        "confirm" => {
            json!(ui::confirm(text(&with["title"]), text(&with["message"]), with["timeout"].as_u64()).await?)
        }
        "input" => {
            json!(ui::input(text(&with["title"]), text(&with["placeholder"]), with["timeout"].as_u64()).await?)
        }
        "editor" => json!(ui::editor(text(&with["title"]), text(&with["prefill"])).await?),
        "hasPerson" => json!(ui::available()),
        "notify" => {
            ui::notify(&text(with), ui::Tone::Info);
            Value::Null
        }
        "status" => {
            ui::set_status(with.as_str());
            Value::Null
        }
        "models" => json!(models::available().into_iter().map(|model| model.name).collect::<Vec<_>>()),
        "complete" => {
            let prompt = vec![Content::Text(text(&with["prompt"]))];
            let model = with["model"].as_str().map(str::to_owned);
            let answer = models::complete(model, text(&with["system"]), prompt, None).await?;
            json!({"text": answer.text, "output": answer.usage.output})
        }
        "emit" => {
            bus::emit(&text(&with["topic"]), &with["data"].to_string())?;
            Value::Null
        }
        "keep" => {
            store::set(text(&with["key"]), text(&with["value"]).into_bytes()).await?;
            Value::Null
        }
        "kept" => {
            let value = store::get(text(with)).await?;
            json!(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
        }
        "forget" => {
            store::remove(text(with)).await?;
            Value::Null
        }
        "keys" => json!(store::keys(text(with)).await?),
        // Holds the lock while it does steps.
        "locked" => {
            let _lease = store::lock(text(&with["key"])).await?;
            json!(Box::pin(run(&with["steps"], place)).await?)
        }
        // Gives up after so many milliseconds.
        "tryLock" => {
            let waited = store::lock(text(&with["key"]));
            let until = clock::sleep(with["ms"].as_u64().unwrap_or_default());
            match futures::future::select(std::pin::pin!(waited), std::pin::pin!(until)).await {
                futures::future::Either::Left((lease, _)) => json!(lease.map(|_| true)?),
                futures::future::Either::Right(_) => json!(false),
            }
        }
        // Says in the log on which port it listens.
        "listen" => {
            let port = with["port"].as_u64().and_then(|port| u16::try_from(port).ok()).unwrap_or_default();
            let pending = listener::open(port, text(&with["path"]), text(&with["page"])).await?;
            log::write(log::Level::Info, &format!("listens on {}", pending.port()));
            let mut gave = Vec::new();
            for ms in with["wait"].as_array().into_iter().flatten() {
                gave.push(match pending.wait(ms.as_u64().unwrap_or_default()).await {
                    Ok(callback) => json!(callback.target),
                    Err(error) => json!(error.code()),
                });
            }
            json!(gave)
        }
        "print" => {
            host::print(&text(with));
            Value::Null
        }
        "readConfig" => {
            let found = config::read(text(with)).await?;
            let shown = |document: config::Document| {
                json!({"place": format!("{:?}", document.place), "path": document.path, "text": document.text,
                    "version": document.version, "trusted": document.trusted})
            };
            Value::from(found.into_iter().map(shown).collect::<Vec<_>>())
        }
        // Over the version that is there, unless another is said.
        "writeConfig" => {
            let file = text(&with["file"]);
            let place = if with["project"] == true { config::Place::Project } else { config::Place::User };
            let there = config::read(file.clone()).await?.into_iter().find(|document| document.place == place);
            let expected = with["expected"].as_str().map(str::to_owned).or(there.map(|document| document.version));
            json!(config::write(file, place, text(&with["text"]), expected).await?.path)
        }
        "resolve" => json!(config::resolve(text(&with["file"]), text(&with["value"])).await?),
        "resolvedBytes" => json!(config::resolve(text(&with["file"]), text(&with["value"])).await?.len()),
        "clock" => json!([clock::now(), clock::monotonic()]),
        "shell" => json!(process::shell()),
        "secrets" => json!(secrets::available()),
        "reveal" => json!(secrets::reveal(text(with)).await?),
        "revealedBytes" => json!(secrets::reveal(text(with)).await?.len()),
        "saveSecret" => {
            let value = text(&with["value"]).repeat(with["repeat"].as_u64().unwrap_or(1) as usize);
            secrets::save(text(&with["name"]), value).await?;
            Value::Null
        }
        "provider" => {
            providers::register(text(&with["name"]), with["config"].to_string()).await?;
            Value::Null
        }
        "dropProvider" => {
            providers::unregister(text(with)).await?;
            Value::Null
        }
        "server" => {
            servers::register(text(&with["name"]), with["config"].to_string()).await?;
            Value::Null
        }
        "dropServer" => {
            servers::unregister(text(with)).await?;
            Value::Null
        }
        "permit" => {
            let what = match with["program"].as_str() {
                Some(program) => servers::Permission::Spawn(servers::Program {
                    program: program.to_owned(),
                    arguments: texts(&with["arguments"]),
                    variables: texts(&with["variables"]),
                }),
                None => servers::Permission::Request(servers::Request {
                    method: text(&with["method"]),
                    url: text(&with["url"]),
                }),
            };
            servers::permit(text(&with["server"]), what).await?;
            json!(true)
        }
        "servers" => {
            let shown = |server: servers::Server| json!([server.name, server.plugin, server.config]);
            Value::from(servers::list().into_iter().map(shown).collect::<Vec<_>>())
        }
        "log" => {
            log::write(log::Level::Info, &text(with));
            Value::Null
        }
        "update" => {
            let id = place.id.clone().unwrap_or_default();
            progress::update(&id, &[Content::Text(text(with))], None);
            Value::Null
        }
        _ => return failing(name, with, place).await,
    })
}

/// Steps that fail, or do not end.
#[allow(clippy::print_stderr, reason = "a flood on standard error is one of the steps")]
async fn failing(name: &str, with: &Value, place: &Place) -> Result<Value, Error> {
    match name {
        "sleep" => clock::sleep(with.as_u64().unwrap_or_default()).await,
        "fail" => return Err(Error::failed(text(with))),
        "never" => std::future::pending().await,
        // Only so many times in all, over all its lives.
        "times" => {
            let key = text(&with["key"]);
            let before = store::get(key.clone()).await?.map_or(0, |value| value.len());
            if (before as u64) < with["most"].as_u64().unwrap_or_default() {
                store::set(key, vec![b'x'; before + 1]).await?;
                Box::pin(run(&with["steps"], place)).await?;
            }
        }
        "untilCancelled" => {
            progress::cancelled(place.id.clone().unwrap_or_default()).await;
            log::write(log::Level::Info, "nobody waits any more");
        }
        #[allow(clippy::panic, reason = "dying is what it is for")]
        "trap" => panic!("{}", with.as_str().unwrap_or("the puppet's strings were cut")),
        #[allow(clippy::infinite_loop, reason = "it never ends on purpose")]
        "loop" => loop {
            std::hint::black_box(());
        },
        "leakMemory" => {
            let mut all = Vec::new();
            loop {
                all.push(vec![1_u8; 1 << 20]);
                std::hint::black_box(&all);
            }
        }
        "leakFiles" => {
            let mut all = Vec::new();
            loop {
                all.push(files::open(text(with)).await?);
            }
        }
        "leakProgram" => {
            let command = process::Command {
                program: "sh".to_owned(),
                arguments: vec!["-c".to_owned(), text(with)],
                cwd: None,
                env: Vec::new(),
                clear_env: false,
                stdin: process::Input::Null,
                output: process::Output::Null,
                linger_ms: 0,
                spill: None,
            };
            let child = process::spawn(command).await?;
            let pid = child.pid();
            std::mem::forget(child);
            return Ok(json!(pid));
        }
        "flood" => {
            let message = || json!({"n": 1}).to_string();
            for number in 0..with["times"].as_u64().unwrap_or_default() {
                match with["what"].as_str() {
                    Some("bus") => bus::emit("flood", &message())?,
                    Some("send") => session::send(vec![Content::Text("flood".to_owned())], Delivery::NextTurn).await?,
                    Some("stderr") => eprintln!("line {number} of a flood"),
                    _ => drop(session::append("flood".to_owned(), message()).await?),
                }
            }
        }
        other => return Err(Error::invalid_arguments(format!("there is no step `{other}`"))),
    }
    Ok(Value::Null)
}
