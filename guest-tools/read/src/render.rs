//! The lines of a file as the model and scripts get them.

use atoll_plugin::Error;
use atoll_tool_text::{Cut, MAX_BYTES, MAX_LINES, floor_boundary, format_size, head, showing, with_footer};

use crate::window::Contents;

/// Bytes shown of a line that is too long to be shown whole.
const PREVIEW: usize = 2000;

/// The two forms of a result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rendered {
    /// With notes and, where nothing could be seen, a remark. Never blank: some servers refuse blank texts.
    pub(crate) for_model: String,
    /// The text, with a footer only if it was cut.
    pub(crate) for_scripts: String,
}

/// Cuts the text to the limits and says what is missing. `limit`: as the caller gave it. Fails with
/// `invalid-arguments` if the file ends before the first line to show.
pub(crate) fn render(contents: &Contents, path: &str, limit: Option<usize>) -> Result<Rendered, Error> {
    let Contents { first, total, .. } = *contents;
    if total == 0 && first == 1 {
        return Ok(Rendered { for_model: "(empty file)".to_owned(), for_scripts: String::new() });
    }
    if first > total {
        return Err(Error::invalid_arguments(format!(
            "Offset {first} is past the end of {path}, which has {total} line{}.",
            if total == 1 { "" } else { "s" }
        )));
    }
    let want = limit.unwrap_or(MAX_LINES).min(MAX_LINES);
    let shown = head(&contents.text, want, MAX_BYTES);
    if shown.lines == 0 {
        let text = oversized(contents, path);
        return Ok(Rendered { for_model: noted(&text, contents, &text), for_scripts: text });
    }
    let last = first + shown.lines - 1;
    let next = format!("Use offset={} to continue.", last + 1);
    // The window stops early at the byte limit, possibly just at the end of a line.
    let text = if shown.cut == Some(Cut::Bytes) || (last < total && shown.lines < want) {
        with_footer(shown.text, &showing(first, last, total, Cut::Bytes, &next))
    } else if last == total {
        shown.text.to_owned()
    } else if limit.is_some_and(|limit| limit <= MAX_LINES) {
        let more = total - last;
        with_footer(shown.text, &format!("[{more} more line{} in file. {next}]", if more == 1 { "" } else { "s" }))
    } else {
        with_footer(shown.text, &showing(first, last, total, Cut::Lines, &next))
    };
    let for_model = if text.trim().is_empty() {
        format!("(nothing but white space on lines {first} to {last})")
    } else {
        noted(&text, contents, shown.text)
    };
    Ok(Rendered { for_model, for_scripts: text })
}

/// The start of a line that is too long, and how to see more of it.
fn oversized(contents: &Contents, path: &str) -> String {
    let preview = &contents.text[..floor_boundary(&contents.text, PREVIEW)];
    let footer = format!(
        "[Line {line} is {size}, exceeds {limit} limit. Use bash: sed -n '{line}p' {path} | head -c {MAX_BYTES}]",
        line = contents.first,
        size = format_size(contents.first_line_bytes),
        limit = format_size(MAX_BYTES as u64),
        path = quoted(path),
    );
    with_footer(preview, &footer)
}

/// Adds a note if `shown` has replacement characters that are not the file's own.
fn noted(text: &str, contents: &Contents, shown: &str) -> String {
    if contents.lossy && shown.contains(char::REPLACEMENT_CHARACTER) {
        with_footer(text, "[Some bytes are not valid UTF-8; each is shown as U+FFFD.]")
    } else {
        text.to_owned()
    }
}

/// A path as one word of a shell command.
fn quoted(path: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@%:,=".contains(c);
    if !path.is_empty() && path.chars().all(plain) && !path.starts_with('-') {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Window;

    fn read(text: &[u8], offset: Option<usize>, limit: Option<usize>) -> Result<String, String> {
        let mut window = Window::new(offset, limit);
        window.push(text);
        render(&window.finish(), "f.txt", limit).map(|rendered| rendered.for_model).map_err(|error| error.message())
    }

    fn lines(count: usize) -> Vec<u8> {
        (1..=count).map(|n| format!("line {n}\n")).collect::<String>().into_bytes()
    }

    #[test]
    fn a_whole_file_is_shown_as_it_is() {
        assert_eq!(read(b"a\r\nb\n", None, None).as_deref(), Ok("a\r\nb\n"));
        assert_eq!(read(b"a\nb\n", Some(0), Some(2)).as_deref(), Ok("a\nb\n"));
        assert_eq!(read(b"a\nb\n", Some(2), None).as_deref(), Ok("b\n"));
    }

    #[test]
    fn more_lines_than_the_limit() {
        let text = read(&lines(5000), None, None).expect("readable");
        assert!(text.ends_with("line 2000\n\n[Showing lines 1-2000 of 5000. Use offset=2001 to continue.]"));
        let text = read(&lines(5000), Some(3001), Some(9999)).expect("readable");
        assert!(text.ends_with("line 5000\n"));
    }

    #[test]
    fn more_bytes_than_the_limit() {
        let text = "0123456789".repeat(100) + "\n";
        let text = read(text.repeat(100).as_bytes(), Some(10), None).expect("readable");
        assert!(text.ends_with("\n\n[Showing lines 10-60 of 100 (50.0KB limit). Use offset=61 to continue.]"));
    }

    #[test]
    fn the_byte_limit_at_the_end_of_a_line() {
        let text = "x".repeat(MAX_BYTES) + "\nmore\n";
        let text = read(text.as_bytes(), None, Some(5)).expect("readable");
        assert!(text.ends_with("x\n\n[Showing lines 1-1 of 2 (50.0KB limit). Use offset=2 to continue.]"));
    }

    #[test]
    fn the_callers_own_limit() {
        assert_eq!(
            read(&lines(5), Some(2), Some(1)).as_deref(),
            Ok("line 2\n\n[3 more lines in file. Use offset=3 to continue.]")
        );
        assert!(read(&lines(5), Some(2), Some(4)).is_ok_and(|text| text.ends_with("line 5\n")));
        assert!(read(&lines(5000), None, Some(2001)).is_ok_and(|text| text.contains("[Showing lines 1-2000 of 5000.")));
    }

    #[test]
    fn a_line_that_is_too_long_is_begun() {
        let text = read("é".repeat(40_000).as_bytes(), None, None).expect("readable");
        assert!(text.starts_with("éé"));
        assert!(
            text.ends_with(
                "é\n\n[Line 1 is 78.1KB, exceeds 50.0KB limit. Use bash: sed -n '1p' f.txt | head -c 51200]"
            )
        );
        assert!(text.len() < PREVIEW + 200);
    }

    #[test]
    fn past_the_end() {
        assert_eq!(read(b"a\n", Some(2), None), Err("Offset 2 is past the end of f.txt, which has 1 line.".to_owned()));
        assert_eq!(read(b"", Some(2), None), Err("Offset 2 is past the end of f.txt, which has 0 lines.".to_owned()));
    }

    #[test]
    fn nothing_to_see_is_said() {
        assert_eq!(read(b"", None, None).as_deref(), Ok("(empty file)"));
        assert_eq!(read(b"\n \n", None, None).as_deref(), Ok("(nothing but white space on lines 1 to 2)"));
    }

    #[test]
    fn replaced_bytes_are_noted_where_they_are_shown() {
        let text = read(b"caf\xe9\nb\n", None, None).expect("readable");
        assert_eq!(text, "caf\u{fffd}\nb\n\n[Some bytes are not valid UTF-8; each is shown as U+FFFD.]");
        assert_eq!(read(b"caf\xe9\nb\n", Some(2), None).as_deref(), Ok("b\n"));
        assert_eq!(read("its own \u{fffd}\n".as_bytes(), None, None).as_deref(), Ok("its own \u{fffd}\n"));
    }

    #[test]
    fn paths_are_quoted_for_the_shell() {
        assert_eq!(quoted("src/a-b.rs"), "src/a-b.rs");
        assert_eq!(quoted("my file"), "'my file'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
