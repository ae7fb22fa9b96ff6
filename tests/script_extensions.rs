//! Extensions written in TypeScript and JavaScript: what they are told, what they can have done, and what they can not.

use std::path::PathBuf;

use atoll_table::extension::EventKind;
use serde_json::{Value, json};

use crate::common::{
    Sandbox, json_lines,
    plugins::workspace_root,
    processes::{Command, Finished},
    puppets::{no_call, one_call},
    server::{Reply, Server},
    text_of,
};

mod faults;
mod host;
mod reach;

/// Puts a script outside of the workspace.
fn placed(sandbox: &Sandbox, name: &str, text: &str) -> PathBuf {
    let file = sandbox.root().join("scripts").join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, text).unwrap();
    file
}

/// One of the scripts of these tests.
fn fixture(sandbox: &Sandbox, name: &str) -> PathBuf {
    let text = std::fs::read_to_string(workspace_root().join("tests/fixtures/scripts").join(name)).unwrap();
    placed(sandbox, name, &text)
}

/// One of the examples of the guide.
fn example(sandbox: &Sandbox, name: &str) -> PathBuf {
    let folder = workspace_root().join("guest-extensions/examples/typescript");
    placed(sandbox, name, &std::fs::read_to_string(folder.join(name)).unwrap())
}

/// A run of the scripted model with a script.
fn with_script(sandbox: &Sandbox, text: &str, model: &Value) -> Command {
    let file = placed(sandbox, "it.ts", text);
    sandbox.scripted(model).arg("-e").arg(file)
}

/// What the first call gave the model to read.
#[track_caller]
fn first_result(sandbox: &Sandbox) -> String {
    text_of(&sandbox.results()[0]["content"])
}

/// Has the fixture `run.ts` do each of these in one run, in order; gives what each gave.
#[track_caller]
fn done(sandbox: &Sandbox, codes: &[&str], more: &[&str]) -> (Vec<Value>, Finished) {
    let calls = codes.iter().map(|code| json!({"calls": [{"tool": "run", "arguments": {"code": code}}]}));
    // One more for what a call asks to be said afterwards.
    let turns: Vec<Value> = calls.chain(["done", "done again"].map(|text| json!({"text": text}))).collect();
    let file = fixture(sandbox, "run.ts");
    let run = sandbox.scripted(&json!({"turns": turns})).arg("-e").arg(file).args(more).arg("go").run().ok();
    let results = sandbox.results();
    let gave = results.iter().map(|result| {
        let text = text_of(&result["content"]);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}\n{run:#?}"))
    });
    (gave.collect(), run)
}

#[test]
fn a_script_is_told_the_same_events_as_a_component_in_the_same_order() {
    let sandbox = Sandbox::new();
    sandbox.file("a.txt", "alpha\n");
    let events: Vec<&str> = EventKind::ALL.into_iter().map(EventKind::as_str).collect();
    let names = sandbox.puppets(&[("puppet", json!({"events": events, "record": "store"}))]);
    sandbox.settings(&json!({"pluginSettings": {
        "puppet": {"events": events, "record": "store"},
        "watcher": {"events": events.iter().map(|name| name.replace('-', "_")).collect::<Vec<_>>()},
    }}));
    let watcher = fixture(&sandbox, "watcher.ts");
    let model = one_call("read", &json!({"path": "a.txt"}));
    // Who wants to hear of servers takes the place of the adapter that is built in, which is said.
    let run = sandbox.scripted(&model).args(["-e", "-builtin:mcp", "-e"]).arg(watcher).args(names);
    run.arg("go").run().ok().silent();
    let mut puppet: Vec<String> = sandbox.told_in_store("puppet").into_iter().map(|(name, _)| name).collect();
    // The end of the session may come before the script has written down that it was told of it.
    puppet.retain(|name| !["start", "stop", "session-shutdown"].contains(&name.as_str()));
    let told: Vec<String> = serde_json::from_str(&sandbox.stored("watcher", "told").unwrap()).unwrap();
    let mut told: Vec<String> = told.iter().map(|name| name.replace('_', "-")).collect();
    told.retain(|name| name != "session-shutdown");
    assert!(told.len() > 15, "{told:?}");
    // What nobody waits for may arrive at the end of one of them after the other has noted what comes next.
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    assert_eq!(sorted(told), sorted(puppet));
}

/// Each kind of answer, with what has to come of it.
#[test]
fn every_answer_of_a_handler_has_its_effect() {
    let ls = one_call("bash", &json!({"command": "echo plain"}));
    let result_of = |text: &str| {
        let sandbox = Sandbox::new();
        let run = with_script(&sandbox, text, &ls).arg("go").run().ok();
        assert!(run.stderr.is_empty(), "{run:#?}");
        first_result(&sandbox)
    };
    for (text, expected) in [
        ("a => a.on('tool_call', () => ({block: true, reason: 'not today'}))", "not today"),
        ("a => a.on('tool-call', async e => { e.input.command = 'echo rewritten'; })", "rewritten\n"),
        ("a => a.on('tool_call', e => ({input: {command: 'echo given'}}))", "given\n"),
        ("a => a.on('tool_result', () => ({content: [{type: 'text', text: 'patched'}]}))", "patched"),
        (
            "a => { a.on('tool_result', () => ({content: 'one'})); a.on('tool_result', e => ({content: e.content + ' two'})); }",
            "one two",
        ),
        ("a => { const off = a.on('tool_call', () => ({block: true})); off(); }", "plain\n"),
    ] {
        assert_eq!(result_of(&format!("export default {text}")), expected, "{text}");
    }

    let asked = |text: &str, replies: usize| {
        let server = Server::start((0..replies).map(|_| Reply::text("done")).collect());
        let sandbox = Sandbox::new();
        sandbox.model_behind(&server);
        let file = placed(&sandbox, "it.ts", &format!("export default {text}"));
        let run = sandbox.atoll().arg("-e").arg(file).args(["-p", "go"]).run().ok();
        assert!(run.stderr.is_empty(), "{run:#?}");
        (server.bodies(), run)
    };
    let all_text = |bodies: &[Value]| serde_json::to_string(bodies).unwrap();
    for (text, expected) in [
        ("a => a.on('input', e => ({action: 'transform', text: e.text + ' on'}))", "go on"),
        (
            "a => a.on('before_agent_start', () => ({message: {customType: 'n', content: 'mind this', display: false}}))",
            "mind this",
        ),
        ("a => a.on('before_agent_start', e => ({systemPrompt: e.systemPrompt + ' Be terse.'}))", "Be terse."),
        (
            "a => a.on('before_agent_start', e => { e.systemPromptOptions.sections.house = 'House rule.'; })",
            "House rule.",
        ),
        (
            "a => a.on('context', e => ({messages: [...e.messages, {role: 'user', content: 'and this', timestamp: 1}]}))",
            "and this",
        ),
        (
            "a => a.on('context_with_system', e => ({messages: [...e.messages, {role: 'user', content: 'and that', timestamp: 1}]}))",
            "and that",
        ),
    ] {
        let (bodies, _) = asked(text, 1);
        assert!(all_text(&bodies).contains(expected), "{text}: {bodies:#?}");
    }
    let (bodies, _) = asked("a => a.on('input', () => ({action: 'handled'}))", 0);
    assert!(bodies.is_empty(), "{bodies:#?}");
    let (_, run) = asked(
        "a => a.on('message_end', e => e.message.role === 'assistant' ? {message: {...e.message, content: [{type: 'text', text: 'other'}]}} : undefined)",
        1,
    );
    assert_eq!(run.stdout, "other\n");
    for event in ["turn_end", "agent_before_settle"] {
        let (bodies, _) = asked(&format!("a => {{ let n = 0; a.on('{event}', () => ({{continue: n++ === 0}})); }}"), 2);
        assert_eq!(bodies.len(), 2, "{event}");
    }
}

/// Each function of the host that needs nothing but a session, with what it has to give.
#[test]
fn every_function_of_the_session_can_be_called() {
    let rows: &[(&str, Value)] = &[
        (
            "return [ctx.mode, ctx.hasUI, ctx.cwd === process.cwd(), ctx.isProjectTrusted(), atoll.name]",
            json!(["print", false, true, false, "run"]),
        ),
        ("return atoll.getSettings()", json!({"own": 1})),
        (
            "return [atoll.getFlag('shout'), atoll.getFlag('word'), atoll.getFlag('none') ?? null]",
            json!([true, "hello", null]),
        ),
        (
            "await atoll.store.set('k', {a: [1]}); return [await atoll.store.get('k'), await atoll.store.keys('')]",
            json!([{"a": [1]}, ["k"]]),
        ),
        ("await atoll.store.delete('k'); return (await atoll.store.get('k')) ?? 'gone'", json!("gone")),
        (
            "return atoll.getActiveTools().includes('read') && atoll.getAllTools().some(t => t.name === 'run' && t.plugin === 'run')",
            json!(true),
        ),
        (
            "await atoll.setActiveTools(['run', 'read', 'bash']); return atoll.getActiveTools()",
            json!(["read", "bash", "run"]),
        ),
        ("return (await atoll.searchTools('read'))[0].name", json!("read")),
        ("return (await atoll.describeTool('run')).name", json!("run")),
        (
            "await atoll.registerTool({name: 'late', description: 'd', execute: async () => 'late it is'}); \
          return (await ctx.executeTool('late')).content[0].text",
            json!("late it is"),
        ),
        ("await atoll.unregisterTool('late'); return atoll.getAllTools().some(t => t.name === 'late')", json!(false)),
        (
            "await atoll.registerTool({name: 'prepared', description: 'd', prepareArguments: a => ({n: a.old}), \
          parameters: {type: 'object', properties: {n: {type: 'number'}}, required: ['n']}, execute: (_, a) => ({content: String(a.n)})}); \
          return (await atoll.executeTool('prepared', {old: 7})).content[0].text",
            json!("7"),
        ),
        ("return (await ctx.executeTool('bash', {command: 'echo nested'})).content[0].text", json!("nested\n")),
        ("try { await ctx.executeTool('nothing') } catch (e) { return e.code }", json!("not-found")),
        ("return [ctx.isIdle(), ctx.hasPendingMessages()]", json!([false, false])),
        ("return ctx.sessionManager.getBranch().filter(e => e.type === 'message').length > 1", json!(true)),
        (
            "const entry = await atoll.appendEntry('mine', {x: 1}); return ctx.sessionManager.getEntry(entry).data",
            json!({"x": 1}),
        ),
        (
            "const entry = ctx.sessionManager.getEntries()[0].id; await atoll.setLabel(entry, 'here'); return ctx.sessionManager.getLabel(entry)",
            json!("here"),
        ),
        ("await atoll.setSessionName('named'); return atoll.getSessionName()", json!("named")),
        ("return [await atoll.setModel('no/such'), ctx.model.provider]", json!([false, "scripted"])),
        (
            "await atoll.setThinkingLevel('off'); return [atoll.getThinkingLevel(), ctx.thinkingLevel]",
            json!(["off", "off"]),
        ),
        (
            "await atoll.setPromptSection('mine', 'text'); await atoll.setPromptSection('mine'); return ctx.getSystemPrompt().length > 0",
            json!(true),
        ),
        ("return typeof ctx.getContextUsage()", json!("object")),
        ("try { await ctx.waitForIdle() } catch (e) { return e.code }", json!("invalid-arguments")),
        (
            "return [await ctx.ui.select('s', ['a']) ?? null, await ctx.ui.confirm('c', 'm'), await ctx.ui.input('i') ?? null, \
          await ctx.ui.editor('e', 'x') ?? null]",
            json!([null, false, null, null]),
        ),
        (
            "ctx.ui.setStatus('a', 'b'); ctx.ui.setStatus('a', undefined); ctx.ui.setWidget('w', []); return await ctx.ui.custom() ?? null",
            json!(null),
        ),
        ("atoll.events.emit('topic', {n: 1}); return heard", json!([[{"n": 1}, null]])),
        ("return atoll.getModels().length > 0 && ctx.modelRegistry.getAvailable()[0].provider", json!("scripted")),
        ("return atoll.getCommands().map(c => c.name)", json!(["do"])),
        ("onUpdate({content: [{type: 'text', text: 'half'}]}); return signal.aborted", json!(false)),
        ("const at = Date.now(); await new Promise(r => setTimeout(r, 30)); return Date.now() - at >= 29", json!(true)),
        (
            "let n = 0; await new Promise(r => { const t = setInterval(() => { if (++n === 3) { clearInterval(t); r(); } }, 1) }); return n",
            json!(3),
        ),
        ("console.log('said', {a: 1}); return 'logged'", json!("logged")),
        (
            "return [typeof crypto.randomUUID(), Buffer.from('aGk=', 'base64').toString(), here.path.join('a', '..', 'b')]",
            json!(["string", "hi", "b"]),
        ),
        (
            "await atoll.sendMessage({customType: 'mine', content: 'for later', display: false}, {deliverAs: 'nextTurn'}); return 1",
            json!(1),
        ),
        ("await atoll.sendUserMessage('and then', {deliverAs: 'followUp'}); return 2", json!(2)),
        (
            "return await atoll.registerVirtualModel?.('x')",
            json!({"code": "unsupported-contract", "message": "atoll.registerVirtualModel is not part of this host"}),
        ),
        (
            "return atoll.noSuchThing()",
            json!({"code": "unsupported-contract", "message": "atoll.noSuchThing is not part of this host"}),
        ),
    ];
    let sandbox = Sandbox::new();
    sandbox.settings(&json!({"pluginSettings": {"run": {"own": 1}}}));
    let codes: Vec<&str> = rows.iter().map(|(code, _)| *code).collect();
    let (gave, run) = done(&sandbox, &codes, &["--shout", "--word", "hello"]);
    let wrong: Vec<String> = rows
        .iter()
        .zip(&gave)
        .filter(|((_, expected), gave)| expected != *gave)
        .map(|((code, expected), gave)| format!("{code}\n  gave {gave}\n  and not {expected}"))
        .collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), run.stderr);
    assert_eq!(gave.len(), rows.len());
    let users: Vec<String> = sandbox
        .messages()
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| text_of(&message["content"]))
        .collect();
    assert_eq!(users, ["go", "and then"]);
}

#[test]
fn a_completion_of_a_scripts_own_is_asked_for_without_tools() {
    let server = Server::start(vec![
        Reply::calls(&[(
            "run",
            &json!({"code": "return (await atoll.complete({system: 's', prompt: 'p'})).text"}).to_string(),
        )]),
        Reply::text("completed"),
        Reply::text("done"),
    ]);
    let sandbox = Sandbox::new();
    sandbox.model_behind(&server);
    let file = fixture(&sandbox, "run.ts");
    sandbox.atoll().arg("-e").arg(file).args(["-p", "go"]).run().ok();
    assert_eq!(first_result(&sandbox), "\"completed\"");
    assert!(server.bodies()[1].get("tools").is_none(), "{:#?}", server.bodies()[1]);
}

#[test]
fn commands_abort_and_shutdown_work_from_a_script() {
    let sandbox = Sandbox::new();
    let run_ts = fixture(&sandbox, "run.ts");
    let command = |text: &str| sandbox.scripted(&no_call()).arg("-e").arg(&run_ts).arg(text).run();
    let run = command("/do ctx.ui.notify('from a command', 'info')").ok();
    assert!(run.stderr.contains("from a command"), "{run:#?}");
    let run = command("/do throw new Error('no good')").code(1);
    assert!(run.stderr.contains("no good"), "{run:#?}");
    let text = "export default a => a.on('turn_start', (_, ctx) => { ctx.abort(); });";
    let sandbox = Sandbox::new();
    let run = with_script(&sandbox, text, &one_call("bash", &json!({"command": "sleep 20"}))).arg("go").run();
    assert_ne!(run.stdout, "done\n", "{run:#?}");
    let sandbox = Sandbox::new();
    let text = "export default a => a.on('agent_before_settle', (_, ctx) => { ctx.shutdown(); });";
    let run = with_script(&sandbox, text, &no_call()).args(["one", "two"]).run().ok();
    assert_eq!(run.stdout, "done\n", "{run:#?}");
}

#[test]
fn the_gate_and_the_redactor_of_the_guide_do_what_they_say() {
    let sandbox = Sandbox::new();
    sandbox.file("keep.txt", "kept");
    let gate = example(&sandbox, "gate.ts");
    let script = one_call("bash", &json!({"command": "rm -rf ."}));
    sandbox.scripted(&script).arg("-e").arg(&gate).arg("go").run().ok().silent();
    assert!(first_result(&sandbox).contains("Whole trees are not deleted here"));
    assert_eq!(sandbox.read("keep.txt"), "kept");

    let sandbox = Sandbox::new();
    let gate = example(&sandbox, "gate.ts");
    let script = one_call("bash", &json!({"command": "git reset --hard"}));
    sandbox.scripted(&script).arg("-e").arg(&gate).arg("go").run().ok();
    assert!(first_result(&sandbox).contains("did not allow"), "nobody is there to say yes");

    let sandbox = Sandbox::new();
    sandbox.file("key.txt", "key: sk-abcdefghijklmnop1234, and no more");
    let redactor = example(&sandbox, "redactor.ts");
    sandbox
        .scripted(&one_call("read", &json!({"path": "key.txt"})))
        .arg("-e")
        .arg(redactor)
        .arg("go")
        .run()
        .ok()
        .silent();
    assert!(first_result(&sandbox).contains("key: [redacted], and no more"), "{}", first_result(&sandbox));
}

#[test]
fn notes_are_there_in_the_next_session() {
    let sandbox = Sandbox::new();
    let notes = example(&sandbox, "notes.ts");
    let say = |text: &str| sandbox.scripted(&no_call()).arg("-e").arg(&notes).arg(text).run().ok().stderr;
    assert!(say("/notes").contains("there are no notes"));
    assert!(say("/note buy milk").contains("noted: buy milk"));
    assert!(say("/notes").contains("1. buy milk"));
}

#[test]
fn two_scripts_keep_apart_and_run_in_the_order_they_are_named() {
    let sandbox = Sandbox::new();
    let says = |word: &str| {
        format!(
            "globalThis.mine = '{word}'; export default a => {{ a.on('tool_result', e => ({{content: e.content[0].text.trim() + ' {word} ' + globalThis.mine}})); a.store.set('k', '{word}'); }}"
        )
    };
    let (one, two) = (placed(&sandbox, "one.ts", &says("one")), placed(&sandbox, "two.js", &says("two")));
    let script = one_call("bash", &json!({"command": "echo plain"}));
    sandbox.scripted(&script).arg("-e").arg(&two).arg("-e").arg(&one).arg("go").run().ok().silent();
    assert_eq!(first_result(&sandbox), "plain two two one one");
    assert_eq!(
        (sandbox.stored("one", "k"), sandbox.stored("two", "k")),
        (Some("\"one\"".into()), Some("\"two\"".into()))
    );
}

#[test]
fn a_script_may_consist_of_files_and_lie_in_a_folder() {
    let sandbox = Sandbox::new();
    placed(
        &sandbox,
        "ext/index.ts",
        "import { word } from './lib/word.js';\nimport data from './data.json';\n\
        import type { Nothing } from 'not-there';\n\
        export default (a: any) => { a.registerTool({name: 'say', description: 'd', execute: async () => word + data.n}); };",
    );
    placed(&sandbox, "ext/lib/word.ts", "export const word: string = 'word';");
    placed(&sandbox, "ext/data.json", "{\"n\": 3}");
    let folder = sandbox.root().join("scripts/ext");
    let call = sandbox.atoll().arg("-e").arg(&folder).args(["tool", "call", "say"]).run().ok();
    assert_eq!(call.stdout, "word3\n");
    let list = sandbox.atoll().arg("-e").arg(&folder).args(["tool", "list"]).run().ok();
    assert!(list.stdout.contains("ext"), "{list:#?}");
}

#[test]
fn an_event_while_a_handler_waits_is_handled_beside_it() {
    let sandbox = Sandbox::new();
    let text = "export default a => {
      let inner = 0;
      a.on('tool_call', async (e, ctx) => {
        if (e.parentToolCallId || inner > 0) { inner++; return; }
        inner++;
        const out = await ctx.executeTool('bash', {command: 'echo inner'});
        e.input.command = 'echo ' + out.content[0].text.trim() + inner;
      });
    };";
    with_script(&sandbox, text, &one_call("bash", &json!({"command": "echo outer"}))).arg("go").run().ok().silent();
    assert_eq!(first_result(&sandbox), "inner2\n");
}

#[test]
fn a_partial_result_is_shown() {
    let sandbox = Sandbox::new();
    let code =
        "onUpdate({content: [{type: 'text', text: 'half'}]}); await new Promise(r => setTimeout(r, 300)); return 1";
    let file = fixture(&sandbox, "run.ts");
    let script = one_call("run", &json!({"code": code}));
    let run = sandbox.scripted(&script).arg("-e").arg(file).args(["--mode", "json", "go"]).run().ok();
    let updates: Vec<Value> =
        json_lines(&run.stdout).into_iter().filter(|event| event["type"] == "tool_execution_update").collect();
    assert!(updates.iter().any(|event| event.to_string().contains("half")), "{updates:#?}");
}
