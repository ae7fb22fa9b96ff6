//! What scripts reach, and what they do not, where extensions stand in between.

use crate::common::{Finished, Sandbox};

/// Runs a script from the command line.
fn run_with(sandbox: &Sandbox, script: &str, more: &[&str]) -> Finished {
    sandbox.atoll().args(["codemode", "run", "-"]).args(more).input(script).run()
}

/// Its tools call `bash`: one in the name of the call that it carries out, the other of the extension's own accord.
const INDIRECT: &str = r#"export default function (pi) {
  const parameters = { type: "object", properties: { command: { type: "string" } } };
  const text = async (result) => ({ content: [{ type: "text", text: JSON.stringify(await result) }] });
  pi.registerTool({ name: "by_call", description: "b", parameters,
    execute: (id, given, signal, update, ctx) => text(ctx.executeTool("bash", given)) });
  pi.registerTool({ name: "by_itself", description: "b", parameters,
    execute: (id, given) => text(pi.executeTool("bash", given)) });
}"#;

/// A tool that fails with a secret in its text and in its details, and one that takes it out of texts.
const REDACTED: &str = r#"export default function (pi) {
  pi.registerTool({ name: "leaky", description: "l", parameters: { type: "object" }, execute: async () => ({
    content: [{ type: "text", text: "secret=hunter2" }], isError: true, details: { raw: "hunter2" } }) });
  pi.on("tool_result", (event) => {
    if (event.toolName === "leaky") return { content: [{ type: "text", text: "[redacted]" }] };
  });
}"#;

/// Tools that are made for scripts.
const FOR_SCRIPTS: &str = r#"export default function (pi) {
  for (const exposure of ["codemode", "deferred"])
    pi.registerTool({ name: `for_${exposure}`, description: "f", exposure, parameters: { type: "object" },
      execute: async () => ({ content: [{ type: "text", text: exposure }] }) });
}"#;

fn with(extension: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.file("extension.ts", extension);
    sandbox
}

#[test]
fn what_is_not_allowed_no_extension_does_for_a_script() {
    let sandbox = with(INDIRECT);
    for tool in ["by_call", "by_itself"] {
        let script = format!("return await tools.{tool}({{command: 'touch {tool}'}})");
        let denied = run_with(&sandbox, &script, &["-e", "extension.ts", "--allow", "by_*"]).code(3);
        assert!(denied.stderr.contains("--allow bash"), "{denied:#?}");
        assert!(!sandbox.work().join(tool).exists(), "{tool} has done it");
        run_with(&sandbox, &script, &["-e", "extension.ts", "--allow", "by_*", "--allow", "bash"]).ok();
        assert!(sandbox.work().join(tool).exists(), "{tool} has not done it");
    }
}

#[test]
fn what_is_not_among_the_allowed_tools_is_denied_by_that_name() {
    let sandbox = Sandbox::new();
    let denied = run_with(&sandbox, "return await tools.read({path: 'x'})", &["--allow", "bash"]).code(3);
    assert!(denied.stderr.contains("add --allow read"), "{denied:#?}");
}

#[test]
fn details_of_a_result_do_not_pass_by_who_has_replaced_its_text() {
    let sandbox = with(REDACTED);
    let script = "try { await tools.leaky() } catch (error) { return [error.message, error.details] }";
    let done = run_with(&sandbox, script, &["-e", "extension.ts"]).ok();
    assert!(done.stdout.contains("[redacted]") && !done.stdout.contains("hunter2"), "{done:#?}");
}

#[test]
fn what_the_user_takes_away_scripts_do_not_have() {
    let sandbox = with(FOR_SCRIPTS);
    let script = "return [await tools.for_codemode(), await tools.for_deferred()].join()";
    assert_eq!(run_with(&sandbox, script, &["-e", "extension.ts"]).ok().stdout, "codemode,deferred\n");
    for name in ["for_codemode", "for_deferred", "for_*"] {
        let without = run_with(&sandbox, script, &["-e", "extension.ts", "--tools", &format!("-{name}")]).code(1);
        assert!(without.stderr.contains("is there, but it is not active"), "{without:#?}");
    }
}

/// What ends an instance at once takes all that it knew with it; what it had done is known outside of it.
#[test]
fn an_end_without_a_word_still_says_what_was_done() {
    let sandbox = Sandbox::new();
    let script = "await tools.bash({command: 'echo 1 > done.txt'});\n\
        'a'.repeat(1 << 26).replaceAll('a', 'bb'.repeat(100)).length";
    let ended = run_with(&sandbox, script, &[]).code(1);
    assert!(ended.stderr.contains("memory"), "{ended:#?}");
    assert!(ended.stderr.contains("1 call was made before that and is not undone: bash (ok)"), "{ended:#?}");
    assert!(sandbox.work().join("done.txt").exists());
}
