//! Groups of tools that are still to come: whoever searches is told of them, for what is not there yet can not be found.

use super::{Origin, Table};
use crate::Error;

/// The most groups that one plugin may announce at a time.
const MAX_OF_A_PLUGIN: usize = 256;
/// The longest name of one, in bytes.
const MAX_NAME: usize = 256;

/// What plugins have announced, in that order.
#[derive(Debug, Default)]
pub(super) struct Expected(Vec<(String, Origin, String)>);

impl Table {
    /// A plugin will bring tools of this namespace, or has brought them, or will not.
    ///
    /// # Errors
    /// `limit` `tools` if it announces too many at once, `invalid-arguments` for a name that is none.
    pub fn expect(&mut self, plugin: &str, origin: Origin, namespace: &str, coming: bool) -> Result<(), Error> {
        let Expected(all) = &mut self.expected;
        let known = all.iter().position(|(by, from, name)| by == plugin && *from == origin && name == namespace);
        match (known, coming) {
            (Some(at), false) => {
                all.remove(at);
            }
            (None, true) => {
                if !(1..=MAX_NAME).contains(&namespace.len()) {
                    return Err(Error::InvalidArguments(format!(
                        "a group of tools has a name of 1 to {MAX_NAME} bytes, not of {}",
                        namespace.len()
                    )));
                }
                if all.iter().filter(|(by, from, _)| by == plugin && *from == origin).count() >= MAX_OF_A_PLUGIN {
                    return Err(Error::Limit { name: "tools".to_owned(), value: MAX_OF_A_PLUGIN as u64 });
                }
                all.push((plugin.to_owned(), origin, namespace.to_owned()));
            }
            (Some(_), true) | (None, false) => {}
        }
        Ok(())
    }

    /// Nothing of a plugin is to come any more.
    pub fn expect_nothing_of(&mut self, plugin: &str, origin: Origin) {
        self.expected.0.retain(|(by, from, _)| by != plugin || *from != origin);
    }

    /// The namespaces whose tools are still to come, in the order in which that was said, each once.
    pub fn expected(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (_, _, name) in &self.expected.0 {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_to_come_until_it_is_there_or_its_plugin_is_gone() {
        let mut table = Table::new();
        for (plugin, namespace) in [("a", "one"), ("b", "one"), ("a", "two"), ("a", "two")] {
            table.expect(plugin, Origin::User, namespace, true).unwrap();
        }
        assert_eq!(table.expected(), ["one", "two"]);
        table.expect("a", Origin::User, "one", false).unwrap();
        assert_eq!(table.expected(), ["one", "two"], "the other plugin has not brought it");
        table.expect("b", Origin::Project, "one", false).unwrap();
        assert_eq!(table.expected(), ["one", "two"], "it is not the same plugin");
        table.expect_nothing_of("b", Origin::User);
        assert_eq!(table.expected(), ["two"]);
    }

    #[test]
    fn a_plugin_announces_so_many_and_no_more() {
        let mut table = Table::new();
        for at in 0..MAX_OF_A_PLUGIN {
            table.expect("a", Origin::User, &at.to_string(), true).unwrap();
        }
        let more = table.expect("a", Origin::User, "more", true).unwrap_err();
        assert_eq!(more, Error::Limit { name: "tools".to_owned(), value: 256 });
        table.expect("a", Origin::User, "0", true).unwrap();
        table.expect("b", Origin::User, "more", true).unwrap();
        assert_eq!(table.expect("b", Origin::User, "", true).unwrap_err().code(), "invalid-arguments");
    }
}
