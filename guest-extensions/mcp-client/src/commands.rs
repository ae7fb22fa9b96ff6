//! Prompts of servers as commands: what their arguments are, how they are typed, and what becomes of their messages.

use serde_json::{Map, Value, json};

use crate::{
    names::{near_matches, tool_names},
    result::{Piece, piece},
    text::{one_line, shown},
};

/// The most prompts of one server.
pub const MAX_PROMPTS: usize = 500;
/// The longest description of a command, in characters.
const MAX_DESCRIPTION: usize = 200;

/// A prompt, as its server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerPrompt {
    /// Its name on the server.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it takes, in order.
    pub arguments: Vec<Argument>,
}

/// What a prompt takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// It has to be given.
    pub required: bool,
}

impl ServerPrompt {
    /// Reads one.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(prompt: &Value) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().map(|text| one_line(text.trim())).unwrap_or_default();
        let Some(name) = prompt["name"].as_str().filter(|name| !name.is_empty()) else {
            return Err("a prompt without a name".to_owned());
        };
        let arguments = prompt["arguments"].as_array().map(Vec::as_slice).unwrap_or_default();
        let argument = |argument: &Value| {
            let name = argument["name"].as_str().filter(|name| !name.is_empty())?;
            let (name, required) = (name.to_owned(), argument["required"] == true);
            Some(Argument { name, description: text(&argument["description"]), required })
        };
        let described = [&prompt["description"], &prompt["title"]].into_iter().map(text).find(|text| !text.is_empty());
        Ok(Self {
            name: name.to_owned(),
            description: described.unwrap_or_default(),
            arguments: arguments.iter().filter_map(argument).collect(),
        })
    }

    /// As [`ServerPrompt::read`] reads it.
    pub fn to_json(&self) -> Value {
        let arguments: Vec<Value> = (self.arguments.iter())
            .map(|one| json!({"name": one.name, "description": one.description, "required": one.required}))
            .collect();
        json!({"name": self.name, "description": self.description, "arguments": arguments})
    }

    /// How it is typed behind its command: what has to be given in `<>`, the rest in `[]`.
    pub fn usage(&self) -> String {
        let one = |argument: &Argument| match argument.required {
            true => format!("<{}>", one_line(&argument.name)),
            false => format!("[{}]", one_line(&argument.name)),
        };
        self.arguments.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// What a list of commands says of it.
    pub fn told(&self, server: &str) -> String {
        let what = match self.description.as_str() {
            "" => format!("The prompt {} of the MCP server {server}", one_line(&self.name)),
            description => description.to_owned(),
        };
        let usage = self.usage();
        let told = if usage.is_empty() { what } else { format!("{usage}: {what}") };
        told.chars().take(MAX_DESCRIPTION).collect()
    }

    /// What was typed behind its command, as arguments. Each is `name=value` or stands in its place, in the order of the
    /// prompt; what has spaces in it is quoted. What is left over belongs to the last one.
    ///
    /// # Errors
    /// What has to be typed.
    pub fn arguments(&self, typed: &str) -> Result<Map<String, Value>, String> {
        let is_known = |name: &str| self.arguments.iter().any(|argument| argument.name == name);
        let (mut named, mut placed) = (Map::new(), Vec::new());
        for word in words(typed)? {
            match word.named.filter(|(name, _)| is_known(name)) {
                Some((name, value)) => {
                    if named.insert(name.clone(), json!(value)).is_some() {
                        return Err(format!("{} is given twice", shown(&name)));
                    }
                }
                None => placed.push(word.text),
            }
        }
        let open: Vec<&Argument> =
            self.arguments.iter().filter(|argument| !named.contains_key(&argument.name)).collect();
        let count = open.len();
        if count == 0 && !placed.is_empty() {
            let first = placed.first().map(String::as_str).unwrap_or_default();
            return Err(match self.arguments.is_empty() {
                true => format!("it takes nothing, and {} is given", shown(first)),
                false => format!("{} is one too many; it takes {}", shown(first), self.usage()),
            });
        }
        let mut placed = placed.into_iter();
        let mut missing = Vec::new();
        for (at, argument) in open.into_iter().enumerate() {
            let value = if at + 1 == count {
                let rest: Vec<String> = placed.by_ref().collect();
                (!rest.is_empty()).then(|| rest.join(" "))
            } else {
                placed.next()
            };
            match value {
                Some(value) => {
                    named.insert(argument.name.clone(), json!(value));
                }
                None if argument.required => missing.push(one_line(&argument.name)),
                None => {}
            }
        }
        match missing.is_empty() {
            true => Ok(named),
            false => Err(format!("{} is missing; it takes {}", missing.join(", "), self.usage())),
        }
    }
}

struct Word {
    /// All of it, without quotes.
    text: String,
    /// What it is if it names an argument.
    named: Option<(String, String)>,
}

/// Words between spaces; quotes keep spaces, and a backslash what follows it.
fn words(typed: &str) -> Result<Vec<Word>, String> {
    let (mut words, mut chars) = (Vec::new(), typed.chars());
    let (mut text, mut name, mut has_begun, mut quote) = (String::new(), None::<usize>, false, None::<char>);
    let end = |text: &mut String, name: &mut Option<usize>| {
        let text = std::mem::take(text);
        let named = name.take().and_then(|at| Some((text.get(..at)?.to_owned(), text.get(at + 1..)?.to_owned())));
        Word { text, named }
    };
    while let Some(c) = chars.next() {
        match (c, quote) {
            // In single quotes nothing else is meant.
            ('\\', None | Some('"')) => {
                has_begun = true;
                match chars.next() {
                    Some(next @ ('"' | '\'' | '\\' | ' ')) => text.push(next),
                    Some(next) => text.extend(['\\', next]),
                    None => text.push('\\'),
                }
            }
            (c, Some(open)) if c == open => quote = None,
            (c, Some(_)) => text.push(c),
            // An apostrophe in a word is one.
            ('"', None) => (quote, has_begun) = (Some('"'), true),
            ('\'', None) if !has_begun || text.ends_with('=') => (quote, has_begun) = (Some('\''), true),
            (c, None) if c.is_whitespace() => {
                if std::mem::take(&mut has_begun) {
                    words.push(end(&mut text, &mut name));
                }
            }
            (c, None) => {
                if c == '=' && name.is_none() && !text.is_empty() {
                    name = Some(text.len());
                }
                has_begun = true;
                text.push(c);
            }
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed".to_owned());
    }
    if has_begun {
        words.push(end(&mut text, &mut name));
    }
    Ok(words)
}

/// The commands of a server's prompts, in their order: named as tools are.
pub fn command_names(server: &str, prompts: &[ServerPrompt], is_taken: impl Fn(&str) -> bool) -> Vec<String> {
    let names: Vec<&str> = prompts.iter().map(|prompt| prompt.name.as_str()).collect();
    tool_names(server, &names, is_taken)
}

/// What a prompt gave, as one message: who speaks is said where it is not the user alone.
///
/// # Errors
/// Why there is nothing to send.
pub fn message(server: &str, given: &Value) -> Result<Vec<Piece>, String> {
    let messages = given["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_talk = messages.iter().any(|message| message["role"] == "assistant");
    let mut pieces = Vec::new();
    for message in messages {
        let content = match &message["content"] {
            Value::Array(blocks) => blocks.as_slice(),
            block => std::slice::from_ref(block),
        };
        let said: Vec<Piece> = content.iter().filter_map(|block| piece(server, block)).collect();
        if is_talk && !said.is_empty() {
            let who = if message["role"] == "assistant" { "Assistant:" } else { "User:" };
            pieces.push(Piece::Text(who.to_owned()));
        }
        pieces.extend(said);
    }
    match pieces.is_empty() {
        true => Err("the prompt gave no messages".to_owned()),
        false => Ok(pieces),
    }
}

/// What is said of a command that is not there.
pub fn unknown<'a>(command: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = near_matches(command, known);
    match near.is_empty() {
        true => format!("There is no prompt {}.", shown(command)),
        false => format!("There is no prompt {}. There is {}.", shown(command), near.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn prompt() -> ServerPrompt {
        let text = json!({"name": "trip", "description": "Plans a\ntrip.", "arguments": [
            {"name": "city", "description": "Where to.", "required": true}, {"name": "days", "required": true},
            {"name": "mood"}, {"description": "of nothing"}]});
        ServerPrompt::read(&text).expect("a prompt")
    }

    #[test]
    fn arguments_stand_in_their_place_or_are_named() {
        let cases = [
            "Oslo 3",
            "Oslo 3 calm and slow",
            "'New York' 3",
            "\"New York\" days=3",
            "days=3 Oslo",
            "mood=\"not bad\" Oslo 3",
            "city=Oslo days=3 mood=a=b",
            "other=x 3",
            "a\\ b 3",
            "it's 3",
            "'a=b' 3",
            "\"\" 3",
            "city='a b' 3",
            "c:\\temp 3",
            "Oslo",
            "",
            "city=a city=b",
            "city=a days=b mood=c d",
            "\"open",
        ];
        let said = |typed: &&str| match prompt().arguments(typed) {
            Ok(given) => format!("{typed} → {}", Value::Object(given)),
            Err(why) => format!("{typed} → {why}"),
        };
        insta::assert_snapshot!(cases.iter().map(said).collect::<Vec<_>>().join("\n"));
        let nothing = ServerPrompt { name: "x".to_owned(), ..ServerPrompt::default() };
        assert_eq!(nothing.arguments(" "), Ok(Map::new()));
        assert_eq!(nothing.arguments("y"), Err("it takes nothing, and \"y\" is given".to_owned()));
    }

    #[test]
    fn a_prompt_is_told_of_and_kept() {
        assert_eq!(prompt().told("s"), "<city> <days> [mood]: Plans a\u{fffd}trip.");
        assert_eq!(ServerPrompt::read(&prompt().to_json()), Ok(prompt()));
        let plain = ServerPrompt::read(&json!({"name": "x", "arguments": "none"})).expect("a prompt");
        assert_eq!(plain.told("s"), "The prompt x of the MCP server s");
        assert!(ServerPrompt::read(&json!({})).is_err());
        assert_eq!(command_names("a-b", &[plain], |_| false), ["mcp__a_b__x"]);
        assert_eq!(
            unknown("mcp__s__tirp", ["mcp__s__trip"].into_iter()),
            "There is no prompt \"mcp__s__tirp\". There is mcp__s__trip."
        );
    }

    #[test]
    fn messages_become_one() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let alone = json!({"messages": [{"role": "user", "content": text("a")},
            {"role": "user", "content": {"type": "resource", "resource": {"uri": "x:y", "text": "in it"}}}]});
        assert_eq!(message("s", &alone), Ok(vec![Piece::Text("a".to_owned()), Piece::Text("in it".to_owned())]));
        let talk = json!({"messages": [{"role": "user", "content": text("a")}, {"role": "assistant", "content": [text("b"), text("c")]}]});
        let said: Vec<String> = (message("s", &talk).expect("a message").into_iter())
            .map(|piece| match piece {
                Piece::Text(text) => text,
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(said, ["User:", "a", "Assistant:", "b", "c"]);
        assert!(message("s", &json!({"messages": []})).is_err());
    }

    proptest! {
        #[test]
        fn whatever_is_typed_is_understood_or_refused(typed in any::<String>()) {
            if let Ok(given) = prompt().arguments(&typed) {
                prop_assert!(given.contains_key("city") && given.contains_key("days"));
            }
        }

        #[test]
        fn what_is_quoted_is_what_arrives(city in "[^\"\\\\]*", days in "[a-z0-9]{1,9}") {
            let given = prompt().arguments(&format!("\"{city}\" days={days}")).expect("arguments");
            prop_assert_eq!(&given["city"], &json!(city));
            prop_assert_eq!(&given["days"], &json!(days));
        }
    }
}
