//! What MCP servers cost: at the start, by the call, in memory. The servers are `atoll-mcp-peer`, beside this program. A client
//! made of the TypeScript SDK is measured beside ours where node and the SDK are there: `ATOLL_BENCH_NODE` names node, and
//! `ATOLL_MCP_SERVERS_DIR` says where packages are.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use crate::{
    Figure, engines, mcp_calls, median,
    model_server::ModelServer,
    processes::{Home, timed},
};

/// How many servers there are at once.
const SERVERS: usize = 10;
/// How many tools a server with many has.
const TOOLS: usize = 1_000;

/// The TypeScript SDK's client: as many calls of `echo` as its second argument says, of the program that is its first.
const SDK: &str = include_str!("mcp_sdk.mjs");

/// Measures the program at `atoll`.
pub(crate) fn measure(atoll: &Path, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let place = Place { atoll: atoll.to_owned(), peer: peer()? };
    let mut figures = vec![start(&place, quick)?];
    figures.push(at_once(&place, quick)?);
    figures.extend(many_tools(&place, quick)?);
    figures.extend(memory(&place, quick)?);
    // In this process, which from here on is so large that what it starts is said to be, too.
    figures.extend(registered(&place, quick)?);
    figures.extend(calls(&place, quick)?);
    Ok(figures)
}

/// The server that is built beside this program.
fn peer() -> anyhow::Result<PathBuf> {
    let peer = std::env::current_exe()?.with_file_name("atoll-mcp-peer");
    anyhow::ensure!(peer.is_file(), "{} is not there; build it beside this program", peer.display());
    Ok(peer)
}

struct Place {
    atoll: PathBuf,
    peer: PathBuf,
}

/// What a run of a script gave.
struct Ran {
    gave: Value,
    wall_ms: f64,
    peak_mb: f64,
}

impl Place {
    /// A home with these servers, each with its options.
    fn home(&self, servers: &[(String, Vec<String>)], model: Option<&ModelServer>) -> anyhow::Result<Home> {
        let home = match model {
            Some(model) => Home::new(model)?,
            None => Home::empty()?,
        };
        let entry =
            |(name, options): &(String, Vec<String>)| (name.clone(), json!({"command": self.peer, "args": options}));
        let servers: Map<String, Value> = servers.iter().map(entry).collect();
        std::fs::write(home.atoll().join("mcp.json"), json!({"mcpServers": servers}).to_string())?;
        Ok(home)
    }

    /// Servers of this number, named `s0` and so on.
    fn many(count: usize) -> Vec<(String, Vec<String>)> {
        (0..count).map(|at| (format!("s{at}"), Vec::new())).collect()
    }

    fn script(&self, home: &Home, script: &str) -> anyhow::Result<Ran> {
        let folder = tempfile::tempdir()?;
        let (file, out) = (folder.path().join("script.js"), folder.path().join("out"));
        std::fs::write(&file, script)?;
        let mut command = Command::new(&self.atoll);
        command.args(["codemode", "run"]).arg(&file).current_dir(folder.path());
        home.apply(&mut command);
        command.stdin(Stdio::null()).stdout(std::fs::File::create(&out)?).stderr(Stdio::inherit());
        let (wall_ms, peak_mb, _) = timed(&mut command)?;
        let said = std::fs::read_to_string(&out)?;
        let gave = serde_json::from_str(said.trim()).with_context(|| format!("the script gave {said:?}"))?;
        Ok(Ran { gave, wall_ms, peak_mb })
    }

    /// What a script gives that gives a number.
    fn number(&self, home: &Home, script: &str) -> anyhow::Result<f64> {
        let gave = self.script(home, script)?.gave;
        gave.as_f64().with_context(|| format!("the script gave {gave}"))
    }
}

/// The first request of a session, with servers and without.
fn start(place: &Place, quick: bool) -> anyhow::Result<Figure> {
    let model = ModelServer::start()?;
    let runs = if quick { 5 } else { 21 };
    let (with, without) = (place.home(&Place::many(SERVERS), Some(&model))?, place.home(&[], Some(&model))?);
    let first = |home: &Home| -> anyhow::Result<f64> {
        let mut command = Command::new(&place.atoll);
        command.args(["-p", "--model", "mock/m", "hi"]).current_dir(home.work());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        home.apply(&mut command);
        model.first_request();
        let (_, _, began) = timed(&mut command)?;
        let at = model.first_request().context("a run ended without asking the server")?;
        Ok(at.duration_since(began).as_secs_f64() * 1e3)
    };
    // Once, for the page cache and for what is kept of servers.
    first(&with)?;
    first(&without)?;
    let mut growth = Vec::new();
    for _ in 0..runs {
        let base = first(&without)?;
        growth.push(first(&with)? - base);
    }
    let name = format!("first request, more with {SERVERS} MCP servers than with none");
    Ok(Figure::new(name, median(&mut growth), "ms", runs).below(5.0))
}

/// A call after the other: through the adapter alone, by a script, by a client that does nothing else, and by the SDK.
fn calls(place: &Place, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let count = if quick { 200 } else { 3_000 };
    let home = place.home(&Place::many(1), None)?;
    let script = |tool: &str, arguments: &str| {
        format!(
            "await tools.mcp__s0__echo({{value: 'x'}});
             const began = Date.now();
             for (let at = 0; at < {count}; at++) await tools.{tool}({arguments});
             return (Date.now() - began) / {count};"
        )
    };
    let ours = place.number(&home, &script("mcp__s0__echo", "{value: 'x'}"))?;
    let own = bare(&place.peer, &[], count)?.call_ms;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let adapter = runtime.block_on(mcp_calls::mean(&place.peer, count))?;
    let in_us = |name: &str, ms: f64| Figure::new(name, ms * 1e3, "µs", count);
    let mut figures = vec![
        in_us("MCP tool call, over the server's own time", adapter - own).below(500.0),
        in_us("the server's own time for it", own),
        // What any call of a script costs is in it.
        in_us("MCP tool call by a script, whole", ours),
    ];
    if let Some(theirs) = sdk(&place.peer, count)? {
        figures.push(in_us("MCP tool call by the TypeScript SDK, whole", theirs));
    }
    Ok(figures)
}

/// What a server takes by itself.
struct Bare {
    /// For a call of `echo`, by the mean.
    call_ms: f64,
    /// For the list of its tools, the first time.
    list_ms: f64,
}

/// What calls and lists take a client that only writes and reads.
fn bare(peer: &Path, options: &[String], count: usize) -> anyhow::Result<Bare> {
    let mut server = Command::new(peer).args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = server.stdin.take().context("no input")?;
    let mut output = BufReader::new(server.stdout.take().context("no output")?);
    let bare = {
        let mut line = String::new();
        let mut id = 0;
        // How long it took, and where a list goes on.
        let mut ask = |method: &str, params: Value| -> anyhow::Result<(f64, Option<String>)> {
            id += 1;
            let asked = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string() + "\n";
            line.clear();
            let began = Instant::now();
            input.write_all(asked.as_bytes())?;
            output.read_line(&mut line)?;
            let took = began.elapsed().as_secs_f64() * 1e3;
            let answer: Value = serde_json::from_str(&line)?;
            anyhow::ensure!(answer["error"].is_null(), "the server says {answer}");
            Ok((took, answer["result"]["nextCursor"].as_str().map(str::to_owned)))
        };
        let client = json!({"name": "x", "version": "1"});
        ask("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}))?;
        let (mut list_ms, mut params) = (0.0, json!({}));
        while !params.is_null() {
            let (took, cursor) = ask("tools/list", params)?;
            list_ms += took;
            params = cursor.map_or(Value::Null, |cursor| json!({"cursor": cursor}));
        }
        let mut all = 0.0;
        for _ in 0..count {
            all += ask("tools/call", json!({"name": "echo", "arguments": {"value": "x"}}))?.0;
        }
        Bare { call_ms: all / count.max(1) as f64, list_ms }
    };
    // That is how it hears of its end.
    drop(input);
    server.wait()?;
    Ok(bare)
}

/// A call by the SDK; none where it is not there.
fn sdk(peer: &Path, count: usize) -> anyhow::Result<Option<f64>> {
    let Some(node) = engines::node() else { return Ok(None) };
    let Some(packages) = std::env::var_os("ATOLL_MCP_SERVERS_DIR").map(PathBuf::from) else {
        eprintln!("atoll-bench: ATOLL_MCP_SERVERS_DIR is not set; the TypeScript SDK is left out");
        return Ok(None);
    };
    // Modules are looked for from where the program is.
    let program = tempfile::Builder::new().prefix("client-").suffix(".mjs").tempfile_in(&packages)?;
    std::fs::write(program.path(), SDK)?;
    let output = Command::new(node).arg(program.path()).arg(peer).arg(count.to_string()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "the TypeScript SDK failed: {said}");
    Ok(Some(String::from_utf8_lossy(&output.stdout).trim().parse()?))
}

/// Two hundred calls at once of five servers, each of which takes 100 ms for one.
fn at_once(place: &Place, quick: bool) -> anyhow::Result<Figure> {
    let home = place.home(&Place::many(5), None)?;
    let runs = if quick { 2 } else { 7 };
    // More than a script has at once if it does not say so.
    let script = "// @options: {\"max_parallel_calls\": 256}
        await Promise.all([0, 1, 2, 3, 4].map((at) => tools[`mcp__s${at}__echo`]({value: 'x'})));
        const began = Date.now(), calls = [];
        for (let at = 0; at < 200; at++) calls.push(tools[`mcp__s${at % 5}__slow`]({ms: 100}));
        await Promise.all(calls);
        // mcp__s0 mcp__s1 mcp__s2 mcp__s3 mcp__s4
        return Date.now() - began;";
    let mut all = (0..runs).map(|_| place.number(&home, script)).collect::<anyhow::Result<Vec<_>>>()?;
    Ok(Figure::new("200 MCP calls of 100 ms at once, five servers", median(&mut all), "ms", runs).below(300.0))
}

/// A server with many tools, in a command: until one of them has been called, and a search among them.
fn many_tools(place: &Place, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let runs = if quick { 3 } else { 11 };
    let few = place.home(&[("s0".to_owned(), vec!["--tools".to_owned(), "1".to_owned()])], None)?;
    let many = place.home(&[("s0".to_owned(), vec!["--tools".to_owned(), TOOLS.to_string()])], None)?;
    let script = "return (await tools.mcp__s0__more_0({})).isError ? 1 : 0";
    let (mut more, mut searches) = (Vec::new(), Vec::new());
    for run in 0..=runs {
        let (base, with) = (place.script(&few, script)?.wall_ms, place.script(&many, script)?.wall_ms);
        // The first has nothing that is kept.
        if run > 0 {
            more.push(with - base);
        }
        searches.push(place.number(
            &many,
            "await tools.mcp__s0__more_0({});
             const began = Date.now();
             for (let at = 0; at < 100; at++) await searchTools('adds two numbers ' + at);
             return (Date.now() - began) / 100;",
        )?);
    }
    let name = format!("a command with {TOOLS} MCP tools takes more, with the server's time");
    Ok(vec![
        Figure::new(name, median(&mut more), "ms", runs),
        Figure::new(format!("search among {TOOLS} MCP tools"), median(&mut searches), "ms", runs + 1).below(2.0),
    ])
}

/// From the start of the adapter until many tools of a server are in the table, over one tool and over what the server takes to
/// list them.
fn registered(place: &Place, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let runs = if quick { 3 } else { 21 };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (mut more, mut lists) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        let list = |count: usize| -> anyhow::Result<f64> {
            Ok(bare(&place.peer, &["--tools".to_owned(), count.to_string()], 0)?.list_ms)
        };
        let until = |count: usize| runtime.block_on(mcp_calls::until_registered(&place.peer, count));
        let own = list(TOOLS)? - list(1)?;
        let base = until(1)?;
        more.push(until(TOOLS)? - base - own);
        lists.push(own);
    }
    let name = format!("{TOOLS} MCP tools registered, over the server's own time");
    Ok(vec![
        Figure::new(name, median(&mut more), "ms", runs).below(20.0),
        Figure::new("the server's own time for their list", median(&mut lists), "ms", runs),
    ])
}

/// The most memory of a run, with servers and without, with many calls and with few.
fn memory(place: &Place, quick: bool) -> anyhow::Result<Vec<Figure>> {
    let runs = if quick { 2 } else { 5 };
    let peak = |home: &Home, script: &str| -> anyhow::Result<f64> {
        let mut all = (0..runs).map(|_| Ok(place.script(home, script)?.peak_mb)).collect::<anyhow::Result<Vec<_>>>()?;
        Ok(median(&mut all))
    };
    let (none, one, ten) =
        (place.home(&[], None)?, place.home(&Place::many(1), None)?, place.home(&Place::many(SERVERS), None)?);
    let names: Vec<String> = (0..SERVERS).map(|at| format!("mcp__s{at}")).collect();
    let all = format!(
        "// {}\nawait Promise.all({}.map((name) => tools[name + '__echo']({{value: 'x'}}))); return 1;",
        names.join(" "),
        serde_json::to_string(&names)?
    );
    let with = peak(&ten, &all)? - peak(&none, "return 1")?;
    let calls = |count: usize| {
        format!("for (let at = 0; at < {count}; at++) await tools.mcp__s0__echo({{value: 'x'}}); return 1;")
    };
    let many = if quick { 1_000 } else { 10_000 };
    let after_calls = peak(&one, &calls(many))? - peak(&one, &calls(10))?;
    let crashes = |count: usize| {
        format!(
            "for (let at = 0; at < {count}; at++) await tools.mcp__s0__crash({{}}).catch(() => 0);
                 await tools.mcp__s0__echo({{value: 'x'}}); return 1;"
        )
    };
    let often = if quick { 10 } else { 100 };
    let after_crashes = peak(&one, &crashes(often))? - peak(&one, &crashes(1))?;
    Ok(vec![
        Figure::new(format!("memory with {SERVERS} MCP servers, over none"), with, "MB", runs).below(20.0),
        Figure::new(format!("memory after {many} MCP calls, over ten"), after_calls, "MB", runs),
        Figure::new(format!("memory after {often} reconnects, over one"), after_crashes, "MB", runs),
    ])
}
