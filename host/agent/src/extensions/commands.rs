//! Commands and options of extensions: which there are, by which names, and whose they are.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use atoll_table::{
    Error,
    extension::{Command, Extension, Flag, FlagKind},
    names::near_matches,
};

use super::{Extensions, RELOAD_COMMAND};

/// A command as the user types it.
#[derive(Clone)]
pub struct Listed {
    /// Its name here, without the slash.
    pub name: String,
    /// The command as its extension knows it.
    pub command: Command,
    extension: Arc<dyn Extension>,
}

impl Listed {
    /// The plugin that has it.
    pub fn plugin(&self) -> &str {
        self.extension.name()
    }
}

impl Extensions {
    /// All commands in load order. A name that the host or an earlier one has gets a number.
    pub fn commands(&self) -> Vec<Listed> {
        let mut listed: Vec<Listed> = Vec::new();
        let mut taken = HashSet::from([RELOAD_COMMAND.to_owned()]);
        for extension in &*self.all() {
            for command in &extension.subscription().commands {
                let mut name = command.name.clone();
                let mut number = 1;
                while !taken.insert(name.clone()) {
                    name = format!("{}:{number}", command.name);
                    number += 1;
                }
                listed.push(Listed { name, command: command.clone(), extension: Arc::clone(extension) });
            }
        }
        listed
    }

    /// Runs the command that a text names, if it names one: a slash, its name, and what follows it.
    ///
    /// # Errors
    /// What the command says.
    pub async fn run_command(&self, text: &str) -> Option<Result<(), Error>> {
        let (name, arguments) = command_line(text)?;
        let found = self.commands().into_iter().find(|listed| listed.name == name)?;
        Some(found.extension.run_command(found.command.name, arguments.to_owned()).await)
    }
}

/// The name and the arguments in the text of a command.
fn command_line(text: &str) -> Option<(&str, &str)> {
    let line = text.strip_prefix('/')?;
    let (name, arguments) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (!name.is_empty()).then(|| (name, arguments.trim()))
}

/// An option that the user gave and no extension has, or one that was given wrongly.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownFlag {
    /// Nobody has it.
    #[error(
        "there is no option --{name}{}; `atoll --help` lists the program's, and extensions may add others",
        near(candidates)
    )]
    NoSuch {
        /// Its name.
        name: String,
        /// Names that are near.
        candidates: Vec<String>,
    },
    /// It needs a value and has none.
    #[error("the option --{name} of the extension {plugin} takes a value: --{name}=VALUE")]
    NoValue {
        /// Its name.
        name: String,
        /// Whose it is.
        plugin: String,
    },
    /// It takes no value and has one.
    #[error(
        "the option --{name} of the extension {plugin} takes no value but true or false, and it was given `{value}`"
    )]
    Value {
        /// Its name.
        name: String,
        /// Whose it is.
        plugin: String,
        /// What was given.
        value: String,
    },
}

fn near(candidates: &[String]) -> String {
    match candidates {
        [] => String::new(),
        some => format!(" (did you mean --{}?)", some.join(", --")),
    }
}

/// What the user said to options of extensions. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Flags(Arc<Mutex<BTreeMap<String, String>>>);

impl Flags {
    /// What counts for an option of an extension: what the user said, else its default. One that takes nothing is
    /// `false` then.
    pub fn value(&self, flag: &Flag) -> Option<String> {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unsaid = || flag.default.clone().or_else(|| (flag.kind == FlagKind::Boolean).then(|| "false".to_owned()));
        said.get(&flag.name).cloned().or_else(unsaid)
    }

    /// Takes over what the user said, `value` being what stood with or behind the option. Gives what stood behind it and
    /// is none of its.
    ///
    /// # Errors
    /// If no extension has the option, or it was given wrongly.
    pub fn say(
        &self,
        extensions: &Extensions,
        name: &str,
        value: Option<String>,
        detached: bool,
    ) -> Result<Option<String>, UnknownFlag> {
        let all = extensions.all();
        let flags: Vec<(String, Flag)> = all
            .iter()
            .flat_map(|extension| {
                let flags = extension.subscription().flags.clone();
                let plugin = extension.name().to_owned();
                flags.into_iter().map(move |flag| (plugin.clone(), flag))
            })
            .collect();
        let Some((plugin, flag)) = flags.iter().find(|(_, flag)| flag.name == name) else {
            let known = flags.iter().map(|(_, flag)| flag.name.as_str());
            let candidates = near_matches(name, known).into_iter().map(str::to_owned).collect();
            return Err(UnknownFlag::NoSuch { name: name.to_owned(), candidates });
        };
        let (name, plugin) = (name.to_owned(), plugin.clone());
        let (said, rest) = match (flag.kind, value) {
            (FlagKind::Boolean, value) if detached => ("true".to_owned(), value),
            (FlagKind::Boolean, None) => ("true".to_owned(), None),
            (FlagKind::Boolean, Some(value)) if value == "true" || value == "false" => (value, None),
            (FlagKind::Boolean, Some(value)) => return Err(UnknownFlag::Value { name, plugin, value }),
            (FlagKind::Text, Some(value)) => (value, None),
            (FlagKind::Text, None) => return Err(UnknownFlag::NoValue { name, plugin }),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, said);
        Ok(rest)
    }
}
