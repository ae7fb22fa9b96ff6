use super::*;
use crate::{ArgumentPatterns, CommandPattern, ProgramPattern};

#[path = "effective_properties.rs"]
mod properties;

fn manifest(wants: Wants) -> Manifest {
    Manifest { wants, ..Manifest::bare("weather".parse().unwrap()) }
}

fn http(arguments: &[&str]) -> Wants {
    Wants { http: arguments.iter().map(|text| HttpWant::from_argument(text).unwrap()).collect(), ..Wants::default() }
}

fn files(arguments: &[&str]) -> Wants {
    Wants { files: arguments.iter().map(|text| FilesWant::from_argument(text).unwrap()).collect(), ..Wants::default() }
}

fn secrets(arguments: &[&str]) -> Wants {
    Wants {
        secrets: arguments.iter().map(|text| SecretWant::from_argument(text).unwrap()).collect(),
        ..Wants::default()
    }
}

fn process(program: &str, arguments: Option<&[&str]>) -> Wants {
    let arguments = arguments.map(|list| ArgumentPatterns::parse(list).unwrap());
    let command = CommandPattern { program: ProgramPattern::parse(program).unwrap(), arguments };
    Wants { process: vec![ProcessWant { command, env: Vec::new(), reason: String::new() }], ..Wants::default() }
}

fn programs(arguments: &[&str]) -> Wants {
    Wants {
        process: arguments.iter().map(|text| ProcessWant::from_argument(text).unwrap()).collect(),
        ..Wants::default()
    }
}

fn flag(capability: Capability) -> Wants {
    Wants { flags: [(capability, String::new())].into(), ..Wants::default() }
}

fn vars() -> RootVars {
    RootVars {
        workspace: "/w".into(),
        skills: vec!["/s1".into(), "/s2".into()],
        spill: "/spill".into(),
        home: "/home/ann".into(),
    }
}

#[test]
fn nothing_without_a_grant() {
    let manifest = manifest(Wants::everything());
    let effective = Effective::intersect(&manifest, None);
    for capability in Capability::ALL {
        assert!(!effective.allows_interface(capability));
        assert!(effective.check(capability).is_err());
        assert!(Effective::builtin(&manifest).allows_interface(capability));
        assert!(Effective::builtin(&manifest).check(capability).is_ok());
        assert!(
            !Effective::intersect(&Manifest::bare(manifest.name.clone()), Some(&Wants::everything()))
                .allows_interface(capability)
        );
    }
    assert_eq!(effective.roots(&vars()), []);
}

#[test]
fn disjoint_scopes_are_not_linked() {
    for (wanted, granted, capability, expected) in [
        (http(&["https://a.com"]), http(&["https://b.com"]), Capability::Http, false),
        (http(&["https://*.a.com"]), http(&["https://b.a.com"]), Capability::Http, true),
        (http(&["https://a.com"]), http(&["https://a.com:POST"]), Capability::Http, false),
        (http(&["$models:POST"]), http(&["https://a.com:POST"]), Capability::Http, true),
        (files(&["/a"]), files(&["/b"]), Capability::Files, false),
        (files(&["/a"]), files(&["$workspace"]), Capability::Files, true),
        (process("git", None), process("ls", None), Capability::Process, false),
        (process("git", None), process("*", None), Capability::Process, true),
        (secrets(&["mcp/*"]), secrets(&["mcp/a"]), Capability::Secrets, true),
        (secrets(&["mcp/*"]), secrets(&["key"]), Capability::Secrets, false),
        (flag(Capability::Store), flag(Capability::Store), Capability::Store, true),
        (flag(Capability::Store), flag(Capability::Ui), Capability::Store, false),
    ] {
        let effective = Effective::intersect(&manifest(wanted), Some(&granted));
        assert_eq!(effective.allows_interface(capability), expected, "{effective:?}");
    }
}

#[test]
fn roots_are_the_narrower_with_the_lesser_access() {
    let shown = |roots: Vec<(PathBuf, Access)>| -> Vec<String> {
        roots.into_iter().map(|(path, access)| format!("{}:{access}", path.display())).collect()
    };
    for (wanted, granted, expected) in [
        (&["$workspace:read-write"][..], &["$workspace:read"][..], &["/w:read"][..]),
        (&["$workspace"], &["/:read-write"], &["/w:read"]),
        (&["/:read-write"], &["~/x:read-write"], &["/home/ann/x:read-write"]),
        (&["$skills"], &["/s1"], &["/s1:read"]),
        (&["/a", "/a/b:read-write"], &["/a/b:read-write"], &["/a/b:read-write"]),
        (&["/ab"], &["/a"], &[]),
        (&["/a"], &[], &[]),
    ] {
        let effective = Effective::intersect(&manifest(files(wanted)), Some(&files(granted)));
        assert_eq!(shown(effective.roots(&vars())), expected, "{wanted:?} {granted:?}");
    }
    let builtin = Effective::builtin(&manifest(files(&["$workspace:read-write", "$skills", "/w"])));
    assert_eq!(shown(builtin.roots(&vars())), ["/w:read-write", "/s1:read", "/s2:read"]);
    let below = Effective::intersect(&manifest(files(&["/a/b"])), Some(&files(&["/a"])));
    let root = ScopedRoot { path: "/a/b".into(), within: "/a".into(), access: Access::Read };
    assert_eq!(below.scoped_roots(&vars()), [root]);
}

#[test]
fn denials_give_the_command() {
    let grant = |wants: &Wants| Effective::intersect(&manifest(wants.clone()), None);
    let bare = grant(&Wants::default());
    let path = Path::new;
    for (denied, expected) in [
        (
            grant(&Wants::everything()).check_http("https", "api.example.com", 443, "POST", &[]),
            "plugin `weather` has no grant for `http` on `https://api.example.com`; to allow it: \
             atoll plugin grant weather --http https://api.example.com:POST",
        ),
        (
            bare.check_http("http", "::1", 8080, "GET", &[]),
            "plugin `weather` has no grant for `http` on `http://[::1]:8080`; to allow it: its plugin.toml does not ask \
             for it; add `[[http]]` with `origin = \"http://[::1]:8080\"` and `methods = [\"GET\"]` there, then run \
             atoll plugin grant weather --http 'http://[::1]:8080'",
        ),
        (
            bare.check_http("https", "example.com.", 443, "GET", &[]),
            "plugin `weather` has no grant for `http` on `https://example.com.`; to allow it: no grant can name this \
             request; use another URL or method",
        ),
        (
            grant(&files(&["$workspace:read-write"])).check_path(&vars(), path("/w/a"), Access::ReadWrite),
            "plugin `weather` has no grant for `files` on `/w/a`; to allow it: \
             atoll plugin grant weather --files '$workspace:read-write'",
        ),
        (
            grant(&files(&["/"])).check_path(&vars(), path("/etc/x"), Access::ReadWrite),
            "plugin `weather` has no grant for `files` on `/etc/x`; to allow it: its plugin.toml does not ask for it; \
             add `[[files]]` with `root = \"/etc/x\"` and `access = \"read-write\"` there, then run \
             atoll plugin grant weather --files /etc/x:read-write",
        ),
        (
            grant(&Wants::everything()).check_process("git", &["push"]),
            "plugin `weather` has no grant for `process` on `git`; to allow it: atoll plugin grant weather --process git",
        ),
        (
            grant(&Wants::everything()).check_process("my tool", &["\n"]),
            "plugin `weather` has no grant for `process` on `my tool`; to allow it: \
             atoll plugin grant weather --process 'my tool'",
        ),
        (
            grant(&Wants::everything()).check_env("git", &["push"], "GIT_PAGER"),
            "plugin `weather` has no grant for `process` on `the variable GIT_PAGER for git`; to allow it: \
             atoll plugin grant weather --process git:env=GIT_PAGER",
        ),
        (
            grant(&programs(&["git"])).check_env("git", &["push"], "GIT_PAGER"),
            "plugin `weather` has no grant for `process` on `the variable GIT_PAGER for git`; to allow it: its plugin.toml \
             does not ask for it; add `env = [\"GIT_PAGER\"]` to a `[[process]]` with `program = \"git\"` there, then run \
             atoll plugin grant weather --process git:env=GIT_PAGER",
        ),
        (
            grant(&Wants::everything()).check_env("git", &["push"], "LD_PRELOAD"),
            "plugin `weather` has no grant for `process` on `the variable LD_PRELOAD for git`; to allow it: leave it out; \
             it decides what code runs in a program, so no plugin may set it",
        ),
        (
            grant(&Wants::everything()).check_secret("KEY", true),
            "plugin `weather` has no grant for `secrets` on `KEY`; to allow it: atoll plugin grant weather --secret KEY:reveal",
        ),
        (
            grant(&flag(Capability::Store)).check(Capability::Store),
            "plugin `weather` has no grant for `store`; to allow it: atoll plugin grant weather --store",
        ),
        (
            bare.check(Capability::Ui),
            "plugin `weather` has no grant for `ui`; to allow it: its plugin.toml does not ask for it; add `[ui]` with \
             its `reason` there, then run atoll plugin grant weather --ui",
        ),
        (
            Effective::builtin(&manifest(Wants::default())).check(Capability::Store),
            "plugin `weather` has no grant for `store`; to allow it: it is built in and was not made for this; use \
             another plugin",
        ),
    ] {
        assert_eq!(denied.unwrap_err().to_string(), expected);
    }
}

#[test]
fn secrets_are_revealed_only_where_both_say_so() {
    let effective = Effective::intersect(&manifest(secrets(&["A:reveal", "B"])), Some(&secrets(&["A", "B:reveal"])));
    assert!(effective.check_secret("A", false).is_ok());
    assert!(effective.check_secret("B", false).is_ok());
    assert!(effective.check_secret("A", true).is_err());
    assert!(effective.check_secret("B", true).is_err());
    assert!(effective.check_secret("C", false).is_err());
}

#[test]
fn paths_by_name() {
    let effective = Effective::builtin(&manifest(files(&["$workspace:read-write", "/etc"])));
    for (path, access, expected) in [
        ("/w", Access::ReadWrite, true),
        ("/w/a/./b", Access::ReadWrite, true),
        ("/wx", Access::Read, false),
        ("/w/../etc/x", Access::Read, false),
        ("w/a", Access::Read, false),
        ("/etc/passwd", Access::Read, true),
        ("/etc/passwd", Access::ReadWrite, false),
    ] {
        assert_eq!(effective.check_path(&vars(), Path::new(path), access).is_ok(), expected, "{path} {access}");
    }
}

#[test]
fn directories_are_added_to_a_built_in_plugin_with_no_more_access_than_it_asks_for() {
    let manifest = manifest(files(&["$workspace:read"]));
    let plain = Effective::builtin(&manifest);
    let denied = plain.check_path(&vars(), Path::new("/data/x"), Access::Read).unwrap_err();
    assert_eq!(denied.hint, "atoll plugin grant weather --files /data/x:read");
    let offer = denied.offer.unwrap();
    assert_eq!((&offer.wants, offer.reason.as_str()), (&files(&["/data/x:read"]), ""));
    let added = Wants { flags: flag(Capability::Store).flags, ..files(&["/data:read-write", "~/notes:read"]) };
    let more = Effective::builtin_with(&manifest, &added);
    assert!(more.check_path(&vars(), Path::new("/data/x"), Access::Read).is_ok());
    assert!(more.check_path(&vars(), Path::new("/w/x"), Access::Read).is_ok());
    assert!(more.check_path(&vars(), Path::new("/database"), Access::Read).is_err());
    assert!(!more.allows_interface(Capability::Store));
    let denied = more.check_path(&vars(), Path::new("/data/x"), Access::ReadWrite).unwrap_err();
    assert!(denied.offer.is_none() && denied.hint.contains("was not made for this"), "{denied}");
    let expected =
        [("/w".into(), Access::Read), ("/data".into(), Access::Read), ("/home/ann/notes".into(), Access::Read)];
    assert_eq!(more.roots(&vars()), expected);
    assert_eq!(more.granted_by_name(&vars()), expected[1..]);
    assert_eq!(more.describe().len(), 3);
    let without_files = Effective::builtin_with(&Manifest::bare(manifest.name), &added);
    assert_eq!(without_files.roots(&vars()), []);
    assert!(without_files.check_path(&vars(), Path::new("/data"), Access::Read).unwrap_err().offer.is_none());
}

#[test]
fn a_variable_may_be_set_for_the_program_it_is_granted_for_and_no_other() {
    let everything = Wants::everything();
    let set = |granted: &[&str], program: &str, name: &str| {
        let effective = Effective::intersect(&manifest(everything.clone()), Some(&programs(granted)));
        assert_eq!(effective.check_process(program, &["x"]), Ok(()));
        effective.check_env(program, &["x"], name).is_ok()
    };
    assert!(!set(&["git"], "git", "GIT_PAGER"));
    assert!(set(&["git", "git:env=GIT_PAGER"], "git", "GIT_PAGER"));
    assert!(!set(&["git:env=GIT_PAGER", "hg"], "hg", "GIT_PAGER"));
    assert!(set(&["git:env=GIT_*"], "git", "GIT_PAGER") && !set(&["git:env=GIT_*"], "git", "PAGER"));
    for name in ["PATH", "ENV", "BASH_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES"] {
        assert!(!set(&["*:env=*"], "git", name), "{name}");
    }
    // Those that a plugin may set which may start everything: by their names, on both sides, and no others.
    for (wanted, granted, name, expected) in [
        (&["*:env=*,PATH"], &["*:env=*,PATH"], "PATH", true),
        (&["*:env=*,PATH"], &["*:env=*,PATH"], "ENV", false),
        (&["*:env=*,PATH"], &["*:env=*"], "PATH", false),
        (&["*:env=*"], &["*:env=*,PATH"], "PATH", false),
        (&["*:env=*,PATH"], &["git:env=A"], "PATH", false),
        (&["*:env=*,ENV"], &["*:env=ENV"], "ENV", true),
        (&["*:env=*"], &["*:env=*"], "BASH_ENV", false),
    ] {
        let effective = Effective::intersect(&manifest(programs(wanted)), Some(&programs(granted)));
        assert_eq!(effective.check_env("git", &["x"], name).is_ok(), expected, "{wanted:?} {granted:?} {name}");
        let built_in = Effective::builtin(&manifest(programs(wanted)));
        assert_eq!(built_in.check_env("git", &["x"], name).is_ok(), wanted[0].contains(name), "{wanted:?} {name}");
    }
    for name in ["BASH_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES"] {
        assert!(Effective::builtin(&manifest(everything.clone())).check_env("git", &["x"], name).is_err(), "{name}");
    }
    // Some programs, or some arguments, are not every one.
    let mut narrow = programs(&["*:env=*,PATH"]);
    narrow.process[0].command.arguments = Some(crate::ArgumentPatterns::parse(&["run", "**"]).unwrap());
    assert!(Effective::builtin(&manifest(narrow)).check_env("git", &["run"], "PATH").is_err());
    // A program that is granted with other arguments only.
    let mut narrow = process("git", Some(&["status"]));
    narrow.process[0].env = programs(&["git:env=A"]).process[0].env.clone();
    let effective = Effective::intersect(&manifest(narrow), Some(&everything));
    assert_eq!(effective.check_env("git", &["status"], "A"), Ok(()));
    assert!(effective.check_env("git", &["push"], "A").is_err());
}

#[test]
fn variables_are_taken_back_without_the_program_and_the_program_with_all_of_them() {
    let mut left = programs(&["git", "git:env=A,B_*", "hg:env=A"]);
    assert_eq!(left.remove(&programs(&["git:env=A"])), Vec::<String>::new());
    assert_eq!(left.describe(), ["process: git", "process: git (may set B_*)", "process: hg (may set A)"]);
    assert_eq!(left.remove(&programs(&["git:env=A"])), ["process: git (may set A)"]);
    assert_eq!(left.remove(&programs(&["git"])), Vec::<String>::new());
    assert_eq!(left.describe(), ["process: hg (may set A)"]);
    assert!(!programs(&["git:env=A"]).may_share_variables(&left));
    assert!(programs(&["git"]).may_share_variables(&left) && programs(&["*:env=*"]).may_share_variables(&left));
}

#[test]
fn only_what_the_manifest_asks_for_is_offered_and_it_would_be_enough() {
    let mut wants = Wants { http: http(&["https://a.b:POST"]).http, ..files(&["~/notes:read-write"]) };
    wants.files[0].reason = "to keep notes".to_owned();
    wants.process = process("git", Some(&["status", "**"])).process;
    wants.process.extend(programs(&["hg:env=HG_*"]).process);
    wants.secrets = secrets(&["KEY"]).secrets;
    wants.flags = flag(Capability::Store).flags;
    let effective = Effective::intersect(&manifest(wants), None);
    let note = Path::new("/home/ann/notes/x");
    type Check<'a> = &'a dyn Fn(&Effective) -> Result<(), Denied>;
    let checks: [Check<'_>; 6] = [
        &|effective| effective.check_path(&vars(), note, Access::Read),
        &|effective| effective.check_http("https", "a.b", 443, "POST", &[]),
        &|effective| effective.check_process("git", &["status"]),
        &|effective| effective.check_env("hg", &["log"], "HG_USER"),
        &|effective| effective.check_secret("KEY", false),
        &|effective| effective.check(Capability::Store),
    ];
    for check in checks {
        let offer = check(&effective).unwrap_err().offer.unwrap();
        assert!(offer.command.starts_with("atoll plugin grant weather --"), "{offer:?}");
        assert_eq!(check(&effective.with_granted(&offer.wants)), Ok(()));
    }
    let denied = effective.check_path(&vars(), note, Access::Read).unwrap_err();
    assert_eq!(denied.offer.unwrap().reason, "to keep notes");
    let never: [Result<(), Denied>; 8] = [
        effective.check_path(&vars(), Path::new("/etc"), Access::Read),
        effective.check_http("https", "a.b", 443, "GET", &[]),
        effective.check_process("git", &["push"]),
        effective.check_env("git", &["status"], "HG_USER"),
        effective.check_env("hg", &["log"], "USER"),
        Effective::intersect(&self::manifest(Wants::everything()), None).check_env("hg", &["log"], "PATH"),
        effective.check_secret("KEY", true),
        effective.check(Capability::Ui),
    ];
    for denied in never {
        assert_eq!(denied.unwrap_err().offer, None);
    }
}

#[test]
fn a_variable_or_a_directory_above_names_nothing_else() {
    let wants = files(&["$workspace:read", "/:read", "~:read-write"]);
    let effective = Effective::intersect(&manifest(wants.clone()), Some(&wants));
    assert_eq!(
        effective.granted_by_name(&vars()),
        [("/".into(), Access::Read), ("/home/ann".into(), Access::ReadWrite)]
    );
    assert_eq!(Effective::builtin(&manifest(wants)).granted_by_name(&vars()), []);
}

#[test]
fn a_variable_brings_a_program_no_other_arguments() {
    let mut granted = process("git", Some(&["status"]));
    let more = programs(&["git:env=GIT_PAGER"]);
    granted.add(&more);
    granted.add(&more);
    let effective = Effective::intersect(&manifest(Wants::everything()), Some(&granted));
    assert!(effective.check_env("git", &["status"], "GIT_PAGER").is_ok());
    assert!(effective.check_process("git", &["push"]).is_err());
    assert!(effective.check_env("git", &["push"], "GIT_PAGER").is_err());
    assert_eq!(granted.process.len(), 1);
    assert_eq!(granted.remove(&more), Vec::<String>::new());
    assert!(granted.process[0].env.is_empty() && granted.process.len() == 1);
}
