//! What happens around a script while it runs: the table changes, extensions have their say in its calls, the user stops it.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{TOOLS_TOML, run_in, said, text_of, with_tools};
use crate::common::{
    Sandbox,
    plugins::{digest, test_plugin},
    processes::until,
};

const NEST_TOML: &str = include_str!("../plugins/nest/plugin.toml");

/// A sandbox with tools that call tools and change the table, beside those for scripts.
fn with_nest() -> Sandbox {
    let sandbox = Sandbox::new();
    let grant = |name: &str, file: &str, manifest: &str| {
        let component = test_plugin(file);
        sandbox.plugin(name, &component, Some(manifest));
        format!("[plugin.{name}]\nsha256 = \"{}\"\nall = true\n", digest(&component))
    };
    let grants = grant("script-tools", "script_tools", TOOLS_TOML) + &grant("nest", "nest", NEST_TOML);
    sandbox.home_file("grants.toml", grants);
    sandbox
}

/// The value that a script returned.
#[track_caller]
fn value(result: &Value) -> Value {
    assert_eq!(result["isError"], false, "{result:#}");
    serde_json::from_str(&said(result)).unwrap()
}

#[test]
fn a_tool_that_comes_or_goes_while_a_script_runs_is_there_or_not() {
    let sandbox = with_nest();
    sandbox.file("a.txt", "alpha\n");
    let script = "
        const failed = async (work) => { try { await work(); return 'no error' } catch (e) { return e.name } };
        const moment = () => new Promise((done) => setTimeout(done, 30));
        const seen = [await failed(() => tools.grep({ pattern: 'alpha' }))];
        await tools.change_table({ activate: 'grep' });
        await moment();
        const { grep } = tools;
        seen.push(JSON.stringify(await grep({ pattern: 'alpha' })).includes('a.txt'), typeof tools.grep);
        await tools.change_table({ deactivate: 'grep' });
        seen.push(await failed(() => grep({ pattern: 'alpha' })), await failed(() => tools.grep({ pattern: 'alpha' })));
        await tools.change_table({ add: ['newcomer'] });
        await moment();
        seen.push(typeof tools.newcomer, 'newcomer' in tools);
        const under_way = tools.sleep({ ms: 200 });
        await tools.change_table({ withdraw: 'newcomer' });
        seen.push(await failed(() => tools.newcomer({})), await under_way);
        return seen";
    let results = run_in(&sandbox, &[script, "return 'grep' in tools || 'newcomer' in tools"]);
    assert_eq!(
        value(&results[0]),
        json!([
            "NotFoundError",
            true,
            "function",
            "NotFoundError",
            "NotFoundError",
            "function",
            true,
            "NotFoundError",
            "awake"
        ])
    );
    assert_eq!(said(&results[1]), "false");
}

#[test]
fn calls_of_a_script_nest_no_deeper_than_others_and_a_script_can_not_start_one() {
    let sandbox = with_nest();
    let script = "
        let call = { tool: 'say', arguments: {} };
        for (let level = 0; level < LEVELS; level += 1) call = { tool: 'nest', arguments: call };
        const said = await tools.nest(call);
        return [said.includes('nesting'), said.includes('8')]";
    let nine = script.replace("LEVELS", "7");
    let eight = script.replace("LEVELS", "6");
    let around =
        "return (await tools.nest({ tool: 'codemode', arguments: { code: 'return 1' } })).includes('not-found')";
    let results = run_in(&sandbox, &[&nine, &eight, around]);
    assert_eq!(value(&results[0]), json!([true, true]));
    assert_eq!(value(&results[1])[0], false, "{results:#?}");
    assert_eq!(said(&results[2]), "true");
}

/// Blocks, rewrites and patches, each of one tool.
const CALLS: &str = "
    const said = async (call) => { try { return JSON.stringify(await call) } catch (e) { return `${e.name}: ${e.message}` } };
    return [
      await said(tools.bash({ command: 'touch' + ' ran' })),
      await said(tools.say({ word: 'fir' + 'st' })),
      await said(tools.echo({ word: 'plain' })),
    ]";

#[test]
fn extensions_have_their_say_in_each_call_of_a_script() {
    let expected = json!(["ToolError: Not with this one.", "\"{\\\"word\\\":\\\"second\\\"}\"", "\"***\""]);
    let model = json!({"turns": [{"calls": [{"tool": "codemode", "arguments": {"code": CALLS}}]}, {"text": "done"}]});
    let sandbox = with_tools();
    let gate = json!({"events": ["tool-call", "tool-result"], "record": "entry", "answers": {
        "tool-call": [
            {"when": "touch ran", "block": "Not with this one."},
            {"when": "\"word\":\"first\"", "rewrite": {"word": "second"}}],
        "tool-result": [{"when": "\"tool\":\"echo\"", "patch": {"text": "***"}}]}});
    sandbox.with_puppets(&[("gate", gate)], &model).args(["--tools", "+codemode", "go"]).run().ok();
    assert_eq!(value(&sandbox.results()[0]), expected);
    assert!(!sandbox.work().join("ran").exists());
    let told = sandbox.told();
    let calls: Vec<&Value> =
        told.iter().filter(|(name, _)| name == "tool-call").map(|(_, call)| &call["tool"]).collect();
    assert_eq!(calls, ["codemode", "bash", "say", "echo"], "{told:#?}");

    let sandbox = with_tools();
    let script = "export default (a) => {
        a.on('tool_call', (e) => {
          if (e.toolName === 'bash') return { block: true, reason: 'Not with this one.' };
          if (e.toolName === 'say') e.input.word = 'second';
        });
        a.on('tool_result', (e) => (e.toolName === 'echo' ? { content: [{ type: 'text', text: '***' }] } : undefined));
      };";
    let file = sandbox.home_file("gate.ts", script);
    let run = sandbox.scripted(&model).arg("-e").arg(file).args(["--tools", "+codemode", "go"]).run().ok();
    assert!(run.stderr.is_empty(), "{run:#?}");
    assert_eq!(value(&sandbox.results()[0]), expected);
    assert!(!sandbox.work().join("ran").exists());
}

/// What is said while nothing else happens used to be seen only when something did.
#[test]
fn what_a_script_says_is_seen_while_it_waits() {
    let sandbox = with_tools();
    let script =
        "text('one'); await new Promise((d) => setTimeout(d, 5)); text('two'); await tools.sleep({ ms: 600000 })";
    let model = json!({"turns": [{"calls": [{"tool": "codemode", "arguments": {"code": script}}]}, {"text": "never"}]});
    let running = sandbox.scripted(&model).args(["--tools", "+codemode", "--mode", "json", "go"]).longest(60).start();
    running.wait_for_output("one\\ntwo");
    running.signal(Signal::INT);
    running.wait().code(130);
    let text = text_of(&sandbox.results()[0]["content"]);
    assert!(text.contains("one\ntwo"), "{text}");
}

#[test]
fn the_user_stops_a_script_and_all_two_hundred_calls_of_it() {
    let sandbox = with_tools();
    let script = "// @options: {\"max_parallel_calls\": 200}
        text('before');
        const commands = Array.from({ length: 20 }, () => tools.bash({ command: 'echo $$ >> pids; exec sleep 987' }));
        const sleeps = Array.from({ length: 180 }, () => tools.sleep({ ms: 600000 }));
        try { await Promise.all([...commands, ...sleeps]) } catch { text('caught') } finally { store('a', 1) }";
    let turn = |code: &str| json!({"calls": [{"tool": "codemode", "arguments": {"code": code}}]});
    let model = json!({"turns": [turn(script), {"text": "never"}]});
    let running = sandbox.scripted(&model).args(["--tools", "+codemode", "--mode", "json", "go"]).longest(120).start();
    let pids = until("all commands run", || {
        let text = std::fs::read_to_string(sandbox.work().join("pids")).unwrap_or_default();
        let pids: Vec<String> = text.lines().map(str::to_owned).collect();
        (pids.len() == 20).then_some(pids)
    });
    running.signal(Signal::INT);
    running.wait().code(130);
    until("the commands have ended", || {
        let is_sleep =
            |pid: &String| std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().starts_with(b"sleep");
        (!pids.iter().any(is_sleep)).then_some(())
    });
    let result = sandbox.results()[0].clone();
    assert_eq!(result["isError"], true, "{result:#}");
    let text = text_of(&result["content"]);
    assert!(text.contains("before") && text.contains("stopped") && !text.contains("caught"), "{text}");
    let calls = result["nestedCalls"]["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 200);
    assert!(calls.iter().all(|call| call["status"] == "unfinished"), "{calls:#?}");
    // The session goes on, and nothing was stored.
    let model = json!({"turns": [turn(script), turn("return typeof load('a')"), {"text": "done"}]});
    sandbox.scripted(&model).args(["-c", "--tools", "+codemode", "go"]).run().ok();
    let results = sandbox.results();
    assert_eq!(said(&results[1]), "undefined", "{results:#?}");
}
