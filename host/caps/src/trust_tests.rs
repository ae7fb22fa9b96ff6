use super::*;
use proptest::prelude::*;

fn store(text: &str) -> TrustStore {
    TrustStore::parse(text, Path::new("trust.json")).unwrap()
}

fn decided(store: &TrustStore, directory: &str) -> Option<(String, bool)> {
    store.decision(Path::new(directory)).map(|found| (found.at.display().to_string(), found.trusted))
}

#[test]
fn the_nearest_directory_with_a_decision_counts() {
    let store = store(r#"{"/": false, "/a": true, "/a/b": null, "/a/b/c": false}"#);
    for (directory, at, trusted) in [
        ("/", "/", false),
        ("/x", "/", false),
        ("/ab", "/", false),
        ("/a", "/a", true),
        ("/a/b", "/a", true),
        ("/a/b/d", "/a", true),
        ("/a/b/c", "/a/b/c", false),
        ("/a/b/c/d", "/a/b/c", false),
    ] {
        assert_eq!(decided(&store, directory), Some((at.to_owned(), trusted)), "{directory}");
    }
    assert_eq!(decided(&self::store("{}"), "/a"), None);
}

#[test]
fn what_is_malformed_is_an_error_that_names_the_file() {
    for text in ["", "[]", "{", r#"{"/a": 1}"#, r#"{"/a": "true"}"#, r#"{"a": true}"#, r#"{"/a/../b": true}"#, "null"] {
        let error = TrustStore::parse(text, Path::new("/h/trust.json")).unwrap_err().to_string();
        assert!(error.starts_with("/h/trust.json: ") && !error.contains('\n'), "{text}: {error}");
        assert!(error.contains("nothing is trusted"), "{error}");
    }
}

#[test]
fn a_refusal_counts_however_the_directory_is_spelt() {
    assert_eq!(decided(&store(r#"{"/a": true, "/a/": false}"#), "/a"), Some(("/a".to_owned(), false)));
    assert_eq!(decided(&store(r#"{"/a": false, "/a/": true}"#), "/a"), Some(("/a".to_owned(), false)));
}

#[test]
fn decisions_are_saved_and_forgotten_and_a_broken_file_is_left_alone() {
    let folder = std::env::temp_dir().join(format!("atoll-caps-trust-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let path = folder.join("trust.json");
    assert!(TrustStore::save(&path, Path::new("/a"), Some(true)).unwrap());
    assert!(!TrustStore::save(&path, Path::new("/a/"), Some(true)).unwrap());
    assert!(TrustStore::save(&path, Path::new("/a/b"), Some(false)).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\n  \"/a\": true,\n  \"/a/b\": false\n}\n");
    assert!(TrustStore::save(&path, Path::new("/a"), None).unwrap());
    assert!(!TrustStore::save(&path, Path::new("/a"), None).unwrap());
    assert_eq!(TrustStore::load(&path).unwrap(), store(r#"{"/a/b": false}"#));
    assert!(folder.join("trust.json.lock").exists());
    assert!(TrustStore::save(&path, Path::new("a"), Some(true)).is_err());
    std::fs::write(&path, "{oops").unwrap();
    assert!(TrustStore::save(&path, Path::new("/a"), Some(true)).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{oops");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_command_line_is_asked_first_then_what_is_saved_then_the_default() {
    use DefaultTrust::{Always, Ask, Never};
    for (for_this_run, saved, is_needed, default, answer) in [
        (Some(true), Some(false), true, Never, Answer::Yes),
        (Some(false), Some(true), true, Always, Answer::No),
        (None, Some(true), true, Never, Answer::Yes),
        (None, Some(false), true, Always, Answer::No),
        (None, Some(false), false, Always, Answer::No),
        (None, None, true, Always, Answer::Yes),
        (None, None, true, Never, Answer::No),
        (None, None, true, Ask, Answer::Ask),
        (None, None, false, Ask, Answer::No),
    ] {
        let question = TrustQuestion { for_this_run, saved, is_needed, default };
        assert_eq!(question.answer(), answer, "{question:?}");
    }
}

#[test]
fn resources_are_the_projects_own() {
    let found = |cwd: &str, there: &[&str]| -> Vec<String> {
        let exists = |path: &Path| there.iter().any(|known| Path::new(known) == path);
        project_resources(Path::new(cwd), Path::new("/home/ann"), Path::new("/home/ann/.atoll"), exists)
            .into_iter()
            .map(|path| path.display().to_string())
            .collect()
    };
    assert_eq!(found("/w/p", &["/w/p/.atoll", "/w/p/AGENTS.md", "/w/.atoll/settings.json"]), Vec::<String>::new());
    for name in RESOURCES {
        let path = format!("/w/p/.atoll/{name}");
        assert_eq!(found("/w/p", &[&path]), std::slice::from_ref(&path));
    }
    // The user's own directories are no project's.
    assert_eq!(
        found("/home/ann", &["/home/ann/.atoll/settings.json", "/home/ann/.agents/skills"]),
        Vec::<String>::new()
    );
    let skills = ["/w/p/.agents/skills", "/w/.agents/skills", "/.agents/skills"];
    assert_eq!(found("/w/p", &skills), skills);
    let in_repository = ["/w/p/.agents/skills", "/w/.agents/skills", "/.agents/skills", "/w/.git"];
    assert_eq!(found("/w/p", &in_repository), &skills[..2]);
}

proptest! {
    #[test]
    fn never_panics(text in any::<String>(), directory in any::<String>()) {
        if let Ok(store) = TrustStore::parse(&text, Path::new("t")) {
            store.decision(Path::new(&directory));
        }
    }

    /// As slow and plain as the rule is written.
    #[test]
    fn the_longest_directory_that_holds_it_decides(
        entries in proptest::collection::btree_map("(/[ab]){0,4}", proptest::option::of(any::<bool>()), 0..8),
        directory in "(/[ab]){1,5}",
    ) {
        let entries: BTreeMap<String, Option<bool>> =
            entries.into_iter().map(|(path, decision)| (if path.is_empty() { "/".into() } else { path }, decision)).collect();
        let store = store(&serde_json::to_string(&entries).unwrap());
        let expected = entries
            .iter()
            .filter(|(path, decision)| decision.is_some() && Path::new(&directory).starts_with(path))
            .max_by_key(|(path, _)| Path::new(path).components().count())
            .and_then(|(_, decision)| *decision);
        prop_assert_eq!(store.decision(Path::new(&directory)).map(|found| found.trusted), expected);
    }

    /// Nothing but the user's own word makes a project trusted.
    #[test]
    fn without_a_yes_of_the_users_there_is_no_trust(saved in proptest::option::of(any::<bool>()), is_needed: bool) {
        let question = TrustQuestion { for_this_run: None, saved, is_needed, default: DefaultTrust::Ask };
        prop_assert_eq!(question.answer() == Answer::Yes, saved == Some(true));
    }
}
