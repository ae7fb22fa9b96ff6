//! Whether a project is trusted, as extensions of the user's see it. They are asked before anything of the project counts,
//! and none of the project's is among them.

use std::path::Path;

use atoll_table::{
    Error,
    extension::{Event, EventKind, Extension, Outcome},
};
use serde::Deserialize;
use serde_json::json;

use super::{
    Extensions,
    effects::{field, reply, wrong},
};

/// What an extension says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustWord {
    /// The plugin that says so.
    pub by: String,
    /// The project is trusted.
    pub trusted: bool,
    /// It is to be so from now on.
    pub remember: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Said {
    Yes,
    No,
    Undecided,
}

/// What an answer says; none if it says neither yes nor no.
fn word(outcome: Outcome) -> Result<Option<(bool, bool)>, Error> {
    let kind = EventKind::ProjectTrust;
    let Some(mut fields) = reply(kind, outcome)? else { return Ok(None) };
    let remember = field(kind, &mut fields, "remember")?.unwrap_or_default();
    let said = field(kind, &mut fields, "trusted")?.unwrap_or(Said::Undecided);
    if let Some(name) = fields.keys().next() {
        return Err(wrong(kind, name, "there is no such field; say `trusted` and perhaps `remember`"));
    }
    Ok(match said {
        Said::Yes => Some((true, remember)),
        Said::No => Some((false, remember)),
        Said::Undecided => None,
    })
}

impl Extensions {
    /// Asks whether the project in a directory is trusted. The first yes or no counts, and a yes only of one for which
    /// `may_trust` holds: from another it is a failure.
    pub async fn project_trust(&self, cwd: &Path, may_trust: impl Fn(&dyn Extension) -> bool) -> Option<TrustWord> {
        let kind = EventKind::ProjectTrust;
        for extension in self.all().iter().filter(|extension| extension.subscription().wants(kind)) {
            let answer = extension.ask(Event::other(kind, json!({"cwd": cwd})), 0).await.and_then(word);
            let refused = || {
                wrong(
                    kind,
                    "trusted",
                    "`yes` counts only from an extension that is granted the table, which could do as much itself",
                )
            };
            match answer {
                Ok(Some((true, _))) if !may_trust(&**extension) => {
                    self.report(extension.name(), Some(kind), &refused());
                }
                Ok(Some((trusted, remember))) => {
                    return Some(TrustWord { by: extension.name().to_owned(), trusted, remember });
                }
                Ok(None) => {}
                Err(error) => self.report(extension.name(), Some(kind), &error),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(fields: serde_json::Value) -> Result<Option<(bool, bool)>, Error> {
        let serde_json::Value::Object(fields) = fields else { panic!("{fields}") };
        word(Outcome::Reply(fields))
    }

    #[test]
    fn an_answer_is_yes_no_or_nothing() {
        assert_eq!(said(json!({"trusted": "yes"})).unwrap(), Some((true, false)));
        assert_eq!(said(json!({"trusted": "no", "remember": true})).unwrap(), Some((false, true)));
        for nothing in [json!({"trusted": "undecided", "remember": true}), json!({}), json!({"trusted": null})] {
            assert_eq!(said(nothing).unwrap(), None);
        }
        assert_eq!(word(Outcome::Pass).unwrap(), None);
        for wrong in [
            json!({"trusted": true}),
            json!({"trusted": "YES"}),
            json!({"trust": "yes"}),
            json!({"trusted": "no", "remember": 1}),
        ] {
            assert_eq!(said(wrong.clone()).unwrap_err().code(), "invalid-arguments", "{wrong}");
        }
        assert!(word(Outcome::Handled).is_err());
    }
}
