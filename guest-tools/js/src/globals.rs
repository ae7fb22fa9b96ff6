//! The globals that scripts expect beyond the language: timers, console, URL and the like.
//!
//! The engine has `atob`, `btoa`, `queueMicrotask`, `performance` and `DOMException`. The rest is JavaScript in `shims/`,
//! over the few functions here; each shim is a function that takes these. The last one, which the
//! engine is asked for, freezes all of it, so that one script can not change what another one calls.

use std::cell::RefCell;
use std::rc::Rc;

use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Function, Object, Result, TypedArray, Value};

use crate::ends::Ends;
use crate::error::{ScriptError, Sources};
use crate::host::{Host, Level};
use crate::random::Random;
use crate::timers;

const SHIMS: &[(&str, &str)] = &[
    ("console", include_str!("shims/console.js")),
    ("timers", include_str!("shims/timers.js")),
    ("encoding", include_str!("shims/encoding.js")),
    ("crypto", include_str!("shims/crypto.js")),
    ("clone", include_str!("shims/clone.js")),
    ("url", include_str!("shims/url.js")),
];

const FREEZE: &str = include_str!("shims/freeze.js");

/// The most random bytes that are given at once, as in browsers.
const RANDOM_BYTES: usize = 65_536;

pub(crate) fn install<'js>(
    ctx: &Ctx<'js>,
    host: &Rc<dyn Host>,
    ends: &Rc<Ends>,
    sources: &Rc<RefCell<Sources>>,
) -> Result<()> {
    let native = Object::new(ctx.clone())?;
    let (start, stop) = timers::functions(ctx, host, ends)?;
    native.set("startTimer", start)?;
    native.set("stopTimer", stop)?;
    native.set("mostTimers", timers::MOST)?;
    let (told, over, sources) = (Rc::clone(host), Rc::clone(ends), Rc::clone(sources));
    let uncaught = move |from: String, error: Value<'js>| {
        let error = ScriptError::of_thrown(error, over.interrupted(), &sources);
        if over.reached().is_none() {
            told.uncaught(&from, &error);
        }
    };
    native.set("uncaught", Function::new(ctx.clone(), uncaught)?)?;
    let console = Rc::clone(host);
    native.set(
        "console",
        Function::new(ctx.clone(), move |level: u8, message: String| {
            let level = match level {
                0 => Level::Debug,
                1 => Level::Info,
                2 => Level::Warn,
                _ => Level::Error,
            };
            console.console(level, &message);
        })?,
    )?;
    let random = Rc::clone(host);
    native.set(
        "random",
        Function::new(ctx.clone(), move |ctx: Ctx<'js>, length: usize| {
            let mut bytes = vec![0; length.min(RANDOM_BYTES)];
            random.random(&mut bytes);
            TypedArray::<u8>::new(ctx, bytes)
        })?,
    )?;
    let numbers = Random::new(Rc::clone(host));
    native.set("randomNumber", Function::new(ctx.clone(), move || numbers.next())?)?;
    native.set(
        "encode",
        Function::new(ctx.clone(), |ctx: Ctx<'js>, text: String| TypedArray::<u8>::new(ctx, text.into_bytes()))?,
    )?;
    native.set(
        "decode",
        Function::new(ctx.clone(), |bytes: TypedArray<'js, u8>, fatal: bool| {
            // SAFETY: no script runs while the slice is used, so nothing writes to the buffer or detaches it.
            let bytes = unsafe { bytes.as_bytes() }.unwrap_or_default();
            match std::str::from_utf8(bytes) {
                Ok(text) => Some(text.to_owned()),
                Err(_) if fatal => None,
                Err(_) => Some(String::from_utf8_lossy(bytes).into_owned()),
            }
        })?,
    )?;
    for (name, source) in SHIMS {
        shim(ctx, name, source)?.call::<_, Value<'js>>((native.clone(),))?;
    }
    Ok(())
}

/// Freezes all that is there.
pub(crate) fn freeze<'js>(ctx: &Ctx<'js>) -> Result<()> {
    shim(ctx, "freeze", FREEZE)?.call::<_, ()>(())
}

/// The function that a shim is, under a name that is no script's.
pub(crate) fn shim<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> Result<Function<'js>> {
    let mut options = EvalOptions::default();
    options.filename = Some(format!("atoll:{name}"));
    ctx.eval_with_options(source, options)
}
