//! What a script does with the host beyond its session, and what it is told beyond a plain run.

use serde_json::{Value, json};

use super::{done, first_result, fixture, placed, with_script};
use crate::common::{
    Sandbox,
    puppets::{no_call, one_call},
    sandbox::KEY,
    server::{Reply, Server},
    text_of,
};

/// A script that keeps all it was told of these events, and says so when the session ends.
fn watching(events: &[&str]) -> String {
    let events = json!(events);
    format!(
        "export default function (a: any) {{\n  const told: unknown[] = [];\n  \
         for (const name of {events}) a.on(name, (e: unknown) => {{ told.push(e); }});\n  \
         a.on('session_shutdown', () => a.store.set('told', told));\n}}\n"
    )
}

/// What such a script called `it` was told.
#[track_caller]
fn told(sandbox: &Sandbox) -> Vec<Value> {
    let told = sandbox.stored("it", "told").expect("nothing was noted");
    serde_json::from_str(&told).unwrap()
}

#[test]
fn a_script_sees_and_changes_requests_to_a_model_and_is_told_of_what_comes_back() {
    let server = Server::start(vec![Reply::text("done")]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let text = "export default function (a: any) {
      const told: any[] = [];
      const note = (e: any) => { told.push(JSON.parse(JSON.stringify(e))); };
      a.on('before_provider_headers', (e: any) => { note(e); e.headers['x-team'] = 'blue'; });
      a.on('before_provider_request', (e: any) => {
        note(e);
        return { ...e.payload, messages: [{ role: 'user', content: [{ type: 'text', text: 'something else' }] }] };
      });
      a.on('after_provider_response', note);
      a.on('provider_stream_event', note);
      a.on('session_shutdown', () => a.store.set('told', told));
    }";
    let file = placed(&sandbox, "it.ts", text);
    sandbox.atoll().arg("-e").arg(file).args(["-p", "hello"]).run().ok().silent();
    let body = &server.bodies()[0];
    let sent = body["messages"].as_array().unwrap();
    assert_eq!((sent.len(), text_of(&sent[0]["content"]).as_str()), (1, "something else"), "{body:#}");
    assert_eq!(server.requests()[0].header("x-team"), Some("blue"));
    let told = told(&sandbox);
    let of = |name: &str| told.iter().filter(|event| event["type"] == name).collect::<Vec<_>>();
    assert_eq!(of("before_provider_request")[0]["payload"]["model"], "m");
    assert_eq!(of("after_provider_response")[0]["status"], 200);
    let pieces = of("provider_stream_event");
    assert_eq!(pieces.last().unwrap()["data"]["type"], "done", "{pieces:#?}");
    assert!(!json!(told).to_string().contains(KEY));
}

#[test]
fn a_provider_that_a_script_adds_is_asked_by_the_name_of_its_model() {
    for call in ["a.registerProvider", "await a.registerProvider"] {
        let server = Server::start(vec![Reply::text("from the added one")]);
        let sandbox = Sandbox::new();
        let secrets = sandbox.home_file("secrets.json", json!({"kept/key": "sk-of-a-script-9a"}).to_string());
        std::fs::set_permissions(secrets, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let config = json!({
            "baseUrl": format!("{}/v1", server.origin()), "api": "openai-completions", "apiKey": "kept/key",
            "models": [{"id": "m", "contextWindow": 1000}],
        });
        // Pi's extensions do not wait for it.
        let text = format!("export default async function (a: any) {{ {call}('added', {config}); }}");
        let file = placed(&sandbox, "it.ts", &text);
        let origin = server.origin();
        let wants = format!(
            "[providers]\nreason = 'r'\n[[secrets]]\nname = 'kept/*'\nreason = 'r'\n\
             [[http]]\norigin = '{origin}'\nmethods = ['POST']\nreason = 'r'\n"
        );
        placed(&sandbox, "it.toml", &wants);
        sandbox.atoll().args(["plugin", "grant"]).arg(&file).arg("--all").run().ok();
        let run = sandbox.atoll().arg("-e").arg(&file).args(["--model", "added/m", "-p", "hello"]).run().ok();
        assert_eq!(run.stdout, "from the added one\n", "{call}: {run:#?}");
        assert_eq!(server.requests()[0].header("authorization"), Some("Bearer sk-of-a-script-9a"), "{call}");
    }
}

#[test]
fn a_script_is_told_of_what_changes_in_the_session() {
    let sandbox = Sandbox::new();
    let server = Server::start(vec![Reply::text("done")]);
    sandbox.model_behind(&server);
    let events = ["model_select", "thinking_level_select", "session_info_changed", "mcp_servers_change"];
    let watcher = placed(&sandbox, "it.ts", &watching(&events));
    let steps = json!([
        {"model": "mock/seeing"}, {"thinking": "high"}, {"name": "a name"},
        {"server": {"name": "files", "config": {"command": "serve"}}},
    ]);
    let names = sandbox.puppets(&[("changes", json!({"commands": {"change": steps}}))]);
    let command = sandbox.atoll().args(names).arg("-e").arg(watcher).args(["-p", "/change", "go"]);
    command.run().ok();
    let told = told(&sandbox);
    let kinds: Vec<&str> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, events);
    assert_eq!(
        (&told[0]["model"]["id"], &told[0]["previousModel"]["id"]),
        (&json!("seeing"), &json!("m")),
        "{told:#?}"
    );
    assert_eq!((&told[1]["level"], &told[2]["name"]), (&json!("high"), &json!("a name")));
    assert_eq!(told[3]["servers"], json!([{"name": "files", "plugin": "changes", "config": {"command": "serve"}}]));
}

#[test]
fn a_script_is_told_of_calls_their_partial_results_and_where_more_may_be() {
    let sandbox = Sandbox::new();
    let events = ["resources_discover", "tool_execution_start", "tool_execution_update", "tool_execution_end"];
    let watcher = placed(&sandbox, "it.ts", &watching(&events));
    let code =
        "onUpdate({content: [{type: 'text', text: 'half'}]}); await new Promise(r => setTimeout(r, 300)); return 1";
    let model = one_call("run", &json!({"code": code}));
    let run_ts = fixture(&sandbox, "run.ts");
    sandbox.scripted(&model).arg("-e").arg(run_ts).arg("-e").arg(watcher).arg("go").run().ok();
    let told = told(&sandbox);
    let kinds: Vec<&str> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, events, "{told:#?}");
    assert_eq!((&told[0]["reason"], &told[0]["cwd"]), (&json!("startup"), &json!(sandbox.work())));
    assert_eq!((&told[1]["toolName"], &told[3]["isError"]), (&json!("run"), &json!(false)));
    assert!(told[2].to_string().contains("half"), "{told:#?}");
    // What it answers is looked at as that of a component.
    let wrong = "export default (a: any) => a.on('resources_discover', () => ({ skillPaths: 3 }));";
    let run = with_script(&sandbox, wrong, &no_call()).arg("go").run().ok();
    assert!(run.stderr.contains("the extension it failed at resources-discover"), "{run:#?}");
}

#[test]
fn a_summary_that_a_script_asks_for_is_refused_as_the_contract_says() {
    let sandbox = Sandbox::new();
    let (gave, _) = done(
        &sandbox,
        &[
            "try { await ctx.compact() } catch (e) { return e.code }",
            "return await new Promise(r => ctx.compact({ customInstructions: 'brief', onError: e => r(['told', e.code]) }))",
        ],
        &[],
    );
    assert_eq!(gave, [json!("unavailable"), json!(["told", "unavailable"])]);
}

#[test]
fn a_script_has_all_extensions_loaded_anew_and_finds_what_it_kept() {
    let sandbox = Sandbox::new();
    let text = |version: usize| {
        format!(
            "export default async (a: any) => {{\n  const lives = ((await a.store.get('lives')) ?? 0) + 1;\n  \
             await a.store.set('lives', lives);\n  \
             a.registerCommand('again', {{ handler: async (_: string, ctx: any) => {{ await ctx.reload(); ctx.ui.notify('it was {version}'); }} }});\n  \
             a.on('tool_result', () => ({{ content: `version {version}, life ${{lives}}` }}));\n}};\n"
        )
    };
    let file = placed(&sandbox, "it.ts", &text(1));
    placed(&sandbox, "next.ts", &text(2));
    let call = json!({"calls": [{"tool": "bash", "arguments": {"command": "ls"}}]});
    let swap = format!("cp {} {}", sandbox.root().join("scripts/next.ts").display(), file.display());
    let swap = json!({"calls": [{"tool": "bash", "arguments": {"command": swap}}]});
    let model = json!({"turns": [call, {"text": "one"}, swap, {"text": "two"}, call, {"text": "three"}]});
    let run = sandbox.scripted(&model).arg("-e").arg(&file).args(["go", "go", "/again", "go"]).run().ok();
    let results: Vec<String> = sandbox.results().iter().map(|result| text_of(&result["content"])).collect();
    assert_eq!(results, ["version 1, life 1", "version 1, life 1", "version 2, life 2"], "{run:#?}");
    // The command that asked for it ended where it began.
    assert!(run.stderr.contains("it was 1"), "{run:#?}");
}

#[test]
fn a_key_of_a_script_runs_what_the_script_says() {
    let sandbox = Sandbox::new();
    let text = "export default (a: any) => {
      a.registerShortcut('ctrl+a', { description: 'One.', handler: (ctx: any) => ctx.ui.notify('the first in ' + ctx.cwd) });
      a.registerShortcut('ctrl-a', { description: 'Another.', handler: (ctx: any) => ctx.ui.notify('the second') });
    };";
    let run = with_script(&sandbox, text, &no_call()).args(["/it-key-ctrl-a", "/it-key-ctrl-a-2"]).run().ok();
    let lines: Vec<&str> = run.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{run:#?}");
    assert!(lines[0].contains(&format!("the first in {}", sandbox.work().display())), "{run:#?}");
    assert!(lines[1].contains("the second"), "{run:#?}");
}

#[test]
fn dialogs_of_a_script_are_answered_by_the_person() {
    let sandbox = Sandbox::new();
    let text = "export default (a: any) => {
      const told: string[] = [];
      for (const name of ['ui_prompt_start', 'ui_prompt_end']) a.on(name, (e: any) => void told.push(`${e.type} ${e.kind}`));
      a.on('session_shutdown', () => a.store.set('told', told));
      a.registerCommand('ask', { handler: async (_: string, ctx: any) => {
        const { ui } = ctx;
        const gave = [
          await ui.select('Which?', ['left', 'right']), await ui.confirm('Sure?', 'm'), await ui.input('Name?', 'Ann'),
          await ui.editor('Text?', 'old'), ctx.hasUI, ui.available(),
        ];
        await a.store.set('gave', gave);
      } });
    };";
    let command = with_script(&sandbox, text, &no_call()).arg("/ask");
    let at = crate::common::terminal::AtTerminal::start(command);
    let mut at = at.answer("nothing declines:", "2").answer("[y]es or [n]o", "yes").answer("(such as Ann)", "Bob");
    at.wait_for("only the point declines:");
    at.press("one\ntwo\n.\n");
    at.wait().ok();
    let gave: Value = serde_json::from_str(&sandbox.stored("it", "gave").unwrap()).unwrap();
    assert_eq!(gave, json!(["right", true, "Bob", "one\ntwo", true, true]));
    let prompts = ["select", "confirm", "input", "editor"]
        .map(|kind| [format!("ui_prompt_start {kind}"), format!("ui_prompt_end {kind}")]);
    assert_eq!(told(&sandbox), prompts.concat());
}

#[test]
fn a_signal_of_a_script_ends_with_what_it_belongs_to() {
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"limits": {"it": {"event-ms": 200}}}));
    let text = "export default (a: any) => {
      a.on('context', async (_: unknown, ctx: any) => {
        if (await a.store.get('asked')) return;
        await a.store.set('asked', true);
        await new Promise<void>(r => ctx.signal.addEventListener('abort', () => r()));
        await a.store.set('ended', true);
      });
      a.on('tool_result', async () => ({ content: 'ended: ' + await a.store.get('ended') }));
    };";
    let run = with_script(&sandbox, text, &one_call("bash", &json!({"command": "sleep 0.5"}))).arg("go").run().ok();
    assert!(run.stderr.contains("event-ms"), "{run:#?}");
    assert_eq!(first_result(&sandbox), "ended: true");
}

#[test]
fn time_is_that_of_the_host() {
    let sandbox = Sandbox::new();
    let (gave, _) = done(
        &sandbox,
        &[
            "const at = performance.now(); await new Promise(r => setTimeout(r, 30)); return performance.now() - at >= 29",
            "return Date.now()",
        ],
        &[],
    );
    assert_eq!(gave[0], true);
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64;
    let at = gave[1].as_u64().unwrap();
    assert!(at <= now && now - at < 600_000, "{at} {now}");
}

#[test]
fn a_script_wants_other_events_from_when_it_says_so() {
    let sandbox = Sandbox::new();
    let text = "export default (a: any) => {
      const told: string[] = [];
      const off = a.on('turn_end', () => void told.push('end'));
      a.registerCommand('change', { handler: async () => {
        off();
        a.on('turn_start', () => void told.push('start'));
        // What it wants is told to the host once all of this is done.
        await a.store.set('changed', true);
      } });
      a.on('session_shutdown', () => a.store.set('told', told));
    };";
    with_script(&sandbox, text, &no_call()).args(["one", "/change", "two"]).run().ok().silent();
    assert_eq!(told(&sandbox), [json!("end"), json!("start")]);
}

#[test]
fn a_call_of_a_script_ends_where_it_began_while_the_script_is_loaded_anew() {
    let sandbox = Sandbox::new();
    let text = |version: usize| {
        format!(
            "export default (a: any) => a.registerTool({{ name: 'slow', description: 'Waits.', execute: async (_: string, __: any, ___: any, ____: any, ctx: any) => {{\n  \
             await ctx.executeTool('bash', {{ command: 'touch began; until test -e go; do sleep 0.02; done' }});\n  \
             return 'version {version}';\n}} }});\n"
        )
    };
    let file = placed(&sandbox, "it.ts", &text(1));
    let next = placed(&sandbox, "next.ts", &text(2));
    let swap = format!("until test -e began; do sleep 0.02; done; cp {} {}", next.display(), file.display());
    let swapper = format!(
        "export default (a: any) => a.registerTool({{ name: 'swap', description: 'Swaps.', execute: async (_: string, __: any, ___: any, ____: any, ctx: any) => {{\n  \
         await ctx.executeTool('bash', {{ command: {} }});\n  await ctx.reload();\n  \
         await ctx.executeTool('bash', {{ command: 'touch go' }});\n  return 'swapped';\n}} }});\n",
        json!(swap)
    );
    let swapper = placed(&sandbox, "swapper.ts", &swapper);
    let both = json!({"calls": [{"tool": "slow", "arguments": {}}, {"tool": "swap", "arguments": {}}]});
    let again = json!({"calls": [{"tool": "slow", "arguments": {}}]});
    let model = json!({"turns": [both, again, {"text": "done"}]});
    let run = sandbox.scripted(&model).arg("-e").arg(&file).arg("-e").arg(swapper).arg("go").run().ok();
    let results: Vec<String> = sandbox.results().iter().map(|result| text_of(&result["content"])).collect();
    assert_eq!(results, ["version 1", "swapped", "version 2"], "{run:#?}");
}

#[test]
fn what_a_script_adds_and_does_not_wait_for_is_in_the_log_if_it_fails() {
    let sandbox = Sandbox::new();
    let text = "export default (a: any) => {
      a.registerProvider('added', {});
      a.on('session_start', () => void a.registerTool({ name: 'a b', description: 'd', execute() {} }));
    };";
    let run = with_script(&sandbox, text, &no_call()).env("ATOLL_LOG", "plugin=info").arg("go").run().ok();
    assert!(run.stderr.contains("`providers`"), "{run:#?}");
    assert!(run.stderr.contains("a b"), "{run:#?}");
}
