//! How the commands are used.

use super::arguments::COMMANDS;

/// The text for all of it, or for one command.
pub(crate) fn text(of: Option<&str>) -> String {
    let body = match of {
        Some("add") => ADD,
        Some("remove") => REMOVE,
        Some("list") => LIST,
        Some("test") => TEST,
        Some("import") => IMPORT,
        Some("reconnect") => RECONNECT,
        Some("login") => LOGIN,
        Some("logout") => LOGOUT,
        _ => return all(),
    };
    body.to_owned()
}

fn all() -> String {
    let mut text = "Usage: atoll mcp COMMAND\n\nServers of the Model Context Protocol: yours are in ~/.atoll/mcp.json, a trusted project's in \
                    .atoll/mcp.json.\nWithout a command: list. In a session the same stands behind /mcp.\n\nCommands:\n"
        .to_owned();
    for (name, what) in COMMANDS {
        text.push_str(&format!("  {name:<10} {what}\n"));
    }
    text.push_str(
        "\n`atoll mcp COMMAND --help` tells more.\n\nExit codes: 0 it worked, 1 it failed, 2 it can not be understood, 3 it is not allowed.\n",
    );
    text
}

const ADD: &str = "\
Usage: atoll mcp add NAME [OPTIONS] -- PROGRAM [ARGUMENTS…]
       atoll mcp add NAME [OPTIONS] URL

Puts a server into mcp.json, in place of one of that name. Nothing is connected to: `atoll mcp test NAME` does that.

Options:
  -l, --project                    In the project's .atoll/mcp.json, not in yours
      --exposure HOW               codemode (the default), deferred, direct or hidden
      --description TEXT           What the server is for, as the model is told
      --timeout SECONDS            How long it may give neither answer nor progress (60)
      --disabled                   Write it, but do not connect to it

Of a server that is a program:
  -e, --env KEY=VALUE              A variable; ${NAME} takes its value from your environment. Can be repeated
      --cwd FOLDER                 Where it runs

Of a server with a URL:
      --url URL                    The same as URL
  -H, --header KEY=VALUE           A header; ${NAME} or !COMMAND says where the value is. Can be repeated
      --bearer-token-env-var NAME  Sends the token that this variable holds
      --oauth-client-id ID, --oauth-client-secret SECRET, --oauth-client-name NAME,
      --oauth-client-registration auto|dcr|cimd, --oauth-callback-port PORT,
      --oauth-callback-url URL, --oauth-scope SCOPES
                                   How to sign in, where that does not find itself
";

const REMOVE: &str = "\
Usage: atoll mcp remove NAME [-l]

Takes a server out of your mcp.json, or with -l (--project) out of the project's.
";

const LIST: &str = "\
Usage: atoll mcp list [--json]

Connects to the servers that are switched on, and shows each with its tools. Exits with 1 if an entry is wrong or a server is not
there, so that it can be a check. In a session it shows what there is, and connects to nothing.
";

const TEST: &str = "\
Usage: atoll mcp test [NAME…] [--json]

Connects to servers, those that are switched off too if they are named, lists their tools, and calls one that says it only reads and
needs no arguments, if there is one. Says how long each step took. Exits with 1 if one fails, and without names also if an entry is
wrong.
";

const IMPORT: &str = "\
Usage: atoll mcp import [--from KIND [FILE]] [--yes] [-l]

Shows what the servers of other programs become here, and with --yes puts them into mcp.json. What is there already stays. What
looks like a key is not shown.

  --from KIND    claude-code, claude-desktop, cursor, vscode, windsurf, codex or opencode; else all that are found
  FILE           Another file than those where the program has them; it has to be in the working directory
  -y, --yes      Write it
  -l, --project  Into the project's .atoll/mcp.json, not into yours
";

const RECONNECT: &str = "\
Usage: /mcp reconnect NAME

Ends the connection to a server, and connects to it anew.
";

const LOGIN: &str = "\
Usage: atoll mcp login NAME [-l] [--timeout SECONDS]

Signs in to a server that asks for it: shows the page to open, and waits until the browser comes back, for 300 s if nothing else is
said. What it gives is kept in Atoll's own directory, for you alone, and is renewed by itself. With -l (--project) it has to be a
server of the project's file.
";

const LOGOUT: &str = "\
Usage: atoll mcp logout NAME [-l]

Forgets how you are signed in to a server. The server is not told. With -l (--project) it has to be one of the project's file.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_says_how_it_is_used() {
        for (name, _) in COMMANDS {
            assert!(text(Some(name)).contains(&format!("mcp {name}")), "{name}");
            assert!(text(None).contains(name), "{name}");
        }
    }
}
