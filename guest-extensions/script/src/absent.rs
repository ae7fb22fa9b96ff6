//! Names that a script imports from Pi's packages and that are not here. A module that lacks a name can not be linked, so the
//! script would not start at all, though most of these are used in corners that a run never comes to. Each becomes an
//! export that fails when it is used, and says so.

use std::collections::BTreeSet;

/// The names that a text imports from modules that `is_from` accepts.
pub(crate) fn imported(text: &str, is_from: impl Fn(&str) -> bool) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices("from") {
        let (before, after) = (text.get(..at).unwrap_or_default().trim_end(), text.get(at + 4..).unwrap_or_default());
        let after = after.trim_start();
        let Some(quote) = after.chars().next().filter(|quote| ['"', '\''].contains(quote)) else { continue };
        let Some((module, _)) = after.get(1..).and_then(|rest| rest.split_once(quote)) else { continue };
        let Some(list) = before.strip_suffix('}').filter(|_| is_from(module)) else { continue };
        let Some((_, list)) = list.rsplit_once('{') else { continue };
        let plain = |name: &&str| {
            let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$';
            !name.is_empty() && name.chars().all(is_letter) && *name != "default"
        };
        let imported = list.split(',').filter_map(|item| {
            let mut words = item.split_whitespace();
            words.next().filter(|word| *word != "type")
        });
        names.extend(imported.filter(plain));
    }
    names
}

/// Whether a module's text exports a name.
fn exports(module: &str, name: &str) -> bool {
    let declares = |line: &str| {
        let mut words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && !"_$".contains(letter));
        line.starts_with("export ") && words.any(|word| word == name)
    };
    module.lines().any(declares)
}

/// The module with an export for each of these names that it lacks. `shown` is what errors call it.
pub(crate) fn with_absent<'n>(module: &str, shown: &str, names: impl IntoIterator<Item = &'n str>) -> String {
    let mut text = module.to_owned();
    for name in names {
        if !exports(module, name) {
            // A function that can be extended and constructed, for some of them are classes.
            text.push_str(&format!(
                "\nexport function {name}() {{ throw new Error(\"{name} of {shown} is not part of this host\"); }}"
            ));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_lists_of_one_line_and_of_many() {
        let text = "import { a, type B, c as d } from \"x\";\nimport e, {\n  f,\n  g,\n} from 'x';\nimport { no } from 'y';\n\
                    import all from 'x';\nconst from = { z };";
        let found: Vec<&str> = imported(text, |module| module == "x").into_iter().collect();
        assert_eq!(found, ["a", "c", "f", "g"]);
    }

    #[test]
    fn only_what_a_module_lacks_is_added() {
        let module = "export const a = 1;\nexport class B {}\nexport { c } from \"atoll:d\";\nconst e = 1;";
        let text = with_absent(module, "m", ["a", "B", "c", "e"]);
        let added = text.strip_prefix(module).unwrap_or_default();
        assert_eq!(added.matches("export function").count(), 1);
        assert!(added.contains("function e()") && added.contains("e of m is not part of this host"));
    }
}
