//! What a script reaches outside: what it was granted, and nothing else.

use serde_json::{Value, json};

use super::{done, example, fixture, placed};
use crate::common::{
    Sandbox,
    server::{Reply, Server},
};

/// What needs a grant, with the capability that it needs.
const OUTSIDE: &[(&str, &str)] = &[
    ("return here.fs.readFileSync('inside.txt', 'utf8')", "files"),
    ("here.fs.writeFileSync('made.txt', 'x')", "files"),
    ("return (await import('node:fs/promises')).readFile('inside.txt', 'utf8')", "files"),
    ("return here.fs.readdirSync('.')", "files"),
    ("await atoll.exec('ls', [])", "process"),
    ("return here.child.execSync('ls').toString()", "process"),
    ("return (await fetch('http://127.0.0.1:1/')).status", "http"),
];

#[test]
fn without_a_grant_nothing_outside_can_be_reached_and_the_error_says_what_to_do() {
    let sandbox = Sandbox::new();
    sandbox.file("inside.txt", "inside");
    let codes: Vec<&str> = OUTSIDE.iter().map(|(code, _)| *code).collect();
    let (gave, _) = done(&sandbox, &codes, &[]);
    for ((code, capability), gave) in OUTSIDE.iter().zip(&gave) {
        let message = gave["message"].as_str().unwrap_or_default();
        assert!(["denied", "EACCES"].contains(&gave["code"].as_str().unwrap_or_default()), "{code}: {gave}");
        assert!(
            message.contains(&format!("`{capability}`")) && message.contains("atoll plugin grant "),
            "{code}: {gave}"
        );
        assert!(message.contains("run.ts"), "the command names the file: {message}");
    }
    assert!(!sandbox.work().join("made.txt").exists());
}

/// Each capability without a scope is refused to a script whose manifest does not ask for it.
#[test]
fn a_manifest_narrows_what_a_script_may_do_in_the_session() {
    let sandbox = Sandbox::new();
    let text = "/* atoll\ndescription = 'asks for nothing'\n*/\nexport default (a: any) => {
      const codes: string[] = [];
      const attempt = async (name: string, run: () => unknown) => {
        try { await run(); codes.push(name + ' worked'); } catch (e: any) { codes.push(name + ' ' + e.code); }
      };
      a.on('turn_start', async (_: unknown, ctx: any) => {
        await attempt('store', () => a.store.set('k', 1));
        await attempt('session', () => a.appendEntry('t', 1));
        await attempt('bus', () => a.events.emit('t', 1));
        await attempt('ui', () => ctx.ui.confirm('t', 'm'));
        await attempt('models', () => a.complete({prompt: 'p'}));
        await attempt('table', () => a.getAllTools());
        await attempt('call', () => ctx.executeTool('bash', {command: 'ls'}));
        console.warn(codes.join(', '));
      });
    };";
    let file = placed(&sandbox, "narrow.ts", text);
    let run = sandbox.scripted(&crate::common::puppets::no_call()).env("ATOLL_LOG", "plugin=warn").arg("-e").arg(file);
    let run = run.arg("go").run().ok();
    let names = ["store", "session", "bus", "ui", "models", "table", "call"];
    let expected = names.map(|name| format!("{name} denied")).join(", ");
    assert!(run.stderr.contains(&expected), "{run:#?}");
}

/// A manifest that asks for everything that reaches outside.
const WANTS: &str = "[table]\nreason = 'r'\n[session]\nreason = 'r'\n[store]\nreason = 'r'\n[bus]\nreason = 'r'\n[ui]\nreason = 'r'\n\
    [[files]]\nroot = '$workspace'\naccess = 'read-write'\nreason = 'r'\n\
    [[process]]\nprogram = 'echo'\nreason = 'r'\n[[process]]\nprogram = 'sleep'\nreason = 'r'\n\
    [[process]]\nprogram = '/bin/bash'\nreason = 'r'\n[[process]]\nprogram = 'cat'\nreason = 'r'\n";

#[test]
fn what_is_granted_to_a_script_works_through_every_module_that_leads_there() {
    let server = Server::start(vec![Reply::status(200, &[("x-a", "b")], "{\"from\": \"server\"}")]);
    let sandbox = Sandbox::new();
    sandbox.file("inside.txt", "inside");
    let script = fixture(&sandbox, "run.ts");
    let http = format!("[[http]]\norigin = '{}'\nmethods = ['POST']\nreason = 'r'\n", server.origin());
    placed(&sandbox, "run.toml", &format!("{WANTS}{http}"));
    let grant = sandbox.atoll().args(["plugin", "grant"]).arg(&script).arg("--all").run().ok();
    assert!(grant.stdout.contains("run is granted"), "{grant:#?}");
    let fetch = format!(
        "const r = await fetch('{}/p', {{method: 'POST', body: 'sent', headers: {{'x-b': 'c'}}}}); return [r.status, r.ok, r.headers.get('x-a'), (await r.json()).from]",
        server.origin()
    );
    let rows: &[(&str, Value)] = &[
        ("return here.fs.readFileSync('inside.txt', 'utf8')", json!("inside")),
        (
            "here.fs.writeFileSync('deep/er/made.txt', 'x'); here.fs.appendFileSync('deep/er/made.txt', 'y'); \
          return [here.fs.readFileSync('deep/er/made.txt').toString(), here.fs.readdirSync('deep'), here.fs.existsSync('none')]",
            json!(["xy", ["er"], false]),
        ),
        (
            "const s = here.fs.statSync('inside.txt'); here.fs.unlinkSync('deep/er/made.txt'); return [s.isFile(), s.size, here.fs.existsSync('deep/er/made.txt')]",
            json!([true, 6, false]),
        ),
        (
            "const p = await import('node:fs/promises'); await p.writeFile('a.bin', new Uint8Array([0, 255])); return [...await p.readFile('a.bin')]",
            json!([0, 255]),
        ),
        (
            "try { here.fs.readFileSync('none.txt') } catch (e) { return [e.code, e.syscall] }",
            json!(["ENOENT", "open"]),
        ),
        ("try { here.fs.readFileSync('/etc/hostname') } catch (e) { return e.code }", json!("EACCES")),
        (
            "return await atoll.exec('echo', ['a', 'b'])",
            json!({"stdout": "a b\n", "stderr": "", "code": 0, "killed": false, "truncated": false}),
        ),
        ("return (await atoll.exec('sleep', ['20'], {timeout: 100})).killed", json!(true)),
        (
            "const c = new AbortController(); setTimeout(() => c.abort(), 50); \
          try { await atoll.exec('sleep', ['20'], {signal: c.signal}); } catch (e) { return e.name }",
            json!("AbortError"),
        ),
        ("return here.child.execSync('echo one; exit 0', {encoding: 'utf8'})", json!("one\n")),
        (
            "try { here.child.execSync('echo bad >&2; exit 3') } catch (e) { return [e.status, e.stderr] }",
            json!([3, "bad\n"]),
        ),
        ("return here.child.spawnSync('cat', [], {input: 'fed', encoding: 'utf8'}).stdout", json!("fed")),
        (
            "const { promisify } = await import('node:util'); return (await promisify(here.child.execFile)('echo', ['x'])).stdout",
            json!("x\n"),
        ),
        (
            "return await new Promise(r => { const c = here.child.spawn('echo', ['s']); let t = ''; c.stdout.on('data', d => t += d); c.on('close', code => r([t, code])); })",
            json!(["s\n", 0]),
        ),
        (&fetch, json!([200, true, "b", "server"])),
    ];
    let codes: Vec<&str> = rows.iter().map(|(code, _)| *code).collect();
    let (gave, run) = done(&sandbox, &codes, &[]);
    for ((code, expected), gave) in rows.iter().zip(&gave) {
        assert_eq!(gave, expected, "{code}\n{}", run.stderr);
    }
    assert_eq!(server.requests()[0].header("x-b"), Some("c"));
}

#[test]
fn a_grant_is_for_the_files_it_was_given_to() {
    let sandbox = Sandbox::new();
    sandbox.file("README.md", "# One\ntext\n## Two\n");
    let outline = example(&sandbox, "outline.ts");
    let call =
        || sandbox.atoll().arg("-e").arg(&outline).args(["tool", "call", "outline", "{\"path\": \"README.md\"}"]).run();
    let denied = call().code(3);
    let said = format!("{}{}", denied.stdout, denied.stderr);
    let line = said
        .lines()
        .find_map(|line| Some(&line[line.find("atoll plugin grant ")?..]))
        .unwrap_or_else(|| panic!("{said}"));
    sandbox.shell(line).ok();
    assert_eq!(call().ok().stdout, "1: # One\n3: ## Two\n");
    let changed = std::fs::read_to_string(&outline).unwrap() + "\n// changed";
    std::fs::write(&outline, changed).unwrap();
    call().code(3);
    sandbox.atoll().args(["plugin", "grant"]).arg(&outline).arg("--all").run().ok();
    assert_eq!(call().ok().stdout, "1: # One\n3: ## Two\n");
    sandbox.atoll().args(["plugin", "revoke"]).arg(&outline).arg("--all").run().ok();
    call().code(3);
}

#[test]
fn a_script_sees_no_variables_and_reads_no_files_by_importing_them() {
    let sandbox = Sandbox::new();
    placed(&sandbox, "secret.json", "{\"key\": \"value\"}");
    placed(&sandbox, "secret.txt", "value");
    let codes = [
        "return [Object.keys(process.env), typeof require, typeof Deno, typeof globalThis.__native]",
        "try { await import('../../etc/passwd'); return 'read' } catch (e) { return 'not read' }",
        "try { await import('/etc/hostname'); return 'read' } catch (e) { return 'not read' }",
        "try { await import('./secret.json'); return 'read' } catch (e) { return 'not read' }",
        "try { await import('./secret.txt'); return 'read' } catch (e) { return 'not read' }",
        "try { await import('atoll:native'); return 'read' } catch (e) { return 'not read' }",
    ];
    let (gave, _) = done(&sandbox, &codes, &[]);
    assert_eq!(gave[0], json!([[], "undefined", "undefined", "undefined"]));
    assert!(gave[1..].iter().all(|gave| gave == "not read"), "{gave:?}");
}
