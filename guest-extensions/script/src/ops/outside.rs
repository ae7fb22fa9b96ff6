//! Requests, programs, and listening for one request.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use atoll_plugin::{
    Error, http, listener, next_chunk,
    process::{self, Signal},
};
use futures::{FutureExt as _, future::join, pin_mut, select_biased};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Done, arguments, unknown};
use crate::events::read;

/// How much is read of a stream at once.
const CHUNK: usize = 64 << 10;
/// How long a program may be silent that has ended while others hold its output, in milliseconds.
const LINGER: u64 = 250;
/// The most of a program's output, or of a response, that is kept, in bytes, unless the script says less.
const MOST: usize = 16 << 20;

pub(super) async fn perform(name: &str, value: Value, bytes: Vec<u8>) -> Result<Done, Error> {
    match name {
        "http.fetch" => fetch(read(name, value)?, bytes).await,
        "process.run" => run(read(name, value)?, bytes).await,
        "listener.open" => listen(read(name, value)?).await,
        "listener.wait" => wait(read(name, value)?).await,
        _ => Err(unknown(name)),
    }
}

thread_local! {
    /// Listeners that the script holds, by their ports.
    static LISTENERS: RefCell<HashMap<u16, Rc<listener::Pending>>> = RefCell::default();
}

#[derive(Deserialize)]
struct Listen {
    port: u16,
    path: String,
    page: String,
}

#[derive(Deserialize)]
struct Wait {
    port: u16,
    ms: u64,
}

#[derive(Deserialize)]
struct Port {
    port: u16,
}

/// What is done without waiting; none for anything else.
pub(super) fn at_once(name: &str, text: &str) -> Option<Result<Done, Error>> {
    (name == "listener.close").then(|| {
        arguments(name, text).map(|Port { port }| {
            LISTENERS.with_borrow_mut(|listeners| listeners.remove(&port));
            Done::default()
        })
    })
}

async fn listen(wanted: Listen) -> Result<Done, Error> {
    let pending = listener::open(wanted.port, wanted.path, wanted.page).await?;
    let port = pending.port();
    LISTENERS.with_borrow_mut(|listeners| listeners.insert(port, Rc::new(pending)));
    Ok(Done::data(port.into()))
}

async fn wait(Wait { port, ms }: Wait) -> Result<Done, Error> {
    let pending = LISTENERS.with_borrow(|listeners| listeners.get(&port).cloned());
    let pending = pending.ok_or_else(|| Error::Stale("The listener is closed.".to_owned()))?;
    Ok(Done::data(pending.wait(ms).await?.target.into()))
}

#[derive(Deserialize)]
struct Fetch {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    redirects: u32,
}

async fn fetch(wanted: Fetch, bytes: Vec<u8>) -> Result<Done, Error> {
    let Fetch { method, url, headers, redirects } = wanted;
    let request = http::Request {
        method,
        url,
        headers: headers.into_iter().map(|(name, value)| http::Header { name, value }).collect(),
        body: if bytes.is_empty() { http::Body::Empty } else { http::Body::Bytes(bytes) },
        timeout_ms: None,
        idle_timeout_ms: None,
        max_redirects: redirects,
    };
    let http::Response { status, url, headers, mut body, done } = http::fetch(request).await?;
    let mut all = Vec::new();
    while let Some(chunk) = next_chunk(&mut body, CHUNK).await {
        all.extend(chunk);
        if all.len() > MOST {
            return Err(Error::failed(format!("The response is longer than {MOST} bytes.")));
        }
    }
    done.await?;
    let headers: Vec<(String, String)> = headers.into_iter().map(|header| (header.name, header.value)).collect();
    Ok(Done { data: json!({"status": status, "url": url, "headers": headers}), bytes: Some(all) })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    program: String,
    /// It is a line for the shell.
    #[serde(default)]
    shell: bool,
    #[serde(default)]
    arguments: Vec<String>,
    cwd: Option<String>,
    #[serde(default)]
    env: Vec<(String, String)>,
    timeout_ms: Option<u64>,
    max_buffer: Option<usize>,
}

/// Runs a program to its end. Dropped: the program and all that it started are killed.
async fn run(wanted: Run, input: Vec<u8>) -> Result<Done, Error> {
    let Run { mut program, shell, mut arguments, cwd, env, timeout_ms, max_buffer } = wanted;
    if shell {
        let (name, mut before) = process::shell();
        before.push(std::mem::replace(&mut program, name));
        arguments = before;
    }
    let child = process::spawn(process::Command {
        program,
        arguments,
        cwd,
        env,
        clear_env: false,
        stdin: if input.is_empty() { process::Input::Null } else { process::Input::Piped },
        output: process::Output::Separate,
        linger_ms: LINGER,
        spill: None,
    })
    .await?;
    let most = max_buffer.unwrap_or(MOST).min(MOST);
    let (mut out, mut err) = (child.stdout(), child.stderr());
    let feed = async {
        if !input.is_empty() {
            // It may end without reading.
            let _ = child.write_input(input).await;
            child.close_input().await;
        }
    };
    let all = join(join(collect(&mut out, most), collect(&mut err, most)), join(feed, child.wait()));
    let late = async {
        match timeout_ms {
            Some(milliseconds) => atoll_plugin::clock::sleep(milliseconds).await,
            None => std::future::pending().await,
        }
    };
    let all = all.fuse();
    let late = late.fuse();
    pin_mut!(all, late);
    let mut killed = false;
    let ((out, err), ((), exit)) = select_biased! {
        ended = all => ended,
        () = late => {
            killed = true;
            child.kill(Signal::Kill);
            all.await
        }
    };
    let exit = exit?;
    let truncated = out.1 || err.1;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok(Done::data(json!({
        "stdout": text(&out.0),
        "stderr": text(&err.0),
        "code": exit.code,
        "signal": exit.signal,
        "killed": killed,
        "truncated": truncated,
    })))
}

/// All of a stream up to a bound, and whether there was more.
async fn collect(stream: &mut atoll_plugin::StreamReader<u8>, most: usize) -> (Vec<u8>, bool) {
    let (mut all, mut more) = (Vec::new(), false);
    while let Some(chunk) = next_chunk(stream, CHUNK).await {
        let room = most.saturating_sub(all.len());
        more |= chunk.len() > room;
        all.extend(chunk.into_iter().take(room));
    }
    (all, more)
}
