use super::*;
use crate::{Capability, FilesWant, HttpWant, SecretWant};
use proptest::prelude::*;
use std::fs;

fn name() -> PluginName {
    "weather".parse().unwrap()
}

/// The files of a plugin, made of these bytes.
fn pin(bytes: &[u8]) -> Pin {
    Pin { component: Digest::of(bytes), manifest: Digest::of(b"manifest") }
}

fn wants() -> Wants {
    Wants {
        files: vec![FilesWant::from_argument("$workspace:read-write").unwrap()],
        http: vec![HttpWant::from_argument("https://example.com:POST").unwrap()],
        process: vec![crate::ProcessWant {
            command: crate::CommandPattern {
                program: "git".parse().unwrap(),
                arguments: Some(crate::ArgumentPatterns::parse(&["status", "**"]).unwrap()),
            },
            env: vec!["GIT_*".parse().unwrap()],
            reason: "asks \"git\"".into(),
        }],
        secrets: vec![SecretWant::from_argument("KEY:reveal").unwrap()],
        config: vec![crate::ConfigWant::from_argument("mcp.json").unwrap()],
        flags: [(Capability::Store, String::new()), (Capability::Ui, "asks".into())].into(),
    }
}

/// A directory of its own for a test, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("atoll-caps-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_is_written_and_read() {
    let scratch = Scratch::new("round");
    let path = scratch.0.join("deep/grants.toml");
    assert_eq!(Grants::load(&path).unwrap(), Grants::default());
    let digest = pin(b"one");
    Grants::update(&path, |grants| grants.grant(&name(), &digest, &wants())).unwrap();
    let grants = Grants::load(&path).unwrap();
    assert_eq!(grants.for_plugin(&name(), &digest), GrantState::Granted(wants()));
    grants.save(&path).unwrap();
    assert_eq!(Grants::load(&path).unwrap(), grants);
    let names: Vec<_> = fs::read_dir(scratch.0.join("deep")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        grants.save(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let link = scratch.0.join("link.toml");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        Grants::default().save(&link).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(Grants::load(&path).unwrap(), Grants::default());
    }
    assert!(Grants::default().save(&path.join("below/a/file")).is_err());
}

#[test]
fn a_grant_holds_for_one_file() {
    let (one, two) = (pin(b"one"), pin(b"two"));
    let mut grants = Grants::default();
    assert_eq!(grants.for_plugin(&name(), &one), GrantState::None);
    grants.grant(&name(), &one, &wants());
    assert_eq!(grants.for_plugin(&name(), &two), GrantState::Changed { granted_digest: one.component.clone() });
    let more = Wants { http: vec![HttpWant::from_argument("https://x").unwrap()], ..Wants::default() };
    grants.grant(&name(), &one, &more);
    let mut both = wants();
    both.add(&more);
    assert_eq!(grants.for_plugin(&name(), &one), GrantState::Granted(both));
    // What another file had is not carried over.
    grants.grant(&name(), &two, &more);
    assert_eq!(grants.for_plugin(&name(), &two), GrantState::Granted(more));
    assert_eq!(grants.for_plugin(&name(), &one), GrantState::Changed { granted_digest: two.component.clone() });
    assert_eq!(grants.plugins().collect::<Vec<_>>(), [(&name(), &two.component)]);
    assert!(grants.forget(&name()));
    assert!(!grants.forget(&name()));
    assert_eq!(grants.for_plugin(&name(), &two), GrantState::None);
}

#[test]
fn all_is_what_was_asked_for_then() {
    let digest = pin(b"one");
    let manifest = Manifest { wants: wants(), ..Manifest::bare(name()) };
    let mut grants = Grants::default();
    grants.grant_all(&manifest, &digest);
    assert!(grants.to_toml().unwrap().contains("\nall = true\n"));
    let read = Grants::parse(&grants.to_toml().unwrap(), "g").unwrap();
    assert_eq!(read, grants);
    assert_eq!(read.for_plugin(&name(), &digest), GrantState::Granted(wants()));

    let mut nothing = Grants::default();
    nothing.grant_all(&Manifest::bare(name()), &digest);
    assert_eq!(nothing.for_plugin(&name(), &digest), GrantState::Granted(Wants::default()));

    let by_hand = format!("[plugin.weather]\nsha256 = \"{}\"\nall = true\n", digest.component);
    let by_hand = Grants::parse(&by_hand, "g").unwrap();
    assert_eq!(by_hand.for_plugin(&name(), &digest), GrantState::Granted(Wants::everything()));
}

#[test]
fn a_grant_holds_for_one_manifest() {
    let one = pin(b"one");
    let other = Pin { manifest: Digest::of(b"more"), ..one.clone() };
    let manifest = Manifest { wants: wants(), replaces: vec!["read".into()], ..Manifest::bare(name()) };
    let mut grants = Grants::default();
    grants.grant_all(&manifest, &one);
    let mut grants = Grants::parse(&grants.to_toml().unwrap(), "g").unwrap();
    assert_eq!(grants.replaces(&manifest, &one), ["read"]);
    assert_eq!(grants.for_plugin(&name(), &other), GrantState::ManifestChanged);
    assert_eq!(grants.replaces(&manifest, &other), Vec::<String>::new());
    // What a manifest does not name is not stood in for, whatever was granted.
    assert_eq!(grants.replaces(&Manifest::bare(name()), &one), Vec::<String>::new());
    grants.pin(&name(), &other);
    assert_eq!(grants.for_plugin(&name(), &other), GrantState::Granted(Wants::default()));
    assert_eq!(grants.for_plugin(&name(), &one), GrantState::ManifestChanged);

    // Written by hand, without a manifest's digest, it holds whatever the manifest says; a grant by command pins it.
    let by_hand = format!("[plugin.weather]\nsha256 = \"{}\"\n[plugin.weather.ui]\n", one.component);
    let mut by_hand = Grants::parse(&by_hand, "g").unwrap();
    assert!(matches!(by_hand.for_plugin(&name(), &other), GrantState::Granted(_)));
    by_hand.grant(&name(), &one, &Wants::default());
    assert!(matches!(by_hand.for_plugin(&name(), &one), GrantState::Granted(wants) if wants.has(Capability::Ui)));
    assert_eq!(by_hand.for_plugin(&name(), &other), GrantState::ManifestChanged);
}

#[test]
fn what_is_revoked_is_gone_and_what_was_not_there_is_named() {
    let one = pin(b"one");
    let manifest = Manifest { wants: wants(), replaces: vec!["read".into(), "ls".into()], ..Manifest::bare(name()) };
    let mut grants = Grants::default();
    grants.grant_all(&manifest, &one);
    let less = Wants {
        process: vec![crate::ProcessWant::from_argument("git").unwrap()],
        flags: [(Capability::Store, String::new())].into(),
        ..Wants::default()
    };
    grants.revoke(&name(), &less, &["ls".to_owned()]).unwrap();
    let mut left = wants();
    left.process.clear();
    left.flags.remove(&Capability::Store);
    assert_eq!(grants.for_plugin(&name(), &one), GrantState::Granted(left));
    assert_eq!(grants.replaces(&manifest, &one), ["read"]);
    assert!(!grants.to_toml().unwrap().contains("\nall = true\n"));
    let before = grants.clone();
    let missing = grants.revoke(&name(), &less, &["ls".to_owned()]).unwrap_err();
    assert_eq!(missing, ["process: git", "store", "replaces: ls"]);
    assert_eq!(grants, before);

    // Taking the last part away must not leave what stands for everything.
    let mut grants = Grants::default();
    let only_ui = Wants { flags: [(Capability::Ui, String::new())].into(), ..Wants::default() };
    grants.grant_all(&Manifest { wants: only_ui.clone(), ..Manifest::bare(name()) }, &one);
    grants.revoke(&name(), &only_ui, &[]).unwrap();
    assert_eq!(grants.for_plugin(&name(), &one), GrantState::Granted(Wants::default()));
    assert!(!grants.revoke_all(&name()));
    grants.grant_all(&manifest, &one);
    assert!(grants.revoke_all(&name()));
    assert_eq!(grants.for_plugin(&name(), &one), GrantState::Granted(Wants::default()));
    assert_eq!(grants.for_plugin(&name(), &pin(b"two")), GrantState::Changed { granted_digest: one.component });
}

#[test]
fn errors_are_one_line() {
    let digest = Digest::of(b"");
    for (text, error) in [
        ("[plugins.a]".to_owned(), "g.toml:1:2: unknown key `plugins`; did you mean `plugin`?"),
        ("[plugin.a]".to_owned(), "g.toml:1:1: `sha256` is missing in [a]; add `sha256 = \"the component's digest\"`"),
        (
            "[plugin.a]\nsha256 = \"x\"".to_owned(),
            "g.toml:2:10: `sha256`: a SHA-256 digest is 64 hexadecimal digits; correct it",
        ),
        (format!("[plugin.B]\nsha256 = \"{digest}\""), "g.toml:1:9: `B` is not a plugin name"),
        (
            format!("[plugin.a]\nsha256 = \"{digest}\"\nal = true"),
            "g.toml:3:1: unknown key `al` in [a]; did you mean `all`?",
        ),
        (
            format!("[plugin.a]\nsha256 = \"{digest}\"\n[[plugin.a.http]]\norigin = \"x\""),
            "g.toml:4:10: `origin`: `x`, character 1: ",
        ),
    ] {
        let shown = Grants::parse(&text, "g.toml").unwrap_err().to_string();
        assert!(shown.starts_with(error), "{text}\n  got: {shown}\n want: {error}");
        assert!(!shown.contains('\n'));
    }
}

proptest! {
    #[test]
    fn never_panics(text in any::<String>()) {
        let _ = Grants::parse(&text, "g");
    }
}

#[test]
fn what_is_added_to_a_built_in_plugin_is_no_grant_of_a_plugin_of_that_name() {
    let mut grants = Grants::default();
    let files = |text: &str| vec![FilesWant::from_argument(text).unwrap()];
    grants.grant_builtin(&name(), &files("/data:read"));
    grants.grant_builtin(&name(), &files("/data:read"));
    grants.grant_builtin(&name(), &files("~/notes:read-write"));
    assert_eq!(grants.for_plugin(&name(), &pin(b"one")), GrantState::None);
    grants.grant(&name(), &pin(b"one"), &wants());
    let grants_read = Grants::parse(&grants.to_toml().unwrap(), "grants.toml").unwrap();
    assert_eq!(grants_read, grants);
    assert_eq!(grants.for_builtin(&name()).files.len(), 2);
    assert_eq!(grants.for_plugin(&name(), &pin(b"one")), GrantState::Granted(wants()));
    assert!(grants.forget(&name()));
    assert_eq!(grants.builtins().count(), 1);
    let data = files("/data:read");
    assert!(grants.revoke_builtin(&name(), |want| *want != data[0]));
    assert!(!grants.revoke_builtin(&name(), |want| *want != data[0]));
    assert_eq!(grants.for_builtin(&name()).files, files("~/notes:read-write"));
    assert!(grants.revoke_builtin(&name(), |_| false));
    assert_eq!(grants, Grants::default());
    let error = Grants::parse("[builtin.read]\nsha256 = \"x\"\n", "grants.toml").unwrap_err().to_string();
    assert!(error.contains("grants.toml"), "{error}");
}
