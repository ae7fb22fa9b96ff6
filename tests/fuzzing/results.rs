//! What comes back to a model of what its scripts said. What it sends is fuzzed beside the code that reads it, in
//! `guest-tools/codemode/src/source_tests.rs`.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use atoll_agent::shape::{Spill, shaped};
use atoll_table::{Aside, Content, Error, Shaping, ToolOutput};

use super::{budget, fuzz};

/// Keeps what was written last.
#[derive(Default)]
struct Kept(Mutex<Option<Vec<u8>>>);

impl Spill for Kept {
    fn save(&self, name: &str, ending: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes.to_vec());
        Ok(format!("/spill/{name}.{ending}").into())
    }
}

/// The most that may be there beside what was kept of a text: what was left out, and where it is.
const BESIDE: usize = 400;

#[test]
fn no_result_however_odd_is_shown_longer_than_it_may_be_or_lost() {
    let family = "👨‍👩‍👧‍👦".repeat(40);
    let inputs = [
        "one\0two\0three",
        "Completed in 0.01 s.\0a\nb\nc\nd\ne\nf\n",
        &family,
        "e\u{301}\u{301}\u{301}\r\n\r\n",
        "\u{202e}x\0\0\0",
    ];
    // The first two bytes say how much may be shown.
    let inputs = inputs.iter().map(|text| [&[9, 0], text.as_bytes()].concat()).collect();
    let target = |input: &[u8]| -> Result<(), String> {
        let [low, high, rest @ ..] = input else { return Ok(()) };
        let max_chars = usize::from(u16::from_le_bytes([*low, *high % 16]));
        let text = String::from_utf8_lossy(rest);
        let pieces: Vec<&str> = text.split('\0').collect();
        let output = ToolOutput {
            content: pieces.iter().map(|piece| Content::text(*piece)).collect(),
            aside: Some(Box::new(Aside {
                shaping: Some(Shaping { max_chars, save_images: true }),
                ..Aside::default()
            })),
            ..ToolOutput::default()
        };
        let before = output.content.clone();
        let kept = Kept::default();
        let shown = shaped(output, "tool", Some(&kept));
        let kept = kept.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        if shown.content == before {
            return match kept {
                None => Ok(()),
                Some(_) => Err("what is shown whole was kept, too".to_owned()),
            };
        }
        let heading = usize::from(shown.content.len() > 1 && shown.content.first() == before.first());
        let whole = Content::joined_text(&before[heading..]);
        let short = Content::joined_text(&shown.content[heading..]);
        if kept.as_deref() != Some(whole.as_bytes()) {
            return Err(format!("what was kept is not the whole: {whole:?}"));
        }
        if short.chars().count() > max_chars + BESIDE {
            return Err(format!("{} characters are shown of {max_chars}", short.chars().count()));
        }
        let (head, after) = short.split_once("\n… ").ok_or("nothing says that something is left out")?;
        if !whole.starts_with(head) {
            return Err(format!("{head:?} is not how it begins: {whole:?}"));
        }
        let tail = after.rsplit_once("\n\nWhole output: ").map(|(rest, _)| rest);
        let tail = tail.and_then(|rest| rest.split_once(" characters left out …\n")).map(|(_, tail)| tail);
        match tail {
            Some(tail) if whole.ends_with(tail) => Ok(()),
            tail => Err(format!("{tail:?} is not how it ends: {whole:?}")),
        }
    };
    fuzz("results", budget(50), inputs, &target);
}
