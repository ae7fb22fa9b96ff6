//! An adapter for MCP servers of a page: a list of programs, JSON-RPC by hand over their standard input and output, and a tool
//! in the table for each of theirs. It has no more than it takes; what else there is to do is in `guest-extensions/mcp`.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use atoll_plugin::{
    Error, Exported as _, Extension, ToolInfo, ToolOutput, export_extension,
    extension::StartReason,
    log, next_chunk, process, spawn_local, table, tools,
    types::{Subscription, Tool},
};
use futures::channel::oneshot;
use serde_json::{Value, json};

/// The servers: a name, and the program with its arguments.
const SERVERS: [(&str, &str, &[&str]); 2] = [("one", "atoll-mcp-peer", &[]), ("two", "atoll-mcp-peer", &["--junk"])];

/// A server under way.
struct Server {
    child: process::Child,
    /// Who waits for which answer.
    waiting: RefCell<HashMap<u64, oneshot::Sender<Value>>>,
    last: Cell<u64>,
}

impl Server {
    /// Starts one, says hello, and puts its tools into the table. Gives where each of them is.
    async fn start(name: &str, program: &str, arguments: &[&str]) -> Result<Vec<(String, (Rc<Self>, String))>, Error> {
        let child = process::spawn(process::Command {
            program: program.to_owned(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            cwd: None,
            env: Vec::new(),
            clear_env: false,
            stdin: process::Input::Piped,
            output: process::Output::Separate,
            linger_ms: 100,
            spill: None,
        });
        let server = Rc::new(Self { child: child.await?, waiting: RefCell::default(), last: Cell::new(0) });
        spawn_local(Rc::clone(&server).listen());
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "fixed-servers", "version": "0.1.0"}});
        server.ask("initialize", hello).await?;
        server.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        let (mut found, mut wanted, mut cursor) = (Vec::new(), Vec::new(), json!({}));
        loop {
            let page = server.ask("tools/list", cursor).await?;
            for tool in page["tools"].as_array().into_iter().flatten() {
                let own = tool["name"].as_str().unwrap_or_default();
                let name = format!("{name}_{own}");
                let description = tool["description"].as_str().unwrap_or_default();
                wanted.push(ToolInfo::new(&name, description).parameters(&tool["inputSchema"]).into_tool());
                found.push((name, (Rc::clone(&server), own.to_owned())));
            }
            match page["nextCursor"].as_str() {
                Some(next) => cursor = json!({ "cursor": next }),
                None => break,
            }
        }
        table::register(wanted).await?;
        Ok(found)
    }

    /// Hears what it prints, a message each line, and gives answers to who waits for them.
    async fn listen(self: Rc<Self>) {
        let (mut stdout, mut text) = (self.child.stdout(), Vec::new());
        while let Some(bytes) = next_chunk(&mut stdout, 64 * 1024).await {
            text.extend(bytes);
            while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = text.drain(..=end).collect();
                // What is no message is no message.
                let message: Value = serde_json::from_slice(&line).unwrap_or_default();
                let waiting = message["id"].as_u64().and_then(|id| self.waiting.borrow_mut().remove(&id));
                if let Some(waiting) = waiting {
                    let _ = waiting.send(message);
                }
            }
        }
        // It has ended: nobody gets an answer any more.
        self.waiting.borrow_mut().clear();
    }

    async fn say(&self, message: &Value) -> Result<(), Error> {
        self.child.write_input(format!("{message}\n").into_bytes()).await
    }

    async fn ask(&self, method: &str, params: Value) -> Result<Value, Error> {
        let id = self.last.get() + 1;
        self.last.set(id);
        let (answer, answered) = oneshot::channel();
        self.waiting.borrow_mut().insert(id, answer);
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        let mut answer = answered.await.map_err(|_| Error::unavailable("The server has ended."))?;
        match answer["error"]["message"].as_str() {
            Some(why) => Err(Error::failed(format!("The server says: {why}"))),
            None => Ok(answer["result"].take()),
        }
    }
}

/// The adapter: where each of its tools is.
struct Adapter {
    tools: HashMap<String, (Rc<Server>, String)>,
}

impl Extension for Adapter {
    async fn start(_: StartReason) -> Result<(Self, Subscription), Error> {
        let mut tools = HashMap::new();
        for (name, program, arguments) in SERVERS {
            match Server::start(name, program, arguments).await {
                Ok(found) => tools.extend(found),
                // One that can not be had must not cost the others.
                Err(error) => log::write(log::Level::Warn, &format!("the server {name}: {}", error.message())),
            }
        }
        // Whoever subscribes to this is the one that connects to servers: the built-in adapter gives way.
        Ok((Self { tools }, Subscription::new().event("mcp-servers-change")))
    }

    async fn stop(&self) {
        for (server, _) in self.tools.values() {
            server.child.close_input().await;
            server.child.kill(process::Signal::Terminate);
        }
    }
}

export_extension!(Adapter);

struct Calls;

impl tools::Guest for Calls {
    fn list_tools() -> Vec<Tool> {
        Vec::new()
    }

    fn prepare(tool: String, _: String) -> Result<String, Error> {
        Err(Error::not_found(tool))
    }

    async fn call(call: tools::Invocation) -> Result<ToolOutput, Error> {
        let adapter = Adapter::instance().ok_or_else(|| Error::unavailable("It has not been started."))?;
        let (server, tool) = adapter.tools.get(&call.tool).ok_or_else(|| Error::not_found(call.tool.clone()))?;
        let arguments: Value = serde_json::from_str(&call.arguments)?;
        let result = server.ask("tools/call", json!({"name": tool, "arguments": arguments})).await?;
        let texts = result["content"].as_array().into_iter().flatten().filter_map(|piece| piece["text"].as_str());
        let text = texts.collect::<Vec<_>>().join("\n");
        Ok(ToolOutput::text(text).with_structured(&result).with_error(result["isError"] == true))
    }
}

tools::export!(Calls);
