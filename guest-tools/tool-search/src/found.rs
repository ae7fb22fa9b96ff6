//! What was found, as the model reads it.

/// A tool that was loaded.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// A line of a description longer than this is cut: the whole of it is in the tool's declaration from now on.
const MOST_CHARACTERS: usize = 200;

/// The text for the model.
pub(crate) fn rendered(found: &[Found]) -> String {
    if found.is_empty() {
        return "No other tool fits that. Try other words, or do it with the tools you have.".to_owned();
    }
    let tools = if found.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", found.len()) };
    let mut text = format!("Loaded {tools}, to be called from your next message on:");
    for Found { name, description } in found {
        text.push_str(&format!("\n- {name}: {}", first_line(description)));
    }
    text
}

fn first_line(description: &str) -> String {
    let line = description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match line.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, description: &str) -> Found {
        Found { name: name.to_owned(), description: description.to_owned() }
    }

    #[test]
    fn a_tool_is_a_line_with_the_first_line_of_what_it_says() {
        assert!(rendered(&[]).starts_with("No other tool"));
        assert_eq!(
            rendered(&[found("a", "\n  Does it.\nAnd more.")]),
            "Loaded 1 tool, to be called from your next message on:\n- a: Does it."
        );
        let text = rendered(&[found("a", &"ä".repeat(300)), found("b", "")]);
        assert_eq!(text.lines().count(), 3);
        assert_eq!(text.lines().nth(1).map(|line| line.chars().count()), Some(5 + 200 + 1), "{text}");
        assert!(text.ends_with("\n- b: "));
    }
}
