//! The functions that scripts call, as far as they are not JavaScript.
//!
//! They take and give plain values only: whatever a script hands in is made one of those by the shims, in JavaScript, so that
//! no code of the script (an accessor, a proxy, `toString`) can run while something in here is borrowed.

use std::rc::Rc;

use atoll_js::Ending;
use atoll_js::rquickjs::prelude::{Opt, Promised};
use atoll_js::rquickjs::{Array, Ctx, Exception, Function, IntoJs, Object, Persistent, Result as ScriptResult, Value};
use atoll_plugin::{Content, Error, ToolOutput};
use atoll_tool_image::Format;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::LocalBoxFuture;
use serde_json::json;

use crate::calls::MOST;
use crate::host;
use crate::realm::{World, no_module};
use crate::run::Run;

/// What scripts have beyond the language and what `atoll-js` brings. Each is a function of the native ones below and an object
/// that they share.
pub(crate) const SHIMS: &[(&str, &str)] = &[
    ("errors", include_str!("shims/errors.js")),
    ("output", include_str!("shims/output.js")),
    ("tools", include_str!("shims/tools.js")),
    ("store", include_str!("shims/store.js")),
    ("clock", include_str!("shims/clock.js")),
    ("abort", include_str!("shims/abort.js")),
    ("numbers", include_str!("shims/numbers.js")),
    ("order", include_str!("shims/order.js")),
    ("dates", include_str!("shims/dates.js")),
];

/// The largest picture, in bytes.
const IMAGE: usize = 20 << 20;

/// The global under which the shims share what scripts do not see; freezing takes it away.
const SHARED: &str = "__atoll";

/// Runs one shim.
pub(crate) fn install<'js>(
    ctx: &Ctx<'js>,
    shim: &Function<'js>,
    world: &Rc<World>,
    ending: &Ending,
) -> ScriptResult<()> {
    let shared: Object<'js> = ctx.globals().get(SHARED)?;
    shim.call::<_, ()>((natives(ctx, world, ending)?, shared.clone()))?;
    if let Some(said) = shared.get::<_, Option<Function<'js>>>("said")? {
        let _ = world.said.set(Persistent::save(ctx, said));
    }
    Ok(())
}

/// A value as the model reads it; none if it is a picture, which is shown with that.
pub(crate) fn said<'js>(ctx: &Ctx<'js>, world: &World, value: Value<'js>) -> ScriptResult<Option<String>> {
    match world.said.get() {
        Some(said) => said.clone().restore(ctx)?.call((value,)),
        None => Err(Exception::throw_message(ctx, "the engine is not complete")),
    }
}

/// A value as JSON, if it has that form.
pub(crate) fn as_json<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Option<String> {
    match ctx.json_stringify(value) {
        Ok(json) => json.and_then(|json| json.to_string().ok()).map(without_lone_halves),
        Err(_) => {
            drop(ctx.catch());
            None
        }
    }
}

/// Who calls.
#[derive(Clone)]
struct Bridge {
    world: Rc<World>,
    ending: Ending,
}

impl Bridge {
    /// The script that runs; nothing that one asks for after its end has an effect.
    fn run(&self, ctx: &Ctx<'_>) -> ScriptResult<Rc<Run>> {
        match self.world.run() {
            Some(run) if !self.ending.is_over() => Ok(run),
            _ => Err(self.ending.stop(ctx)),
        }
    }

    /// Goes on unless what was said was too much.
    fn said(&self, ctx: &Ctx<'_>, fits: bool) -> ScriptResult<()> {
        if fits { Ok(()) } else { Err(self.ending.stop(ctx)) }
    }
}

fn natives<'js>(ctx: &Ctx<'js>, world: &Rc<World>, ending: &Ending) -> ScriptResult<Object<'js>> {
    let native = Object::new(ctx.clone())?;
    let bridge = Bridge { world: Rc::clone(world), ending: ending.clone() };
    saying(ctx, &native, &bridge)?;
    calling(ctx, &native, &bridge)?;
    keeping(ctx, &native, &bridge)?;
    Ok(native)
}

/// What adds to the output, and ends the script.
fn saying<'js>(ctx: &Ctx<'js>, native: &Object<'js>, bridge: &Bridge) -> ScriptResult<()> {
    let own = bridge.clone();
    let text = move |ctx: Ctx<'js>, text: String| {
        let run = own.run(&ctx)?;
        own.said(&ctx, run.say(|output| output.text(text)))
    };
    native.set("text", Function::new(ctx.clone(), text)?)?;
    let own = bridge.clone();
    let image = move |ctx: Ctx<'js>, base64: String| -> ScriptResult<Option<String>> {
        let run = own.run(&ctx)?;
        match decoded(&base64) {
            Ok((data, mime_type)) => {
                own.said(&ctx, run.say(|output| output.image(data, mime_type.to_owned()))).map(|()| None)
            }
            Err(said) => Ok(Some(said)),
        }
    };
    native.set("image", Function::new(ctx.clone(), image)?)?;
    let own = bridge.clone();
    let exit = move |ctx: Ctx<'js>| -> ScriptResult<()> { Err(own.ending.end(&ctx)) };
    native.set("exit", Function::new(ctx.clone(), exit)?)?;
    let own = bridge.clone();
    let now = move || own.world.run().map_or(0.0, |run| run.elapsed_ms());
    native.set("now", Function::new(ctx.clone(), now)?)
}

/// A picture's bytes, and what they are: providers refuse a request in which that is not so, and every one after it.
fn decoded(base64: &str) -> Result<(Vec<u8>, &'static str), String> {
    if base64.len() / 4 * 3 > IMAGE {
        return Err(format!("the picture has more than {} MiB", IMAGE >> 20));
    }
    let plain: String = base64.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let data = STANDARD.decode(plain).map_err(|error| format!("the picture is no base64: {error}"))?;
    match Format::of(&data) {
        Some(format @ (Format::Png | Format::Jpeg | Format::Gif | Format::Webp)) => Ok((data, format.mime_type())),
        Some(Format::Bmp) | None => Err("its bytes are those of no PNG, JPEG, GIF or WebP".to_owned()),
    }
}

/// What reaches the table.
fn calling<'js>(ctx: &Ctx<'js>, native: &Object<'js>, bridge: &Bridge) -> ScriptResult<()> {
    let own = bridge.clone();
    let find = move |ctx: Ctx<'js>, wanted: String| -> ScriptResult<Option<Vec<String>>> {
        let run = own.run(&ctx)?;
        for again in [false, true] {
            let names = thrown(&ctx, run.names(again))?;
            if let Some(tool) = names.find(&wanted) {
                return Ok(Some(vec![tool.name.clone(), tool.id().to_owned()]));
            }
        }
        Ok(None)
    };
    native.set("find", Function::new(ctx.clone(), find)?)?;
    let own = bridge.clone();
    let missing = move |ctx: Ctx<'js>, wanted: String| -> ScriptResult<String> {
        Ok(thrown(&ctx, own.run(&ctx)?.names(false))?.missing(&wanted))
    };
    native.set("missing", Function::new(ctx.clone(), missing)?)?;
    let own = bridge.clone();
    let unknown = move |ctx: Ctx<'js>, specifier: String| -> ScriptResult<String> {
        Ok(no_module(Some(&*own.run(&ctx)?), &specifier))
    };
    native.set("noModule", Function::new(ctx.clone(), unknown)?)?;
    let own = bridge.clone();
    let identifiers = move |ctx: Ctx<'js>| -> ScriptResult<Vec<String>> {
        Ok(thrown(&ctx, own.run(&ctx)?.names(true))?.identifiers().map(str::to_owned).collect())
    };
    native.set("identifiers", Function::new(ctx.clone(), identifiers)?)?;
    let own = bridge.clone();
    let all = move |ctx: Ctx<'js>| -> ScriptResult<String> {
        let names = thrown(&ctx, own.run(&ctx)?.names(true))?;
        let tools =
            names.all().map(|tool| json!({"name": tool.name, "id": tool.id(), "description": tool.description}));
        Ok(tools.collect::<serde_json::Value>().to_string())
    };
    native.set("all", Function::new(ctx.clone(), all)?)?;
    let own = bridge.clone();
    let call = move |ctx: Ctx<'js>, name: String, arguments: String| -> ScriptResult<_> {
        Ok(Promised(called(&own.run(&ctx)?, &own.ending, name, arguments)))
    };
    native.set("call", Function::new(ctx.clone(), call)?)?;
    let own = bridge.clone();
    let search = move |ctx: Ctx<'js>, query: String, limit: u32, namespace: Opt<Option<String>>| -> ScriptResult<_> {
        let run = own.run(&ctx)?;
        let names = thrown(&ctx, run.names(true))?;
        let namespace = namespace.0.flatten();
        let work = async move {
            let (found, waiting) = host::search(query, limit, namespace).await?;
            // What can not be called is no use to a script.
            let shown = found.into_iter().filter_map(|(name, mut tool)| {
                tool.insert("id".to_owned(), names.find(&name)?.id().into());
                Some(serde_json::Value::from(tool))
            });
            let shown: serde_json::Value = shown.collect();
            Ok(json!({"tools": shown, "waiting": waiting}).to_string())
        };
        Ok(Promised(answered(&run, &own.ending, Box::pin(work))))
    };
    native.set("search", Function::new(ctx.clone(), search)?)?;
    let own = bridge.clone();
    let describe = move |ctx: Ctx<'js>, name: String| -> ScriptResult<_> {
        let run = own.run(&ctx)?;
        let names = thrown(&ctx, run.names(false))?;
        let work = async move {
            let mut tool = host::describe(name.clone()).await?;
            tool.insert("id".to_owned(), names.find(&name).map_or(name.as_str(), |known| known.id()).into());
            Ok(serde_json::Value::from(tool).to_string())
        };
        Ok(Promised(answered(&run, &own.ending, Box::pin(work))))
    };
    native.set("describe", Function::new(ctx.clone(), describe)?)?;
    let own = bridge.clone();
    let group = move |ctx: Ctx<'js>, wanted: String| -> ScriptResult<_> {
        let run = own.run(&ctx)?;
        let work = async move { Ok(host::group(wanted).await?.to_string()) };
        Ok(Promised(answered(&run, &own.ending, Box::pin(work))))
    };
    native.set("group", Function::new(ctx.clone(), group)?)
}

/// Begins a call. It takes its turn here, so that calls are in the order in which they were made.
fn called(run: &Rc<Run>, ending: &Ending, name: String, arguments: String) -> impl Future<Output = Settled> + use<> {
    let (pending, told) = (ending.pending(), Rc::clone(run));
    let arguments = without_lone_halves(arguments);
    let is_structured = run.names(false).is_ok_and(|names| names.find(&name).is_some_and(|tool| tool.structured));
    let call = run.calls.borrow_mut().begin(&name, &arguments, host::monotonic());
    let asked = call.map(|call| {
        let (own, turn) = (Rc::clone(run), run.gate.enter());
        run.ask(async move {
            let permit = turn.await;
            own.calls.borrow_mut().run(call, host::monotonic());
            let result = host::call(own.id.clone(), name, arguments).await;
            drop(permit);
            let failed = match &result {
                Ok(output) if output.is_error => Some(text_of(output)),
                Ok(_) => None,
                Err(error) => Some(message_of(error)),
            };
            own.calls.borrow_mut().end(call, host::monotonic(), failed.as_deref());
            result
        })
    });
    async move {
        let settled = match asked {
            None => Settled::Failed("limit", format!("a script makes at most {MOST} calls"), None),
            Some(asked) => match asked.await {
                Ok(Ok(output)) => Settled::Output(output, is_structured),
                Ok(Err(error)) => Settled::Failed(error.code(), message_of(&error), None),
                Err(_) => Settled::Failed("cancelled", "the script is over".to_owned(), None),
            },
        };
        remember(&told, &settled);
        drop(pending);
        settled
    }
}

/// Notes what a script is told that failed.
fn remember(run: &Run, settled: &Settled) {
    match settled {
        Settled::Failed(code, message, _) => run.failed(message, code),
        Settled::Output(output, _) if output.is_error => run.failed(&text_of(output), "failed"),
        Settled::Output(..) | Settled::Json(_) => {}
    }
}

/// Asks the table something that gives JSON, when it is its turn among the calls.
fn answered(
    run: &Rc<Run>,
    ending: &Ending,
    work: LocalBoxFuture<'static, Result<String, Error>>,
) -> impl Future<Output = Settled> + use<> {
    let (pending, own) = (ending.pending(), Rc::clone(run));
    let asked = run.may_ask().then(|| {
        let turn = run.gate.enter();
        run.ask(async move {
            let permit = turn.await;
            let answer = work.await;
            drop(permit);
            answer
        })
    });
    async move {
        let settled = match asked {
            None => Settled::Failed("limit", format!("a script asks of tools at most {MOST} times"), None),
            Some(asked) => match asked.await {
                Ok(Ok(json)) => Settled::Json(json),
                Ok(Err(error)) => Settled::Failed(error.code(), message_of(&error), None),
                Err(_) => Settled::Failed("cancelled", "the script is over".to_owned(), None),
            },
        };
        remember(&own, &settled);
        drop(pending);
        settled
    }
}

/// What is kept from script to script.
fn keeping<'js>(ctx: &Ctx<'js>, native: &Object<'js>, bridge: &Bridge) -> ScriptResult<()> {
    let own = bridge.clone();
    let store = move |ctx: Ctx<'js>, key: String, json: Opt<Option<String>>| -> ScriptResult<Option<String>> {
        let json = json.0.flatten().map(without_lone_halves);
        let run = own.run(&ctx)?;
        let checked = run.store.borrow().check(&key, json.as_deref());
        // What is kept already counts as well, and only the host knows of all of it. It keeps this once the script succeeds.
        let kept = checked.and_then(|()| {
            host::keep(&run.id, &key, json.as_deref())
                .map_err(|error| message_of(&error).trim_end_matches('.').to_owned())
        });
        Ok(match kept {
            Ok(()) => {
                run.store.borrow_mut().put(key, json);
                None
            }
            Err(wrong) => Some(wrong),
        })
    };
    native.set("store", Function::new(ctx.clone(), store)?)?;
    let own = bridge.clone();
    let load = move |ctx: Ctx<'js>, key: String| -> ScriptResult<Option<String>> {
        let run = own.run(&ctx)?;
        let own = run.store.borrow().get(&key).map(|json| json.map(str::to_owned));
        Ok(own.unwrap_or_else(|| host::kept(&run.id, &key)))
    };
    native.set("load", Function::new(ctx.clone(), load)?)
}

/// An error of the host, thrown into the script.
fn thrown<T>(ctx: &Ctx<'_>, result: Result<T, Error>) -> ScriptResult<T> {
    result.map_err(|error| Exception::throw_message(ctx, &message_of(&error)))
}

/// An error as the author of a script can use it: with the way out of a denial.
fn message_of(error: &Error) -> String {
    match error {
        Error::Denied(denial) if !denial.hint.is_empty() => format!("{} To allow it: {}", error.message(), denial.hint),
        error => error.message(),
    }
}

fn text_of(output: &ToolOutput) -> String {
    let texts = output.content.iter().filter_map(|piece| match piece {
        Content::Text(text) => Some(text.as_str()),
        Content::Image(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// What a promise of the bridge becomes: a list of whether it is good, and what belongs to that.
enum Settled {
    /// What a tool gave, and whether it says what its results are.
    Output(ToolOutput, bool),
    Json(String),
    /// A code, a message and details as JSON.
    Failed(&'static str, String, Option<String>),
}

impl<'js> IntoJs<'js> for Settled {
    fn into_js(self, ctx: &Ctx<'js>) -> ScriptResult<Value<'js>> {
        let list = Array::new(ctx.clone())?;
        match self {
            Self::Output(ToolOutput { structured: Some(json), .. }, true) | Self::Json(json) => {
                list.set(0, true)?;
                list.set(1, ctx.json_parse(json)?)?;
            }
            Self::Output(output, _) if output.is_error => {
                list.set(0, false)?;
                list.set(1, "failed")?;
                list.set(2, text_of(&output))?;
                list.set(3, output.details.map(|json| ctx.json_parse(json)).transpose()?)?;
            }
            Self::Output(output, _) => {
                let images: Vec<Object<'js>> = output
                    .content
                    .iter()
                    .filter_map(|piece| match piece {
                        Content::Image(image) => Some(picture(ctx, &image.mime_type, &image.data)),
                        Content::Text(_) => None,
                    })
                    .collect::<ScriptResult<_>>()?;
                let text = text_of(&output);
                list.set(0, true)?;
                match images.first().cloned() {
                    None => list.set(1, text)?,
                    Some(first) => {
                        if !text.is_empty() {
                            first.set("text", text)?;
                        }
                        if images.len() > 1 {
                            first.set("images", images)?;
                        }
                        list.set(1, first)?;
                    }
                }
            }
            Self::Failed(code, message, details) => {
                list.set(0, false)?;
                list.set(1, code)?;
                list.set(2, message)?;
                list.set(3, details.map(|json| ctx.json_parse(json)).transpose()?)?;
            }
        }
        Ok(list.into_value())
    }
}

fn picture<'js>(ctx: &Ctx<'js>, mime_type: &str, data: &[u8]) -> ScriptResult<Object<'js>> {
    let picture = Object::new(ctx.clone())?;
    picture.set("type", "image")?;
    picture.set("data", STANDARD.encode(data))?;
    picture.set("mimeType", mime_type)?;
    Ok(picture)
}

/// JSON of the engine without halves of characters, which it writes as escapes and others refuse.
fn without_lone_halves(json: String) -> String {
    if !json.contains("\\ud") {
        return json;
    }
    let mut clean = String::with_capacity(json.len());
    let mut rest = json.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        clean.push_str(before);
        let half = escape.get(..6).filter(|half| {
            half.starts_with("\\ud") && matches!(half.as_bytes().get(3), Some(b'8'..=b'9' | b'a'..=b'f'))
        });
        let length = match half {
            Some(half) => {
                clean.push_str("\\ufffd");
                half.len()
            }
            None => {
                // What is escaped is one character, and may be a backslash itself.
                let length = 1 + escape.chars().nth(1).map_or(0, char::len_utf8);
                clean.push_str(escape.get(..length).unwrap_or_default());
                length
            }
        };
        rest = escape.get(length..).unwrap_or_default();
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_become_what_stands_for_them() {
        let cases = [
            (r#"{"a":"b"}"#, r#"{"a":"b"}"#),
            (r#"["\ud800","\udfff\n"]"#, r#"["\ufffd","\ufffd\n"]"#),
            (r#"["\\ud800"]"#, r#"["\\ud800"]"#),
            (r#"["\\\ud800é"]"#, r#"["\\\ufffdé"]"#),
            (r#"["\ud7ff"]"#, r#"["\ud7ff"]"#),
        ];
        for (json, expected) in cases {
            assert_eq!(without_lone_halves(json.to_owned()), expected);
        }
    }

    #[test]
    fn pictures_are_decoded_and_bounded() {
        assert_eq!(decoded("R0lGODlh\n AQI="), Ok((b"GIF89a\x01\x02".to_vec(), "image/gif")));
        assert!(decoded("aGVsbG8=").unwrap_err().contains("no PNG"));
        assert!(decoded("Qk0=").unwrap_err().contains("no PNG"));
        assert!(decoded("no base64!").unwrap_err().contains("no base64"));
        assert!(decoded(&"A".repeat(IMAGE / 3 * 4 + 8)).unwrap_err().contains("20 MiB"));
    }
}
