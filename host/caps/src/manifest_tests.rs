use super::*;
use crate::{Access, Capability, HttpWant, Limits, Methods, OriginPattern, RootPattern};
use proptest::prelude::*;

const FULL: &str = r#"
name = "weather"
version = "1.2.0"
description = "Tells the weather."
contract = "0.1"

[[files]]
root = "$workspace"
reason = "reads the place"

[[files]]
root = "~/.weather"
access = "read-write"
reason = "keeps maps"

[[http]]
origin = "https://*.example.com"
reason = "asks for the weather"

[[http]]
origin = "https://api.example.com:8443"
methods = ["POST", "put"]
reason = "reports it"

[[process]]
program = "date"
arguments = ["+%s"]
reason = "tells the time"

[[secrets]]
name = "WEATHER_KEY"
reason = "signs requests"

[store]
reason = "remembers"

[limits]
memory-mib = 16
wall-ms = 0
output-mib = 1
"#;

#[test]
fn everything_is_read() {
    let manifest = Manifest::parse(FULL, "plugin.toml").unwrap();
    assert_eq!(manifest.name.as_str(), "weather");
    assert_eq!(manifest.version, "1.2.0");
    assert_eq!(manifest.description, "Tells the weather.");
    assert_eq!(manifest.contract, ContractVersion { major: 0, minor: 1 });
    let files: Vec<_> = manifest.wants.files.iter().map(|want| (want.root.clone(), want.access)).collect();
    assert_eq!(
        files,
        [(RootPattern::Workspace, Access::Read), (RootPattern::Home(".weather".into()), Access::ReadWrite)]
    );
    assert_eq!(
        manifest.wants.http,
        [
            HttpWant {
                origin: OriginPattern::parse("https://*.example.com").unwrap(),
                methods: Methods::get(),
                reason: "asks for the weather".into(),
            },
            HttpWant {
                origin: OriginPattern::parse("https://api.example.com:8443").unwrap(),
                methods: Methods::parse(&["POST", "PUT"]).unwrap(),
                reason: "reports it".into(),
            },
        ]
    );
    assert!(manifest.wants.process[0].command.matches("date", &["+%s"]));
    assert!(!manifest.wants.secrets[0].reveal);
    assert_eq!(manifest.wants.flags.get(&Capability::Store).map(String::as_str), Some("remembers"));
    assert!(!manifest.wants.has(Capability::Ui));
    let limits = Limits::default().with(&manifest.limits);
    assert_eq!((limits.memory_bytes, limits.wall_ms, limits.output_bytes), (16 << 20, None, 1 << 20));
    assert_eq!(limits.handles, Limits::default().handles);
}

#[test]
fn bare_wants_nothing() {
    let manifest = Manifest::bare("x".parse().unwrap());
    assert!(manifest.wants.is_empty());
    assert_eq!(manifest.limits, LimitsSpec::default());
}

#[test]
fn errors_are_one_line() {
    const HEAD: &str = "name = \"w\"\nversion = \"1\"\ncontract = \"0.1\"\n";
    for (text, error) in [
        ("version = \"1\"", "p.toml:1:1: `name` is missing; add `name = \"my-plugin\"`"),
        ("name = \"w\"", "p.toml:1:1: `version` is missing; add `version = \"0.1.0\"`"),
        ("name = 3\nversion = \"1\"", "p.toml:1:8: `name` is integer, not a string; give it a string"),
        (
            "name = \"W\"\nversion = \"1\"",
            "p.toml:1:8: `name`: `W` is not a plugin name: write lower-case letters, digits and `-`, starting with a \
             letter or digit, at most 64; correct it",
        ),
        (
            "name = \"w\"\nversion = \"1\"\ncontract = \"1\"",
            "p.toml:3:12: `contract`: `1` is not a contract version; write two numbers such as `0.1`; correct it",
        ),
        ("ünö = 1", "p.toml:1:1: "),
        ("# ü\nnaem = \"w\"", "p.toml:2:1: unknown key `naem`; the keys are `name`, "),
        ("nam = \"w\"", "p.toml:1:1: unknown key `nam`; did you mean `name`?"),
        ("name = ", "p.toml:1:8: "),
        (
            "[[http]]\norigin = \"https://x\"\nmetods = []\nreason = \"r\"",
            "p.toml:6:1: unknown key `metods` in [[http]]; did you mean `methods`?",
        ),
        (
            "[[http]]\norigin = \"https://x/\"\nreason = \"r\"",
            "p.toml:5:10: `origin`: `https://x/`, character 10: an origin ends after host and port, without a path or a slash; correct it",
        ),
        (
            "[[http]]\norigin = \"https://x\"",
            "p.toml:4:1: `reason` is missing in [[http]]; add `reason = \"why the plugin needs it\"`",
        ),
        (
            "[[http]]\norigin = \"https://x\"\nmethods = []\nreason = \"r\"",
            "p.toml:6:11: a list of methods is empty; name one, or `*` for all; correct it",
        ),
        (
            "[[http]]\nreason = \"r\"",
            "p.toml:4:1: `origin` is missing in [[http]]; add `origin = \"https://example.com\"`",
        ),
        (
            "[http]\norigin = \"https://x\"",
            "p.toml:4:1: `http` is table, not a list of tables, each written `[[http]]`; give it a list of tables, each written `[[http]]`",
        ),
        (
            "[[files]]\nroot = \"/a/../b\"\nreason = \"r\"",
            "p.toml:5:8: `root`: `/a/../b`, character 4: `..` is not allowed; write the path it leads to; correct it",
        ),
        (
            "[[files]]\nroot = \"/a\"\naccess = \"write\"\nreason = \"r\"",
            "p.toml:6:10: `access`: `write` is not an access mode; write `read` or `read-write`; correct it",
        ),
        (
            "[[process]]\nprogram = \"a\"\nenv = [\"A\", \"B-*\"]\nreason = \"r\"",
            "p.toml:6:7: `env`: `B-*`, character 2: a variable's name has letters, digits and `_`; `*` may only be its \
             end; correct it",
        ),
        (
            "[[process]]\nprogram = \"a\"\narguments = [\"**\", \"x\"]\nreason = \"r\"",
            "p.toml:6:13: `arguments`: `**`, character 1: `**` stands alone, as the last pattern; correct it",
        ),
        (
            "[[secrets]]\nname = \"a\"\nreveal = 1\nreason = \"r\"",
            "p.toml:6:10: `reveal` is integer, not `true` or `false`; give it `true` or `false`",
        ),
        ("[limits]\nmemory = 1", "p.toml:5:1: unknown key `memory` in [limits]; did you mean `memory-mib`?"),
        ("[limits]\ncpu-ms = 0", "p.toml:5:10: `cpu-ms` is out of bounds; give it a whole number from 1 to 86400000"),
        ("[limits]\nnesting = -1", "p.toml:5:11: `nesting` is out of bounds; give it a whole number from 1 to 64"),
        ("[log]\nreason = \"r\"", "p.toml:4:2: unknown key `log`; "),
    ] {
        let headed = text.starts_with('[');
        let text = if headed { format!("{HEAD}{text}") } else { text.to_owned() };
        let shown = Manifest::parse(&text, "p.toml").unwrap_err().to_string();
        assert!(shown.starts_with(error), "{text}\n  got: {shown}\n want: {error}");
        assert!(!shown.contains('\n'));
    }
}

#[test]
fn names() {
    for (name, good) in
        [("a", true), ("0-a", true), ("-a", false), ("A", false), ("a_b", false), ("", false), ("../a", false)]
    {
        assert_eq!(name.parse::<PluginName>().is_ok(), good, "{name}");
    }
    assert!("a".repeat(64).parse::<PluginName>().is_ok());
    assert!("a".repeat(65).parse::<PluginName>().is_err());
    for (version, good) in
        [("0.1", true), ("12.30", true), ("1", false), ("1.2.3", false), ("+1.2", false), ("99999999999.0", false)]
    {
        assert_eq!(version.parse::<ContractVersion>().is_ok(), good, "{version}");
    }
}

proptest! {
    #[test]
    fn never_panics(text in any::<String>(), cut in 0..FULL.len(), insert in "[\\[\\]\"=\\PC\n]{0,4}") {
        let one_line = |result: Result<Manifest, ManifestError>| {
            result.err().is_none_or(|error| !error.to_string().contains('\n'))
        };
        prop_assert!(one_line(Manifest::parse(&text, "a\nb")));
        let mut damaged = FULL.to_owned();
        damaged.insert_str(cut, &insert);
        prop_assert!(one_line(Manifest::parse(&damaged, "p.toml")));
        prop_assert!(one_line(Manifest::parse(&FULL[..cut], "p.toml")));
    }
}

#[test]
fn tools_to_stand_in_for_are_named_each_once() {
    let with = |list: &str| {
        Manifest::parse(&format!("name = \"x\"\nversion = \"1\"\ncontract = \"0.1\"\nreplaces = {list}\n"), "p.toml")
    };
    assert_eq!(with("[\"read\", \"my_tool-2\", \"read\"]").unwrap().replaces, ["read", "my_tool-2"]);
    for (list, error) in [
        ("[\"*\"]", "p.toml:4:12: `replaces`: `*` can not name a tool; name tools as `atoll tool list` does"),
        ("[\"\"]", "p.toml:4:12: `replaces`: `` can not name a tool; name tools as `atoll tool list` does"),
    ] {
        assert_eq!(with(list).unwrap_err().to_string(), error);
    }
    assert!(with("\"read\"").is_err());
}

#[test]
fn a_plugin_says_which_of_its_tools_runs_scripts() {
    let read = |more: &str| {
        Manifest::parse(&format!("name = \"a\"\nversion = \"1\"\ncontract = \"0.1\"\n{more}"), "plugin.toml")
    };
    assert_eq!(read("").unwrap().runs_scripts, None);
    assert_eq!(read("runs-scripts = \"run_it\"").unwrap().runs_scripts.as_deref(), Some("run_it"));
    for (wrong, named) in [("\"a b\"", "a b"), ("[\"a\"]", "a string"), ("\"\"", "runs-scripts")] {
        let error = read(&format!("runs-scripts = {wrong}")).unwrap_err().to_string();
        assert!(error.contains(named), "{wrong}: {error}");
    }
}

#[test]
fn what_is_replaceable_says_what_it_gives_up() {
    let read = |more: &str| {
        Manifest::parse(&format!("name = \"x\"\nversion = \"1\"\ncontract = \"0.1\"\n{more}"), "plugin.toml")
    };
    assert_eq!(read("").unwrap().replaceable, None);
    assert_eq!(read("replaceable = false\n[claims]\ntools = [\"a\"]").unwrap().replaceable, None);
    assert_eq!(read("replaceable = true").unwrap().replaceable, Some(Claims::default()));
    let claims =
        read("replaceable = true\n[claims]\ntools = [\"a\"]\ncommands = [\"b\"]\nflags = [\"c\"]\nevents = [\"d\"]")
            .unwrap();
    let expected = Claims {
        tools: vec!["a".into()],
        commands: vec!["b".into()],
        flags: vec!["c".into()],
        events: vec!["d".into()],
    };
    assert_eq!(claims.replaceable, Some(expected));
    for (wrong, says) in [
        ("replaceable = true\n[claims]\nevent = [\"a\"]", "event"),
        ("replaceable = \"yes\"", "replaceable"),
        ("replaceable = true\n[claims]\ntools = [\"a b\"]", "a b"),
    ] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn what_starts_it_and_its_subcommands_are_named() {
    let read = |more: &str| {
        Manifest::parse(&format!("name = \"x\"\nversion = \"1\"\ncontract = \"0.1\"\n{more}"), "plugin.toml")
    };
    assert_eq!((read("").unwrap().start_when, read("").unwrap().subcommands), (None, Vec::new()));
    let manifest = read(
        "[start-when]\nconfig = [\"a.json\"]\nevents = [\"b\"]\n[[subcommand]]\nname = \"c\"\ndescription = \"Does it.\"",
    )
    .unwrap();
    assert_eq!(manifest.start_when, Some(StartWhen { config: vec!["a.json".into()], events: vec!["b".into()] }));
    assert_eq!(manifest.subcommands, [Subcommand { name: "c".into(), description: "Does it.".into() }]);
    for (wrong, says) in [
        ("[start-when]\nconfig = [\"../a.json\"]", "../a.json"),
        ("[start-when]\nconfig = [\".a\"]", ".a"),
        ("[start-when]\nconfigs = []", "configs"),
        ("[[subcommand]]\nname = \"a\"", "description"),
        ("[[subcommand]]\ndescription = \"x\"", "name"),
        ("[[subcommand]]\nname = \"a b\"\ndescription = \"x\"", "a b"),
    ] {
        let error = read(wrong).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
