//! Sizes and the lines in brackets that follow a text.

use crate::{Cut, MAX_BYTES};

/// A size for people: `12B`, `3.4KB`, `5.6MB`, in steps of 1024.
pub fn format_size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = KIB * KIB;
    match bytes {
        0..KIB => format!("{bytes}B"),
        KIB..MIB => tenths(bytes, KIB, "KB"),
        _ => tenths(bytes, MIB, "MB"),
    }
}

/// `bytes / unit` with one digit after the point, rounded half up.
fn tenths(bytes: u64, unit: u64, name: &str) -> String {
    let tenths = (u128::from(bytes) * 10 + u128::from(unit) / 2) / u128::from(unit);
    format!("{}.{}{name}", tenths / 10, tenths % 10)
}

/// Adds a line in brackets or a status to a text, after a blank line.
pub fn with_footer(text: &str, footer: &str) -> String {
    let body = text.strip_suffix("\r\n").or_else(|| text.strip_suffix('\n')).unwrap_or(text);
    if body.is_empty() { footer.to_owned() } else { format!("{body}\n\n{footer}") }
}

/// The footer of a text that was cut to whole lines: `[Showing lines A-B of N. NEXT]`, with the byte limit named
/// if that is what cut it. Lines count from 1; `next` says how to see the rest.
pub fn showing(first: usize, last: usize, total: usize, cut: Cut, next: &str) -> String {
    let limit = match cut {
        Cut::Lines => String::new(),
        Cut::Bytes => format!(" ({} limit)", format_size(MAX_BYTES as u64)),
    };
    format!("[Showing lines {first}-{last} of {total}{limit}. {next}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(format_size(0), "0B");
        assert_eq!(format_size(1023), "1023B");
        assert_eq!(format_size(1024), "1.0KB");
        assert_eq!(format_size(51_200), "50.0KB");
        assert_eq!(format_size(1_048_575), "1024.0KB");
        assert_eq!(format_size(5 * 1_048_576 + 500_000), "5.5MB");
        assert_eq!(format_size(u64::MAX), "17592186044416.0MB");
    }

    #[test]
    fn footers_follow_a_blank_line() {
        assert_eq!(with_footer("a\n", "[x]"), "a\n\n[x]");
        assert_eq!(with_footer("a", "[x]"), "a\n\n[x]");
        assert_eq!(with_footer("", "[x]"), "[x]");
    }

    #[test]
    fn showing_names_the_byte_limit() {
        assert_eq!(showing(1, 2, 9, Cut::Lines, "Go on."), "[Showing lines 1-2 of 9. Go on.]");
        assert_eq!(showing(1, 2, 9, Cut::Bytes, "Go on."), "[Showing lines 1-2 of 9 (50.0KB limit). Go on.]");
    }
}
