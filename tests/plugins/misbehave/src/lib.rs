//! A tool that does whatever a tool must not do, and one that waits for its own kind: what the tests of the limits
//! and of parallel calls run.

mod file_calls;

use std::hint::black_box;

use atoll_plugin::{
    Call, Error, Tool, ToolInfo, ToolOutput, clock, export_tools, files, http, log, process, wit_stream,
};
use serde_json::json;

struct Misbehave;

#[derive(serde::Deserialize)]
struct Arguments {
    how: String,
    #[serde(default)]
    target: String,
    #[serde(default)]
    count: u32,
    /// Headers of a request, its method among them as `:method`.
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    /// Variables of a program.
    #[serde(default)]
    env: std::collections::BTreeMap<String, String>,
}

impl Tool for Misbehave {
    type Arguments = Arguments;

    fn info() -> ToolInfo {
        ToolInfo::new("misbehave", "Does what a tool must not do.").parameters(&json!({
            "type": "object",
            "properties": {
                "how": { "type": "string" },
                "target": { "type": "string", "description": "A path, a URL, a program or a text" },
                "count": { "type": "integer", "minimum": 0 },
                "headers": { "type": "object", "additionalProperties": { "type": "string" } },
                "env": { "type": "object", "additionalProperties": { "type": "string" } },
            },
            "required": ["how"],
        }))
    }

    async fn run(arguments: Arguments, call: Call) -> Result<ToolOutput, Error> {
        let Arguments { how, target, count, mut headers, env } = arguments;
        match how.as_str() {
            "behave" => return Ok(ToolOutput::text(format!("behaved: {target}"))),
            "loop" => loop {
                black_box(count);
            },
            "loop-with-host-calls" => loop {
                black_box(clock::now());
            },
            "allocate" => allocate(),
            "allocate-little" => {
                let mut blocks: Vec<Vec<u8>> = Vec::new();
                loop {
                    blocks.push(black_box(vec![1; 100]));
                }
            }
            "open-files" => {
                let mut held = Vec::new();
                loop {
                    held.push(files::open(target.clone()).await?);
                }
            }
            // Holds what it could get for a while, so that others need theirs meanwhile.
            "hold-files" => {
                let mut held = Vec::new();
                for _ in 0..count {
                    match files::open(target.clone()).await {
                        Ok(file) => held.push(file),
                        Err(error) => {
                            clock::sleep(1_000).await;
                            return Err(error);
                        }
                    }
                }
            }
            // Begins walks and takes nothing of what they find.
            "hold-walks" => {
                let mut held = Vec::new();
                for _ in 0..count {
                    match files::walk(file_calls::options(target.clone(), false)).await {
                        Ok(walk) => held.push(walk),
                        Err(error) => {
                            clock::sleep(1_000).await;
                            return Err(error);
                        }
                    }
                }
            }
            "spawn-loud" => {
                let child = process::spawn(command(target, Vec::new())).await?;
                let mut output = child.stdout();
                while atoll_plugin::next_chunk(&mut output, 65_536).await.is_some() {}
                let exit = child.wait().await?;
                return Ok(ToolOutput::text(format!("exit {}", exit.code)));
            }
            "spawn-with" => {
                let child = process::spawn(command(target, env.into_iter().collect())).await?;
                let mut output = child.stdout();
                let mut text = Vec::new();
                while let Some(piece) = atoll_plugin::next_chunk(&mut output, 65_536).await {
                    text.extend(piece);
                }
                child.wait().await?;
                return Ok(ToolOutput::text(String::from_utf8_lossy(&text)));
            }
            "open-streams" => {
                let mut held = Vec::new();
                loop {
                    held.push(wit_stream::new::<u8>());
                }
            }
            "huge-argument" => log::write(log::Level::Debug, &"x".repeat(3 << 20)),
            "huge-list-argument" => {
                files::read_many(vec!["a".repeat(1000); 3000], 1).await;
            }
            "huge-progress" => call.update(&[atoll_plugin::Content::Text("x".repeat(2 << 20))], None),
            "huge-result" => return Ok(ToolOutput::text("x".repeat((1 << 20) + 1))),
            "large-result" => return Ok(ToolOutput::text("x".repeat(1000 << 10))),
            "sleep" => clock::sleep(u64::MAX / 2).await,
            "fetch" => {
                let request = http::Request {
                    method: headers.remove(":method").unwrap_or_else(|| "GET".to_owned()),
                    url: target,
                    headers: headers.into_iter().map(|(name, value)| http::Header { name, value }).collect(),
                    body: http::Body::Empty,
                    timeout_ms: None,
                    idle_timeout_ms: None,
                    max_redirects: count,
                };
                let mut response = http::fetch(request).await?;
                let mut body = Vec::new();
                while let Some(piece) = atoll_plugin::next_chunk(&mut response.body, 4096).await {
                    body.extend(piece);
                }
                response.done.await?;
                let body = String::from_utf8_lossy(&body).into_owned();
                let data = json!({ "body": [&body], body.as_str(): true }).to_string();
                return Ok(ToolOutput {
                    details: Some(data.clone()),
                    structured: Some(data),
                    ..ToolOutput::text(format!("{} {body}", response.status))
                });
            }
            "read" => {
                let bytes = files::read(target, None).await?;
                return Ok(ToolOutput::text(String::from_utf8_lossy(&bytes)));
            }
            "spawn" => {
                let child = process::spawn(process::Command {
                    program: target,
                    arguments: Vec::new(),
                    cwd: None,
                    env: Vec::new(),
                    clear_env: false,
                    stdin: process::Input::Null,
                    output: process::Output::Null,
                    linger_ms: 0,
                    spill: None,
                })
                .await?;
                let exit = child.wait().await?;
                return Ok(ToolOutput::text(format!("exit {}", exit.code)));
            }
            "lock-for-ever" => {
                let first = files::lock(target.clone()).await?;
                let second = files::lock(target).await?;
                black_box((first, second));
            }
            #[allow(clippy::panic, reason = "this is what it is for")]
            "panic" => panic!("{target}"),
            "recurse" => return Ok(ToolOutput::text(format!("{}", recurse(1)))),
            "recurse-with-buffers" => return Ok(ToolOutput::text(format!("{}", recurse_with_buffers(1)))),
            "log" => {
                for line in 0..count {
                    log::write(log::Level::Error, &format!("line {line} {target}"));
                }
                return Ok(ToolOutput::text("logged"));
            }
            "stderr" => {
                for line in 0..count {
                    eprint_line(&format!("line {line} {target}"));
                }
                return Ok(ToolOutput::text("said"));
            }
            "broken-json" => {
                return Ok(ToolOutput { structured: Some("{".to_owned()), ..ToolOutput::text("broken") });
            }
            "exit" => std::process::exit(3),
            "two-lines" => {
                return Err(Error::Failed("first line\nsecond line".to_owned()));
            }
            "deep-json" => {
                let deep = format!("{}{}", "[".repeat(count as usize), "]".repeat(count as usize));
                match target.as_str() {
                    "progress" => atoll_plugin::progress::update(&call.id, &[], Some(&deep)),
                    "details" => return Ok(ToolOutput { details: Some(deep), ..ToolOutput::text("deep") }),
                    _ => return Ok(ToolOutput { structured: Some(deep), ..ToolOutput::text("deep") }),
                }
            }
            "result" => return Ok(ToolOutput::text("x".repeat(count as usize))),
            other => {
                let answer = file_calls::run(other, target, count).await?;
                return answer.ok_or_else(|| Error::invalid_arguments(format!("it does not know how to {other}")));
            }
        }
        Ok(ToolOutput::text(format!("{how} was let through")))
    }
}

#[allow(clippy::print_stderr, reason = "this is what it is for")]
fn eprint_line(line: &str) {
    eprintln!("{line}");
}

fn allocate() {
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    loop {
        blocks.push(black_box(vec![1; 1 << 20]));
    }
}

#[allow(unconditional_recursion, reason = "this is what it is for")]
fn recurse(depth: u64) -> u64 {
    black_box(recurse(black_box(depth) + 1)) + 1
}

#[allow(unconditional_recursion, reason = "this is what it is for")]
fn recurse_with_buffers(depth: u64) -> u64 {
    let mut buffer = [depth; 512];
    black_box(&mut buffer);
    recurse_with_buffers(depth + 1) + buffer[3]
}

/// Comes back only once another call of it is there.
struct Meet;

#[derive(serde::Deserialize)]
struct MeetArguments {
    me: String,
    other: String,
}

impl Tool for Meet {
    type Arguments = MeetArguments;

    fn info() -> ToolInfo {
        ToolInfo::new("meet", "Waits for another call of it.").parameters(&json!({
            "type": "object",
            "properties": { "me": { "type": "string" }, "other": { "type": "string" } },
            "required": ["me", "other"],
        }))
    }

    async fn run(arguments: MeetArguments, _call: Call) -> Result<ToolOutput, Error> {
        let options = files::WriteOptions { create_parents: false, expected: None, exclusive: false };
        files::write(arguments.me.clone(), b"here".to_vec(), options).await?;
        while files::stat(arguments.other.clone()).await.is_err() {
            clock::sleep(5).await;
        }
        Ok(ToolOutput::text(format!("{} met {}", arguments.me, arguments.other)))
    }
}

/// A program with these variables and nothing else.
fn command(program: String, env: Vec<(String, String)>) -> process::Command {
    process::Command {
        program,
        arguments: Vec::new(),
        cwd: None,
        env,
        clear_env: false,
        stdin: process::Input::Null,
        output: process::Output::Merged,
        linger_ms: 0,
        spill: None,
    }
}

export_tools!(Misbehave, Meet);
