//! Tests of planning, on whole files.

use proptest::prelude::*;

use super::*;

fn edit(file: &str, edits: &[(&str, &str)]) -> Result<String, String> {
    let edits: Vec<Edit> =
        edits.iter().map(|(old, new)| Edit { old_text: (*old).to_owned(), new_text: (*new).to_owned() }).collect();
    let document = Document::new(file.as_bytes().to_vec()).map_err(|error| format!("{error:?}"))?;
    let plan = plan(&document, &edits, "f").map_err(|error| format!("{}: {}", error.code(), error.message()))?;
    let content = document.replaced(&plan.replacements);
    Ok(String::from_utf8_lossy(&document.into_bytes(content)).into_owned())
}

fn changed(file: &str, old: &str, new: &str) -> String {
    edit(file, &[(old, new)]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn exact_matches() {
    assert_eq!(changed("a b c", "b", "x"), "a x c");
    assert_eq!(changed("a\nb\nc\n", "b\n", ""), "a\nc\n");
    assert_eq!(edit("one two three", &[("three", "3"), ("one", "1")]).as_deref(), Ok("1 two 3"));
    assert_eq!(edit("ab", &[("a", "1"), ("b", "2")]).as_deref(), Ok("12"));
}

#[test]
fn edits_match_the_original_and_not_each_others_results() {
    assert_eq!(edit("a b", &[("a", "b"), ("b", "c")]).as_deref(), Ok("b c"));
}

#[test]
fn line_endings_are_normalised_on_both_sides_and_kept() {
    assert_eq!(changed("a\r\nb\r\nc\r\n", "a\nb", "x\ny"), "x\r\ny\r\nc\r\n");
    assert_eq!(changed("a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny"), "x\r\ny\r\nc\r\n");
    assert_eq!(changed("a\nb\n", "a\r\nb", "x\r\ny"), "x\ny\n");
    assert_eq!(changed("a\r\nb\nc\r\nd\n", "c", "x"), "a\r\nb\nx\r\nd\n");
}

#[test]
fn lines_that_an_edit_repeats_keep_their_endings() {
    assert_eq!(changed("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nx\nc\n"), "a\r\nx\nc\r\n");
    assert_eq!(changed("a\r\nb\nc\r\n", "a\nb\nc\n", "a\nb\nnew\nc\n"), "a\r\nb\nnew\r\nc\r\n");
    assert_eq!(changed("a\r\nb\nc", "a\nb\nc", "a\nc"), "a\r\nc");
}

#[test]
fn loose_matches_change_only_their_place() {
    let file = "say(\u{201c}hi\u{201d}) // it\u{2019}s  \nnext\u{a0}line\n";
    assert_eq!(changed(file, "say(\"hi\")", "say(\"ho\")"), "say(\"ho\") // it\u{2019}s  \nnext\u{a0}line\n");
    assert_eq!(changed(file, "next line", "last line"), "say(\u{201c}hi\u{201d}) // it\u{2019}s  \nlast line\n");
    let changed_line = changed(file, "say(\"hi\") // it's\nnext line\n", "say(\"hi\") // it's\nother\n");
    assert_eq!(changed_line, "say(\u{201c}hi\u{201d}) // it\u{2019}s  \nother\n");
}

#[test]
fn white_space_at_line_ends_does_not_matter() {
    assert_eq!(changed("a  \nb\n", "a\nb", "x\ny"), "x\ny\n");
    assert_eq!(changed("a\nb\n", "a  \nb\t", "x\ny"), "x\ny\n");
    assert_eq!(changed("let \u{2018}a\u{2019} = 5;", "let 'a' = ", "let 'b' = "), "let 'b' = 5;");
}

#[test]
fn new_text_is_written_as_given() {
    assert_eq!(changed("\u{2018}a\u{2019}", "\u{2018}a\u{2019}", "\u{2018}b\u{2019}"), "\u{2018}b\u{2019}");
    assert_eq!(changed("'a'", "\u{2018}a\u{2019}", "\u{201c}b\u{201d}\u{a0}"), "\u{201c}b\u{201d}\u{a0}");
}

#[test]
fn a_match_inside_a_ligature_keeps_the_rest() {
    assert_eq!(changed("\u{fb01}x", "ix", "oo"), "foo");
}

#[test]
fn a_carriage_return_before_a_line_ending_is_text() {
    // Files that went through a conversion twice have CR CR LF.
    let file = "a\r\r\r\ra\r\r\na\n\n\r\r";
    assert_eq!(changed(file, "a\r\na\n\n\r", "a\r\na\n\n\r"), file);
    assert_eq!(changed(file, "a\r\na\n\n\r", "a\r\nb\n\n\r"), file.replace("\na\n", "\nb\n"));
    assert_eq!(changed("a\r\r\nb\r\r\n", "a\r\nb", "a\r\nc"), "a\r\r\nc\r\r\n");
}

#[test]
fn marks_stay() {
    assert_eq!(changed("\u{feff}a\r\n", "a\n", "b\n"), "\u{feff}b\r\n");
}

#[test]
fn doubt_is_refused() {
    assert_eq!(
        edit("a\nb\na\n", &[("a", "x")]),
        Err("invalid-arguments: oldText is in f 2 times (line 1, 3). Add lines around it until it fits in one place only.".into())
    );
    assert!(edit("aaa", &[("aa", "x")]).is_err_and(|error| error.contains("2 times")));
    assert!(edit("\u{2018}a\u{2019} \u{2018}a\u{2019}", &[("'a'", "x")]).is_err_and(|error| error.contains("2 times")));
    assert!(
        edit(&"a\n".repeat(9), &[("a", "x")]).is_err_and(|error| error.contains("9 times (line 1, 2, 3, 4, 5, …)"))
    );
}

#[test]
fn overlaps_are_refused() {
    let error = "invalid-arguments: edits[0] and edits[1] overlap in f; make one edit of the two.";
    assert_eq!(edit("abc", &[("bc", "x"), ("ab", "y")]), Err(error.into()));
}

#[test]
fn empty_and_missing_texts_are_refused() {
    assert!(edit("a", &[("", "x")]).is_err_and(|error| error.contains("must not be empty")));
    assert!(edit("a", &[]).is_err_and(|error| error.starts_with("invalid-arguments")));
    assert!(edit("a", &[("a", "x"), ("zz", "x")]).is_err_and(|error| {
        error.starts_with("not-found: edits[1].oldText was not found in f. It must be copied")
    }));
    assert!(edit("a\nb", &[("  ", "x")]).is_err_and(|error| error.starts_with("not-found")));
}

proptest! {
    #[test]
    fn what_is_around_a_replacement_keeps_its_bytes(
        before in "[ab \r\n\u{e9}\u{201c}\u{a0}]{0,20}", after in "[ab \r\n\u{e9}\u{201c}\u{a0}]{0,20}",
        old in "[xy]{1,3}(\n[xy]{0,3}){0,2}[xy]", new in "[xyz]{0,3}(\n[xyz]{0,3}){0,3}",
    ) {
        let file = format!("{before}{}{after}", old.replace('\n', "\r\n"));
        if let Ok(result) = edit(&file, &[(&old, &new)]) {
            prop_assert!(result.starts_with(&before) && result.ends_with(&after));
            prop_assert_eq!(result[before.len()..result.len() - after.len()].replace("\r\n", "\n"), new);
        }
    }

    #[test]
    fn an_edit_without_change_changes_no_byte(file in "[ab\r\n]{1,30}", from in 0usize..30, length in 1usize..9) {
        let text = file.replace("\r\n", "\n");
        if let Some(old) = text.get(from..from + length) && let Ok(result) = edit(&file, &[(old, old)]) {
            prop_assert_eq!(result, file);
        }
    }
}
