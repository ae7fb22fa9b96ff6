//! What a model gets of a result that says how long it may be: the beginning and the end, and where the whole is.
//!
//! Only a model gets it so: scripts, other tools and people get all of it. Nothing here may lose text without saying so.

use std::path::PathBuf;

use atoll_table::{Content, Error, Shaping, ToolOutput};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use unicode_segmentation::UnicodeSegmentation as _;

/// The longest first piece that is taken for a heading, in characters, and left as it is.
const MAX_HEADING: usize = 500;

/// Keeps what is too long to show. Blocks for as long as a disk takes.
pub trait Spill: Send + Sync {
    /// Writes a new file whose name begins with `name` and ends with `ending`; gives its path.
    ///
    /// # Errors
    /// Why it can not be written.
    fn save(&self, name: &str, ending: &str, bytes: &[u8]) -> Result<PathBuf, Error>;
}

/// What a model gets. Without a wish of the tool's, all of it. `tool` is what files are named after. Blocks as `spill` does.
#[must_use]
pub fn shaped(mut output: ToolOutput, tool: &str, spill: Option<&dyn Spill>) -> ToolOutput {
    let Some(Shaping { max_chars, save_images }) = output.aside.take().and_then(|aside| aside.shaping) else {
        return output;
    };
    keep_files(&mut output, tool, spill);
    let pictures = if save_images { save_pictures(&output, tool, spill) } else { Vec::new() };
    output = shortened(output, max_chars, tool, spill);
    if !pictures.is_empty() {
        output.content.push(Content::text(pictures.join("\n")));
    }
    output
}

/// The same with at most so many characters of text behind its heading.
fn shortened(mut output: ToolOutput, max_chars: usize, tool: &str, spill: Option<&dyn Spill>) -> ToolOutput {
    // A first piece beside others says how it went, and is not what it gave.
    let heading = match output.content.as_slice() {
        [Content::Text { text }, _, ..] if text.chars().count() <= MAX_HEADING => 1,
        _ => 0,
    };
    let rest = output.content.split_off(heading);
    let text = Content::joined_text(&rest);
    let length = text.chars().count();
    if length <= max_chars {
        output.content.extend(rest);
        return output;
    }
    let (head, tail) = ends(&text, max_chars);
    let left_out = length - head.chars().count() - tail.chars().count();
    let whole = saved(spill, tool, "log", text.as_bytes());
    let where_it_is = match &whole {
        Ok(path) => format!("Whole output: {} (read it with offset and limit)", path.display()),
        Err(reason) => format!("The whole output could not be kept: {reason}"),
    };
    let short = format!("{head}\n… {left_out} characters left out …\n{tail}\n\n{where_it_is}");
    output.content.push(Content::text(short));
    output.content.extend(rest.into_iter().filter(|piece| matches!(piece, Content::Image { .. })));
    if let (Ok(path), details) = (whole, output.details.get_or_insert_with(|| json!({})))
        && let Value::Object(details) = details
    {
        details.insert("fullOutputPath".to_owned(), json!(path));
        // The pieces are others now.
        details.remove("parts");
    }
    output
}

/// The beginning and the end of a text that is longer than `max` characters: as much as that together, about half each, at
/// line ends where one is near, and never within what a reader sees as one character.
fn ends(text: &str, max: usize) -> (&str, &str) {
    let half = max / 2;
    let head = beginning(text, max - half);
    let tail = ending(&text[head.len()..], half);
    (head, tail)
}

/// Where the character `count` of a text begins.
fn byte_of(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

/// At most so many characters from the start.
fn beginning(text: &str, max: usize) -> &str {
    let cut = byte_of(text, max);
    let kept = &text[..cut];
    // A line end in the last fifth.
    if let Some(at) = kept.rfind('\n')
        && kept[at..].chars().count() <= max / 5
    {
        return &kept[..at];
    }
    &kept[..boundary_before(text, cut)]
}

/// At most so many characters from the end.
fn ending(text: &str, max: usize) -> &str {
    let skipped = text.chars().count().saturating_sub(max);
    let cut = byte_of(text, skipped);
    let kept = &text[cut..];
    if let Some(at) = kept.find('\n')
        && kept[..at].chars().count() <= max / 5
    {
        return &kept[at + 1..];
    }
    &text[boundary_after(text, cut)..]
}

/// How far around a cut the bounds of graphemes are looked for, in characters. Longer ones are made to be long.
const NEAR: usize = 64;

/// The last bound of a grapheme at or before a byte.
fn boundary_before(text: &str, cut: usize) -> usize {
    let from = text[..cut].char_indices().rev().nth(NEAR).map_or(0, |(at, _)| at);
    let to = cut + byte_of(&text[cut..], 1);
    let bounds = text[from..to].grapheme_indices(true).map(|(at, _)| from + at);
    bounds.take_while(|at| *at <= cut).last().filter(|at| *at > from || from == 0).unwrap_or(cut)
}

/// The first bound of a grapheme at or after a byte.
fn boundary_after(text: &str, cut: usize) -> usize {
    let from = text[..cut].char_indices().rev().nth(NEAR).map_or(0, |(at, _)| at);
    let to = cut + byte_of(&text[cut..], NEAR);
    let mut bounds = text[from..to].grapheme_indices(true).map(|(at, _)| from + at);
    bounds.find(|at| *at >= cut).unwrap_or(if to == text.len() { to } else { cut })
}

fn saved(spill: Option<&dyn Spill>, name: &str, ending: &str, bytes: &[u8]) -> Result<PathBuf, String> {
    let spill = spill.ok_or_else(|| "there is no folder for it".to_owned())?;
    spill.save(name, ending, bytes).map_err(|error| error.to_string())
}

/// Puts bytes that are no picture into files, and where they are in their place: a model sees pictures, and reads text.
fn keep_files(output: &mut ToolOutput, tool: &str, spill: Option<&dyn Spill>) {
    let mut count = 0;
    for piece in &mut output.content {
        let Content::Image { data, mime_type } = piece else { continue };
        if mime_type.starts_with("image/") {
            continue;
        }
        count += 1;
        let bytes = STANDARD.decode(&*data).map_err(|_| "it is not base64".to_owned());
        let size = bytes.as_ref().map_or(0, Vec::len);
        let path = bytes.and_then(|bytes| saved(spill, &format!("{tool}-file{count}"), file_ending(mime_type), &bytes));
        let kind: String = mime_type.chars().filter(|c| !c.is_control()).take(MAX_KIND).collect();
        *piece = Content::text(match path {
            Ok(path) => format!("File saved: {} ({kind}, {size} bytes)", path.display()),
            Err(reason) => format!("A file of the type {kind} could not be saved: {reason}"),
        });
    }
}

/// The longest media type that is shown, in characters.
const MAX_KIND: usize = 100;

/// How the name of a file of this type ends.
fn file_ending(mime_type: &str) -> &'static str {
    match mime_type.split(';').next().unwrap_or_default().trim() {
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/gzip" | "application/x-gzip" => "gz",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "video/mp4" => "mp4",
        _ => "bin",
    }
}

/// Saves the pictures, and says where: a line each.
fn save_pictures(output: &ToolOutput, tool: &str, spill: Option<&dyn Spill>) -> Vec<String> {
    let mut lines = Vec::new();
    for piece in &output.content {
        let Content::Image { data, mime_type } = piece else { continue };
        let ending = match mime_type.as_str() {
            "image/jpeg" => "jpg",
            "image/gif" => "gif",
            "image/webp" => "webp",
            _ => "png",
        };
        let number = lines.len() + 1;
        let bytes = STANDARD.decode(data).map_err(|_| "it is not base64".to_owned());
        let size = bytes.as_ref().map_or(0, Vec::len).div_ceil(1024);
        let path = bytes.and_then(|bytes| saved(spill, &format!("{tool}-picture{number}"), ending, &bytes));
        lines.push(match path {
            Ok(path) => format!("Picture saved: {} ({mime_type}, {size} KiB)", path.display()),
            Err(reason) => format!("Picture {number} could not be saved: {reason}"),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use atoll_table::Aside;
    use proptest::prelude::*;

    use super::*;

    /// Writes nothing down.
    #[derive(Default)]
    struct Folder(Mutex<Vec<(String, Vec<u8>)>>);

    impl Spill for Folder {
        fn save(&self, name: &str, ending: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
            let name = format!("/spill/{name}.{ending}");
            self.0.lock().unwrap().push((name.clone(), bytes.to_vec()));
            Ok(name.into())
        }
    }

    fn output(pieces: &[&str], max_chars: usize) -> ToolOutput {
        ToolOutput {
            content: pieces.iter().map(|text| Content::text(*text)).collect(),
            aside: Some(Box::new(Aside {
                shaping: Some(Shaping { max_chars, save_images: true }),
                ..Aside::default()
            })),
            ..ToolOutput::default()
        }
    }

    fn texts(output: &ToolOutput) -> Vec<String> {
        output.content.iter().map(|piece| Content::joined_text(std::slice::from_ref(piece))).collect()
    }

    #[test]
    fn what_fits_stays_and_what_does_not_keeps_its_ends() {
        let folder = Folder::default();
        let fits = shaped(output(&["Completed.", "one", "two"], 7), "codemode", Some(&folder));
        assert_eq!(texts(&fits), ["Completed.", "one", "two"]);
        assert!(folder.0.lock().unwrap().is_empty());
        let lines: String = (0..100).map(|line| format!("line {line:02}\n")).collect();
        let long = shaped(output(&["Completed.", &lines, "the end"], 50), "codemode", Some(&folder));
        insta::assert_snapshot!(texts(&long).join("\n======\n"));
        assert_eq!(long.details, Some(json!({"fullOutputPath": "/spill/codemode.log"})));
        assert_eq!(
            *folder.0.lock().unwrap(),
            [("/spill/codemode.log".to_owned(), format!("{lines}\nthe end").into_bytes())]
        );
    }

    #[test]
    fn without_a_wish_nothing_changes_and_without_a_file_it_says_why() {
        let plain = ToolOutput { content: vec![Content::text("x".repeat(9_999))], ..ToolOutput::default() };
        assert_eq!(shaped(plain.clone(), "t", None), plain);
        let lost = shaped(output(&[&"x".repeat(99)], 10), "t", None);
        let text = Content::joined_text(&lost.content);
        assert!(text.ends_with("xxxxx\n\nThe whole output could not be kept: there is no folder for it"), "{text}");
        assert!(text.contains("… 89 characters left out …"), "{text}");
    }

    #[test]
    fn pictures_stay_and_are_saved() {
        let folder = Folder::default();
        let picture = Content::Image { data: STANDARD.encode([1, 2, 3]), mime_type: "image/jpeg".to_owned() };
        let mut with = output(&["Completed.", &"x".repeat(99)], 10);
        with.content.insert(1, picture.clone());
        let shaped = shaped(with, "codemode", Some(&folder));
        assert!(shaped.content.contains(&picture));
        let text = Content::joined_text(&shaped.content);
        assert!(text.contains("Picture saved: /spill/codemode-picture1.jpg (image/jpeg, 1 KiB)"), "{text}");
        assert_eq!(folder.0.lock().unwrap()[0].1, [1, 2, 3]);
    }

    #[test]
    fn bytes_that_are_no_picture_become_a_file() {
        let folder = Folder::default();
        let file =
            |mime_type: &str, data: &str| Content::Image { data: data.to_owned(), mime_type: mime_type.to_owned() };
        let picture = file("image/png", "AQID");
        let mut with = output(&["two files"], 1_000);
        with.content.extend([file("application/pdf", "AQID"), picture.clone(), file("x/y\n; a=b", "*")]);
        with.aside = Some(Box::new(Aside {
            shaping: Some(Shaping { max_chars: 1_000, save_images: false }),
            ..Aside::default()
        }));
        let shaped = shaped(with, "t", Some(&folder));
        assert_eq!(
            texts(&shaped),
            [
                "two files",
                "File saved: /spill/t-file1.pdf (application/pdf, 3 bytes)",
                "",
                "A file of the type x/y; a=b could not be saved: it is not base64"
            ]
        );
        assert!(shaped.content.contains(&picture));
        assert_eq!(*folder.0.lock().unwrap(), [("/spill/t-file1.pdf".to_owned(), vec![1, 2, 3])]);
    }

    #[test]
    fn what_is_one_character_to_a_reader_is_not_cut() {
        let family = "👨‍👩‍👧‍👦";
        let text = family.repeat(30);
        for max in 1..60 {
            let (head, tail) = ends(&text, max);
            for kept in [head, tail] {
                assert_eq!(kept.len() % family.len(), 0, "{max}: {kept:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn ends_are_ends_and_no_longer_than_they_may_be(text in "(\\PC|\n){0,200}", max in 0..150_usize) {
            prop_assume!(text.chars().count() > max);
            let (head, tail) = ends(&text, max);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert!(head.chars().count() + tail.chars().count() <= max);
            prop_assert!(head.len() + tail.len() <= text.len());
        }

        #[test]
        fn a_shaped_result_is_hardly_longer_than_it_may_be(text in "(\\PC|\n){0,400}", max in 0..300_usize) {
            let shaped = shaped(output(&[&text], max), "t", Some(&Folder::default()));
            let length = Content::joined_text(&shaped.content).chars().count();
            prop_assert!(length <= max + 400, "{length}");
        }
    }
}
