//! An MCP server over standard input and output, for tests: it says what its options say, and misbehaves where they say so.
//! It is written against the protocol alone, and shares nothing with the client under test.
//!
//! `--log FILE` appends each message that arrives, `--pid FILE` each process id. `--silent` never answers, `--die` ends at
//! once, `--junk` prints other things between messages, `--deaf` goes on after the end of its input, `--tools N` has N more
//! tools and one that gives them other names, `--clash` has tools whose names look the same, `--stateless` knows no sessions,
//! `--more` has resources, prompts, and tools that ask the client and give other things than text: see `more.rs`.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::expect_used,
    reason = "it speaks by printing, and a test sees it fail"
)]

mod more;

use std::{
    fs::{File, OpenOptions},
    io::{BufRead as _, Write as _},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

/// It knows no sessions, and so its answers say more.
static STATELESS: AtomicBool = AtomicBool::new(false);
/// How often its many tools were given other names.
static NAMED: AtomicU64 = AtomicU64::new(0);

#[derive(Default)]
struct Options {
    log: Option<String>,
    pid: Option<String>,
    silent: bool,
    die: bool,
    junk: bool,
    deaf: bool,
    clash: bool,
    more: bool,
    tools: usize,
}

fn options() -> Options {
    let mut options = Options::default();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--log" => options.log = arguments.next(),
            "--pid" => options.pid = arguments.next(),
            "--silent" => options.silent = true,
            "--die" => options.die = true,
            "--junk" => options.junk = true,
            "--deaf" => options.deaf = true,
            "--clash" => options.clash = true,
            "--more" => options.more = true,
            "--stateless" => STATELESS.store(true, Ordering::SeqCst),
            "--tools" => options.tools = arguments.next().and_then(|count| count.parse().ok()).unwrap_or_default(),
            other => eprintln!("unknown option {other}"),
        }
    }
    options
}

fn open(path: &str) -> File {
    OpenOptions::new().create(true).append(true).open(path).expect("a file that can be written")
}

/// Prints a message, whole.
fn say(message: &Value) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(format!("{message}\n").as_bytes());
    let _ = out.flush();
}

fn answer(id: &Value, result: &Value) {
    let mut result = result.clone();
    if STATELESS.load(Ordering::SeqCst) {
        for (key, value) in [("resultType", json!("complete")), ("ttlMs", json!(0)), ("cacheScope", json!("private"))] {
            result[key] = value;
        }
    }
    say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
}

fn text(text: impl Into<String>) -> Value {
    json!({"content": [{"type": "text", "text": text.into()}], "isError": false})
}

fn tool(name: &str, description: &str, properties: &Value) -> Value {
    json!({"name": name, "description": description,
           "inputSchema": {"type": "object", "properties": properties}})
}

fn tools(options: &Options, has_later: bool) -> Vec<Value> {
    let mut all = vec![
        tool("echo", "Gives back a value.", &json!({"value": {"type": "string"}})),
        tool("slow", "Takes its time.", &json!({"ms": {"type": "integer"}, "steps": {"type": "integer"}})),
        tool("fail", "Fails.", &json!({})),
        tool("crash", "Ends the server.", &json!({})),
        tool("big", "Gives much.", &json!({"bytes": {"type": "integer"}})),
        tool("variable", "Gives a variable of the environment.", &json!({"name": {"type": "string"}})),
        tool("change", "Adds a tool.", &json!({})),
        tool("picture", "Gives a picture.", &json!({})),
    ];
    let mut add = tool("add", "Adds numbers.", &json!({"a": {"$ref": "#/$defs/N"}, "b": {"$ref": "#/$defs/N"}}));
    add["inputSchema"]["$defs"] = json!({"N": {"type": "number"}});
    add["outputSchema"] = json!({"type": "object", "properties": {"sum": {"type": "number"}}});
    add["annotations"] = json!({"readOnlyHint": true, "title": "Addition"});
    all.push(add);
    if has_later {
        all.push(tool("later", "Was added.", &json!({})));
    }
    if options.clash {
        all.push(tool("a-b", "One.", &json!({})));
        all.push(tool("a_b", "Another.", &json!({})));
    }
    if options.more {
        all.extend(more::tools());
    }
    if options.tools > 0 {
        let number = json!({"type": "integer"});
        all.push(tool("rename", "Gives the many other names.", &json!({"times": number, "ms": number})));
    }
    let named = match NAMED.load(Ordering::SeqCst) {
        0 => String::new(),
        named => format!("{named}_"),
    };
    all.extend((0..options.tools).map(|at| tool(&format!("more_{named}{at}"), "One of many.", &json!({}))));
    all
}

/// Carries out a call, beside others.
fn call(id: &Value, params: &Value) {
    let (name, arguments) = (params["name"].as_str().unwrap_or_default(), &params["arguments"]);
    let result = match name {
        "echo" => text(arguments["value"].as_str().unwrap_or_default()),
        "add" => {
            let sum = arguments["a"].as_f64().unwrap_or_default() + arguments["b"].as_f64().unwrap_or_default();
            json!({"content": [{"type": "text", "text": format!("{sum}")}], "structuredContent": {"sum": sum}, "_meta": {"x": 1}})
        }
        "slow" => {
            let steps = arguments["steps"].as_u64().unwrap_or_default();
            let token = &params["_meta"]["progressToken"];
            let pause = Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default() / (steps + 1));
            for step in 1..=steps {
                std::thread::sleep(pause);
                say(&json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": step, "total": steps, "message": "at it"}}));
            }
            std::thread::sleep(pause);
            text("done")
        }
        "fail" => json!({"content": [{"type": "text", "text": "it does not work"}], "isError": true}),
        "crash" => {
            eprintln!("something broke");
            std::process::exit(3);
        }
        "big" => text("x".repeat(usize::try_from(arguments["bytes"].as_u64().unwrap_or_default()).unwrap_or_default())),
        "variable" => text(std::env::var(arguments["name"].as_str().unwrap_or_default()).unwrap_or_default()),
        "picture" => json!({"content": [{"type": "image", "mimeType": "image/png", "data":
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}]}),
        "rename" => {
            // So often, with such a pause after each; it is answered after the first.
            let times = arguments["times"].as_u64().unwrap_or(1);
            for time in 0..times {
                NAMED.fetch_add(1, Ordering::SeqCst);
                say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                if time == 0 {
                    answer(id, &text("renamed"));
                }
                std::thread::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap_or_default()));
            }
            return;
        }
        "later" | "a-b" | "a_b" => text(name),
        _ if name.starts_with("more_") => text(name),
        _ => {
            say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "there is no such tool"}}));
            return;
        }
    };
    answer(id, &result);
}

fn main() {
    let options = options();
    if let Some(path) = &options.pid {
        let _ = writeln!(open(path), "{}", std::process::id());
    }
    if options.die {
        eprintln!("no good reason");
        std::process::exit(4);
    }
    let log = options.log.as_deref().map(open);
    let has_later = Arc::new(Mutex::new(false));
    let more = Arc::new(more::More::default());
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Some(mut log) = log.as_ref() {
            let _ = writeln!(log, "{line}");
        }
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (id, params) = (message["id"].clone(), message["params"].clone());
        if message["method"].is_null() {
            more.answered(message);
            continue;
        }
        if options.more {
            more.hear(&message);
        }
        if options.silent || id.is_null() {
            continue;
        }
        if options.junk {
            println!("Listening on stdio…\n\n{{\"not\": ");
        }
        let is_stateless = STATELESS.load(Ordering::SeqCst);
        match message["method"].as_str() {
            Some("server/discover") if is_stateless => answer(
                &id,
                &json!({"supportedVersions": ["2026-07-28"], "capabilities": more::capabilities(options.more),
                    "instructions": "Ask it to echo."}),
            ),
            Some("initialize") if !is_stateless => answer(
                &id,
                &json!({"protocolVersion": params["protocolVersion"], "capabilities": more::capabilities(options.more),
                    "serverInfo": {"name": "peer", "version": "1"}, "instructions": "Ask it to echo."}),
            ),
            Some("tools/list") => {
                // Three at a time.
                let all = tools(&options, *has_later.lock().unwrap_or_else(PoisonError::into_inner));
                let from: usize = params["cursor"].as_str().and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
                let most = if options.tools > 0 { 500 } else { 3 };
                let page: Vec<&Value> = all.iter().skip(from).take(most).collect();
                let next = (from + most < all.len()).then(|| (from + most).to_string());
                answer(&id, &json!({"tools": page, "nextCursor": next}));
            }
            Some("tools/call") if params["name"] == "change" => {
                *has_later.lock().unwrap_or_else(PoisonError::into_inner) = true;
                say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                answer(&id, &text("changed"));
            }
            Some("tools/call") if params["name"] == "change_many" => {
                for _ in 0..params["arguments"]["times"].as_u64().unwrap_or_default() {
                    let mut has_later = has_later.lock().unwrap_or_else(PoisonError::into_inner);
                    *has_later = !*has_later;
                    say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
                }
                answer(&id, &text("changed"));
            }
            Some("tools/call") if options.more && more::is_one(&params) => {
                let more = Arc::clone(&more);
                std::thread::spawn(move || more.call(&id, &params));
            }
            Some("tools/call") => {
                std::thread::spawn(move || call(&id, &params));
            }
            Some("ping") => answer(&id, &json!({})),
            Some(method) if options.more && more.gives(method, &params).is_some() => {
                if let Some(given) = more.gives(method, &params) {
                    answer(&id, &given);
                }
            }
            _ => say(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "not here"}})),
        }
    }
    if options.deaf {
        std::thread::sleep(Duration::from_secs(600));
    }
}
