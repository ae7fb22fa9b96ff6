//! Manifests, grants, patterns and schemas.

use std::path::Path;

use atoll_caps::{
    Access, Effective, FilesWant, Grants, HttpWant, Manifest, OriginPattern, ProcessWant, RootPattern, RootVars,
    SecretPattern, SecretWant, Wants,
};
use atoll_table::{arguments::Checker, describe};
use serde_json::Value;

use super::{budget, fuzz};

const MANIFESTS: [&str; 5] = [
    include_str!("../plugins/misbehave/plugin.toml"),
    include_str!("../plugins/moody/plugin.toml"),
    include_str!("../../guest-tools/bash/plugin.toml"),
    include_str!("../../guest-extensions/openai-completions/plugin.toml"),
    "name = \"x\"\nversion = \"1\"\ncontract = \"0.1\"\nfiles = [{root = \"~/a\", access = \"read\", reason = \"r\"}]\n\
     [[secrets]]\nname = \"mcp/*\"\nreveal = true\nreason = \"r\"\n[limits]\nwall-ms = 0\nnesting = 3\ntools = 2\n",
];

const GRANTS: &str = "[plugin.a]\nsha256 = \"0000000000000000000000000000000000000000000000000000000000000000\"\nall = true\n\
    [plugin.b]\nsha256 = \"1111111111111111111111111111111111111111111111111111111111111111\"\n\
    files = [{ root = \"$workspace\", access = \"read-write\" }]\nhttp = [{ origin = \"https://*.example.org:*\" }]\n\
    process = [{ program = \"git\", arguments = [\"log\", \"**\"] }]\nsecrets = [{ name = \"KEY\" }]\n";

fn vars() -> RootVars {
    RootVars { workspace: "/w".into(), skills: vec!["/s".into()], spill: "/p".into(), home: "/h".into() }
}

/// A message that people see: one line.
fn one_line(message: &str) -> Result<(), String> {
    if message.chars().any(char::is_control) { Err(format!("more than a line: {message:?}")) } else { Ok(()) }
}

/// Whoever has two sides that both have to allow something is never allowed what one of them does not allow.
fn never_widens(a: &Wants, b: &Wants, manifest: &Manifest) -> Result<(), String> {
    let with = |wants: &Wants| Manifest { wants: wants.clone(), ..manifest.clone() };
    let alone = [Effective::builtin(&with(a)), Effective::builtin(&with(b))];
    let both = Effective::intersect(&with(a), Some(b));
    let allowed = |what: &str, asks: &dyn Fn(&Effective) -> bool| -> Result<(), String> {
        if asks(&both) && !alone.iter().all(asks) { Err(format!("widened: {what}: {a:?} {b:?}")) } else { Ok(()) }
    };
    for path in ["/", "/w", "/w/a", "/h/.ssh/id", "/etc/passwd", "/w/../etc"] {
        for access in [Access::Read, Access::ReadWrite] {
            allowed(path, &|one| one.check_path(&vars(), Path::new(path), access).is_ok())?;
        }
    }
    for host in ["example.org", "a.example.org", "127.0.0.1", "::1", "evil.test"] {
        for (scheme, port, method) in [("http", 80, "GET"), ("https", 443, "POST"), ("https", 8443, "DELETE")] {
            allowed(host, &|one| one.check_http(scheme, host, port, method, &[]).is_ok())?;
        }
    }
    for program in ["git", "/bin/sh", "sh"] {
        allowed(program, &|one| one.check_process(program, &["log", "-p"]).is_ok())?;
        for name in ["GIT_PAGER", "A", "PATH", "LD_PRELOAD"] {
            allowed(name, &|one| one.check_env(program, &["log", "-p"], name).is_ok())?;
        }
    }
    for secret in ["KEY", "mcp/x", "OTHER"] {
        for reveal in [false, true] {
            allowed(secret, &|one| one.check_secret(secret, reveal).is_ok())?;
        }
    }
    Ok(())
}

#[test]
fn no_manifest_harms_the_host_or_widens_a_grant() {
    let known = Manifest::parse(MANIFESTS[4], "plugin.toml").unwrap();
    let target = |input: &[u8]| -> Result<(), String> {
        let text = String::from_utf8_lossy(input);
        match Manifest::parse(&text, "plugin.toml") {
            Ok(manifest) => never_widens(&manifest.wants, &known.wants, &manifest),
            Err(error) => one_line(&error.to_string()),
        }
    };
    fuzz("manifests", budget(75), MANIFESTS.iter().map(|text| text.as_bytes().to_vec()).collect(), &target);
}

#[test]
fn no_grants_harm_the_host_and_what_is_read_is_written_the_same() {
    let target = |input: &[u8]| -> Result<(), String> {
        let text = String::from_utf8_lossy(input);
        match Grants::parse(&text, "grants.toml") {
            Ok(grants) => {
                let written = grants.to_toml().map_err(|error| error.to_string())?;
                let again = Grants::parse(&written, "grants.toml").map_err(|error| error.to_string())?;
                if again == grants { Ok(()) } else { Err(format!("not the same: {written}")) }
            }
            Err(error) => one_line(&error.to_string()),
        }
    };
    fuzz("grants", budget(75), vec![GRANTS.as_bytes().to_vec()], &target);
}

#[test]
fn no_pattern_harms_the_host_or_means_more_than_it_says() {
    let patterns = [
        "$workspace",
        "~/a/b",
        "/etc",
        "https://*.example.org:443",
        "http://[::1]:*",
        "*://*",
        "$models",
        "git",
        "/usr/bin/*",
        "mcp/*",
        "KEY",
        "https://example.org:GET,POST",
        "/a:read-write",
        "KEY:reveal",
    ];
    let target = |input: &[u8]| -> Result<(), String> {
        let text = String::from_utf8_lossy(input);
        let all: [Result<String, String>; 3] = [
            RootPattern::parse(&text).map(|one| one.to_string()).map_err(|error| error.to_string()),
            OriginPattern::parse(&text).map(|one| one.to_string()).map_err(|error| error.to_string()),
            SecretPattern::parse(&text).map(|one| one.to_string()).map_err(|error| error.to_string()),
        ];
        for one in &all {
            match one {
                Ok(shown) | Err(shown) => one_line(shown)?,
            }
        }
        // Read again, it means the same.
        if let Ok(root) = RootPattern::parse(&text)
            && RootPattern::parse(&root.to_string()) != Ok(root.clone())
        {
            return Err(format!("{text:?} is shown as {root}"));
        }
        if let Ok(origin) = OriginPattern::parse(&text)
            && OriginPattern::parse(&origin.to_string()) != Ok(origin.clone())
        {
            return Err(format!("{text:?} is shown as {origin}"));
        }
        // A secret without a star is one name, and a root is nothing beside it.
        if let Ok(secret) = SecretPattern::parse(&text)
            && !text.ends_with('*')
            && (!secret.matches(&text) || secret.matches(&format!("{text}x")) || secret.matches(""))
        {
            return Err(format!("{text:?} is more than its name"));
        }
        if let Ok(root) = RootPattern::parse(&text) {
            for path in root.resolve(&vars()) {
                let beside = std::path::PathBuf::from(format!("{}x", path.display()));
                if path != Path::new("/") && beside.starts_with(&path) {
                    return Err(format!("{text:?} reaches beside itself"));
                }
            }
        }
        // On the command line.
        for error in [
            FilesWant::from_argument(&text).err().map(|error| error.to_string()),
            HttpWant::from_argument(&text).err().map(|error| error.to_string()),
            ProcessWant::from_argument(&text).err().map(|error| error.to_string()),
            SecretWant::from_argument(&text).err().map(|error| error.to_string()),
        ] {
            error.as_deref().map_or(Ok(()), one_line)?;
        }
        Ok(())
    };
    fuzz("patterns", budget(75), patterns.iter().map(|text| text.as_bytes().to_vec()).collect(), &target);
}

#[test]
fn no_schema_and_no_arguments_harm_the_host() {
    let schemas = [
        include_str!("../../guest-extensions/scripted/plugin.toml").replace('=', ":"),
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"$defs":{"n":{"anyOf":[{"type":"string","pattern":"^(a*)*b$"},{"type":"array","items":{"$ref":"#/$defs/n"}}]}},"required":["a"]}"##.to_owned(),
        r#"{"type":"object","properties":{"edits":{"type":"array","items":{"type":"object","properties":{"oldText":{"type":"string"},"n":{"type":"integer","minimum":1}},"required":["oldText"]}}},"additionalProperties":false}"#.to_owned(),
        r#"{"allOf":[{"oneOf":[{"const":1},{"enum":["a",null]}]},{"if":{"type":"string"},"then":{"maxLength":3},"else":{"not":{}}}],"patternProperties":{"^x-":{}},"dependentRequired":{"a":["b"]}}"#.to_owned(),
        r#"{"type":["object","null"],"description":"x","properties":{"a":{"type":"number","multipleOf":0.1},"b":true,"c":false}}"#.to_owned(),
    ];
    let arguments: Value = serde_json::from_str(
        r#"{"a":["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac",[["b"]],3],"edits":[{"oldText":1,"n":"2"}],"x-y":null,"b":{"c":"d"}}"#,
    )
    .unwrap();
    let target = |input: &[u8]| -> Result<(), String> {
        let Ok(schema) = serde_json::from_slice::<Value>(input) else { return Ok(()) };
        let checker = Checker::new("tool", &schema);
        let _ = checker.check(arguments.clone());
        let _ = checker.check(schema.clone());
        describe::shape(&schema);
        describe::signature(&schema, Some(&schema));
        Ok(())
    };
    fuzz("schemas", budget(75), schemas.iter().map(|text| text.as_bytes().to_vec()).collect(), &target);
}
