//! The commands in README.md: every one that starts with `atoll` is one the program understands.

use std::fs;

use crate::common::{Sandbox, plugins::workspace_root, skipped};

/// The `atoll` commands in a text's code blocks, without the prompt in front and without what follows a pipe.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut in_block = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            in_block = !in_block;
            continue;
        }
        let line = line.strip_prefix("$ ").unwrap_or(line);
        // Variables set for the command, or something piped into it.
        let line = line.rsplit_once("| atoll ").map_or(line.to_owned(), |(_, rest)| format!("atoll {rest}"));
        let words = line.split_whitespace().skip_while(|word| word.contains('=') && !word.starts_with('-'));
        let line: Vec<&str> = words.collect();
        if in_block && line.first().is_some_and(|word| *word == "atoll" || word.ends_with("/atoll")) {
            commands.push(line[1..].join(" "));
        }
    }
    commands
}

/// A command line split as a shell does. Fails where a shell would want more.
fn split(command: &str) -> Vec<String> {
    let script = format!("for word in {command}\ndo printf '%s\\0' \"$word\"; done");
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).split_terminator('\0').map(str::to_owned).collect()
}

/// What comes before a comment, a redirection or a pipe.
fn without_shell(command: &str) -> String {
    let mut quote = None;
    let end = command.char_indices().find(|(at, character)| match quote {
        Some(open) => {
            quote = Some(open).filter(|open| open != character);
            false
        }
        None if matches!(character, '\'' | '"') => {
            quote = Some(*character);
            false
        }
        None => "|<>;&".contains(*character) || (*character == '#' && command[..*at].ends_with(' ')),
    });
    end.map_or(command, |(at, _)| &command[..at]).to_owned()
}

#[test]
fn every_command_in_the_readme_is_understood_hyper_mcp_44() {
    let Ok(text) = fs::read_to_string(workspace_root().join("README.md")) else {
        skipped("every_command_in_the_readme_is_understood_hyper_mcp_44: there is no README.md");
        return;
    };
    let commands = commands(&text);
    assert!(!commands.is_empty(), "README.md shows no command");
    for command in commands {
        let sandbox = Sandbox::new();
        // A model whose server is not there: nothing leaves this machine, and the command line is all that counts.
        sandbox.model_at("http://127.0.0.1:1/v1");
        let words = split(&without_shell(&command));
        // A script that can not be read is a command line that can not be understood.
        words.iter().filter(|word| word.ends_with(".js")).for_each(|name| drop(sandbox.file(name, "return 1")));
        // A template such as `atoll plugin inspect FILE` is a command too, with a file that is not there.
        let run = sandbox.atoll().args(&words).run();
        assert_ne!(run.status.code(), Some(2), "`atoll {command}` is not understood: {run:#?}");
        assert!(!run.stderr.contains("panicked"), "`atoll {command}`: {run:#?}");
    }
}

#[test]
fn commands_are_found_in_code_blocks_only() {
    let text = "atoll not-this\n```sh\n$ atoll -p \"a | b\" | head   # c\nKEY=x atoll demo\ncargo xtask test\necho x | atoll -p y\n```\n";
    let found: Vec<Vec<String>> = commands(text).iter().map(|command| split(&without_shell(command))).collect();
    assert_eq!(found, [vec!["-p", "a | b"], vec!["demo"], vec!["-p", "y"]]);
}

/// A program in place of `npx`: the server that the README has started, as far as the README asks it.
const NPX: &str = r#"#!/bin/sh
[ "$*" = "-y @modelcontextprotocol/server-memory" ] || exit 9
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
  *'"method":"initialize"'*)
    result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"memory","version":"1"}}' ;;
  *'"method":"tools/list"'*)
    result='{"tools":[{"name":"read_graph","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
  *'"method":"tools/call"'*) result='{"content":[{"type":"text","text":"{\"entities\":[]}"}]}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[test]
fn the_section_on_mcp_servers_works_as_it_is_pasted_in_a_fresh_home() {
    use std::os::unix::fs::PermissionsExt as _;
    let readme = fs::read_to_string(workspace_root().join("README.md")).unwrap();
    let (_, section) = readme.split_once("\n## Bring your MCP servers\n").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let sandbox = Sandbox::new();
    // Makes the folder in which the program is found, beside which `npx` is.
    sandbox.shell("true").ok();
    let npx = sandbox.root().join("bin/npx");
    fs::write(&npx, NPX).unwrap();
    fs::set_permissions(&npx, fs::Permissions::from_mode(0o755)).unwrap();
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split_once("```").unwrap().0);
    let lines: Vec<&str> = blocks.flat_map(str::lines).collect();
    assert_eq!(lines.len(), 5, "{lines:?}");
    let ran: Vec<_> = lines.iter().map(|line| sandbox.shell(line).ok()).collect();
    assert!(ran[0].stdout.starts_with("No other program has MCP servers here"), "{:#?}", ran[0]);
    assert!(ran[2].stdout.starts_with("memory: connected in ") && ran[2].stdout.contains("read_graph answered in"));
    assert!(ran[3].stdout.starts_with("memory  connected, 1 tool"), "{:#?}", ran[3]);
    assert_eq!(ran[4].stdout.trim_end(), "{\"entities\":[]}");
    assert!(ran.iter().all(|run| run.stderr.is_empty()), "{ran:#?}");
}

/// The text of the first code block of a language behind a place.
fn block<'a>(text: &'a str, language: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```\n").unwrap().0
}

#[test]
fn the_script_in_the_readme_gives_what_the_readme_says() {
    let readme = fs::read_to_string(workspace_root().join("README.md")).unwrap();
    let (_, section) = readme.split_once("\n## Scripts\n").unwrap();
    let sandbox = Sandbox::new();
    sandbox.file("todo.js", block(section, "js"));
    sandbox.file("notes/plan.md", "# Plan\n\nTODO: begin\nTODO: end\n");
    sandbox.file("src/main.rs", "//! The program.\n\nfn main() {\n    // TODO: everything\n}\n");
    sandbox.file("src/lib.rs", "//! Nothing.\n");
    let command = split(&without_shell(block(section, "sh").trim().strip_prefix("atoll ").unwrap()));
    let done = sandbox.atoll().args(["-na"]).args(command).args(["--allow", "grep", "--allow", "read"]).run().ok();
    assert_eq!(done.stdout, block(section, "text"), "{done:#?}");
}
