//! Why a text is not in a file.

/// The likely reason that `old` is not in `text`, as a sentence for the model.
pub(crate) fn hint(text: &str, old: &str) -> Option<String> {
    if let Some(plain) = unescape(old).filter(|plain| text.contains(plain.as_str())) {
        return Some(format!(
            "The file has the characters themselves where oldText has escapes such as \\n or \\u2019 (line {}).",
            line_of(text, &plain)
        ));
    }
    let escaped = escape(old);
    if escaped != old && text.contains(&escaped) {
        return Some(format!(
            "The file has escapes such as \\u2019 where oldText has the characters themselves (line {}).",
            line_of(text, &escaped)
        ));
    }
    let wanted: Vec<&str> = old.trim().lines().map(str::trim).collect();
    let first = wanted.first()?;
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    if let Some(at) = lines.windows(wanted.len()).position(|lines| lines == wanted) {
        return Some(format!("Line {} and what follows differ from it only in indentation or blank space.", at + 1));
    }
    // Short lines such as a lone brace are everywhere.
    let at = lines.iter().position(|line| line.len() >= 4 && line == first)?;
    Some(format!("Line {} is like its first line, but what follows is different; read the file again.", at + 1))
}

/// The number of the line where `part` is.
fn line_of(text: &str, part: &str) -> usize {
    text.find(part).map_or(1, |at| text[..at].matches('\n').count() + 1)
}

/// A text with the escapes of JSON and most programming languages resolved; none if it has none.
fn unescape(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut any = false;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let (c, length) = match escape.as_bytes().first() {
            Some(b'n') => ('\n', 1),
            Some(b't') => ('\t', 1),
            Some(b'"') => ('"', 1),
            Some(b'\'') => ('\'', 1),
            Some(b'\\') => ('\\', 1),
            Some(b'u') => {
                match escape.get(1..5).and_then(|digits| u32::from_str_radix(digits, 16).ok()).and_then(char::from_u32)
                {
                    Some(c) => (c, 5),
                    None => ('\\', 0),
                }
            }
            _ => ('\\', 0),
        };
        any |= length > 0;
        out.push(c);
        rest = &escape[length..];
    }
    out.push_str(rest);
    any.then_some(out)
}

/// A text with `\uXXXX` for all that is not ASCII.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_on_either_side() {
        let hinted = hint("x\nit\u{2019}s\n", r"it\u2019s").unwrap_or_default();
        assert!(hinted.starts_with("The file has the characters themselves") && hinted.ends_with("(line 2)."));
        let hinted = hint("s = \"it\\u2019s\"", "it\u{2019}s").unwrap_or_default();
        assert!(hinted.starts_with("The file has escapes"));
        assert!(hint("a\tb", r"a\tb").is_some());
    }

    #[test]
    fn indentation() {
        let hinted = hint("fn a() {\n    b();\n}\n", "fn a() {\n  b();\n}");
        assert_eq!(
            hinted.as_deref(),
            Some("Line 1 and what follows differ from it only in indentation or blank space.")
        );
    }

    #[test]
    fn a_first_line_that_is_there() {
        let hinted = hint("one\ntwo();\nthree();\n", "two();\nfour();");
        assert!(hinted.is_some_and(|hint| hint.starts_with("Line 2 is like its first line")));
        assert_eq!(hint("one\n", "other"), None);
    }
}
