//! Values of other programs, in our words. Each of them fills in what it knows and nothing else: what it takes as it stands is
//! written so that it stands for itself here, too, and none of it becomes a command.

use serde_json::{Map, Value};

use super::{
    Kind,
    problem::{Findings, shown},
    spelling,
};
use crate::template::{Part, Template, is_variable, variable_like};

/// What a program fills in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filling {
    /// Nothing.
    Nothing,
    /// `${NAME}` and `${NAME:-default}`.
    Shell,
    /// `${env:NAME}`, `${input:id}`, and words such as `${workspaceFolder}`.
    Editor,
    /// `{env:NAME}` and `{file:path}`.
    Braces,
}

impl Filling {
    const fn of(kind: Kind) -> Self {
        match kind {
            Kind::ClaudeDesktop | Kind::Codex => Self::Nothing,
            Kind::ClaudeCode => Self::Shell,
            Kind::Cursor | Kind::VsCode | Kind::Windsurf => Self::Editor,
            Kind::OpenCode => Self::Braces,
        }
    }

    const fn opening(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Shell | Self::Editor => Some("${"),
            Self::Braces => Some("{"),
        }
    }
}

/// What stands between the braces of something that is filled in.
enum Inside {
    Part(Part),
    /// The program takes it as it stands.
    Nothing,
}

/// What these words become, which stand for the project's folder, a path's separator and the like.
fn word(word: &str) -> Option<Part> {
    Some(match word {
        "workspaceFolder" => Part::Literal(".".to_owned()),
        "userHome" => variable("HOME", None),
        "pathSeparator" | "/" => Part::Literal("/".to_owned()),
        _ => return None,
    })
}

/// Beginnings of other words that an editor fills in, with what is not known here.
const UNKNOWN_WORDS: [&str; 7] =
    ["workspaceFolder", "file", "relativeFile", "cwd", "execPath", "selectedText", "lineNumber"];

fn variable(name: &str, default: Option<&str>) -> Part {
    Part::Variable { name: name.to_owned(), default: default.map(str::to_owned) }
}

impl Filling {
    /// # Errors
    /// That it stands for something that is not known here.
    fn inside(self, inside: &str, whole: &str, found: &mut Findings) -> Result<Inside, String> {
        let unknown = || Err(format!("what {} stands for is not known here; write the value itself", shown(whole)));
        let named = |name: &str| if is_variable(name) { Ok(Inside::Part(variable(name, None))) } else { unknown() };
        match self {
            Self::Nothing => Ok(Inside::Nothing),
            Self::Shell => {
                let (name, default) = match inside.split_once(":-") {
                    Some((name, default)) => (name, Some(default)),
                    None => (inside, None),
                };
                Ok(if is_variable(name) { Inside::Part(variable(name, default)) } else { Inside::Nothing })
            }
            Self::Braces => match inside.split_once(':') {
                Some(("env", name)) => named(name),
                Some(("file", _)) => unknown(),
                _ => Ok(Inside::Nothing),
            },
            Self::Editor => match inside.split_once(':') {
                Some(("env", name)) => named(name),
                Some(("input", id)) => {
                    let name = variable_like(id);
                    let note = format!("what {} asked for has to be in the environment variable {name}", shown(id));
                    if !found.notes.contains(&note) {
                        found.note(note);
                    }
                    Ok(Inside::Part(variable(&name, None)))
                }
                Some(_) => unknown(),
                None => match word(inside) {
                    Some(part) => Ok(Inside::Part(part)),
                    None if UNKNOWN_WORDS.iter().any(|word| inside.starts_with(word)) => unknown(),
                    None => Ok(Inside::Nothing),
                },
            },
        }
    }
}

/// A value of another program as one of ours.
///
/// # Errors
/// What is in it that is not known here.
fn value(kind: Kind, text: &str, found: &mut Findings) -> Result<Template, String> {
    let filling = Filling::of(kind);
    let Some(opening) = filling.opening() else { return Ok(Template::literal(text)) };
    let (mut parts, mut literal, mut rest) = (Vec::new(), String::new(), text);
    while let Some((before, after)) = rest.split_once(opening) {
        literal.push_str(before);
        let closed = after.split_once('}');
        let whole = closed.map(|(inside, _)| format!("{opening}{inside}}}")).unwrap_or_default();
        let read = closed.map(|(inside, _)| filling.inside(inside, &whole, found)).transpose()?;
        rest = match (read, closed) {
            (Some(Inside::Part(Part::Literal(text))), Some((_, after))) => {
                literal.push_str(&text);
                // Below the folder that is worked in a path needs no folder.
                match text.as_str() {
                    "." if after.starts_with('/') => {
                        literal.pop();
                        after.get(1..).unwrap_or_default()
                    }
                    _ => after,
                }
            }
            (Some(Inside::Part(named)), Some((_, after))) => {
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(named);
                after
            }
            _ => {
                literal.push_str(opening);
                after
            }
        };
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        parts.push(Part::Literal(literal));
    }
    Ok(Template::Text(parts))
}

/// Has the values of an entry that has our names of fields say in our words what they said in the other program's.
pub(super) fn translate(kind: Kind, entry: &mut Map<String, Value>, found: &mut Findings) {
    for key in ["env", "headers"] {
        if let Some(object) = entry.get_mut(key).and_then(Value::as_object_mut) {
            object.retain(|name, value| one(kind, &format!("{key}.{name}"), value, found));
        }
    }
    if entry.get_mut("url").is_some_and(|url| !one(kind, "url", url, found)) {
        entry.shift_remove("url");
    }
    if let Some(secret) = entry.get_mut("oauth").and_then(|oauth| oauth.get_mut("clientSecret")) {
        one(kind, "oauth.clientSecret", secret, found);
    }
    paths(kind, entry);
    as_it_stands(kind, entry, found);
}

/// Whether the value could be translated.
fn one(kind: Kind, field: &str, value_: &mut Value, found: &mut Findings) -> bool {
    // What is no text is an error later.
    let Some(text) = spelling::as_text(value_) else { return true };
    let read = value(kind, &text, found);
    let read = found.take(field, read);
    if let Some(template) = &read {
        *value_ = Value::from(template.to_string());
    }
    read.is_some()
}

/// In paths and arguments, which are taken as they stand here, the folders that an editor names.
fn paths(kind: Kind, entry: &mut Map<String, Value>) {
    if Filling::of(kind) != Filling::Editor {
        return;
    }
    let path = |value: &mut Value| {
        if let Value::String(text) = value {
            *text = text.replace("${workspaceFolder}/", "").replace("${workspaceFolder}", ".").replace("${/}", "/");
            if let Some(rest) = text.strip_prefix("${userHome}") {
                *text = format!("~{rest}");
            }
        }
    };
    for key in ["command", "args", "cwd"] {
        match entry.get_mut(key) {
            Some(Value::Array(words)) => words.iter_mut().for_each(path),
            Some(value) => path(value),
            None => {}
        }
    }
}

/// Says which arguments the other program would fill in. Those that name variables in our words are said when they are read.
fn as_it_stands(kind: Kind, entry: &Map<String, Value>, found: &mut Findings) {
    let words = ["command", "args"].into_iter().filter_map(|key| entry.get(key)?.as_array()).flatten();
    let words: Vec<&str> = words.filter_map(Value::as_str).collect();
    for word in words {
        let is_filled = value(kind, word, &mut Findings::default()).map_or(true, |read| read.known().is_none());
        let is_said = Template::parse(word).is_ok_and(|ours| !ours.variables().is_empty());
        if is_filled && !is_said {
            let word = shown(word);
            found.note(format!(
                "\"args\": {word} is given to the program as it stands; variables stand only in \"env\""
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(kind: Kind, text: &str) -> String {
        let mut found = Findings::default();
        match value(kind, text, &mut found) {
            Ok(template) => template.to_string(),
            Err(why) => format!("error: {why}"),
        }
    }

    #[test]
    fn each_program_fills_in_what_it_knows_and_the_rest_stands_for_itself() {
        let texts = [
            "pa$$w0rd",
            "ab$cd",
            "!touch pwned",
            "${A}",
            "${A:-b$}",
            "x${env:A}y",
            "${input:api-key}",
            "{env:A}",
            "$${A}",
            "${a-b}",
            "${command:x}",
            "${workspaceFolder}/a",
            "${userHome}/b",
            "{file:~/.key}",
            "${",
            "{",
            "${A",
            "",
        ];
        let shown = |kind: Kind| {
            let lines = texts.map(|text| format!("  {text}  =>  {}\n", written(kind, text)));
            format!("{kind}\n{}", lines.concat())
        };
        insta::assert_snapshot!(Kind::ALL.map(shown).concat());
    }

    proptest! {
        #[test]
        fn no_value_becomes_a_command_or_names_a_variable_that_the_program_would_not_look_up(text in "[!$a{}:_-]{0,12}|.*") {
            for kind in Kind::ALL {
                let Ok(read) = value(kind, &text, &mut Findings::default()) else { continue };
                prop_assert!(!matches!(read, Template::Command(_)));
                let ours = Template::parse(&read.to_string());
                // How opencode writes a variable can not be written in our words as something that stands for itself.
                if let Ok(ours) = ours {
                    prop_assert_eq!(&ours, &read);
                }
                if Filling::of(kind) == Filling::Nothing {
                    prop_assert_eq!(read.known(), Some(text.clone()));
                }
            }
        }
    }
}
