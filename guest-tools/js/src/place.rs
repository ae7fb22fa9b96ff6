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

/// The longest line that is shown, in characters; more would be a bundle in one line.
const SHOWN: usize = 160;

/// The line of a place with the one before it, and a mark below the column; `None` for a place that is not in the source, or
/// in a line too long to be shown.
#[must_use]
pub fn frame(source: &str, place: &Place) -> Option<String> {
    let at = (place.line as usize).checked_sub(1)?;
    let lines: Vec<&str> = source.lines().collect();
    let line = *lines.get(at)?;
    if line.chars().count() > SHOWN {
        return None;
    }
    let width = place.line.to_string().len();
    let mut text = String::new();
    if let Some(before) = at.checked_sub(1).and_then(|before| lines.get(before))
        && before.chars().count() <= SHOWN
    {
        text.push_str(&format!("  {:>width$} | {before}\n", place.line - 1));
    }
    text.push_str(&format!("> {:>width$} | {line}\n", place.line));
    // Tabs stay tabs, so that the mark is below the column however wide they are shown.
    let mut units = 1;
    let pad: String = line
        .chars()
        .take_while(|one| {
            let here = units < place.column;
            units = units.saturating_add(u32::try_from(one.len_utf16()).unwrap_or(1));
            here
        })
        .map(|one| if one == '\t' { '\t' } else { ' ' })
        .collect();
    text.push_str(&format!("  {:>width$} | {pad}^", ""));
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
        assert_eq!(frame(&source, &place).as_deref(), Some("   9 | const a;\n> 10 | \t😀b();\n     | \t ^"));
        assert_eq!(frame("a", &place), None);
    }
}
