//! Places in scripts: reading them from the stack of an error, and showing one.

/// A place in a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name that the script was run under.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1 in UTF-16 units. The engine counts bytes; it is converted where the source is known.
    pub column: u32,
}

/// The places that a stack of QuickJS names, innermost first. What has no line is left out.
pub(crate) fn of_stack(stack: &str) -> Vec<Place> {
    stack.lines().filter_map(of_line).collect()
}

/// `    at name (file:1:2)`, or without the name `    at file:1:2`.
fn of_line(line: &str) -> Option<Place> {
    let text = line.trim().strip_prefix("at ")?;
    let text = match (text.rfind(" ("), text.strip_suffix(')')) {
        (Some(open), Some(inside)) => inside.get(open + 2..)?,
        _ => text.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')).unwrap_or(text),
    };
    let (rest, column) = text.rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    Some(Place { file: file.to_owned(), line: line.parse().ok()?, column: column.parse().ok()? })
}

/// The column in UTF-16 units of a column in bytes.
pub(crate) fn utf16_column(line: &str, byte_column: u32) -> u32 {
    let bytes = byte_column.saturating_sub(1) as usize;
    let units = line.char_indices().take_while(|(at, _)| *at < bytes).map(|(_, one)| one.len_utf16()).sum::<usize>();
    u32::try_from(units).unwrap_or(u32::MAX).saturating_add(1)
}

/// The most of a line that is shown, in characters; more would be a bundle in one line.
const SHOWN: usize = 160;
/// How much is shown before a place in a longer line, in characters.
const LEAD: usize = 80;
/// A tab as it is shown: whoever shows it may write it in another way than anybody counts it.
const TAB: &str = "  ";

/// The line of a place with the one before it, and a mark below the column; `None` for a place that is not in the source. Of
/// a long line what is around the place is shown.
#[must_use]
pub fn frame(source: &str, place: &Place) -> Option<String> {
    let at = (place.line as usize).checked_sub(1)?;
    let lines: Vec<&str> = source.lines().collect();
    let line = *lines.get(at)?;
    let mut units = 1;
    let column = line
        .chars()
        .take_while(|one| {
            let here = units < place.column;
            units = units.saturating_add(u32::try_from(one.len_utf16()).unwrap_or(1));
            here
        })
        .count();
    let length = line.chars().count();
    let begin = if length > SHOWN { column.saturating_sub(LEAD).min(length.saturating_sub(SHOWN)) } else { 0 };
    let shown = |skip: usize, take: usize| -> String {
        line.chars().skip(skip).take(take).collect::<String>().replace('\t', TAB)
    };
    let width = place.line.to_string().len();
    let mut text = String::new();
    if let Some(before) = at.checked_sub(1).and_then(|before| lines.get(before))
        && before.chars().count() <= SHOWN
        && length <= SHOWN
    {
        text.push_str(&format!("  {:>width$} | {}\n", place.line - 1, before.replace('\t', TAB)));
    }
    let (open, close) = (if begin > 0 { "…" } else { "" }, if begin + SHOWN < length { "…" } else { "" });
    text.push_str(&format!("> {:>width$} | {open}{}{close}\n", place.line, shown(begin, SHOWN)));
    let pad = open.chars().count() + shown(begin, column.saturating_sub(begin)).chars().count();
    text.push_str(&format!("  {:>width$} | {:pad$}^", "", ""));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::{Place, frame, of_stack, utf16_column};

    #[test]
    fn a_stack_is_read_with_and_without_names() {
        let stack = "    at f (dir/a b.ts:3:14)\n    at <anonymous> (x.ts:1:2)\n    at native (native)\n    at y:9:8\n";
        let places: Vec<String> = of_stack(stack)
            .into_iter()
            .map(|place| format!("{}|{}|{}", place.file, place.line, place.column))
            .collect();
        assert_eq!(places, ["dir/a b.ts|3|14", "x.ts|1|2", "y|9|8"]);
    }

    #[test]
    fn columns_in_bytes_become_columns_in_utf_16_units() {
        assert_eq!([1, 3, 7, 8].map(|column| utf16_column("é😀x", column)), [1, 2, 4, 5]);
    }

    #[test]
    fn a_frame_marks_the_column() {
        let place = Place { file: "a".to_owned(), line: 10, column: 3 };
        let source = format!("{}const a;\n\t😀b();\n", "\n".repeat(8));
        assert_eq!(frame(&source, &place).as_deref(), Some("   9 | const a;\n> 10 |   😀b();\n     |    ^"));
        assert_eq!(frame("a", &place), None);
        let long = format!("first\n{}!here{}", "x".repeat(300), "y".repeat(300));
        let shown = frame(&long, &Place { file: "a".to_owned(), line: 2, column: 301 }).unwrap();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 2, "{shown}");
        assert!(lines[0].starts_with("> 2 | …xx") && lines[0].ends_with("yy…"), "{shown}");
        let column = lines[1].chars().position(|one| one == '^').unwrap();
        assert_eq!(lines[0].chars().nth(column), Some('!'), "{shown}");
        let end = frame(&long, &Place { file: "a".to_owned(), line: 2, column: 604 }).unwrap();
        assert!(end.lines().next().unwrap().ends_with('y'), "{end}");
    }
}
