use proptest::prelude::*;

use super::*;

fn code(sent: &str) -> String {
    match prepare(sent) {
        Ok(prepared) => prepared.code.lines().map(|line| format!("{}\n", line.trim_end())).collect(),
        Err(said) => said,
    }
}

#[test]
fn what_models_send_is_the_script_they_mean() {
    let cases = [
        "return 1",
        "\u{feff}return 1\r\nreturn 2\r\n",
        "```js\nreturn 1\n```",
        "\n```typescript title=x\nconst a: number = 1;\nreturn a\n```\n\n",
        "```\nreturn `\n```\n`\n```",
        "```js\nreturn 1",
        "Here is the script:\n\n```ts\nreturn 1 as number\n```\n\nIt returns 1.",
        "Sure:\n```ts\nreturn 2\n```",
        "Two blocks:\n```js\n1\n```\n```js\n2\n```",
        "const text = `\n\\`\\`\\`js\n1\n\\`\\`\\`\n`;\nreturn text",
        "async () => {\n  return 1\n}",
        "async function main() {\n  await 0\n}",
        "tools.read({ path: \"a\" })",
        "const 名 = 1;\n名",
        "~~~ts\nreturn 1 as number\n~~~",
        "````js\nreturn 1 // ```\n````",
        "```js\nconst a = 1;\n```\nand\n```js\nreturn a\n```",
        "#!/usr/bin/env node\nreturn 1",
        "{ a: 1, b: 2 }",
        "// @options: {\"timeout_ms\": 5}\n{\n  a: 1 as number,\n};\n",
        "{ text('a'); }",
        "async function (tools) {\n  return 1\n}",
        "async ({ tools, text }) => text(await tools.a())",
        "async function main(tools, args = {}) {\n  return 1\n}",
        "await import('lodash')",
    ];
    let shown: Vec<String> = cases.iter().map(|case| format!("{case}\n=>\n{}", code(case))).collect();
    insta::assert_snapshot!(shown.join("----\n"));
}

#[test]
fn what_can_not_be_run_is_refused_with_the_place_and_the_way_round() {
    let cases = [
        "",
        " \n\n",
        "```js\n```",
        "let a = ;\nreturn a",
        "import fs from 'fs';\nreturn fs.readFileSync('a')",
        "import axios from \"axios\"; await axios.get('x')",
        "import _ from 'lodash'; _.map([])",
        "@decorated class A {}",
        "// @options: {\"timeout\": 5}\nreturn 1",
        "let a;\n// @options: {\"timeout_ms\": 5}\nreturn 1",
        "// @option {\"timeout_ms\": 5}\nreturn 1",
        "// @options: {\"timeout_ms\": 5}\n// @options: {\"timeout_ms\": 6}\nreturn 1",
        "namespace A { export const b = 1 }\nreturn A.b",
        "import fs = require('fs');\nreturn fs",
        "import b = A.b;\nreturn b",
        "const name = 'x';\nreturn <b>{name}</b>",
        "// @options: {timeout_ms: 5}\nreturn 1",
    ];
    let shown: Vec<String> = cases.iter().map(|case| format!("{case}\n=>\n{}\n", prepare(case).unwrap_err())).collect();
    insta::assert_snapshot!(shown.join("----\n"));
}

#[test]
fn options_are_those_of_the_first_line_that_is_not_blank() {
    let prepared = prepare("\n```js\n\n// @options: {\"timeout_ms\": 5}\nreturn 1\n```").unwrap();
    assert_eq!(prepared.options.timeout_ms, Some(5));
    assert_eq!(prepared.text, "\n\n\n// @options: {\"timeout_ms\": 5}\nreturn 1\n");
    assert!(prepare("\nreturn '\0'").unwrap_err().starts_with("There is a NUL character in line 2; write `\\0`"));
    let behind = "/// <reference path=\"x\" />\n// @options: {\"timeout_ms\": 5}\nreturn `\n// @options: {}\n`";
    assert_eq!(prepare(behind).unwrap().options.timeout_ms, Some(5), "what is in a text is no comment");
    assert!(prepare("1").unwrap().is_last_expression && !prepare("return 1").unwrap().is_last_expression);
}

proptest! {
    #[test]
    fn no_line_moves_and_nothing_panics(sent in "(\\PC|\n|\r\n|```|~~~|js|=> |return |`|// @options: |\\{|\\}|function ){0,60}") {
        if let Ok(prepared) = prepare(&sent) {
            let sent = sent.strip_prefix('\u{feff}').unwrap_or(&sent);
            prop_assert_eq!(prepared.text.matches('\n').count(), sent.matches('\n').count());
            prop_assert_eq!(prepared.code.matches('\n').count(), sent.matches('\n').count());
        }
    }
}
