//! Values of the configuration that say where the real value is: `!command`, or text in which `$NAME` and `${NAME}` stand
//! for variables of the environment, `$$` for a dollar sign and `$!` for an exclamation mark. Spellings of other programs
//! are understood too: `${env:NAME}` and `${NAME:-default}`.

use std::fmt;

use crate::text::shown;

/// A value that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Template {
    /// What this command line prints.
    Command(String),
    /// These one after the other.
    Text(Vec<Part>),
}

/// A part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Itself.
    Literal(String),
    /// A variable of the environment.
    Variable {
        /// Its name.
        name: String,
        /// What stands for it where it is not set or empty.
        default: Option<String>,
    },
}

impl Template {
    /// Reads a value.
    ///
    /// # Errors
    /// What can not be understood, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(command) = text.strip_prefix('!') {
            if command.trim().is_empty() {
                return Err("there is no command after `!`; for an exclamation mark itself write `$!`".to_owned());
            }
            return Ok(Self::Command(command.to_owned()));
        }
        if let Some(name) = bare_environment(text) {
            return Err(format!("`{{env:{name}}}` is how another program writes it; write `${{{name}}}`"));
        }
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some((before, marked)) = rest.split_once('$') {
            literal.push_str(before);
            let (part, after) = Self::marked(marked)?;
            match part {
                Part::Literal(text) => literal.push_str(&text),
                variable @ Part::Variable { .. } => {
                    if !literal.is_empty() {
                        parts.push(Part::Literal(std::mem::take(&mut literal)));
                    }
                    parts.push(variable);
                }
            }
            rest = after;
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self::Text(parts))
    }

    /// What stands after a `$`, and what follows it.
    fn marked(after: &str) -> Result<(Part, &str), String> {
        let literal = |text: &str| Part::Literal(text.to_owned());
        if let Some(after) = after.strip_prefix('$') {
            return Ok((literal("$"), after));
        }
        if let Some(after) = after.strip_prefix('!') {
            return Ok((literal("!"), after));
        }
        if let Some(inner) = after.strip_prefix('{') {
            let Some((inside, after)) = inner.split_once('}') else {
                return Err("a `${` has no `}`; for a dollar sign itself write `$$`".to_owned());
            };
            if let Some(input) = inside.strip_prefix("input:") {
                return Err(format!(
                    "{} asks a person, which is not done here; put the value into the environment, and write `${{{}}}`",
                    shown(&format!("${{input:{input}}}")),
                    variable_like(input)
                ));
            }
            let inside = inside.strip_prefix("env:").unwrap_or(inside);
            return Ok(match inside.split_once(":-") {
                Some((name, default)) => (Self::variable(name, Some(default))?, after),
                None => (Self::variable(inside, None)?, after),
            });
        }
        let length = after.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let (name, after) = after.split_at(length);
        if name.is_empty() {
            return Ok((literal("$"), after));
        }
        Ok((Self::variable(name, None)?, after))
    }

    fn variable(name: &str, default: Option<&str>) -> Result<Part, String> {
        if !is_variable(name) {
            return Err(format!(
                "{} is no variable of the environment; for a dollar sign itself write `$$`",
                shown(name)
            ));
        }
        Ok(Part::Variable { name: name.to_owned(), default: default.map(str::to_owned) })
    }

    /// A value that is this text, whatever is in it.
    pub fn literal(text: &str) -> Self {
        Self::Text(if text.is_empty() { Vec::new() } else { vec![Part::Literal(text.to_owned())] })
    }

    /// The value, if it does not depend on anything.
    pub fn known(&self) -> Option<String> {
        self.resolve(&|_| None).ok().filter(|_| self.variables().is_empty())
    }

    /// The variables that it names.
    pub fn variables(&self) -> Vec<&str> {
        let Self::Text(parts) = self else { return Vec::new() };
        let names = parts.iter().filter_map(|part| match part {
            Part::Variable { name, .. } => Some(name.as_str()),
            Part::Literal(_) => None,
        });
        names.collect()
    }

    /// The value with these variables.
    ///
    /// # Errors
    /// The variable that is not set; that it is a command, which is not run here.
    pub fn resolve(&self, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
        let parts = match self {
            Self::Text(parts) => parts,
            Self::Command(command) => return Err(format!("`!{command}` is a command, which has to be run for it")),
        };
        let mut value = String::new();
        for part in parts {
            match part {
                Part::Literal(text) => value.push_str(text),
                Part::Variable { name, default } => match (variable(name).filter(|value| !value.is_empty()), default) {
                    (Some(found), _) => value.push_str(&found),
                    (None, Some(default)) => value.push_str(default),
                    (None, None) => return Err(format!("the environment variable {name} is not set")),
                },
            }
        }
        Ok(value)
    }
}

impl fmt::Display for Template {
    /// As it is written in our own files: what [`Template::parse`] reads as the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self {
            Self::Command(command) => return write!(f, "!{command}"),
            Self::Text(parts) => parts,
        };
        for (at, part) in parts.iter().enumerate() {
            match part {
                Part::Literal(text) => {
                    let text = text.replace('$', "$$");
                    match text.strip_prefix('!').filter(|_| at == 0) {
                        Some(rest) => write!(f, "$!{rest}")?,
                        None => f.write_str(&text)?,
                    }
                }
                Part::Variable { name, default: None } => write!(f, "${{{name}}}")?,
                Part::Variable { name, default: Some(default) } => write!(f, "${{{name}:-{default}}}")?,
            }
        }
        Ok(())
    }
}

/// A variable's name that looks like this one.
pub(crate) fn variable_like(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    let plain: String = plain.collect();
    if plain.is_empty() || plain.starts_with(|c: char| c.is_ascii_digit()) { format!("_{plain}") } else { plain }
}

pub(crate) fn is_variable(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && name.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}

/// The first variable that is written as `{env:NAME}`, without a dollar sign.
fn bare_environment(text: &str) -> Option<&str> {
    let starts =
        text.match_indices("{env:").filter(|(at, _)| !text.get(..*at).is_some_and(|before| before.ends_with('$')));
    let mut names = starts.filter_map(|(at, start)| text.get(at + start.len()..)?.split_once('}'));
    names.find(|(name, _)| is_variable(name)).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(text: &str) -> Result<String, String> {
        Template::parse(text)?.resolve(&|name| match name {
            "KEY" => Some("secret".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    #[test]
    fn variables_defaults_and_escapes_are_understood() {
        for (text, expected) in [
            ("plain", "plain"),
            ("", ""),
            ("$KEY", "secret"),
            ("a${KEY}b", "asecretb"),
            ("Bearer ${env:KEY}", "Bearer secret"),
            ("${NOPE:-http://x/$}", "http://x/$"),
            ("${EMPTY:-d}${KEY:-d}${NOPE:-}", "dsecret"),
            ("$KEY-x", "secret-x"),
            ("$$KEY", "$KEY"),
            ("$!x", "!x"),
            ("a!b", "a!b"),
            ("100$", "100$"),
            ("$-{}", "$-{}"),
            ("{env:a b}", "{env:a b}"),
        ] {
            assert_eq!(value(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_can_not_be_had_says_what_to_do() {
        insta::assert_snapshot!(
            ["${NOPE}", "$EMPTY", "${KEY", "${a b}", "${1}", "$1", "${input:api-key}", "x {env:KEY}", "!", "!echo x"]
                .map(|text| format!("{text}  {}\n", value(text).unwrap_err()))
                .concat()
        );
    }

    #[test]
    fn what_a_value_depends_on_is_known() {
        let template = Template::parse("a${KEY}${env:B:-c}").unwrap();
        assert_eq!((template.variables(), template.known()), (vec!["KEY", "B"], None));
        assert_eq!(Template::parse("a$$b").unwrap().known().as_deref(), Some("a$b"));
        assert_eq!(Template::parse("!echo").unwrap().known(), None);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(text in "[a!$ {}:_-]{0,12}|.*") {
            if let Ok(template) = Template::parse(&text) {
                prop_assert_eq!(Template::parse(&template.to_string()), Ok(template));
            }
        }

        #[test]
        fn a_literal_stands_for_itself(text in "[a!$ {}:_-]{0,12}") {
            let template = Template::literal(&text);
            prop_assert_eq!(template.known(), Some(text.clone()));
            prop_assert_eq!(Template::parse(&template.to_string()).map(|read| read.known()), Ok(Some(text)));
        }
    }
}
