//! One server of the configuration.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{
    Place,
    address::Address,
    oauth::{self, OAuth},
    problem::{Findings, shown},
    spelling::{self, Said, as_text},
};
use crate::{
    exposure::{Exposure, Exposures},
    template::Template,
};

/// How long a request may go without an answer or progress, if the entry does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest such time: a day.
const MAX_TIMEOUT_S: f64 = 86_400.0;

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// How it is reached.
    pub transport: Transport,
    /// In which way it is greeted.
    pub greeting: Greeting,
    /// How long a request may go without an answer or progress.
    pub timeout: Duration,
    /// It is connected to.
    pub enabled: bool,
    /// What it is for.
    pub description: Option<String>,
    /// Who may reach its tools.
    pub exposure: Exposures,
}

impl Entry {
    /// All values in it that may say where the real one is. What is named here in full has to be looked through for such values
    /// when a field is added.
    pub fn values(&self) -> Vec<&Template> {
        let Self { transport, greeting: _, timeout: _, enabled: _, description: _, exposure: _ } = self;
        match transport {
            Transport::Stdio(Stdio { program: _, arguments: _, env, cwd: _, inherits: _ }) => {
                env.iter().map(|(_, value)| value).collect()
            }
            Transport::Http(Http { url, headers, authentication }) => {
                let secret = match authentication {
                    Authentication::OAuth(oauth) => oauth.client_secret.as_ref(),
                    Authentication::Header | Authentication::Provider(_) => None,
                };
                std::iter::once(url).chain(headers.iter().map(|(_, value)| value)).chain(secret).collect()
            }
        }
    }
}

/// In which way a server is greeted: the revisions up to 2025-11-25 begin a session, those from 2026-07-28 on have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Greeting {
    /// With a session; one at an address that does not want that, without.
    #[default]
    Auto,
    /// With a session only.
    Legacy,
    /// Without a session only.
    Stateless,
}

impl Greeting {
    const NAMES: [(&str, Self); 3] = [("auto", Self::Auto), ("legacy", Self::Legacy), ("2026-07-28", Self::Stateless)];

    fn read(value: &Value) -> Result<Self, String> {
        let known = value.as_str().and_then(|text| Self::NAMES.into_iter().find(|(name, _)| *name == text));
        known.map(|(_, greeting)| greeting).ok_or_else(|| {
            let all = Self::NAMES.map(|(name, _)| format!("\"{name}\"")).join(", ");
            format!("it has to be one of {all}, not {}", shown(&spelling::plain(value)))
        })
    }
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// It is a program, which is started.
    Stdio(Stdio),
    /// It is at an address.
    Http(Http),
}

/// A program to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stdio {
    /// A path or a name; a `~` at its start is the user's home, here, in the arguments and in `cwd`.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables to add to the environment it inherits, in the order of the file.
    pub env: Vec<(String, Template)>,
    /// It inherits the whole environment, and not only what says where and as whom somebody works.
    pub inherits: bool,
    /// Its working directory; relative to the session's.
    pub cwd: Option<String>,
}

/// A server at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Where it is. One without variables is an [`Address`].
    pub url: Template,
    /// Headers of each request, in the order of the file.
    pub headers: Vec<(String, Template)>,
    /// How it knows who we are.
    pub authentication: Authentication,
}

/// How a server knows who we are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authentication {
    /// By a header `Authorization` that the entry has.
    Header,
    /// By the credential of a model provider.
    Provider(String),
    /// By signing in, if it asks for that.
    OAuth(Box<OAuth>),
}

/// What an entry may change of a server that is defined elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Override {
    enabled: Option<bool>,
    exposure: Option<Exposure>,
    tools: Option<Vec<(String, Exposure)>>,
}

impl Override {
    pub(super) fn apply(self, entry: &mut Entry) {
        let Self { enabled, exposure, tools } = self;
        entry.enabled = enabled.unwrap_or(entry.enabled);
        entry.exposure.server = exposure.unwrap_or(entry.exposure.server);
        if let Some(tools) = tools {
            entry.exposure.tools = tools;
        }
    }
}

/// What an entry is.
#[derive(Debug)]
pub(super) enum Read {
    /// A server.
    Entry(Entry),
    /// A change to one that is defined elsewhere.
    Override(Override),
}

/// The fields that an override may have.
const OVERRIDE: [&str; 3] = ["enabled", "exposure", "toolExposure"];

/// Reads an entry. What is wrong is among the findings, and then there is none.
pub(super) fn read(value: &Value, place: Place, found: &mut Findings) -> Option<Read> {
    let Some(written) = value.as_object() else {
        found.error("a server is an object with a \"command\" or a \"url\"");
        return None;
    };
    let fields = spelling::ours(written, found);
    let says_how = ["command", "url", "type"].iter().any(|key| fields.contains_key(*key));
    if place == Place::Project && !says_how && !fields.is_empty() {
        return read_override(&fields, found).map(Read::Override);
    }
    match place {
        Place::Project if fields.contains_key("auth") => found.error(
            "\"auth\" has no place in a project's file: a project does not say where a credential of yours is sent. Define \
             the server in your own mcp.json",
        ),
        Place::User | Place::Project => {}
        Place::Extension => not_for_extensions(&fields, found),
    }
    let Shared { enabled, exposure, tools } = shared(&fields, found);
    let transport = transport(&fields, place, found);
    let greeting = fields.get("protocolVersion").and_then(|value| found.take("protocolVersion", Greeting::read(value)));
    let timeout = match fields.get("timeout") {
        Some(value) => found.take("timeout", seconds(value)).unwrap_or(DEFAULT_TIMEOUT),
        None => DEFAULT_TIMEOUT,
    };
    if timeout >= Duration::from_secs(3_600) {
        let seconds = timeout.as_secs();
        found.note(format!("\"timeout\" is in seconds: {seconds} s are {} min", seconds / 60));
    }
    let description = match fields.get("description") {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Some(_) => found.take("description", Err("it has to be a text".to_owned())),
        None => None,
    };
    let exposure = Exposures { server: exposure.unwrap_or_default(), tools: tools.unwrap_or_default() };
    let transport = transport?;
    let (greeting, enabled) = (greeting.unwrap_or_default(), enabled.unwrap_or(true));
    let entry = Entry { transport, greeting, timeout, enabled, description, exposure };
    if place == Place::Extension && entry.values().iter().any(|value| value.known().is_none()) {
        found.error("an extension does not say where a value is looked up");
    }
    found.errors.is_empty().then_some(Read::Entry(entry))
}

/// What another extension may not say of its server.
fn not_for_extensions(fields: &Map<String, Value>, found: &mut Findings) {
    if fields.contains_key("auth") {
        found.error(
            "\"auth\" is not for a server that an extension adds: it does not say where a credential of yours is sent. Define \
             the server in your own mcp.json",
        );
    }
    if fields.get("inheritEnv").is_some_and(|value| *value != Value::Bool(false)) {
        found.error(
            "\"inheritEnv\" is not for a server that an extension adds: it does not say who has your variables. Define the \
             server in your own mcp.json",
        );
    }
}

fn read_override(fields: &Map<String, Value>, found: &mut Findings) -> Option<Override> {
    let more: Vec<&str> = fields.keys().map(String::as_str).filter(|key| !OVERRIDE.contains(key)).collect();
    if !more.is_empty() {
        let list = more.iter().map(|key| format!("\"{key}\"")).collect::<Vec<_>>().join(", ");
        found.error(format!(
            "without \"command\" and \"url\" this changes a server of your own mcp.json, of which a project may change \
             \"enabled\", \"exposure\" and \"toolExposure\", and not {list}"
        ));
    }
    let Shared { enabled, exposure, tools } = shared(fields, found);
    found.errors.is_empty().then_some(Override { enabled, exposure, tools })
}

/// What servers and overrides have in common.
struct Shared {
    enabled: Option<bool>,
    exposure: Option<Exposure>,
    tools: Option<Vec<(String, Exposure)>>,
}

fn shared(fields: &Map<String, Value>, found: &mut Findings) -> Shared {
    let enabled = fields.get("enabled").and_then(|value| {
        found.take("enabled", value.as_bool().ok_or_else(|| "it has to be true or false".to_owned()))
    });
    let mode = fields.get("exposure").and_then(|value| found.take("exposure", exposure(value)));
    let tools = fields.get("toolExposure").and_then(|value| {
        let Some(object) = value.as_object() else {
            return found.take("toolExposure", Err("it has to be an object of names or patterns of tools".to_owned()));
        };
        let of = |(tool, value): (&String, &Value)| {
            found.take(&format!("toolExposure.{tool}"), exposure(value)).map(|exposure| (tool.clone(), exposure))
        };
        Some(object.iter().filter_map(of).collect())
    });
    Shared { enabled, exposure: mode, tools }
}

fn exposure(value: &Value) -> Result<Exposure, String> {
    let known = value.as_str().and_then(|text| text.parse().ok());
    known.ok_or_else(|| {
        let all = Exposure::ALL.map(|exposure| format!("\"{exposure}\"")).join(", ");
        format!("it has to be one of {all}, not {}", shown(&spelling::plain(value)))
    })
}

fn seconds(value: &Value) -> Result<Duration, String> {
    let number = value.as_f64().filter(|number| (0.001..=MAX_TIMEOUT_S).contains(number));
    number
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "it has to be a number of seconds, more than 0 and at most 86400".to_owned())
}

/// The fields that only a program has, and those that only an address has.
const OF_PROGRAM: [&str; 5] = ["command", "args", "env", "cwd", "inheritEnv"];
const OF_ADDRESS: [&str; 4] = ["url", "headers", "oauth", "auth"];

fn transport(fields: &Map<String, Value>, place: Place, found: &mut Findings) -> Option<Transport> {
    let said = match fields.get("type") {
        Some(value) => Some(found.take("type", spelling::kind(value))?),
        None => None,
    };
    let has = |key: &str| fields.contains_key(key);
    let said = match said {
        Some(said) => said,
        None if has("url") => Said::Http,
        None if has("command") => Said::Stdio,
        None => {
            found.error("it needs a \"command\" (a program to start) or a \"url\" (where it is)");
            return None;
        }
    };
    let (needed, others, what): (_, &[&str], _) = match said {
        Said::Stdio => ("command", &OF_ADDRESS, "a program that is started"),
        Said::Http => ("url", &OF_PROGRAM, "a server at an address"),
    };
    if !has(needed) {
        let type_ = fields.get("type").map(spelling::plain).unwrap_or_default();
        found.error(format!("with \"type\": {} it needs a \"{needed}\"", shown(&type_)));
        return None;
    }
    for other in others.iter().filter(|key| has(key)) {
        found.note(format!("\"{other}\" has no effect: this is {what}"));
    }
    match said {
        Said::Stdio => stdio(fields, place, found).map(Transport::Stdio),
        Said::Http => http(fields, place, found).map(Transport::Http),
    }
}

fn stdio(fields: &Map<String, Value>, place: Place, found: &mut Findings) -> Option<Stdio> {
    let mut arguments = Vec::new();
    let program = match fields.get("command") {
        Some(Value::String(program)) if !program.trim().is_empty() => Some(program.clone()),
        // One list of the program and its arguments.
        Some(Value::Array(words)) => {
            let words: Option<Vec<String>> = words.iter().map(as_text).collect();
            let mut words = words.unwrap_or_default().into_iter();
            let program = words.next().filter(|program| !program.trim().is_empty());
            arguments.extend(words);
            if program.is_none() {
                found.error("\"command\": a list has to have the program and its arguments, as texts");
            }
            program
        }
        _ => found.take("command", Err("it has to be the name or path of a program, alone".to_owned())),
    };
    match fields.get("args") {
        None | Some(Value::Null) => {}
        Some(Value::Array(list)) => match list.iter().map(as_text).collect::<Option<Vec<_>>>() {
            Some(more) => arguments.extend(more),
            None => found.error("\"args\": all of the list have to be texts"),
        },
        Some(Value::String(text)) => {
            let words: Vec<&str> = text.split_whitespace().collect();
            found.error(format!("\"args\": it has to be a list; write {}", Value::from(words)));
        }
        Some(_) => found.error("\"args\": it has to be a list of texts"),
    }
    let env = pairs(fields, "env", place, found);
    for (name, _) in &env {
        if name.is_empty() || name.contains(['=', '\0']) {
            found.error(format!("\"env\": {} is no name of a variable", shown(name)));
        }
    }
    let cwd = match fields.get("cwd") {
        None | Some(Value::Null) => None,
        Some(Value::String(path)) if !path.is_empty() => Some(path.clone()),
        Some(_) => found.take("cwd", Err("it has to be the path of a folder".to_owned())),
    };
    let inherits = match fields.get("inheritEnv") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(on)) => *on,
        Some(_) => found.take("inheritEnv", Err("it has to be true or false".to_owned())).unwrap_or_default(),
    };
    for (field, text) in [("command", program.as_deref()), ("cwd", cwd.as_deref())] {
        if let Some(text) = text.filter(|text| text.contains("${")) {
            let text = shown(text);
            found.error(format!(
                "\"{field}\": variables stand only in \"env\"; write the path itself in place of {text}"
            ));
        }
    }
    let program = program?;
    if program.contains(char::is_whitespace) && arguments.is_empty() && !program.contains('/') {
        let words: Vec<&str> = program.split_whitespace().collect();
        if let [first, rest @ ..] = words.as_slice() {
            let (first, rest) = (shown(first), Value::from(rest));
            found.note(format!(
                "\"command\" is one program; for arguments write \"command\": {first}, \"args\": {rest}"
            ));
        }
    }
    let unset = |argument: &&String| {
        let named = Template::parse(argument).ok();
        let names = named.iter().flat_map(Template::variables);
        argument.contains("${") && names.into_iter().any(|name| !env.iter().any(|(known, _)| known == name))
    };
    if place != Place::Extension
        && let Some(argument) = arguments.iter().find(unset)
    {
        let argument = shown(argument);
        found.note(format!(
            "\"args\": {argument} is given to the program as it stands; variables stand only in \"env\""
        ));
    }
    Some(Stdio { program, arguments, env, inherits, cwd })
}

fn http(fields: &Map<String, Value>, place: Place, found: &mut Findings) -> Option<Http> {
    let url = match fields.get("url") {
        Some(Value::String(text)) => found.take("url", place.value(text)),
        _ => found.take("url", Err("it has to be an http or https address".to_owned())),
    };
    let known = url.as_ref().and_then(Template::known);
    let address = match &known {
        Some(url) => found.take("url", Address::parse(url)),
        None => None,
    };
    if matches!(url, Some(Template::Command(_))) {
        found.error("\"url\": an address is not asked of a command; write it");
    }
    let headers = pairs(fields, "headers", place, found);
    for (name, _) in &headers {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(fits) {
            found.error(format!("\"headers\": {} is no name of a header", shown(name)));
        }
    }
    let has_header = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let oauth = match fields.get("oauth") {
        None | Some(Value::Null) => OAuth::default(),
        Some(Value::Object(object)) => oauth::read(object, place, found),
        Some(_) => {
            found.error("\"oauth\": it has to be an object; to not sign in, give the header \"Authorization\"");
            OAuth::default()
        }
    };
    let authentication = match fields.get("auth") {
        None | Some(Value::Null) if has_header => Authentication::Header,
        None | Some(Value::Null) => Authentication::OAuth(Box::new(oauth)),
        // Others write what is known already.
        Some(Value::String(word)) if word == "bearer" && has_header => Authentication::Header,
        Some(Value::String(word)) if word == "oauth" && !has_header => Authentication::OAuth(Box::new(oauth)),
        Some(value) => {
            let provider =
                value.as_object().filter(|object| object.len() == 1).and_then(|object| object.get("provider"));
            let provider = provider.and_then(Value::as_str).filter(|name| !name.is_empty());
            let read = provider.map(str::to_owned).ok_or_else(|| "it has to be {\"provider\": \"name\"}".to_owned());
            let provider = found.take("auth", read)?;
            if !address.as_ref().is_some_and(Address::is_private) {
                found.error(
                    "\"auth\": a credential is sent to https addresses and this machine only, and to an address that is written \
                     out in the file",
                );
            }
            if has_header {
                found.error("\"auth\" and a header \"Authorization\" are the same; write one of them");
            }
            Authentication::Provider(provider)
        }
    };
    if fields.contains_key("oauth") && !matches!(authentication, Authentication::OAuth(_)) {
        found.note("\"oauth\" has no effect: there is another way to know who we are");
    }
    Some(Http { url: url?, headers, authentication })
}

/// Reads an object of texts.
fn pairs(fields: &Map<String, Value>, field: &str, place: Place, found: &mut Findings) -> Vec<(String, Template)> {
    let object = match fields.get(field) {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Object(object)) => object,
        Some(_) => {
            found.error(format!("\"{field}\": it has to be an object of texts"));
            return Vec::new();
        }
    };
    let mut pairs = Vec::new();
    for (name, value) in object {
        let read = match as_text(value) {
            Some(text) => place.value(&text),
            None => Err("it has to be a text".to_owned()),
        };
        if let Some(value) = found.take(&format!("{field}.{name}"), read) {
            pairs.push((name.clone(), value));
        }
    }
    pairs
}
