//! What a script says, and how the model is shown it.
//!
//! Pure. All of it is kept; how much of it the model reads is for the host to say.

use atoll_js::Level;
use atoll_plugin::Content;
use atoll_plugin::types::Blob;

/// Characters of all texts and lines together.
const CHARACTERS: usize = 16 << 20;
/// Bytes of all of it, pictures among them: what a result may have, with room for the rest of it.
const BYTES: usize = 64 << 20;
/// Texts, pictures and lines together.
const ITEMS: usize = 100_000;
/// How much of it somebody who looks on is shown, in characters.
const LAST: usize = 16_384;

enum Item {
    Text(String),
    Image(Blob),
}

/// All that was said.
#[derive(Default)]
pub(crate) struct Output {
    items: Vec<Item>,
    console: Vec<(Level, String)>,
    /// What the script should know of that is no error of its own.
    notes: Vec<String>,
    characters: usize,
    bytes: usize,
    /// Something was added since it was last looked at.
    changed: bool,
}

/// There is too much of it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl Output {
    fn take(&mut self, characters: usize, bytes: usize) -> Result<(), Full> {
        let (characters, bytes) = (self.characters.saturating_add(characters), self.bytes.saturating_add(bytes));
        if characters > CHARACTERS || bytes > BYTES || self.items.len() + self.console.len() >= ITEMS {
            return Err(Full);
        }
        (self.characters, self.bytes) = (characters, bytes);
        self.changed = true;
        Ok(())
    }

    /// # Errors
    /// There is too much with this, and it is not kept.
    pub(crate) fn text(&mut self, text: String) -> Result<(), Full> {
        self.take(text.chars().count(), text.len())?;
        self.items.push(Item::Text(text));
        Ok(())
    }

    /// # Errors
    /// As [`Output::text`].
    pub(crate) fn image(&mut self, data: Vec<u8>, mime_type: String) -> Result<(), Full> {
        self.take(0, data.len())?;
        self.items.push(Item::Image(Blob { data, mime_type }));
        Ok(())
    }

    /// # Errors
    /// As [`Output::text`].
    pub(crate) fn line(&mut self, level: Level, line: &str) -> Result<(), Full> {
        self.take(line.chars().count(), line.len())?;
        self.console.push((level, line.to_owned()));
        Ok(())
    }

    /// Each is kept once, and only so many.
    pub(crate) fn note(&mut self, note: String) {
        const MOST: usize = 20;
        if self.notes.len() < MOST && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// The script said nothing yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty() && self.console.is_empty()
    }

    pub(crate) fn has_changed(&self) -> bool {
        self.changed
    }

    /// How many texts and pictures there are.
    pub(crate) fn count(&self) -> usize {
        self.items.len()
    }

    /// Whether it changed since this was asked.
    pub(crate) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The end of it, for somebody who looks on.
    pub(crate) fn last(&self) -> String {
        let mut lines: Vec<&str> = Vec::new();
        let mut left = LAST;
        let console = self.console.iter().rev().map(|(_, line)| line.as_str());
        let items = self.items.iter().rev().filter_map(|item| match item {
            Item::Text(text) => Some(text.as_str()),
            Item::Image(_) => None,
        });
        for text in console.chain(items) {
            if left == 0 {
                break;
            }
            let shown = end_of(text, left);
            left = left.saturating_sub(shown.chars().count().max(1));
            lines.push(shown);
        }
        lines.reverse();
        lines.join("\n")
    }

    /// All of it, as the model reads it: after the line that says how it went, before that of the failure. Beside it what each
    /// piece is: `status`, `text`, `image`, `console` or `error`.
    pub(crate) fn into_content(self, status: String, failure: Option<String>) -> (Vec<Content>, Vec<&'static str>) {
        let mut content = vec![Content::Text(status)];
        let mut parts = vec!["status"];
        let is_text = |item: &&Item| matches!(item, Item::Text(_));
        let texts = self.items.iter().filter(is_text).count();
        let is_silent = self.items.is_empty() && self.console.is_empty();
        let mut number = 0;
        for item in self.items {
            parts.push(if is_text(&&item) { "text" } else { "image" });
            content.push(match item {
                Item::Text(text) if texts > 1 => {
                    number += 1;
                    Content::Text(format!("--- text {number} of {texts} ---\n{text}"))
                }
                Item::Text(text) => Content::Text(text),
                Item::Image(image) => Content::Image(image),
            });
        }
        if !self.console.is_empty() {
            let mut console = "--- console ---".to_owned();
            for (level, line) in self.console {
                console.push('\n');
                console.push_str(match level {
                    Level::Debug => "debug: ",
                    Level::Info => "",
                    Level::Warn => "warning: ",
                    Level::Error => "error: ",
                });
                console.push_str(&line);
            }
            parts.push("console");
            content.push(Content::Text(console));
        }
        if is_silent && failure.is_none() {
            parts.push("status");
            content.push(Content::Text("(no output; use `return` or `text()`)".to_owned()));
        }
        let ends: Vec<String> = self.notes.into_iter().chain(failure).collect();
        if !ends.is_empty() {
            parts.push("error");
            content.push(Content::Text(ends.join("\n")));
        }
        (content, parts)
    }
}

/// The last characters of a text.
fn end_of(text: &str, most: usize) -> &str {
    let mut all = text.char_indices().rev();
    match most.checked_sub(1).and_then(|last| all.nth(last)) {
        Some((start, _)) => text.get(start..).unwrap_or_default(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(output: Output, failure: Option<&str>) -> String {
        let (content, parts) = output.into_content("Completed.".to_owned(), failure.map(str::to_owned));
        assert_eq!(content.len(), parts.len());
        let pieces = content.iter().map(|piece| match piece {
            Content::Text(text) => text.clone(),
            Content::Image(image) => format!("[{} {}]", image.mime_type, image.data.len()),
        });
        pieces.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_was_said_has_sections() {
        assert_eq!(shown(Output::default(), None), "Completed.\n(no output; use `return` or `text()`)");
        assert_eq!(shown(Output::default(), Some("Error: x")), "Completed.\nError: x");
        let mut output = Output::default();
        output.text("one".to_owned()).unwrap();
        output.image(vec![1, 2], "image/png".to_owned()).unwrap();
        output.line(Level::Info, "a\nb").unwrap();
        output.text("two".to_owned()).unwrap();
        output.line(Level::Error, "c").unwrap();
        output.note("Note.".to_owned());
        output.note("Note.".to_owned());
        assert!(output.take_changed() && !output.take_changed());
        assert_eq!(output.last(), "one\ntwo\na\nb\nc");
        assert_eq!(
            shown(output, Some("Error: x")),
            "Completed.\n--- text 1 of 2 ---\none\n[image/png 2]\n--- text 2 of 2 ---\ntwo\n--- console ---\na\nb\nerror: c\n\
             Note.\nError: x"
        );
    }

    #[test]
    fn there_is_an_end_to_it() {
        let mut output = Output::default();
        assert_eq!(output.text("x".repeat(CHARACTERS)), Ok(()));
        assert_eq!(output.last().len(), LAST);
        assert_eq!(output.text("x".to_owned()), Err(Full));
        let mut output = Output::default();
        assert_eq!(output.image(vec![0; BYTES], "image/png".to_owned()), Ok(()));
        assert_eq!(output.image(vec![0], "image/png".to_owned()), Err(Full));
        let mut output = Output::default();
        for _ in 0..ITEMS {
            assert_eq!(output.text(String::new()), Ok(()));
        }
        assert_eq!((output.text(String::new()), output.line(Level::Info, "")), (Err(Full), Err(Full)));
    }
}
