//! A line as it is shown: not longer than a model can use, and never without what matched.

use std::ops::Range;

/// UTF-16 units of a line that are shown at most.
pub(crate) const MAX_UNITS: usize = 500;

/// Bytes around a match that are looked at to show a part of a long line.
const NEAR: usize = 8 << 10;

const CUT: &str = "[truncated]";

/// A line without its end as text. One that is too long is cut around `matched`; then the second value is true.
pub(crate) fn shown(line: &[u8], matched: Option<Range<usize>>) -> (String, bool) {
    let line = without_end(line);
    let matched = matched.map_or(0..0, |range| range.start.min(line.len())..range.end.min(line.len()));
    let from = if line.len() > 3 * NEAR { matched.start.saturating_sub(NEAR) } else { 0 };
    let to = if line.len() > 3 * NEAR { matched.start.saturating_add(2 * NEAR).min(line.len()) } else { line.len() };
    let (before, rest) = line[from..to].split_at(matched.start - from);
    let (inside, after) = rest.split_at((matched.end - matched.start).min(rest.len()));
    let [before, inside, after] = [before, inside, after].map(text);
    cut(&before, &inside, &after, from > 0, to < line.len())
}

/// The bytes of a line without the line end.
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// As text, without carriage returns, which would hide what stands before them.
fn text(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    text.retain(|c| c != '\r');
    text
}

/// `more_before` and `more_after`: the line goes on beyond what is given.
fn cut(before: &str, inside: &str, after: &str, more_before: bool, more_after: bool) -> (String, bool) {
    let whole = [before, inside, after].concat();
    let (units_before, units_inside) = (units(before), units(inside));
    let total = units_before + units_inside + units(after);
    if total <= MAX_UNITS && !more_before && !more_after {
        return (whole, false);
    }
    let start = if !more_before && units_before + units_inside <= MAX_UNITS {
        0
    } else {
        // As much on both sides; at the line's end, more before it.
        let side = MAX_UNITS.saturating_sub(units_inside) / 2;
        units_before.saturating_sub(side).min(total.saturating_sub(MAX_UNITS))
    };
    let (from, to) = window(&whole, start);
    let head = if from > 0 || more_before { format!("{CUT} ...") } else { String::new() };
    let tail = if to < whole.len() || more_after { format!("... {CUT}") } else { String::new() };
    (format!("{head}{}{tail}", &whole[from..to]), true)
}

fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The bytes of the whole characters in the `MAX_UNITS` units from `start` on.
fn window(text: &str, start: usize) -> (usize, usize) {
    let (mut at, mut from, mut to) = (0, None, text.len());
    for (byte, c) in text.char_indices() {
        if at >= start && from.is_none() {
            from = Some(byte);
        }
        at += c.len_utf16();
        if at > start + MAX_UNITS {
            to = byte;
            break;
        }
    }
    (from.unwrap_or(text.len()).min(to), to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn short_lines_are_whole() {
        assert_eq!(shown(b"abc\r\n", Some(0..1)), ("abc".to_owned(), false));
        assert_eq!(shown(b"a\rb\xff\n", None), ("ab\u{fffd}".to_owned(), false));
        let line = "x".repeat(MAX_UNITS);
        assert_eq!(shown(line.as_bytes(), None), (line, false));
    }

    #[test]
    fn a_match_in_the_head_keeps_the_head() {
        let line = "x".repeat(MAX_UNITS + 1);
        assert_eq!(shown(line.as_bytes(), Some(0..9)), (format!("{}... [truncated]", "x".repeat(MAX_UNITS)), true));
    }

    #[test]
    fn a_match_further_on_is_in_the_middle() {
        let line = format!("{}needle{}", "x".repeat(100_000), "y".repeat(100_000));
        let (text, cut) = shown(line.as_bytes(), Some(100_000..100_006));
        let side = "x".repeat(247);
        assert_eq!(text, format!("[truncated] ...{side}needle{}... [truncated]", side.replace('x', "y")));
        assert!(cut);
    }

    #[test]
    fn a_match_at_the_end_shows_more_before_it() {
        let line = format!("{}needle\n", "x".repeat(1_000));
        let (text, _) = shown(line.as_bytes(), Some(1_000..1_006));
        assert_eq!(text, format!("[truncated] ...{}needle", "x".repeat(494)));
    }

    proptest! {
        #[test]
        fn the_start_of_the_match_is_shown(
            before in "[a\u{e9}\u{1f600}]{0,900}",
            inside in "[b\u{1f680}]{1,700}",
            after in "[a\u{e9}\u{1f600}]{0,900}",
        ) {
            let line = format!("{before}{inside}{after}");
            let (text, cut) = shown(line.as_bytes(), Some(before.len()..before.len() + inside.len()));
            prop_assert!(text.contains(inside.chars().next().unwrap_or('b')));
            prop_assert_eq!(cut, text != line);
            let body = text.strip_prefix("[truncated] ...").unwrap_or(&text);
            let body = body.strip_suffix("... [truncated]").unwrap_or(body);
            prop_assert!(line.contains(body));
            prop_assert!(units(body) <= MAX_UNITS);
        }
    }
}
