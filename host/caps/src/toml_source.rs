//! Reading TOML with errors that say where and what to do: shared by manifests and grants.

use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::text::{near_matches, or_list, printable};

/// What is wrong in a manifest or in the grants file: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {reason}; {way_out}", printable(file), place(*.position))]
pub struct ManifestError {
    /// The file, as it was named by whoever read it.
    pub file: String,
    /// Line and column, both counted from 1, where they are known.
    pub position: Option<(usize, usize)>,
    /// What is wrong.
    pub reason: String,
    /// What to do about it.
    pub way_out: String,
}

fn place(position: Option<(usize, usize)>) -> String {
    position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default()
}

type Result<T> = std::result::Result<T, ManifestError>;

/// A value that was read, with the place it came from.
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// The text of a file and its name.
#[derive(Clone, Copy)]
pub(crate) struct Source<'s> {
    pub(crate) file: &'s str,
    pub(crate) text: &'s str,
    /// Whether every wish must come with its reason.
    pub(crate) reasons: bool,
}

impl<'s> Source<'s> {
    /// Reads the whole file.
    pub(crate) fn parse(self) -> Result<Spanned<DeTable<'s>>> {
        DeTable::parse(self.text).map_err(|error| {
            let reason = error.message().split('\n').collect::<Vec<_>>().join(", ");
            self.error(error.span().unwrap_or(0..0), reason, "correct the TOML there")
        })
    }

    pub(crate) fn error(
        self,
        span: Range<usize>,
        reason: impl Into<String>,
        way_out: impl Into<String>,
    ) -> ManifestError {
        let mut start = span.start.min(self.text.len());
        while !self.text.is_char_boundary(start) {
            start -= 1;
        }
        let before = self.text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
        ManifestError {
            file: self.file.to_owned(),
            position: Some((line, column)),
            reason: printable(&reason.into()),
            way_out: printable(&way_out.into()),
        }
    }
}

/// One table of the file.
pub(crate) struct Section<'a> {
    source: Source<'a>,
    /// How the table is named in messages: `[limits]`, `[[http]]`, or empty for the file itself.
    title: String,
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

impl<'a> Section<'a> {
    pub(crate) fn root(source: Source<'a>, table: &'a DeTable<'a>) -> Self {
        Self { source, title: String::new(), table, span: 0..0 }
    }

    pub(crate) fn source(&self) -> Source<'a> {
        self.source
    }

    /// Fails on a key that is none of these.
    pub(crate) fn only(&self, keys: &[&str]) -> Result<()> {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if keys.contains(&name) {
                continue;
            }
            let place = if self.title.is_empty() { String::new() } else { format!(" in {}", self.title) };
            let way_out = match near_matches(name, keys).as_slice() {
                [] => format!("the keys{place} are {}", or_list(keys).replace(" or ", " and ")),
                near => format!("did you mean {}?", or_list(near)),
            };
            return Err(self.source.error(key.span(), format!("unknown key `{name}`{place}"), way_out));
        }
        Ok(())
    }

    /// The tables of this one by name, with the place of each name.
    pub(crate) fn entries(&self) -> Result<Vec<(At<&'a str>, Self)>> {
        let mut entries = Vec::new();
        for key in self.table.keys() {
            let name: &'a str = key.get_ref();
            if let Some(section) = self.table(name)? {
                entries.push((At { value: name, span: key.span() }, section));
            }
        }
        Ok(entries)
    }

    fn get(&self, key: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str) -> ManifestError {
        let found = value.get_ref().type_str();
        self.source.error(value.span(), format!("`{key}` is {found}, not {wanted}"), format!("give it {wanted}"))
    }

    /// A required key is missing.
    pub(crate) fn missing(&self, key: &str, example: &str) -> ManifestError {
        let place = if self.title.is_empty() { String::new() } else { format!(" in {}", self.title) };
        self.source.error(self.span.clone(), format!("`{key}` is missing{place}"), format!("add `{key} = {example}`"))
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<At<&'a str>>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::String(text) => Ok(Some(At { value: text.as_ref(), span: value.span() })),
            _ => Err(self.wrong_type(key, value, "a string")),
        }
    }

    /// A string, read further by its type.
    pub(crate) fn parsed<T: FromStr<Err: Display>>(&self, key: &str) -> Result<Option<T>> {
        let Some(text) = self.text(key)? else {
            return Ok(None);
        };
        text.value
            .parse()
            .map(Some)
            .map_err(|error: T::Err| self.source.error(text.span, format!("`{key}`: {error}"), "correct it"))
    }

    pub(crate) fn required<T: FromStr<Err: Display>>(&self, key: &str, example: &str) -> Result<T> {
        self.parsed(key)?.ok_or_else(|| self.missing(key, example))
    }

    pub(crate) fn flag(&self, key: &str) -> Result<Option<bool>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(Some(*flag)),
            _ => Err(self.wrong_type(key, value, "`true` or `false`")),
        }
    }

    /// A whole number within bounds.
    pub(crate) fn number(&self, key: &str, bounds: std::ops::RangeInclusive<u64>) -> Result<Option<u64>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let wanted = format!("a whole number from {} to {}", bounds.start(), bounds.end());
        let DeValue::Integer(integer) = value.get_ref() else {
            return Err(self.wrong_type(key, value, &wanted));
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) if bounds.contains(&number) => Ok(Some(number)),
            _ => Err(self.source.error(value.span(), format!("`{key}` is out of bounds"), format!("give it {wanted}"))),
        }
    }

    /// A list of strings.
    pub(crate) fn texts(&self, key: &str) -> Result<Option<At<Vec<&'a str>>>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, value, "a list of strings"));
        };
        let mut texts = Vec::new();
        for item in items {
            match item.get_ref() {
                DeValue::String(text) => texts.push(text.as_ref()),
                _ => return Err(self.wrong_type(key, item, "a list of strings")),
            }
        }
        Ok(Some(At { value: texts, span: value.span() }))
    }

    fn child(&self, title: String, table: &'a DeTable<'a>, span: Range<usize>) -> Self {
        Self { source: self.source, title, table, span }
    }

    /// The table `[key]`.
    pub(crate) fn table(&self, key: &str) -> Result<Option<Self>> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Table(table) => Ok(Some(self.child(format!("[{key}]"), table, value.span()))),
            _ => Err(self.wrong_type(key, value, &format!("a table `[{key}]`"))),
        }
    }

    /// The tables `[[key]]`.
    pub(crate) fn tables(&self, key: &str) -> Result<Vec<Self>> {
        let Some(value) = self.get(key) else {
            return Ok(Vec::new());
        };
        let wanted = format!("a list of tables, each written `[[{key}]]`");
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong_type(key, value, &wanted));
        };
        let mut tables = Vec::new();
        for item in items {
            match item.get_ref() {
                DeValue::Table(table) => {
                    tables.push(self.child(format!("[[{key}]]"), table, item.span()));
                }
                _ => return Err(self.wrong_type(key, item, &wanted)),
            }
        }
        Ok(tables)
    }

    /// Why something is wanted: required in a manifest, optional in a grant.
    pub(crate) fn reason(&self) -> Result<String> {
        let reason = self.text("reason")?.map(|text| text.value.trim());
        match reason {
            None | Some("") if self.source.reasons => Err(self.missing("reason", "\"why the plugin needs it\"")),
            reason => Ok(reason.unwrap_or_default().to_owned()),
        }
    }
}
