//! Dialogs of plugins, as plain prompts at the terminal. Where there is none, every one of them is declined.
//!
//! No dialog may look like a question of the host's own: its first line says which plugin asks, and what the plugin says
//! stands behind a bar, escaped.

use std::{future::Future, io, process::Stdio, sync::Arc, time::Duration};

use atoll_agent::Extensions;
use atoll_table::{
    Error,
    extension::{EventKind, Tone, Ui, Who},
};
use futures::{FutureExt as _, future::BoxFuture};
use serde_json::json;

use crate::{
    person::{Exchange, Person, cut},
    terminal,
};

/// The most choices that are shown.
const MOST_OPTIONS: usize = 200;
/// The longest text that is taken from an editor, in bytes.
const LONGEST_TEXT: u64 = 1 << 20;

/// Shows dialogs and notices of plugins.
pub(crate) struct Dialogs {
    person: Option<Arc<Person>>,
    extensions: Extensions,
    /// Notices are shown.
    shows: bool,
}

impl Dialogs {
    /// With this person, if there is one. `shows` says whether notices go to standard error.
    pub(crate) fn new(person: Option<Arc<Person>>, extensions: Extensions, shows: bool) -> Self {
        Self { person, extensions, shows }
    }

    /// Holds a dialog, unless there is nobody, it takes longer than `timeout`, or the person turns away.
    async fn hold<'a, T, F: Future<Output = io::Result<Option<T>>> + Send>(
        &'a self,
        kind: &str,
        title: &str,
        timeout: Option<Duration>,
        dialog: impl FnOnce(Exchange<'a>) -> F + Send,
    ) -> Result<Option<T>, Error> {
        let Some(person) = self.person.as_ref().filter(|person| !person.is_leaving()) else { return Ok(None) };
        let fields = || json!({"kind": kind, "title": title});
        let held = async {
            let exchange = person.begin().await?;
            self.extensions.observe(EventKind::UiPromptStart, fields);
            dialog(exchange).await
        };
        let outcome = match timeout {
            Some(timeout) => tokio::time::timeout(timeout, held).await.unwrap_or_else(|_| {
                terminal::plain("");
                Ok(None)
            }),
            None => held.await,
        };
        self.extensions.observe(EventKind::UiPromptEnd, fields);
        outcome.map_err(|error| Error::Unavailable(format!("the person could not be asked: {error}")))
    }
}

/// The beginning of a dialog.
fn opening(who: &Who, texts: &[&str]) -> String {
    let mut shown = format!("\natoll: the plugin {} has a question of its own:\n", cut(&who.plugin));
    for text in texts.iter().filter(|text| !text.is_empty()) {
        shown.push_str(&quoted(text));
    }
    shown
}

/// Lines of one text that are shown.
const MOST_LINES: usize = 40;

/// A text of a plugin's, line by line behind a bar.
fn quoted(text: &str) -> String {
    let mut shown: String = text.lines().take(MOST_LINES).map(|line| format!("  | {}\n", cut(line))).collect();
    let more = text.lines().count().saturating_sub(MOST_LINES);
    if more > 0 {
        shown.push_str(&format!("  (and {more} more lines, which are not shown)\n"));
    }
    shown
}

impl Ui for Dialogs {
    fn available(&self) -> bool {
        self.person.as_ref().is_some_and(|person| !person.is_leaving())
    }

    fn select(
        &self,
        who: &Who,
        title: String,
        options: Vec<String>,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<usize>, Error>> {
        let mut text = opening(who, &[&title]);
        for (at, option) in options.iter().enumerate().take(MOST_OPTIONS) {
            text.push_str(&format!("  | {}. {}\n", at + 1, cut(option)));
        }
        let count = options.len();
        if count > MOST_OPTIONS {
            text.push_str(&format!("  (and {} more, to {count})\n", count - MOST_OPTIONS));
        }
        let prompt = "  Your choice, as a number; nothing declines: ";
        async move {
            self.hold("select", &title, timeout, |mut exchange| async move {
                text.push_str(prompt);
                loop {
                    let Some(line) = exchange.ask(&text).await? else { return Ok(None) };
                    match line.trim().parse::<usize>() {
                        Ok(number) if (1..=count).contains(&number) => return Ok(Some(number - 1)),
                        _ if line.trim().is_empty() => return Ok(None),
                        _ => text = format!("  Please give a number from 1 to {count}.\n{prompt}"),
                    }
                }
            })
            .await
        }
        .boxed()
    }

    fn confirm(
        &self,
        who: &Who,
        title: String,
        message: String,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<bool>, Error>> {
        let prompt = "  [y]es or [n]o; nothing declines: ";
        let mut text = opening(who, &[&title, &message]) + prompt;
        async move {
            self.hold("confirm", &title, timeout, |mut exchange| async move {
                loop {
                    let Some(line) = exchange.ask(&text).await? else { return Ok(None) };
                    match line.trim().to_lowercase().as_str() {
                        "y" | "yes" => return Ok(Some(true)),
                        "n" | "no" => return Ok(Some(false)),
                        "" => return Ok(None),
                        _ => text = format!("  Please answer y or n.\n{prompt}"),
                    }
                }
            })
            .await
        }
        .boxed()
    }

    fn input(
        &self,
        who: &Who,
        title: String,
        placeholder: String,
        timeout: Option<Duration>,
    ) -> BoxFuture<'_, Result<Option<String>, Error>> {
        let example = if placeholder.is_empty() { String::new() } else { format!(" (such as {})", cut(&placeholder)) };
        let text = opening(who, &[&title]) + &format!("  A line of text{example}; nothing declines: ");
        async move {
            self.hold("input", &title, timeout, |mut exchange| async move {
                let line = exchange.ask(&text).await?;
                Ok(line.map(|line| line.trim_end_matches('\r').to_owned()).filter(|line| !line.is_empty()))
            })
            .await
        }
        .boxed()
    }

    fn editor(&self, who: &Who, title: String, prefill: String) -> BoxFuture<'_, Result<Option<String>, Error>> {
        let text = opening(who, &[&title]);
        async move {
            self.hold("editor", &title, None, |exchange| async move {
                match editor() {
                    Some(command) => {
                        terminal::plain(text.trim_end_matches('\n'));
                        edited(&command, &prefill, exchange).await
                    }
                    None => typed(text, &prefill, exchange).await,
                }
            })
            .await
        }
        .boxed()
    }

    /// Nobody could do anything about it if it can not be written: whoever read it has gone.
    fn print(&self, _: &Who, text: String) {
        let _ = terminal::output(text.strip_suffix('\n').unwrap_or(&text));
    }

    fn notify(&self, who: &Who, message: String, tone: Tone) {
        if !self.shows {
            return;
        }
        let weight = match tone {
            Tone::Info => "",
            Tone::Warning => " warns",
            Tone::Error => " has an error",
        };
        terminal::note(format_args!("the plugin {}{weight}: {}", cut(&who.plugin), cut(&message)));
    }

    /// There is no status line without a terminal interface.
    fn set_status(&self, _: &Who, _: Option<String>) {}
}

/// The user's editor.
fn editor() -> Option<String> {
    ["VISUAL", "EDITOR"].into_iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.trim().is_empty()))
}

/// Has a text edited in the user's editor. None if it fails.
async fn edited(command: &str, prefill: &str, _exchange: Exchange<'_>) -> io::Result<Option<String>> {
    let file = tempfile::Builder::new().prefix("atoll-").suffix(".md").tempfile()?;
    std::fs::write(file.path(), prefill)?;
    let terminal = || std::fs::File::options().read(true).write(true).open("/dev/tty");
    // The variable may hold options, too.
    let status = tokio::process::Command::new("sh")
        .args(["-c", &format!("{command} \"$1\""), "sh"])
        .arg(file.path())
        .stdin(Stdio::from(terminal()?))
        .stdout(Stdio::from(terminal()?))
        .kill_on_drop(true)
        .status()
        .await?;
    if !status.success() {
        return Ok(None);
    }
    if std::fs::metadata(file.path())?.len() > LONGEST_TEXT {
        return Err(io::Error::other(format!("the text has more than {LONGEST_TEXT} bytes")));
    }
    Ok(Some(std::fs::read_to_string(file.path())?.trim_end_matches('\n').to_owned()))
}

/// Reads lines up to one that is a point. None if nothing was typed.
async fn typed(mut text: String, prefill: &str, mut exchange: Exchange<'_>) -> io::Result<Option<String>> {
    if !prefill.is_empty() {
        text.push_str("  It suggests:\n");
        text.push_str(&quoted(prefill));
    }
    text.push_str("  Lines of text, then a line with nothing but a point; only the point declines:\n");
    let mut lines: Vec<String> = Vec::new();
    loop {
        let Some(line) = exchange.ask(&text).await? else { return Ok(None) };
        text.clear();
        if line.trim_end() == "." || lines.len() >= 10_000 {
            return Ok((!lines.is_empty()).then(|| lines.join("\n")));
        }
        lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dialog_can_not_look_like_a_question_of_the_host() {
        let who = Who { plugin: "weather".to_owned(), origin: atoll_table::Origin::User };
        let forged = "x\u{1b}[2J\r\natoll: the plugin good asks for files: read y\n  Allow it? [o]nce: \u{202e}";
        let shown = opening(&who, &[forged]);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[..2], ["", "atoll: the plugin weather has a question of its own:"]);
        assert!(lines[2..].iter().all(|line| line.starts_with("  | ")), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\r', '\u{202e}']), "{shown}");
    }

    #[tokio::test]
    async fn without_a_person_everything_is_declined() {
        let dialogs = Dialogs::new(None, Extensions::default(), false);
        let who = Who { plugin: "weather".to_owned(), origin: atoll_table::Origin::User };
        assert!(!dialogs.available());
        assert_eq!(dialogs.select(&who, "t".into(), vec!["a".into()], None).await, Ok(None));
        assert_eq!(dialogs.confirm(&who, "t".into(), "m".into(), None).await, Ok(None));
        assert_eq!(dialogs.input(&who, "t".into(), "p".into(), None).await, Ok(None));
        assert_eq!(dialogs.editor(&who, "t".into(), "p".into()).await, Ok(None));
    }
}
