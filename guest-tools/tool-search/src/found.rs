//! What was found, as the model reads it.

/// A tool that was loaded.
pub(crate) struct Found {
    pub(crate) name: String,
    pub(crate) description: String,
}

/// A line of a description longer than this is cut: the whole of it is in the tool's declaration from now on.
const MOST_CHARACTERS: usize = 200;

/// How many groups are named that are still to come.
const MOST_GROUPS: usize = 10;

/// The text for the model. `waiting`: groups whose tools are still to come.
pub(crate) fn rendered(found: &[Found], waiting: &[String]) -> String {
    if found.is_empty() {
        let none = "No other tool fits that.";
        if waiting.is_empty() {
            return format!("{none} Try other words, or do it with the tools you have.");
        }
        let named: Vec<&str> = waiting.iter().take(MOST_GROUPS).map(String::as_str).collect();
        let more = waiting.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        return format!(
            "{none} Tools of {}{more} are still on their way, because their servers are connecting: search again in a \
             moment, or do it with the tools you have.",
            named.join(", ")
        );
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
        assert!(rendered(&[], &[]).starts_with("No other tool fits that. Try other words"));
        assert_eq!(
            rendered(&[found("a", "\n  Does it.\nAnd more.")], &["slow".to_owned()]),
            "Loaded 1 tool, to be called from your next message on:\n- a: Does it."
        );
        let text = rendered(&[found("a", &"ä".repeat(300)), found("b", "")], &[]);
        assert_eq!(text.lines().count(), 3);
        assert_eq!(text.lines().nth(1).map(|line| line.chars().count()), Some(5 + 200 + 1), "{text}");
        assert!(text.ends_with("\n- b: "));
    }

    #[test]
    fn what_is_still_to_come_is_named_where_nothing_was_found() {
        let groups = |count: usize| -> Vec<String> { (1..=count).map(|at| format!("g{at}")).collect() };
        assert!(rendered(&[], &groups(2)).contains("Tools of g1, g2 are still on their way"));
        assert!(rendered(&[], &groups(12)).contains("g9, g10 and 2 more are"));
    }
}
