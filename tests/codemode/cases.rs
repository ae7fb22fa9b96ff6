//! Scripts as models write them.

use serde_json::{Value, json};

use super::{give, hold, run, run_in, said, with_tools};

/// A script of `tests/fixtures/codemode`.
pub(super) fn case(name: &str) -> String {
    let folder = crate::common::plugins::workspace_root().join("tests/fixtures/codemode");
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// The values that cases return.
fn values(names: &[&str]) -> Vec<Value> {
    let scripts: Vec<String> = names.iter().map(|name| case(name)).collect();
    let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
    let value = |result: &Value| {
        assert_eq!(result["isError"], false, "{result:#}");
        serde_json::from_str(&said(result)).unwrap_or_else(|_| Value::from(said(result)))
    };
    run(&scripts).iter().map(value).collect()
}

#[test]
fn calls_side_by_side_and_work_on_their_results() {
    let found = values(&[
        "01_parallel_allsettled.js",
        "03_group_reduce.js",
        "10_typescript_annotations.js",
        "12_arrow_wrapper.js",
    ]);
    assert_eq!(found[0][0], json!({"a": 1}));
    assert_eq!(found[0][1], "ERR failed as asked: {\"x\":2}");
    assert_eq!(found[0][2].as_array().unwrap().len(), 3);
    assert_eq!((&found[1]["keys"], &found[1]["total"]), (&json!(["even", "odd"]), &json!(17)));
    assert_eq!(found[2], json!(["item 0", "item 1"]));
    assert_eq!(found[3], json!({"hi": 1}));
}

#[test]
fn the_language_is_all_there() {
    let found =
        values(&["04_regex_named_groups.js", "07_modern_syntax.js", "15_sleep_idiom.js", "21_top_level_options.js"]);
    assert_eq!(found[0][1]["mod"], "web");
    assert_eq!((&found[0][2]["lookbehind"], &found[0][2]["u"]), (&json!("42"), &json!(true)));
    let expected = json!({"x": 1, "s": 2, "t": 3, "has": true, "n": 5, "z": 7, "q": 9, "ag": [1, 2, 3], "b": 4,
        "rest": {"c": 1, "d": 2}, "others": {"e": 3}, "opt": "none", "big": "1180591620717411303424", "sep": 1_000_000,
        "exp": 1024, "tag": "a\\n1", "at": 3, "hasOwn": true, "fl": [1, 2, 3], "rep": "a+b+c", "with": [1, 9, 3],
        "fromAsync": "function", "setOps": "function", "wr": "function", "ptry": "function", "it": "function"});
    assert_eq!(found[1], expected);
    assert_eq!(found[2], "slept");
    assert_eq!(found[3], "x".repeat(20));
}

#[test]
fn what_is_there_and_what_is_not() {
    let found = values(&["06_globals_probe.js", "16_json_edge.js"]);
    insta::assert_json_snapshot!(found);
}

#[test]
fn a_failed_call_is_an_error_that_says_which_and_an_unknown_tool_has_its_neighbours_named() {
    let script = case("09_error_from_tool.js").replace("no_such_tool", "list_itms");
    let result = &run(&[&script])[0];
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(said(result));
}

#[test]
fn what_is_stored_is_there_for_later_scripts_if_the_script_succeeds() {
    let script = case("18_store_load.js");
    let scripts = [
        script.as_str(),
        "store('n', 100); throw new Error('no')",
        "store('n', 100); exit()",
        "return load('n')",
        script.as_str(),
        "store('n', undefined)",
        "return typeof load('n')",
    ];
    let results = run(&scripts);
    let said: Vec<String> = [0, 3, 4, 6].iter().map(|at| said(&results[*at])).collect();
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&said[0]), json!([1, {"a": [1]}, null, "RangeError"]));
    assert_eq!(said[1], "100", "a script that ends itself has succeeded, one that fails has not");
    assert_eq!((value(&said[2])[0].clone(), said[3].as_str()), (json!(101), "undefined"));
}

#[test]
fn a_long_text_is_cut_for_the_model_and_kept_whole() {
    let script = "// @options: {\"max_output_tokens\": 50}\nfor (let i = 0; i < 500; i += 1) text(`line ${i}`)";
    let result = &run(&[script])[0];
    let text = said(result);
    assert!(text.chars().count() < 1000 && text.contains("line 0") && text.contains("line 499"), "{text}");
    let path = result["details"]["fullOutputPath"].as_str().unwrap();
    assert!(text.contains(path), "{text}");
}

#[test]
fn exit_ends_a_script_at_once_and_in_good_order() {
    let result = &run(&[&case("19_unawaited_and_exit.js")])[0];
    assert_eq!(result["isError"], false);
    assert_eq!(said(result), "now\nNot begun when the script ended: echo.");
    assert_eq!(result["details"]["calls"][0]["status"], "not begun");
}

#[test]
fn two_hundred_calls_at_once_all_have_their_answer() {
    let result = &run(&[&case("24_many_tool_calls.js")])[0];
    assert_eq!(said(result), "19900");
    assert_eq!(result["details"]["calls"].as_array().unwrap().len(), 200);
}

#[test]
fn what_models_send_beside_the_script_is_no_matter() {
    give(&[
        ("```js\nreturn 1\n```", "1"),
        ("Here it is:\r\n\r\n```typescript\r\nconst a: number = 2;\r\nreturn a\r\n```\r\nIt gives two.", "2"),
        ("\u{feff}return 3", "3"),
        ("1 + 3", "4"),
        ("async function main() { text('a'); await 0; return 'b' }", "--- text 1 of 2 ---\na\n--- text 2 of 2 ---\nb"),
        ("const main = async () => 6;\nmain()", "6"),
        ("export default async function () { return 7 }", "7"),
        ("const 名 = '八'; 名", "八"),
        ("import type { A } from './a'; import { B } from './b';\nconst b: B = 9; return b", "9"),
        ("text('ten'); [1].push(2)", "ten"),
        ("'eleven'", "eleven"),
        ("enum A { B = 12 } A.B", "12"),
        ("let a", "(no output; use `return` or `text()`)"),
        ("console.log('x', { a: 1 }); console.error('y')", "--- console ---\nx { a: 1 }\nerror: y"),
        ("interface A<T> { a: T }\nconst f = <T,>(a: A<T>): T => a.a;\nf({ a: 14 }) satisfies number", "14"),
    ]);
}

#[test]
fn what_can_not_be_run_is_said_before_anything_is() {
    hold(&[
        ("", true, &["The script is empty", "Nothing was run."]),
        (
            "await tools.echo({});\nconst a = ;",
            true,
            &["SyntaxError at line 2:11", "> 2 | const a = ;", "Nothing was run."],
        ),
        (
            "import fs from 'fs';\nfs.readFileSync('a')",
            true,
            &["`fs` can not be imported", "tools.read", "Nothing was run."],
        ),
        ("// @options: {\"timeout\": 5}\n1", true, &["Line 1", "did you mean `timeout_ms`?"]),
        ("1;\n// @options: {\"timeout_ms\": 5}", true, &["Line 2", "has to come before everything else"]),
        ("const fs = require('fs')", true, &["ReferenceError", "Hint: there are no modules"]),
        ("await import('lodash')", true, &["`lodash` can not be imported"]),
        ("await fetch('https://example.com')", true, &["Hint: there is no network"]),
        ("process.exit(0)", true, &["Hint: there is no process; `exit()`"]),
    ]);
}

#[test]
fn an_error_has_its_place_in_the_text_that_was_sent() {
    let scripts = [
        "Sure:\n```ts\ninterface A { b: string }\nconst f = (a: A): string => {\n  return a.b.c.d;\n};\nf({ b: '名' })\n```",
        "await tools.echo({});\n  await tools['fail-me']({ a: 1 });",
        "const late = async () => { await 0; throw new Error('late', { cause: new TypeError('why') }) };\nawait late()",
        "throw { code: 5 }",
        "throw 'text'",
        "await Promise.any([Promise.reject(new Error('a'))])",
        "class Mine extends Error { constructor(m) { super(m); this.name = 'Mine' } }\nthrow new Mine('x')",
    ];
    let shown: Vec<String> = run(&scripts).iter().map(said).collect();
    insta::assert_snapshot!(shown.join("\n======\n"));
}

#[test]
fn what_is_shown_is_of_use() {
    give(&[
        ("text(new Map([['a', 1]]))", "Map { \"a\" => 1 }"),
        ("text(new Set([1, NaN]))", "Set { 1, NaN }"),
        (
            "return { a: NaN, b: [1n, new Map()], c: undefined, d: new Date(0) }",
            "{\n  \"a\": \"NaN\",\n  \"b\": [\n    \"1n\",\n    \"Map {}\"\n  ],\n  \"d\": \"1970-01-01T00:00:00.000Z\"\n}",
        ),
        ("return NaN", "NaN"),
        ("return null", "null"),
        ("text(undefined)", "undefined"),
        ("return [1n]", "[\n  \"1n\"\n]"),
        ("const a = {}; a.a = a; return a", "{ a: [circular] }"),
        ("return '\\ud800'", "\u{fffd}"),
        ("return new Uint8Array([1, 2])", "Uint8Array [ 1, 2 ]"),
    ]);
    let results = run(&["text(new TypeError('no'))", "text(searchTools('a'))", "return [tools.echo({})]"]);
    assert!(said(&results[0]).starts_with("TypeError: no"), "{results:#?}");
    for result in &results[1..] {
        assert!(said(result).contains("put `await` before it"), "{result:#}");
    }
}

#[test]
fn pictures_of_tools_are_shown() {
    let sandbox = with_tools();
    let scripts = [
        "image(await tools.picture({}))",
        "image('https://example.com/a.png')",
        "image('data:image/png;base64,!')",
        "image({ type: 'image', data: 'AQID', mimeType: 'text/html' })",
        "const p = await tools.picture({}); return [p.type, p.mimeType, p.text]",
        "image('data:image/png;base64,aGVsbG8=')",
        "return await tools.picture({})",
        "text([await tools.picture({}), await tools.picture({})])",
        "image({ ...await tools.picture({}), mimeType: 'image/jpeg' })",
    ];
    let results = run_in(&sandbox, &scripts);
    assert_eq!(
        (&results[0]["isError"], &results[0]["content"][1]["type"]),
        (&json!(false), &json!("image")),
        "{results:#?}"
    );
    let says = ["there is no network here", "is no base64", "not text/html"];
    for (result, part) in results[1..4].iter().zip(says) {
        assert!(said(result).contains(part), "{result:#}");
    }
    assert_eq!(said(&results[4]), "[\n  \"image\",\n  \"image/png\",\n  \"a dot\"\n]");
    assert!(
        said(&results[5]).contains("no PNG, JPEG, GIF or WebP"),
        "what is no picture is shown as none: {results:#?}"
    );
    let kinds = |at: usize| -> Vec<Value> {
        results[at]["content"].as_array().unwrap().iter().map(|piece| piece["type"].clone()).collect()
    };
    assert_eq!(
        (kinds(6), said(&results[6]).contains("a dot")),
        (vec![json!("text"), json!("image"), json!("text")], true)
    );
    assert_eq!(kinds(7).iter().filter(|kind| **kind == "image").count(), 2, "{results:#?}");
    assert_eq!(results[8]["content"][1]["mimeType"], "image/png", "it is what its bytes are: {results:#?}");
}

#[test]
fn what_is_not_waited_for_is_finished_or_named() {
    give(&[
        (
            "tools.echo({ a: 1 }).then((r) => text(r.a)); text('first')",
            "--- text 1 of 2 ---\nfirst\n--- text 2 of 2 ---\n1",
        ),
        (
            "setTimeout(() => text('late'), 20); setInterval(() => {}, 5);",
            "(no output; use `return` or `text()`)\n2 timers were not waited for: `await new Promise((done) => setTimeout(done, 100))` waits.",
        ),
        (
            "const late = new Promise((_, fail) => setTimeout(() => fail(new Error('late')), 30000)); text(await Promise.race([tools.say({}), late]))",
            "{}",
        ),
        (
            "setTimeout(() => text('late'), 30000); tools.sleep({ ms: 50 }).then(text); return 'on'",
            "--- text 1 of 2 ---\nawake\n--- text 2 of 2 ---\non",
        ),
        (
            "Promise.reject(new Error('lost')); text('on')",
            "on\nA promise failed and nothing waited for it (line 1:20): Error: lost\n> 1 | Promise.reject(new Error('lost')); text('on')\n    |                    ^",
        ),
        (
            "text('on');\nsetTimeout(() => { null.x }, 1);\nqueueMicrotask(() => { throw new RangeError('far') });\nawait new Promise((done) => setTimeout(done, 20))",
            "on\nThe callback of a microtask failed (line 3:34): RangeError: far\n  2 | setTimeout(() => { null.x }, 1);\n> 3 | queueMicrotask(() => { throw new RangeError('far') });\n    |                                  ^\nThe callback of a timer failed (line 2:19): TypeError: cannot read property 'x' of null\n  1 | text('on');\n> 2 | setTimeout(() => { null.x }, 1);\n    |                   ^",
        ),
        ("const p = Promise.reject(new Error('late')); await 0; try { await p } catch { text('caught') }", "caught"),
        (
            "for (let i = 0; i < 30; i++) Promise.reject(new Error('it')); text('on')",
            "on\nA promise failed and nothing waited for it (line 1:49): Error: it (30 times)\n> 1 | for (let i = 0; i < 30; i++) Promise.reject(new Error('it')); text('on')\n    |                                                 ^",
        ),
        (
            "for (let i = 0; i < 30; i++) Promise.reject(`it ${i}`); text('on')",
            &format!(
                "on\n{}20 more of these failed and nothing waited for them.",
                (0..10).map(|i| format!("A promise failed and nothing waited for it: it {i}\n")).collect::<String>()
            ),
        ),
    ]);
}
