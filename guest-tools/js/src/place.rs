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

/// How far before a place its `new` is looked for, in bytes.
const BEFORE: usize = 2_000;

/// Moves a place among the arguments of `new NAME(…)` to that name. The engine says where the last argument is that it could
/// name, which for an error with a cause is the cause. Of several around each other, `outer` of the inner ones are passed over
/// if there are more. A place that is in none stays as it is.
pub(crate) fn move_to_new(source: &str, place: &mut Place, name: &str, outer: usize) {
    let Some(at) = byte_of(source, place) else { return };
    let Some(before) = source.get(..at) else { return };
    let found = enclosing_news(before, name);
    if let Some(at) = found.get(outer.min(found.len().saturating_sub(1))) {
        let before = source.get(..*at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        place.line = count(before.matches('\n').count()).saturating_add(1);
        place.column = count(line.encode_utf16().count()).saturating_add(1);
    }
}

/// The byte of a place.
fn byte_of(source: &str, place: &Place) -> Option<usize> {
    let lines = source.split_inclusive('\n');
    let begins: usize = lines.clone().take((place.line as usize).checked_sub(1)?).map(str::len).sum();
    let line = lines.clone().nth((place.line as usize).checked_sub(1)?)?;
    let mut units = 1;
    let within = line.char_indices().find(|(_, one)| {
        let is_here = units >= place.column;
        units = units.saturating_add(u32::try_from(one.len_utf16()).unwrap_or(1));
        is_here
    });
    Some(begins.saturating_add(within.map_or(line.len(), |(at, _)| at)))
}

/// Where the names of all `new NAME(` are that are open at the end of a text, innermost first. It reads backwards, and gives up
/// where a statement or the body of a function begins.
fn enclosing_news(before: &str, name: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut depth = 0_u32;
    let mut quote = None;
    for (at, one) in before.char_indices().rev().take_while(|(at, _)| before.len() - at < BEFORE) {
        let left = before.get(..at).unwrap_or_default();
        if let Some(open) = quote {
            if one == open && !left.ends_with('\\') {
                quote = None;
            }
            continue;
        }
        match one {
            '"' | '\'' | '`' => quote = Some(one),
            ')' | ']' | '}' => depth = depth.saturating_add(1),
            '(' | '[' | '{' if depth > 0 => depth -= 1,
            '(' => found.extend(new_before(left, name)),
            '{' if !opens_object(left) => break,
            ';' if depth == 0 => break,
            '>' if depth == 0 && left.ends_with('=') => break,
            _ => {}
        }
    }
    found
}

/// Where the name is if a text ends with `new NAME`.
fn new_before(text: &str, name: &str) -> Option<usize> {
    let is_part = |one: char| one.is_alphanumeric() || matches!(one, '_' | '$' | '.');
    let callee = text.trim_end();
    let begins = callee.trim_end_matches(is_part).len();
    let (keyword, path) = callee.split_at_checked(begins)?;
    let keyword = keyword.strip_suffix(char::is_whitespace)?.trim_end().strip_suffix("new")?;
    let is_it = path.rsplit('.').next() == Some(name) && !keyword.ends_with(is_part);
    is_it.then_some(begins)
}

/// Whether a brace behind a text opens an object: nothing else comes where a value is expected.
fn opens_object(text: &str) -> bool {
    text.trim_end().ends_with(['(', ',', ':', '[', '?', '|', '&']) || text.trim_end().ends_with("...")
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
    use super::{Place, frame, move_to_new, of_stack, utf16_column};

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

    #[test]
    fn a_place_among_the_arguments_of_an_error_is_moved_to_its_name() {
        // The place is before `@`, and the name is expected at `^`.
        let cases = [
            ("throw new ^Error(@text)", "Error", 0),
            ("throw new ^Error('late', { cause: new @TypeError('why') })", "Error", 1),
            ("throw new ^Error('(', { cause: new Error(@text) })", "Error", 1),
            ("throw new Error('a', { cause: new ^Error(@text) })", "Error", 0),
            ("throw new ^errors.Mine(\n  `😀 (`,\n  { cause: f(@x) },\n)", "Mine", 0),
            ("x = '😀'; throw new ^Mine([1, { ...@a }])", "Mine", 1),
        ];
        for (text, name, outer) in cases {
            let (given, expected) = (text.replace('^', ""), text.replace('@', ""));
            let place_of = |text: &str, mark: char| {
                let before = text.split(mark).next().unwrap();
                let line = before.rsplit('\n').next().unwrap();
                let count = |number: usize| u32::try_from(number).unwrap() + 1;
                (count(before.matches('\n').count()), count(line.encode_utf16().count()))
            };
            let (line, column) = place_of(&given, '@');
            let mut place = Place { file: "a".to_owned(), line, column };
            move_to_new(&given.replace('@', ""), &mut place, name, outer);
            assert_eq!((place.line, place.column), place_of(&expected, '^'), "{text}");
        }
        let stays = [
            ("new Promise((done) => done(@x))", "Promise"),
            ("new Promise(function () { @x })", "Promise"),
            ("throw new Error(@x)", "TypeError"),
            ("renew Error(@x)", "Error"),
            ("new Error(x); @y", "Error"),
            ("f(@x)", "Error"),
            ("", "Error"),
        ];
        for (text, name) in stays {
            let column = u32::try_from(text.find('@').unwrap_or(0)).unwrap() + 1;
            let mut place = Place { file: "a".to_owned(), line: 1, column };
            move_to_new(&text.replace('@', ""), &mut place, name, 0);
            assert_eq!((place.line, place.column), (1, column), "{text}");
        }
    }
}
