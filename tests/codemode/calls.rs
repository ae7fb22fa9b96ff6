//! Calls of tools from scripts.

use serde_json::{Value, json};

use super::{give, hold, run, run_in, said, text_of, with_tools};

#[test]
fn a_call_gives_data_where_the_tool_says_so_and_text_otherwise() {
    give(&[
        ("const r = await tools.echo({ a: [1] }); return typeof r + r.a[0]", "object1"),
        ("return typeof await tools.say({ a: 1 })", "string"),
        ("return await tools.say()", "{}"),
        ("return (await tools.fail_with_data({ a: 1 })).failed.a", "1"),
        ("return (await tools['a-b']({})) + (await tools.a_b({}))", "dashunderscore"),
        (
            "try { await tools.refuse({}) } catch (e) { return [e.name, e.code, e.tool, e instanceof ToolError, e instanceof Error].join() }",
            "ToolError,unavailable,refuse,true,true",
        ),
        ("try { await tools.fail_me({}) } catch (e) { return e.message }", "failed as asked: {}"),
        ("const f = tools.echo; return f.name + (f === tools.echo)", "echotrue"),
    ]);
}

#[test]
fn names_that_are_hard_to_write_are_tools_all_the_same() {
    give(&[
        ("return await tools.then_({})", "then"),
        ("return await tools.__proto__({})", "proto"),
        ("return await tools['__proto__']({})", "proto"),
        ("return await tools.constructor_({})", "constructor"),
        (
            "return [typeof tools.then, typeof tools.constructor, `${tools}`, typeof (await tools)].join()",
            "undefined,undefined,[object tools],object",
        ),
        (
            "return ['echo' in tools, 'no_such' in tools, Object.keys(tools).includes('fail_me')].join()",
            "true,false,true",
        ),
        ("const { echo, ...rest } = tools; return typeof rest.say", "function"),
        ("return ALL_TOOLS.find((t) => t.name === 'fail-me').id + Object.isFrozen(ALL_TOOLS[0])", "fail_metrue"),
    ]);
    hold(&[
        ("tools.echo = 1", true, &["`tools` can not be changed"]),
        ("delete tools.echo", true, &["`tools` can not be changed"]),
        ("globalThis.tools = {}", true, &["TypeError"]),
        ("Object.setPrototypeOf(tools, {})", true, &["`tools` can not be changed"]),
        ("await tools.codemode({ code: '1' })", true, &["there is no tool `codemode`"]),
        ("await tools.ech({})", true, &["did you mean `echo`", "at line 1:"]),
    ]);
}

#[test]
fn arguments_that_are_no_object_of_json_are_refused_where_they_are_written() {
    hold(&[
        ("await tools.echo([1])", true, &["takes one object, not a list"]),
        ("await tools.echo('a')", true, &["takes one object, not a string"]),
        ("await tools.echo(null)", true, &["takes one object, not null"]),
        ("await tools.echo({ a: { b: [1n] } })", true, &["arguments.a.b[0] is a BigInt"]),
        (
            "const a = { b: {} }; a.b.c = a; await tools.echo(a)",
            true,
            &["arguments.b.c is one of the objects that it is in"],
        ),
        ("await tools.echo({ toJSON() { return 5 } })", true, &["no object as JSON"]),
        ("await tools.echo({ get a() { throw new RangeError('mine') } })", true, &["RangeError: mine"]),
    ]);
}

#[test]
fn calls_wait_for_their_turn_and_all_come_to_their_end() {
    let script = "// @options: {\"max_parallel_calls\": 4}
        const all = await Promise.all(Array.from({ length: 300 }, (_, i) => tools.echo({ i })));
        return all.every((r, i) => r.i === i)";
    let result = &run(&[script])[0];
    assert_eq!(said(result), "true");
    let details = &result["details"];
    assert_eq!((details["calls"].as_array().unwrap().len(), &details["callsOmitted"]), (256, &json!(44)));
    assert_eq!(details["calls"][255]["args"], "{\"i\":255}");
}

#[test]
fn what_was_called_before_a_failure_is_said_and_what_never_began_is_not() {
    let scripts = [
        "await tools.say({}); try { await tools['fail-me']({}) } catch {} tools.sleep({ ms: 60000 }); await tools.echo({}); throw new Error('x')",
        "tools.sleep({ ms: 60000 }); throw new Error('x')",
        "// @options: {\"timeout_ms\": 400, \"max_parallel_calls\": 1}\nawait Promise.all([tools.sleep({ ms: 60000 }), tools.sleep({ ms: 60000 })])",
    ];
    let results = run(&scripts);
    let begun =
        "4 calls were made before that and are not undone: say (ok), fail-me (failed), sleep (stopped), echo (ok)";
    assert!(said(&results[0]).contains(begun), "{results:#?}");
    assert!(!said(&results[1]).contains("made before that"), "nothing was begun: {results:#?}");
    assert!(
        said(&results[2]).contains("1 call was made before that and is not undone: sleep (stopped)"),
        "{results:#?}"
    );
    let statuses = |at: usize| -> Vec<Value> {
        results[at]["details"]["calls"].as_array().unwrap().iter().map(|call| call["status"].clone()).collect()
    };
    assert_eq!(statuses(0), ["ok", "failed", "stopped", "ok"]);
    assert_eq!((statuses(1), statuses(2)), (vec![json!("not begun")], vec![json!("stopped"), json!("not begun")]));
    assert_eq!(results[0]["details"]["calls"][1]["error"], "failed as asked: {}");
}

#[test]
fn calls_of_scripts_go_through_the_same_checks_as_all_calls() {
    let sandbox = with_tools();
    sandbox.file("a.txt", "alpha\n");
    let outside = sandbox.home_file("secret.txt", "secret");
    let denied = format!("return await tools.read({{ path: {:?} }})", outside.to_str().unwrap());
    let scripts = [
        "return await tools.read({ path: 'a.txt' })",
        &denied,
        "return await tools.read({})",
        "await tools.grep({ pattern: 'a' })",
    ];
    let results = run_in(&sandbox, &scripts);
    assert!(said(&results[0]).contains("alpha"), "{results:#?}");
    assert_eq!(results[1]["isError"], true, "{results:#?}");
    assert!(said(&results[2]).contains("path"), "{results:#?}");
    assert!(said(&results[3]).contains("there is no tool `grep`"), "it is not active: {results:#?}");
}

#[test]
fn tools_are_searched_and_described() {
    give(&[
        (
            "const found = await searchTools('items of a shop'); return found[0].name + typeof found[0].declaration",
            "list_itemsstring",
        ),
        ("return (await searchTools('tool', { limit: 1 })).length <= 1", "true"),
        ("return (await searchTools('items', { namespace: 'shop' })).map((t) => t.name).join()", "list_items"),
        ("return (await describeTool('list_items')).id", "list_items"),
        (
            "const all = await Promise.allSettled(Array.from({ length: 10005 }, () => describeTool('echo'))); return all.filter((one) => one.reason?.code === 'limit').length",
            "5",
        ),
        ("return (await describeTool(tools.echo)).name", "echo"),
        ("return (await describeNamespace('shop')).tools.join()", "list_items"),
    ]);
    hold(&[
        ("await searchTools(5)", true, &["searchTools takes words, not a number"]),
        (
            "await describeTool(Object.defineProperty(() => {}, 'name', { value: {} }))",
            true,
            &["takes a name, not an object"],
        ),
        ("await describeTool(Object.defineProperty(() => {}, 'name', { value: '\\ud800' }))", true, &["NotFoundError"]),
        ("await searchTools('a', { limit: 0 })", true, &["from 1 to 100"]),
        ("await describeTool('ech')", true, &["NotFoundError", "did you mean `echo`"]),
        ("await describeNamespace('nothing')", true, &["NotFoundError", "there is no namespace `nothing`"]),
    ]);
}

#[test]
fn a_large_result_is_filtered_in_the_script_and_the_model_sees_little() {
    let script = "const all = await tools.big({ records: 10000, filler: 450 });
        return all.filter((r) => r.id % 2000 === 0).map((r) => r.id).join()";
    let result = &run(&[script])[0];
    assert_eq!(said(result), "0,2000,4000,6000,8000");
    assert!(text_of(&result["content"]).len() < 200);
}
