//! What the script's side can have done. Each operation is one function of the contract, which checks for itself whether the
//! script may use it; nothing is checked or added here.

mod additions;
mod files;
mod outside;
mod session;

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use atoll_js::rquickjs::{
    Array, Ctx, Function, Object, Persistent, Result as ScriptResult, TypedArray,
    function::{Async, Opt},
};
use atoll_plugin::{Error, block_on};
use futures::future::{AbortHandle, Aborted, abortable};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{events, runtime::Entrances};

/// What an operation gives: data, and bytes beside them.
#[derive(Default)]
pub(crate) struct Done {
    data: Value,
    bytes: Option<Vec<u8>>,
}

impl Done {
    fn data(data: Value) -> Self {
        Self { data, bytes: None }
    }
}

/// Operations that may be waited for with everything else standing still: none of them can need this instance.
const AT_ONCE: [&str; 15] = [
    "files.read",
    "files.write",
    "files.stat",
    "files.list",
    "files.remove",
    "files.remove-file",
    "files.remove-directory",
    "files.remove-tree",
    "files.lstat",
    "files.append",
    "files.rename",
    "process.run",
    "table.list",
    "session.entries",
    "store.get",
];

/// Operations under way that the script can end, by the numbers it gave them.
type UnderWay = Rc<RefCell<HashMap<u32, AbortHandle>>>;

/// Puts the object `__native` into the global one. The script's side takes it out again before the script itself runs.
pub(crate) fn install(ctx: &Ctx<'_>, entrances: &Rc<Entrances>) -> ScriptResult<()> {
    let native = Object::new(ctx.clone())?;
    let under_way = UnderWay::default();
    let stop_under_way = Rc::clone(&under_way);
    let call = move |ctx, name, arguments, number, bytes: Bytes<'_>| {
        called(Rc::clone(&under_way), ctx, name, arguments, number, owned(&bytes))
    };
    native.set("call", Function::new(ctx.clone(), Async(call))?)?;
    native.set(
        "stop",
        Function::new(ctx.clone(), move |number: u32| {
            if let Some(handle) = stop_under_way.borrow_mut().remove(&number) {
                handle.abort();
            }
        })?,
    )?;
    native.set("now", Function::new(ctx.clone(), now)?)?;
    let own = Rc::clone(entrances);
    let serve = move |ctx: Ctx<'_>, serve: Persistent<Function<'static>>, prepare: Persistent<Function<'static>>| {
        let _ = ctx;
        own.serve.get_or_init(|| serve);
        own.prepare.get_or_init(|| prepare);
    };
    native.set("serve", Function::new(ctx.clone(), serve)?)?;
    ctx.globals().set("__native", native)
}

/// What the script passes: the operation's name, its arguments as JSON, and bytes beside them.
type Bytes<'js> = Opt<Option<TypedArray<'js, u8>>>;

/// Does something that may have to be waited for.
async fn called<'js>(
    under_way: UnderWay,
    ctx: Ctx<'js>,
    name: String,
    arguments: String,
    number: u32,
    bytes: Vec<u8>,
) -> ScriptResult<Array<'js>> {
    let (work, handle) = abortable(perform(&name, arguments, bytes));
    if number != 0 {
        under_way.borrow_mut().insert(number, handle);
    }
    let ended = work.await;
    under_way.borrow_mut().remove(&number);
    let done = ended.unwrap_or_else(|Aborted| Err(Error::Cancelled("The script stopped it.".to_owned())));
    answer(&ctx, done)
}

/// Does something before the script goes on.
#[allow(clippy::needless_pass_by_value, reason = "what functions of a script are called with")]
fn now<'js>(ctx: Ctx<'js>, name: String, arguments: String, bytes: Bytes<'js>) -> ScriptResult<Array<'js>> {
    let bytes = owned(&bytes);
    let done = match at_once(&name, &arguments) {
        Some(done) => done,
        None if AT_ONCE.contains(&name.as_str()) => match files::may_wait(&name) {
            Ok(()) => block_on(async move { perform(&name, arguments, bytes).await }),
            Err(error) => Err(error),
        },
        None => Err(unknown(&name)),
    };
    answer(&ctx, done)
}

fn owned(bytes: &Bytes<'_>) -> Vec<u8> {
    // SAFETY: no script runs while the slice is copied, so nothing writes to the buffer or detaches it.
    let slice = bytes.0.as_ref().and_then(Option::as_ref).and_then(|bytes| unsafe { bytes.as_bytes() });
    slice.map(<[u8]>::to_vec).unwrap_or_default()
}

/// `[json, bytes]`, where the JSON says what was done or why not.
fn answer<'js>(ctx: &Ctx<'js>, done: Result<Done, Error>) -> ScriptResult<Array<'js>> {
    let (said, bytes) = match done {
        Ok(Done { data, bytes }) => (json!({"done": data}), bytes),
        Err(error) => (json!({"error": shown(&error)}), None),
    };
    let both = Array::new(ctx.clone())?;
    both.set(0, said.to_string())?;
    if let Some(bytes) = bytes {
        both.set(1, TypedArray::<u8>::new(ctx.clone(), bytes)?)?;
    }
    Ok(both)
}

/// An error as the author of the script reads it: what can be done about it among it.
fn shown(error: &Error) -> Value {
    match error {
        Error::Denied(denial) => {
            let on = if denial.target.is_empty() { String::new() } else { format!(" on {}", denial.target) };
            let message =
                format!("`{}`{on} is not granted to this script; to allow it: {}", denial.capability, denial.hint);
            json!({
                "code": "denied",
                "message": message,
                "capability": denial.capability,
                "target": denial.target,
                "hint": denial.hint,
            })
        }
        other => json!({"code": other.code(), "message": other.message()}),
    }
}

fn unknown(name: &str) -> Error {
    Error::not_found(format!("There is no operation {name}."))
}

/// The arguments of an operation.
fn arguments<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::invalid_arguments(format!("The arguments of {name} do not fit: {error}")))
}

async fn perform(name: &str, text: String, bytes: Vec<u8>) -> Result<Done, Error> {
    let value: Value = events::parsed("the arguments", &text)?;
    match name.split_once('.').map(|(interface, _)| interface) {
        Some("files") => files::perform(name, value, bytes).await,
        Some("http" | "process" | "listener") => outside::perform(name, value, bytes).await,
        Some("providers" | "servers" | "secrets" | "config") => additions::perform(name, value).await,
        _ => session::perform(name, value, bytes).await,
    }
}

/// What the contract answers without waiting; none for anything else.
fn at_once(name: &str, text: &str) -> Option<Result<Done, Error>> {
    additions::at_once(name).or_else(|| outside::at_once(name, text)).or_else(|| session::at_once(name, text))
}
