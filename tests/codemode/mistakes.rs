//! What models write that is not quite a script, and what they forget: either it is taken as it is meant, or what is said
//! tells them what to write.

use super::{give, hold};

#[test]
fn a_script_in_another_form_is_the_script_that_is_meant() {
    give(&[
        ("{ a: 1, b: [2] }", "{\n  \"a\": 1,\n  \"b\": [\n    2\n  ]\n}"),
        ("// a comment\n{ a: 1 as number };\n", "{\n  \"a\": 1\n}"),
        ("{ text('a block'); }", "a block"),
        ("async ({ tools, text }) => { text((await tools.echo({ a: 1 })).a) }", "1"),
        ("async function (tools) { return (await tools.echo({ a: 2 })).a }", "2"),
        ("async function main(api, n = 3) { return n + (await api.tools.echo({ a: 1 })).a }", "4"),
        ("(tools, console) => { console.log(typeof tools.echo) }", "--- console ---\nfunction"),
        ("#!/usr/bin/env node\nreturn 3", "3"),
        ("~~~js\nreturn 4\n~~~", "4"),
        ("//@options:{\"timeout_ms\":60000}\nreturn 5", "5"),
        ("/// <reference path=\"atoll.d.ts\" />\n// @options: {\"timeout_ms\": 60000}\nreturn 6", "6"),
        ("return `\n// @options: {}\n`.length", "17"),
        ("return typeof __import + Object.keys(globalThis).includes('__import')", "functionfalse"),
    ]);
}

#[test]
fn what_can_not_be_taken_as_it_is_says_what_to_write() {
    hold(&[
        (
            "// @options {\"timeout_ms\": 5}\n1",
            true,
            &["Line 1: options are written `// @options: {", "Nothing was run."],
        ),
        ("/* @options: {\"timeout_ms\": 5} */\n1", true, &["options are written `// @options: {"]),
        ("```js\nconst a = 1;\n```\nand\n```js\nreturn a\n```", true, &["2 fenced blocks", "one block"]),
        ("const a = 'x';\nreturn <b>{a}</b>", true, &["line 2:8", "JSX is not supported; write the markup as a text"]),
        ("namespace A { export const b = 1 }\nA.b", true, &["write `const Name = { … }`"]),
        ("import fs = require('fs');\nfs.readFileSync('a')", true, &["`fs` can not be imported", "`tools.read`"]),
        (
            "const a = /fine/g;\nreturn a.test('x') || /(open/.test('x')",
            true,
            &["SyntaxError", "line 2:23", "> 2 | return"],
        ),
        ("return '\0'", true, &["NUL character in line 1", "Nothing was run."]),
    ]);
}

#[test]
fn what_is_missing_is_named_and_what_is_there_is_suggested() {
    hold(&[
        ("await tools.read_file({ path: 'a' })", true, &["there is no tool `read_file`", "did you mean `read`"]),
        ("await tools.items({})", true, &["did you mean `list_items`"]),
        ("await tools.grep({ pattern: 'a' })", true, &["Hint: `grep` is there, but it is not active"]),
        ("await tools.codemode({ code: '1' })", true, &["Hint: `codemode` is there, but scripts can not call it here"]),
        (
            "import fs from 'fs';\nfs.readFileSync('a')",
            true,
            &["tools such as `tools.read`, `tools.write`, `tools.edit`"],
        ),
        (
            "const a = 1;\n  await import('node:fs')",
            true,
            &["TypeError: `node:fs` can not be imported", "at line 2:", "> 2 |   await"],
        ),
        (
            "const text = tools.say({});\nreturn text.trim()",
            true,
            &["TypeError", "Hint: `say` was called", "`await tools.say(…)`"],
        ),
        ("const r = tools.echo({});\nreturn r.list.length", true, &["of undefined", "`await tools.echo(…)`"]),
        ("await tools.echo({}); return undefined.x", true, &["of undefined"]),
        ("return [1, { a: tools.echo({}) }]", true, &["value[1].a is a promise: put `await` before it"]),
        ("await tools.echo({ a: new Map() })", true, &["arguments.a is a Map: `Object.fromEntries(…)`"]),
        ("await tools.echo({ a: [tools.say({})] })", true, &["arguments.a[0] is a promise"]),
        (
            "store('k', { a: new Map() })",
            true,
            &["store can not keep \"k\" as JSON: value.a is a Map: `Object.fromEntries(…)`"],
        ),
        ("store('k', [1n])", true, &["store can not keep \"k\"", "value[0] is a BigInt"]),
        (
            "const a = {}; a.a = a; store('k', a)",
            true,
            &["store can not keep \"k\"", "value.a is one of the objects that it is in"],
        ),
    ]);
    let long = format!("const a = '{}'; null.x; const b = '{}';", "x".repeat(300), "y".repeat(300));
    hold(&[
        (&long, true, &["> 1 | …xxx", "null.x", "yyy…", "^"]),
        ("const a = null;\n\t\ta.x", true, &["> 2 |     a.x\n    |     ^"]),
    ]);
}

#[test]
fn what_is_stored_is_checked_when_it_is_stored() {
    hold(&[
        ("store('a', '漢'.repeat(90000))", true, &["RangeError", "270002 bytes", "262144"]),
        (
            "for (let i = 0; i < 4; i += 1) store(`k${i}`, 'x'.repeat(250000)); try { store('more', 'x'.repeat(250000)) } catch (e) { text(e.name) } exit()",
            false,
            &["RangeError"],
        ),
        (
            "try { store('other', 'x'.repeat(60000)); return 'kept' } catch (e) { return e.message }",
            false,
            &["output-bytes"],
        ),
        (
            "return [load('k3').length, typeof load('more'), typeof load('other')].join()",
            false,
            &["250000,undefined,undefined"],
        ),
        ("store('é'.repeat(129), 1)", true, &["1 to 256 bytes, not 258"]),
        ("for (let i = 0; ; i += 1) store(`k${i}`, undefined)", true, &["at most 4096 keys"]),
        ("let o = {}; for (let i = 0; i < 130; i += 1) o = { o }; store('deep', o)", true, &["deeper than 100"]),
    ]);
}
