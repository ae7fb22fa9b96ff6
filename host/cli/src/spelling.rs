//! From what was typed to what the parser reads: short forms of two letters, options before a subcommand, and options that
//! only an extension knows.
//!
//! Nothing is refused here: what is not understood is left for the parser, which says so.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
};

use atoll_table::names::near_matches;
use clap::Command;

use crate::subcommand::Typed;

/// Short forms that the parser would take for two options.
const PAIRS: [(&str, &str); 2] = [("-na", "--no-approve"), ("-ne", "--no-extensions")];

/// An option that the program does not know, and some extension may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownOption {
    /// Its name, without dashes.
    pub(crate) name: String,
    /// Its value, if there is one.
    pub(crate) value: Option<String>,
    /// The value was the next word: where the option takes none, it is a message, behind so many others.
    pub(crate) detached: Option<usize>,
}

/// A command line, ready for the parser.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Spelt {
    pub(crate) words: Vec<OsString>,
    pub(crate) unknown: Vec<UnknownOption>,
    /// A command of a plugin's, whose words are its own: they are not among the others.
    pub(crate) typed: Option<Typed>,
}

/// What a word is, where an option may stand.
enum Word {
    /// An option of the program's, with its value, or without one.
    Known,
    /// One whose value is the next word.
    Takes,
    /// A long option that the program does not know.
    Unknown,
    /// Something else.
    Plain,
}

/// Spells a command line out. `command` is the program's, with all its parts. `is_plugins` says whether a word is a command
/// of a plugin's, given the files that `-e` names.
pub(crate) fn spelt_out(
    arguments: impl Iterator<Item = OsString>,
    command: &Command,
    is_plugins: impl Fn(&str, &[PathBuf]) -> bool,
) -> Spelt {
    let mut arguments = arguments.peekable();
    let mut spelt = Spelt { words: arguments.next().into_iter().collect(), ..Spelt::default() };
    let mut named = Vec::new();
    // Before a subcommand, options would mean that there is none; those that hold for all of them are put behind it.
    let mut early = Vec::new();
    while let Some(argument) = arguments.next_if(|word| is_global(word, command)) {
        let takes = matches!(kind(&argument, command), Word::Takes);
        early.push(full(argument));
        if takes {
            // The only one that takes anything names a file of an extension.
            named.extend(arguments.peek().map(PathBuf::from));
            early.extend(arguments.next());
        }
    }
    let has_subcommand =
        arguments.peek().is_some_and(|word| command.get_subcommands().any(|known| *word == known.get_name()));
    let is_plugins =
        |word: &OsString| word.to_str().is_some_and(|word| !word.starts_with('-') && is_plugins(word, &named));
    if !has_subcommand && let Some(name) = arguments.next_if(is_plugins) {
        spelt.words.append(&mut early);
        let name = name.to_string_lossy().into_owned();
        spelt.typed = Some(Typed { name, words: arguments.collect() });
        return spelt;
    }
    let mut messages = 0;
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            spelt.words.append(&mut early);
            spelt.words.push(argument);
            spelt.words.extend(arguments.by_ref());
            break;
        }
        // The options of a subcommand are its own: nothing is known of them here but what holds for all.
        match kind(&argument, command) {
            Word::Takes if !has_subcommand || is_global(&argument, command) => {
                spelt.words.push(full(argument));
                spelt.words.extend(arguments.next());
            }
            Word::Unknown if !has_subcommand => {
                let text = argument.to_string_lossy();
                let text = text.strip_prefix("--").unwrap_or(&text);
                let option = match text.split_once('=') {
                    Some((name, value)) => {
                        UnknownOption { name: name.to_owned(), value: Some(value.to_owned()), detached: None }
                    }
                    None => {
                        let value = arguments.next_if(|next| !begins_with(next, "-") && !begins_with(next, "@"));
                        let value = value.map(|value| value.to_string_lossy().into_owned());
                        let detached = value.is_some().then_some(messages);
                        messages += usize::from(value.is_some());
                        UnknownOption { name: text.to_owned(), value, detached }
                    }
                };
                spelt.unknown.push(option);
            }
            other => {
                messages += usize::from(matches!(other, Word::Plain));
                spelt.words.push(full(argument));
            }
        }
    }
    spelt.words.append(&mut early);
    spelt
}

fn full(word: OsString) -> OsString {
    PAIRS.iter().find(|(short, _)| word == *short).map_or(word, |(_, long)| (*long).into())
}

fn begins_with(word: &OsStr, start: &str) -> bool {
    word.as_encoded_bytes().starts_with(start.as_bytes())
}

/// The option that a word names, with whether its value, if it takes one, is in the same word.
fn option<'a>(word: &OsStr, command: &'a Command) -> Option<(&'a clap::Arg, bool)> {
    let word = full(word.to_owned());
    let text = word.to_str()?;
    if let Some(long) = text.strip_prefix("--") {
        let (name, has_value) = long.split_once('=').map_or((long, false), |(name, _)| (name, true));
        let option = command.get_arguments().find(|option| option.get_long() == Some(name))?;
        return Some((option, has_value));
    }
    let mut letters = text.strip_prefix('-')?.chars();
    let first = letters.next()?;
    let option = command.get_arguments().find(|option| option.get_short() == Some(first))?;
    Some((option, letters.next().is_some()))
}

/// The program's own options that are near a name that it does not know.
pub(crate) fn near_options(name: &str, command: &Command) -> Vec<String> {
    let own = command.get_arguments().filter_map(|option| option.get_long());
    let known: Vec<&str> = own.chain(["help", "version"]).collect();
    near_matches(name, known.into_iter()).into_iter().map(str::to_owned).collect()
}

fn is_global(word: &OsStr, command: &Command) -> bool {
    option(word, command).is_some_and(|(option, _)| option.is_global_set())
}

fn kind(word: &OsStr, command: &Command) -> Word {
    match option(word, command) {
        Some((option, false)) if option.get_action().takes_values() => Word::Takes,
        Some(_) => Word::Known,
        None if word == "--help" || word == "--version" => Word::Known,
        // Three dashes begin a message, and so does anything that can not be a name.
        None if is_long(word) => Word::Unknown,
        None if begins_with(word, "-") && word != "-" => Word::Known,
        None => Word::Plain,
    }
}

fn is_long(word: &OsStr) -> bool {
    let name = word.to_str().and_then(|text| text.strip_prefix("--")).and_then(|text| text.split('=').next());
    name.is_some_and(|name| name.starts_with(|first: char| first.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    fn all_spelt(line: &str) -> Spelt {
        let command = crate::arguments::Arguments::command();
        spelt_out(line.split(' ').map(OsString::from), &command, |word, named| word == "mine" || !named.is_empty())
    }

    fn spelt(line: &str) -> (String, Vec<UnknownOption>) {
        let Spelt { words, unknown, .. } = all_spelt(line);
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        (words.join(" "), unknown)
    }

    #[test]
    fn options_for_all_commands_may_stand_anywhere_and_two_letters_are_one_option() {
        for (line, same) in [
            ("atoll -na -p hi", "atoll -p hi --no-approve"),
            ("atoll -a tool list", "atoll tool list -a"),
            ("atoll -a -p -- hi", "atoll -p -a -- hi"),
            ("atoll", "atoll"),
            ("atoll tool list -na", "atoll tool list --no-approve"),
            ("atoll -t -na -p hi", "atoll -t -na -p hi"),
            ("atoll --tools -na -na", "atoll --tools -na --no-approve"),
            ("atoll -p -- -na", "atoll -p -- -na"),
            ("atoll -e x.ts tool list", "atoll tool list -e x.ts"),
            ("atoll --extension x.ts -a tool list", "atoll tool list --extension x.ts -a"),
            ("atoll -ex.ts tool list", "atoll tool list -ex.ts"),
            ("atoll --extension=x.ts tool list", "atoll tool list --extension=x.ts"),
            ("atoll tool list -e x.ts", "atoll tool list -e x.ts"),
            ("atoll -ne -p hi", "atoll -p hi --no-extensions"),
            ("atoll -t -ne -p hi", "atoll -t -ne -p hi"),
            ("atoll -p hi -e x -ne", "atoll -p hi -e x --no-extensions"),
            ("atoll tool call x --json", "atoll tool call x --json"),
            ("atoll plugin install f --sha256 abc", "atoll plugin install f --sha256 abc"),
            ("atoll --help", "atoll --help"),
            ("atoll -p ---x", "atoll -p ---x"),
        ] {
            assert_eq!(spelt(line), (same.to_owned(), Vec::new()), "{line}");
        }
    }

    #[test]
    fn what_follows_a_command_of_a_plugins_is_its_own() {
        for (line, words, typed) in [
            ("atoll mine --model -p -- -x", "atoll", Some("mine: --model -p -- -x")),
            ("atoll -a mine -ne", "atoll -a", Some("mine: -ne")),
            ("atoll -e x other", "atoll -e x", Some("other: ")),
            ("atoll -e x -- mine", "atoll -e x -- mine", None),
            ("atoll mine", "atoll", Some("mine: ")),
            // Whoever says what a message is does not mean a command.
            ("atoll -p mine", "atoll -p mine", None),
            ("atoll other mine", "atoll other mine", None),
            ("atoll tool mine", "atoll tool mine", None),
        ] {
            let spelt = all_spelt(line);
            let words_of = |words: &[OsString]| words.join(" ".as_ref()).to_string_lossy().into_owned();
            let shown = spelt.typed.as_ref().map(|typed| format!("{}: {}", typed.name, words_of(&typed.words)));
            assert_eq!((words_of(&spelt.words).as_str(), shown.as_deref()), (words, typed), "{line}");
        }
    }

    #[test]
    fn a_mistyped_option_of_the_programs_is_found_again() {
        let near = |name| near_options(name, &crate::arguments::Arguments::command());
        // Two letters changed places, or one is too many: both are one step away.
        assert_eq!(near("modle"), ["mode", "model"]);
        assert_eq!(near("no-sesion"), ["no-session"]);
        assert_eq!(near("something-else-altogether"), Vec::<String>::new());
    }

    #[test]
    fn what_the_program_does_not_know_is_kept_for_extensions() {
        let option = |name: &str, value: Option<&str>, detached| UnknownOption {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            detached,
        };
        for (line, words, unknown) in [
            ("atoll --plan -p hi", "atoll -p hi", vec![option("plan", None, None)]),
            ("atoll -p a --plan hi", "atoll -p a", vec![option("plan", Some("hi"), Some(1))]),
            ("atoll --rules=a=b hi", "atoll hi", vec![option("rules", Some("a=b"), None)]),
            ("atoll --rules @x", "atoll @x", vec![option("rules", None, None)]),
            ("atoll --a 1 --b 2 c", "atoll c", vec![option("a", Some("1"), Some(0)), option("b", Some("2"), Some(1))]),
            ("atoll --model x/y --z", "atoll --model x/y", vec![option("z", None, None)]),
            // Whatever follows is the user's text.
            ("atoll -- --plan", "atoll -- --plan", vec![]),
        ] {
            assert_eq!(spelt(line), (words.to_owned(), unknown), "{line}");
        }
    }
}
