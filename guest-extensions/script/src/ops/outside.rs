//! Files, requests and programs.

use atoll_plugin::{
    Error, files, http, next_chunk,
    process::{self, Signal},
};
use futures::{FutureExt as _, future::join, pin_mut, select_biased};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Done, unknown};
use crate::events::read;

/// How much is read of a stream at once.
const CHUNK: usize = 64 << 10;
/// How long a program may be silent that has ended while others hold its output, in milliseconds.
const LINGER: u64 = 250;
/// The most of a program's output, or of a response, that is kept, in bytes, unless the script says less.
const MOST: usize = 16 << 20;

pub(super) async fn perform(name: &str, value: Value, bytes: Vec<u8>) -> Result<Done, Error> {
    match name {
        "files.read" => {
            let Path { path } = read(name, value)?;
            Ok(Done { data: Value::Null, bytes: Some(files::read(path, None).await?) })
        }
        "files.write" => {
            let Write { path, exclusive } = read(name, value)?;
            let options = files::WriteOptions { create_parents: true, expected: None, exclusive };
            Ok(Done::data(metadata(&files::write(path, bytes, options).await?)))
        }
        "files.stat" => {
            let Path { path } = read(name, value)?;
            Ok(Done::data(metadata(&files::stat(path).await?)))
        }
        "files.list" => {
            let Path { path } = read(name, value)?;
            let listing = files::list_dir(path, 100_000).await?;
            let entry = |entry: files::Entry| json!({"name": entry.name, "kind": kind(entry.kind), "size": entry.size, "isLink": entry.is_link});
            Ok(Done::data(listing.entries.into_iter().map(entry).collect()))
        }
        "files.remove" => {
            let Path { path } = read(name, value)?;
            files::remove(path).await.map(|()| Done::default())
        }
        "http.fetch" => fetch(read(name, value)?, bytes).await,
        "process.run" => run(read(name, value)?, bytes).await,
        _ => Err(unknown(name)),
    }
}

#[derive(Deserialize)]
struct Path {
    path: String,
}

#[derive(Deserialize)]
struct Write {
    path: String,
    #[serde(default)]
    exclusive: bool,
}

fn kind(kind: files::Kind) -> &'static str {
    match kind {
        files::Kind::File => "file",
        files::Kind::Directory => "directory",
        files::Kind::Symlink => "symlink",
        files::Kind::Other => "other",
    }
}

fn metadata(facts: &files::Metadata) -> Value {
    json!({"kind": kind(facts.kind), "size": facts.size, "modified": facts.modified, "version": facts.version})
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
