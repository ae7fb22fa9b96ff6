//! Scripts as models write them.

use serde_json::{Value, json};

use super::{give, hold, run, run_in, said, with_tools};
use crate::codemode_command::typescript_accepts;

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
    let found = values(&["fan_out.ts", "stock_by_price.ts", "function_alone.js", "short_answer.js"]);
    let items = json!([{"id": 0, "name": "item 0", "price": 0}, {"id": 1, "name": "item 1", "price": 2}]);
    assert_eq!(found[0], json!([{"city": "Oslo"}, "failed: failed as asked: {\"city\":\"Rome\"}", items]));
    let counts = json!({"0": 3, "1": 2, "2": 3, "3": 2, "4": 2});
    let stock =
        json!({"first": "item 0", "last": "item 7", "parity": ["even 6", "odd 6"], "counts": counts, "total": 22});
    assert_eq!(found[1], stock);
    assert_eq!(found[2], json!({"word": "called"}));
    assert_eq!(found[3], "ab".repeat(10) + "3");
}

#[test]
fn the_language_is_all_there() {
    let found = values(&["slow_requests.js", "modern_language.ts"]);
    let log = json!({"slow": ["api/b 951", "web/ü 1203"], "amounts": ["5", "70"], "noSpaces": "abc",
        "onlyGreek": ["β", "δ"], "dated": "29.11.2026", "where": [2, 3]});
    assert_eq!(found[0], log);
    let language = json!({"counter": [3, 41, true, false], "down": [3, 2, 1], "zero": 0,
        "others": {"retries": 3, "names": ["a"]}, "found": ["a", "b"], "promise": "resolved", "tried": "tried",
        "all": [1, 2], "missing": "nobody", "power": "36472996377170786403", "raw": "\\d1",
        "copies": [[1, 2, 3], [5, 2], [1, 3]], "sets": [2, 3], "lazy": [4, 16], "last": "本"});
    assert_eq!(found[1], language);
}

#[test]
fn typescript_that_runs_is_typescript_to_its_own_compiler() {
    let sandbox = with_tools();
    let names = ["fan_out.ts", "many_calls.ts", "modern_language.ts", "stock_by_price.ts"];
    for name in names {
        // A script is the body of a function.
        sandbox.file(name, format!("(async () => {{\n{}\n}})();\n", case(name)));
    }
    typescript_accepts(&sandbox, &names);
}

#[test]
fn what_is_there_and_what_is_not() {
    let found = values(&["what_is_there.js", "json_edges.js"]);
    insta::assert_json_snapshot!(found);
}

#[test]
fn a_failed_call_is_an_error_that_says_which_and_an_unknown_tool_has_its_neighbours_named() {
    let result = &run(&[&case("failed_then_misspelt.js")])[0];
    assert_eq!(result["isError"], true);
    insta::assert_snapshot!(said(result));
}

#[test]
fn what_is_stored_is_there_for_later_scripts_if_the_script_succeeds() {
    let script = case("visits.js");
    let scripts = [
        script.as_str(),
        "store('visits', 100); throw new Error('no')",
        "store('visits', 100); exit()",
        "return load('visits')",
        script.as_str(),
        "store('visits', undefined)",
        "return typeof load('visits')",
    ];
    let results = run(&scripts);
    let visits = |at: usize| serde_json::from_str::<Value>(&said(&results[at])).unwrap();
    let seen = json!({"days": ["Mon"]});
    assert_eq!(visits(0), json!({"visits": 1, "seen": seen, "gone": true, "tooLarge": "RangeError"}));
    assert_eq!(visits(3), 100, "a script that ends itself has succeeded, one that fails has not");
    assert_eq!((&visits(4)["visits"], said(&results[6]).as_str()), (&json!(101), "undefined"));
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
    let result = &run(&[&case("stop_early.js")])[0];
    assert_eq!(result["isError"], false);
    assert_eq!(
        said(result),
        "--- text 1 of 2 ---\none\n--- text 2 of 2 ---\ntwo\nNot begun when the script ended: sleep."
    );
    assert_eq!(result["details"]["calls"][0]["status"], "not begun");
}

#[test]
fn two_hundred_calls_at_once_all_have_their_answer() {
    let result = &run(&[&case("many_calls.ts")])[0];
    assert_eq!(said(result), "20100");
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
        "const why = new TypeError('why');\nconst text = 'late';\nthrow new Error(text, {\n  cause: why,\n});",
        "throw new Error('outer', { cause: new Error(String('inner'), { cause: 'a text' }) })",
        "throw 'text'",
        "await Promise.any([Promise.reject(new Error('a')), Promise.reject(5), Promise.reject(new RangeError('b'))])",
        "text(new AggregateError([new Error('a'), 'b'], 'both'));\nthrow new AggregateError(Array(9).fill('many'), 'all');",
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
        (vec![json!("text"), json!("image"), json!("text"), json!("text")], true)
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
            "setTimeout(() => text('late'), 20); setInterval(() => {}, 5); return",
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
            "on\nThe callback of a microtask failed (line 3:34): RangeError: far\n  2 | setTimeout(() => { null.x }, 1);\n> 3 | queueMicrotask(() => { throw new RangeError('far') });\n    |                                  ^\nThe callback of a timer failed (line 2:20): TypeError: cannot read property 'x' of null\n  1 | text('on');\n> 2 | setTimeout(() => { null.x }, 1);\n    |                    ^",
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
