//! Asking the person at the terminal about what is not granted. What is shown is the host's: text of plugins is escaped,
//! so that none can forge a question, and keys pressed before a question is there answer nothing.

use std::{io, path::PathBuf, sync::Arc};

use atoll_caps::{Grants, printable};
use atoll_engine::{Answer, Approver, LastingGrant, Once, Question};
use futures::future::BoxFuture;

use crate::{
    person::{Person, cut},
    terminal,
};

/// The person at the terminal, as whoever grants things.
pub(crate) struct TerminalApprover {
    person: Arc<Person>,
    grants: PathBuf,
}

impl TerminalApprover {
    /// For this person. `grants` is where lasting grants are written.
    pub(crate) fn new(person: Arc<Person>, grants: PathBuf) -> Self {
        Self { person, grants }
    }

    async fn answer(&self, question: &Question) -> io::Result<Answer> {
        let mut exchange = self.person.begin().await?;
        let mut text = shown(question);
        loop {
            let Some(line) = exchange.ask(&text).await? else { return Ok(Answer::No) };
            match line.trim().to_ascii_lowercase().as_str() {
                "o" | "once" if question.once != Once::Never => return Ok(Answer::Once),
                "s" | "session" => return Ok(Answer::Session),
                "a" | "always" => return Ok(Answer::Always),
                "" | "n" | "no" => return Ok(Answer::No),
                _ if question.once == Once::Never => text = format!("  Please answer s, a or n.\n{LASTING_CHOICES}"),
                _ => text = format!("  Please answer o, s, a or n.\n{CHOICES}"),
            }
        }
    }
}

impl Approver for TerminalApprover {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        Box::pin(async move {
            self.answer(&question).await.unwrap_or_else(|error| {
                terminal::note(format_args!("nobody could be asked: {error}"));
                Answer::No
            })
        })
    }

    fn remember(&self, grant: &LastingGrant) -> Result<(), String> {
        let written = Grants::update(&self.grants, |grants| match &grant.pin {
            Some(pin) => grants.grant(&grant.plugin, pin, &grant.wants),
            None => grants.grant_builtin(&grant.plugin, &grant.wants.files),
        });
        written.map_err(|error| {
            terminal::note(format_args!("the grant holds until this run ends, for it could not be written: {error}"));
            error.to_string()
        })
    }
}

const CHOICES: &str = "  Allow it? [o]nce, this [s]ession, [a]lways, [N]o: ";
/// Where once would open far more than what is asked about.
const LASTING_CHOICES: &str = "  Allow it? This [s]ession, [a]lways, [N]o: ";

/// A question as it is shown.
fn shown(question: &Question) -> String {
    let Question { plugin, is_builtin, capability, operation, target, reason, scope, once, .. } = question;
    let kind = if *is_builtin { "built-in plugin" } else { "plugin" };
    let mut text = format!(
        "\natoll: the {kind} {} asks for {capability}: {} {}\n",
        printable(plugin),
        printable(operation),
        cut(target)
    );
    if !reason.is_empty() {
        text.push_str(&format!("  It says why: \"{}\"\n", cut(reason)));
    }
    if let Once::More(opened) = once {
        text.push_str(&format!("  Once, until this call ends, this would be allowed: {}\n", cut(opened)));
    }
    text.push_str(&format!("  For the session or always, this would be allowed: {}\n", cut(scope)));
    text + if *once == Once::Never { LASTING_CHOICES } else { CHOICES }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(target: &str, reason: &str) -> Question {
        Question {
            plugin: "weather".to_owned(),
            is_builtin: false,
            capability: "files",
            operation: "read".to_owned(),
            target: target.to_owned(),
            reason: reason.to_owned(),
            scope: "files: ~/notes (read)".to_owned(),
            once: Once::This,
            command: String::new(),
        }
    }

    #[test]
    fn a_question_is_shown_as_it_is() {
        assert_eq!(
            shown(&question("/home/ann/notes/x", "to know what you know")),
            "\natoll: the plugin weather asks for files: read /home/ann/notes/x\n  \
             It says why: \"to know what you know\"\n  \
             For the session or always, this would be allowed: files: ~/notes (read)\n  \
             Allow it? [o]nce, this [s]ession, [a]lways, [N]o: "
        );
    }

    #[test]
    fn what_once_would_open_is_shown_and_what_can_not_be_once_is_not_offered() {
        let with = |once: Once| shown(&Question { once, ..question("/home/ann/notes", "") });
        let more = with(Once::More("files: /home/ann/notes (read)\n".to_owned()));
        assert!(
            more.contains("\n  Once, until this call ends, this would be allowed: files: /home/ann/notes (read)\\n\n"),
            "{more}"
        );
        assert!(more.ends_with(CHOICES));
        let never = with(Once::Never);
        assert!(!never.contains("nce") && never.ends_with("Allow it? This [s]ession, [a]lways, [N]o: "), "{never}");
    }

    #[test]
    fn text_of_a_plugin_can_not_forge_a_question() {
        let forged = "x\n\u{1b}[2J\ratoll: the plugin good asks for files: read y\u{202e}";
        let text = shown(&question(forged, forged));
        assert_eq!(text.lines().count(), 5, "{text}");
        assert!(!text.contains(['\u{1b}', '\r', '\u{202e}']), "{text}");
        let long = shown(&question(&"x".repeat(100_000), ""));
        assert!(long.len() < 3_000 && long.contains("98000 more characters"), "{long}");
    }
}
