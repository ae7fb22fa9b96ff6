//! What was typed behind `atoll mcp` or `/mcp`, read. Pure: nothing is looked up here.

use atoll_mcp_client::config::Kind;
use lexopt::{Arg, Parser, ValueExt as _};
use serde_json::{Map, Value, json};

/// How long signing in may take, in milliseconds.
const LOGIN_MS: u64 = 300_000;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Command {
    /// Say how it is used: all of it, or one command.
    Help(Option<&'static str>),
    Add(Add),
    Remove {
        name: String,
        place: Place,
    },
    List {
        json: bool,
    },
    Test {
        names: Vec<String>,
        json: bool,
    },
    Import(Import),
    /// Connect to a server anew.
    Reconnect {
        name: String,
    },
    /// Sign in to a server.
    Login {
        name: String,
        /// With the project's it has to be that one's file which has it.
        place: Place,
        /// How long that may take.
        timeout_ms: u64,
    },
    /// Forget how one is signed in to a server.
    Logout {
        name: String,
        place: Place,
    },
}

/// Which file is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Place {
    /// The user's.
    #[default]
    User,
    /// The project's.
    Project,
}

/// A server to put into a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Add {
    pub(crate) name: String,
    /// As it is written.
    pub(crate) entry: Map<String, Value>,
    pub(crate) place: Place,
}

/// Files of other programs to take over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) from: Option<Kind>,
    /// The file, if not those of its places.
    pub(crate) file: Option<String>,
    /// Write what was shown.
    pub(crate) yes: bool,
    pub(crate) place: Place,
}

/// The commands, with what each does.
pub(crate) const COMMANDS: [(&str, &str); 8] = [
    ("add", "Put a server into mcp.json, in place of one of that name"),
    ("remove", "Take a server out of mcp.json"),
    ("list", "Show the servers, their tools and what is wrong; exits with 1 if anything is"),
    ("test", "Connect to servers, list their tools and call one that only reads, with times"),
    ("import", "Take over the servers of another program; shows them first"),
    ("reconnect", "In a session: connect to a server anew"),
    ("login", "Sign in to a server"),
    ("logout", "Forget how one is signed in to a server"),
];

/// Reads the words behind the command.
///
/// # Errors
/// What can not be understood, in one line.
pub(crate) fn parse(words: Vec<String>) -> Result<Command, String> {
    let mut parser = Parser::from_args(words);
    let name = match parser.next().map_err(said)? {
        None => return Ok(Command::List { json: false }),
        Some(Arg::Short('h') | Arg::Long("help")) => return Ok(Command::Help(None)),
        Some(Arg::Value(name)) => text(name)?,
        Some(option) => return Err(format!("{}; a command comes first", strange(&option))),
    };
    match name.as_str() {
        "add" => add(parser),
        "remove" | "rm" => remove(parser),
        "list" | "ls" | "status" => list(parser),
        "test" => test(parser),
        "import" => import(parser),
        "reconnect" => reconnect(parser),
        "login" => login(parser),
        "logout" => logout(parser),
        "help" => match parser.next().map_err(said)? {
            Some(Arg::Value(of)) => {
                let of = text(of)?;
                let known = COMMANDS.iter().find(|(known, _)| *known == of);
                known.map(|(known, _)| Command::Help(Some(known))).ok_or_else(|| unknown(&of))
            }
            _ => Ok(Command::Help(None)),
        },
        other => Err(unknown(other)),
    }
}

fn unknown(name: &str) -> String {
    let near = atoll_mcp_client::names::near_matches(name, COMMANDS.iter().map(|(known, _)| *known));
    match near.first() {
        Some(near) => format!("there is no command {name:?}; is {near:?} meant?"),
        None => format!("there is no command {name:?}; there are {}", COMMANDS.map(|(known, _)| known).join(", ")),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "what fails hands it over")]
fn said(error: lexopt::Error) -> String {
    error.to_string()
}

fn text(word: std::ffi::OsString) -> Result<String, String> {
    word.string().map_err(said)
}

fn strange(option: &Arg<'_>) -> String {
    match option {
        Arg::Short(letter) => format!("there is no option -{letter} here"),
        Arg::Long(name) => format!("there is no option --{name} here"),
        Arg::Value(value) => format!("{:?} is one word too many", value.to_string_lossy()),
    }
}

/// An option that all commands have: which file.
fn place(option: &Arg<'_>, place: &mut Place) -> bool {
    let is_project = matches!(option, Arg::Short('l') | Arg::Long("local" | "project"));
    if is_project {
        *place = Place::Project;
    }
    is_project
}

fn is_help(option: &Arg<'_>) -> bool {
    matches!(option, Arg::Short('h') | Arg::Long("help"))
}

/// `KEY=VALUE`, or for a header also `Key: value`.
fn pair(option: &str, word: &str, or: Option<char>) -> Result<(String, String), String> {
    let at = word.find(|c| c == '=' || Some(c) == or);
    let (key, value) = match at.map(|at| word.split_at(at)) {
        Some((key, value)) if !key.trim().is_empty() => (key.trim(), value.get(1..).unwrap_or_default()),
        _ => return Err(format!("{option} takes KEY=VALUE, and {word:?} is none")),
    };
    Ok((key.to_owned(), if or.is_some() { value.trim() } else { value }.to_owned()))
}

fn add(mut parser: Parser) -> Result<Command, String> {
    let mut all = Add::default();
    let (mut url, mut program) = (None::<String>, None::<Vec<String>>);
    let (mut env, mut headers, mut oauth) = (Map::new(), Map::new(), Map::new());
    let (mut cwd, mut token) = (None, None);
    let (mut of_program, mut of_url) = (None::<&str>, None::<&str>);
    loop {
        // Words behind `--` are the program's, whatever they are.
        if !all.name.is_empty()
            && url.is_none()
            && let Some(mut rest) = parser.try_raw_args()
            && rest.peek().is_some_and(|word| word == "--")
        {
            rest.next();
            program = Some(rest.map(text).collect::<Result<_, _>>()?);
            break;
        }
        let Some(argument) = parser.next().map_err(said)? else { break };
        if place(&argument, &mut all.place) {
            continue;
        }
        if is_help(&argument) {
            return Ok(Command::Help(Some("add")));
        }
        match argument {
            Arg::Long("url") => url = Some(text(parser.value().map_err(said)?)?),
            Arg::Short('e') | Arg::Long("env") => {
                let (key, value) = pair("--env", &text(parser.value().map_err(said)?)?, None)?;
                env.insert(key, json!(value));
                of_program = Some("--env");
            }
            Arg::Long("cwd") => {
                cwd = Some(text(parser.value().map_err(said)?)?);
                of_program = Some("--cwd");
            }
            Arg::Short('H') | Arg::Long("header") => {
                let (key, value) = pair("--header", &text(parser.value().map_err(said)?)?, Some(':'))?;
                headers.insert(key, json!(value));
                of_url = Some("--header");
            }
            Arg::Long("bearer-token-env-var") => {
                token = Some(text(parser.value().map_err(said)?)?);
                of_url = Some("--bearer-token-env-var");
            }
            Arg::Long(name @ ("exposure" | "description")) => {
                let name = name.to_owned();
                let value = text(parser.value().map_err(said)?)?;
                all.entry.insert(name, json!(value));
            }
            Arg::Long("timeout") => {
                let value = text(parser.value().map_err(said)?)?;
                let seconds: f64 =
                    value.parse().map_err(|_| format!("--timeout takes seconds, and {value:?} is none"))?;
                all.entry.insert("timeout".to_owned(), whole(seconds));
            }
            Arg::Long("disabled") => {
                all.entry.insert("enabled".to_owned(), json!(false));
            }
            Arg::Long(name) if OAUTH.iter().any(|(known, _)| *known == name) => {
                let known = OAUTH.iter().find(|(known, _)| *known == name);
                let Some((name, field)) = known.copied() else { continue };
                let value = text(parser.value().map_err(said)?)?;
                let value = match name {
                    "oauth-callback-port" => {
                        json!(
                            value
                                .parse::<u16>()
                                .map_err(|_| format!("--{name} takes a port, and {value:?} is none"))?
                        )
                    }
                    _ => json!(value),
                };
                oauth.insert(field.to_owned(), value);
                of_url = Some(name);
            }
            Arg::Value(word) if all.name.is_empty() => all.name = text(word)?,
            Arg::Value(word) => {
                let word = text(word)?;
                if url.is_some() || !is_address(&word) {
                    return Err(match url {
                        Some(_) => format!("{word:?} is one word too many"),
                        None => format!("put -- before the program and its arguments: add {} -- {word} …", all.name),
                    });
                }
                url = Some(word);
            }
            other => return Err(strange(&other)),
        }
    }
    if all.name.is_empty() {
        return Err("a server needs a name: add NAME -- PROGRAM ARGUMENTS…, or add NAME URL".to_owned());
    }
    let entry = match (url, program) {
        (Some(url), None) => {
            if let Some(option) = of_program {
                return Err(format!("{option} is for a server that is a program, and this one has a URL"));
            }
            if let Some(name) = token {
                if headers.keys().any(|header| header.eq_ignore_ascii_case("authorization")) {
                    return Err("--bearer-token-env-var is a header Authorization; leave out one of them".to_owned());
                }
                headers.insert("Authorization".to_owned(), json!(format!("Bearer ${{{name}}}")));
            }
            let mut entry = Map::from_iter([("url".to_owned(), json!(url))]);
            put(&mut entry, "headers", headers);
            put(&mut entry, "oauth", oauth);
            entry
        }
        (None, Some(words)) => {
            if let Some(option) = of_url {
                let dashes = if option.starts_with('-') { "" } else { "--" };
                return Err(format!("{dashes}{option} is for a server with a URL, and this one is a program"));
            }
            let Some((program, arguments)) = words.split_first() else {
                return Err("there is no program behind --".to_owned());
            };
            let mut entry = Map::from_iter([("command".to_owned(), json!(program))]);
            if !arguments.is_empty() {
                entry.insert("args".to_owned(), json!(arguments));
            }
            put(&mut entry, "env", env);
            if let Some(cwd) = cwd {
                entry.insert("cwd".to_owned(), json!(cwd));
            }
            entry
        }
        (Some(_), Some(_)) => return Err("a server is a program or has a URL, and this is both".to_owned()),
        (None, None) => {
            let name = &all.name;
            return Err(format!("say what the server is: add {name} -- PROGRAM ARGUMENTS…, or add {name} URL"));
        }
    };
    all.entry = entry.into_iter().chain(all.entry).collect();
    Ok(Command::Add(all))
}

/// Options of `add` that are fields of `oauth`.
const OAUTH: [(&str, &str); 7] = [
    ("oauth-client-id", "clientId"),
    ("oauth-client-secret", "clientSecret"),
    ("oauth-callback-port", "callbackPort"),
    ("oauth-callback-url", "callbackUrl"),
    ("oauth-client-name", "clientName"),
    ("oauth-client-registration", "clientRegistration"),
    ("oauth-scope", "scope"),
];

fn put(entry: &mut Map<String, Value>, key: &str, values: Map<String, Value>) {
    if !values.is_empty() {
        entry.insert(key.to_owned(), Value::Object(values));
    }
}

/// A number of seconds, as people write it.
fn whole(seconds: f64) -> Value {
    #[allow(clippy::cast_possible_truncation, reason = "it is a whole number then")]
    if seconds.fract() == 0.0 && seconds.abs() < 1e9 { json!(seconds as i64) } else { json!(seconds) }
}

fn is_address(word: &str) -> bool {
    let start = word.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(start.as_deref(), Some("http" | "https"))
}

fn remove(mut parser: Parser) -> Result<Command, String> {
    let (mut name, mut of) = (None, Place::User);
    while let Some(argument) = parser.next().map_err(said)? {
        match argument {
            _ if place(&argument, &mut of) => {}
            _ if is_help(&argument) => return Ok(Command::Help(Some("remove"))),
            Arg::Value(word) if name.is_none() => name = Some(text(word)?),
            other => return Err(strange(&other)),
        }
    }
    let name = name.ok_or("say which server: remove NAME")?;
    Ok(Command::Remove { name, place: of })
}

fn list(mut parser: Parser) -> Result<Command, String> {
    let mut json = false;
    while let Some(argument) = parser.next().map_err(said)? {
        match argument {
            Arg::Long("json") => json = true,
            _ if is_help(&argument) => return Ok(Command::Help(Some("list"))),
            other => return Err(strange(&other)),
        }
    }
    Ok(Command::List { json })
}

fn test(mut parser: Parser) -> Result<Command, String> {
    let (mut names, mut json) = (Vec::new(), false);
    while let Some(argument) = parser.next().map_err(said)? {
        match argument {
            Arg::Long("json") => json = true,
            _ if is_help(&argument) => return Ok(Command::Help(Some("test"))),
            Arg::Value(word) => names.push(text(word)?),
            other => return Err(strange(&other)),
        }
    }
    Ok(Command::Test { names, json })
}

fn import(mut parser: Parser) -> Result<Command, String> {
    let mut all = Import::default();
    while let Some(argument) = parser.next().map_err(said)? {
        match argument {
            Arg::Long("from") => all.from = Some(text(parser.value().map_err(said)?)?.parse()?),
            Arg::Short('y') | Arg::Long("yes") => all.yes = true,
            _ if place(&argument, &mut all.place) => {}
            _ if is_help(&argument) => return Ok(Command::Help(Some("import"))),
            Arg::Value(word) if all.file.is_none() => all.file = Some(text(word)?),
            other => return Err(strange(&other)),
        }
    }
    if all.file.is_some() && all.from.is_none() {
        return Err("say whose file it is, with --from".to_owned());
    }
    Ok(Command::Import(all))
}

fn reconnect(mut parser: Parser) -> Result<Command, String> {
    let mut name = None;
    while let Some(argument) = parser.next().map_err(said)? {
        match argument {
            _ if is_help(&argument) => return Ok(Command::Help(Some("reconnect"))),
            Arg::Value(word) if name.is_none() => name = Some(text(word)?),
            other => return Err(strange(&other)),
        }
    }
    Ok(Command::Reconnect { name: name.ok_or("say which server: reconnect NAME")? })
}

fn login(mut parser: Parser) -> Result<Command, String> {
    let (mut name, mut timeout_ms, mut of) = (None, LOGIN_MS, Place::User);
    while let Some(argument) = parser.next().map_err(said)? {
        match argument {
            _ if place(&argument, &mut of) => {}
            _ if is_help(&argument) => return Ok(Command::Help(Some("login"))),
            Arg::Long("timeout") => {
                let word = text(parser.value().map_err(said)?)?;
                let seconds = word.parse::<u64>().ok().filter(|seconds| (1..=86_400).contains(seconds));
                let seconds =
                    seconds.ok_or_else(|| format!("--timeout takes seconds, 1 to 86400, and {word:?} is none"))?;
                timeout_ms = seconds * 1_000;
            }
            Arg::Value(word) if name.is_none() => name = Some(text(word)?),
            other => return Err(strange(&other)),
        }
    }
    Ok(Command::Login { name: name.ok_or("say which server: login NAME")?, place: of, timeout_ms })
}

fn logout(mut parser: Parser) -> Result<Command, String> {
    let (mut name, mut of) = (None, Place::User);
    while let Some(argument) = parser.next().map_err(said)? {
        match argument {
            _ if place(&argument, &mut of) => {}
            _ if is_help(&argument) => return Ok(Command::Help(Some("logout"))),
            Arg::Value(word) if name.is_none() => name = Some(text(word)?),
            other => return Err(strange(&other)),
        }
    }
    Ok(Command::Logout { name: name.ok_or("say which server: logout NAME")?, place: of })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        match parse(shlex::split(line).unwrap()) {
            Ok(Command::Add(Add { name, entry, place })) => format!("{name} {place:?} {}", Value::Object(entry)),
            Ok(other) => format!("{other:?}"),
            Err(why) => format!("error: {why}"),
        }
    }

    #[test]
    fn what_is_typed_is_understood_or_said_to_be_wrong() {
        let lines = [
            "",
            "--help",
            "help add",
            "add files -- npx -y server-files . --env x -l",
            "add -l tools --env 'API_KEY=${TOOLS_KEY}' --env A=b=c --cwd sub --timeout 2.5 -- uvx tools --header x",
            "add docs https://example.com/mcp --bearer-token-env-var DOCS_TOKEN --exposure direct",
            "add docs --url http://127.0.0.1:1/mcp --header 'X-Key: a b' -H B=c --description 'The docs' --project",
            "add docs https://x --oauth-client-id me --oauth-callback-port 8123 --oauth-scope 'a b' --disabled",
            "add docs npx server",
            "add docs https://x https://y",
            "add docs https://x -- npx",
            "add docs --env A=b https://x",
            "add docs --env A",
            "add docs --header A=b -- x",
            "add docs --oauth-client-id a -- x",
            "add docs --bearer-token-env-var A --header authorization=b https://x",
            "add docs --oauth-callback-port many https://x",
            "add docs --timeout soon https://x",
            "add docs --nothing https://x",
            "add docs --",
            "add docs",
            "add",
            "remove docs -l",
            "rm docs",
            "remove",
            "remove a b",
            "list --json",
            "list x",
            "test",
            "test a b --json",
            "import --from codex --yes",
            "import --from vscode mcp.json -l",
            "import mcp.json",
            "import --from nobody",
            "reconnect a",
            "reconnect",
            "login docs --timeout 5",
            "login -l docs",
            "logout docs -l",
            "logout docs",
            "lst",
            "unheard-of",
            "-x",
        ];
        let shown: Vec<String> = lines.iter().map(|line| format!("{line}\n  {}\n", read(line))).collect();
        insta::assert_snapshot!(shown.concat());
    }

    #[test]
    fn help_is_shown_wherever_it_is_asked_for() {
        for name in ["add", "remove", "list", "test", "import", "reconnect"] {
            assert_eq!(parse(vec![name.to_owned(), "-h".to_owned()]), Ok(Command::Help(Some(name))));
        }
        // What belongs to a program is not looked at.
        assert!(matches!(parse(shlex::split("add x -- y --help").unwrap()), Ok(Command::Add(_))));
    }
}
