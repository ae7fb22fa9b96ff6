//! Who may reach the tools of a server, as its configuration says.

use std::{fmt, str::FromStr};

/// Who may reach a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exposure {
    /// Nobody.
    Hidden,
    /// Scripts, which find it by searching.
    #[default]
    Codemode,
    /// Scripts, and the model once it has searched for it.
    Deferred,
    /// Everybody: it is declared to the model.
    Direct,
}

impl Exposure {
    /// All of them, as they are offered to people.
    pub const ALL: [Self; 4] = [Self::Codemode, Self::Deferred, Self::Direct, Self::Hidden];

    /// Its name in configuration files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hidden => "hidden",
            Self::Codemode => "codemode",
            Self::Deferred => "deferred",
            Self::Direct => "direct",
        }
    }
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Exposure {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // What it was called before.
        if text == "codemode-deferred" {
            return Ok(Self::Codemode);
        }
        Self::ALL.into_iter().find(|known| known.as_str() == text).ok_or(())
    }
}

/// The exposure of a server's tools: one for all, and others for some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exposures {
    /// That of tools without one of their own.
    pub server: Exposure,
    /// Names, or patterns in which `*` stands for any characters, in the order of the file.
    pub tools: Vec<(String, Exposure)>,
}

impl Exposures {
    /// That of one tool, by the name the server gives it: its own name goes before patterns, and of those the first that
    /// fits counts.
    pub fn of(&self, tool: &str) -> Exposure {
        let exact = self.tools.iter().find(|(pattern, _)| pattern == tool);
        let found = exact.or_else(|| self.tools.iter().find(|(pattern, _)| matches(pattern, tool)));
        found.map_or(self.server, |(_, exposure)| *exposure)
    }

    /// Whether some tool could have it.
    pub fn could_be(&self, exposure: Exposure) -> bool {
        self.server == exposure || self.tools.iter().any(|(_, of)| *of == exposure)
    }
}

/// Whether a pattern in which `*` stands for any characters fits the whole name.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_goes_before_patterns_and_the_first_pattern_before_others() {
        let exposures = Exposures {
            server: Exposure::Deferred,
            tools: vec![
                ("get_*".to_owned(), Exposure::Codemode),
                ("*_secret".to_owned(), Exposure::Hidden),
                ("get_code".to_owned(), Exposure::Direct),
            ],
        };
        for (tool, expected) in [
            ("get_code", Exposure::Direct),
            ("get_secret", Exposure::Codemode),
            ("a_secret", Exposure::Hidden),
            ("other", Exposure::Deferred),
        ] {
            assert_eq!(exposures.of(tool), expected, "{tool}");
        }
        assert!(exposures.could_be(Exposure::Hidden) && exposures.could_be(Exposure::Deferred));
        assert!(!Exposures::default().could_be(Exposure::Direct));
    }

    #[test]
    fn names_and_the_old_one_are_read() {
        for exposure in Exposure::ALL {
            assert_eq!(exposure.as_str().parse(), Ok(exposure));
        }
        assert_eq!("codemode-deferred".parse(), Ok(Exposure::Codemode));
        assert_eq!(Exposure::from_str("Direct"), Err(()));
    }

    proptest! {
        #[test]
        fn a_star_stands_for_anything_and_all_else_for_itself(
            before in "[a-c]{0,3}", middle in "[a-c]{0,3}", after in "[a-c]{0,3}", pattern in any::<String>(),
        ) {
            let name = format!("{before}{middle}{after}");
            let fitting = format!("{before}*{after}");
            prop_assert!(matches(&fitting, &name));
            prop_assert_eq!(matches(&name, &name), true);
            let longer = format!("{name}x");
            prop_assert!(!matches(&name, &longer));
            matches(&pattern, &name);
        }
    }
}
