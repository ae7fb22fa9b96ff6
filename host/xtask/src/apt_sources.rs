//! Where this machine gets Debian packages from, as apt's own configuration says.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Result, bail};

/// The Debian mirrors of this machine, most plausible first.
pub(crate) fn mirrors() -> Result<Vec<String>> {
    let mut sources = Vec::new();
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.sort();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(parse_one_line_sources(&text)),
            Some("sources") => sources.extend(parse_deb822_sources(&text)),
            _ => {}
        }
    }
    let mirrors = debian_mirrors(&sources);
    if mirrors.is_empty() {
        bail!("apt's sources on this machine name no Debian mirror");
    }
    Ok(mirrors)
}

/// One entry of apt's sources.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Source {
    uri: String,
    suites: Vec<String>,
    components: Vec<String>,
}

/// The old format: `deb [options] uri suite component…`, one entry a line.
fn parse_one_line_sources(text: &str) -> Vec<Source> {
    text.lines()
        .filter_map(|line| {
            let line = line.split('#').next()?.trim();
            let rest = line.strip_prefix("deb")?;
            let rest = rest.starts_with(char::is_whitespace).then(|| rest.trim_start())?;
            let rest = match rest.strip_prefix('[') {
                Some(options) => options.split_once(']')?.1,
                None => rest,
            };
            let mut words = rest.split_whitespace().map(str::to_owned);
            Some(Source { uri: words.next()?, suites: vec![words.next()?], components: words.collect() })
        })
        .collect()
}

/// The new format: paragraphs of `Field: value`, continued by indented lines.
fn parse_deb822_sources(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    let mut last = String::new();
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            sources.extend(deb822_entries(&std::mem::take(&mut fields)));
            last.clear();
        } else if line.starts_with([' ', '\t']) {
            let value = fields.entry(last.clone()).or_default();
            value.push(' ');
            value.push_str(line.trim());
        } else if let Some((name, value)) = line.split_once(':') {
            last = name.trim().to_ascii_lowercase();
            fields.insert(last.clone(), value.trim().to_owned());
        }
    }
    sources
}

fn deb822_entries(fields: &BTreeMap<String, String>) -> Vec<Source> {
    let words = |name: &str| -> Vec<String> {
        fields.get(name).map(|value| value.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
    };
    let disabled = fields.get("enabled").is_some_and(|value| matches!(value.as_str(), "no" | "false" | "0"));
    if disabled || !words("types").contains(&"deb".to_owned()) {
        return Vec::new();
    }
    let (suites, components) = (words("suites"), words("components"));
    words("uris")
        .into_iter()
        .map(|uri| Source { uri, suites: suites.clone(), components: components.clone() })
        .collect()
}

/// The addresses of the sources that are Debian's main archive, those that look most like it first.
///
/// Mirrors behind a proxy can have any address, so an entry counts by its suite; other vendors use names of their own
/// for suites or components (`bookworm-pgdg`, `nodistro`, `stable` as a component).
fn debian_mirrors(sources: &[Source]) -> Vec<String> {
    let mut found: Vec<(bool, &str)> = Vec::new();
    for source in sources {
        let debian = source.components.iter().any(|component| component == "main")
            && source.suites.iter().any(|suite| is_debian_suite(suite));
        if debian && !found.iter().any(|(_, uri)| *uri == source.uri) {
            found.push((!source.uri.trim_end_matches('/').ends_with("/debian"), &source.uri));
        }
    }
    found.sort_by_key(|(unusual, _)| *unusual);
    found.into_iter().map(|(_, uri)| uri.to_owned()).collect()
}

/// Names of Debian's own suites, apart from those for security updates.
const SUITES: [&str; 12] = [
    "bullseye",
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "oldoldstable",
    "oldstable",
    "stable",
    "testing",
    "unstable",
    "sid",
    "experimental",
];

fn is_debian_suite(suite: &str) -> bool {
    let base = suite.trim_end_matches("-updates").trim_end_matches("-backports");
    SUITES.contains(&base)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_sources_with_options_and_comments() {
        let text = "# deb http://old/debian bookworm main\n\
                    deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian bookworm main contrib # ours\n\
                    deb-src http://mirror.example/debian bookworm main\n\
                    deb http://mirror.example/debian-security bookworm-security main\n";
        let sources = parse_one_line_sources(text);
        assert_eq!(sources.len(), 2);
        assert_eq!(sources[0].uri, "http://mirror.example/debian");
        assert_eq!(sources[0].components, ["main", "contrib"]);
        assert_eq!(debian_mirrors(&sources), ["http://mirror.example/debian"]);
    }

    #[test]
    fn deb822_sources_with_continuations_and_disabled_entries() {
        let text = "Types: deb\n# a comment between fields\nURIs: http://mirror.example/debian\nSuites: bookworm\n  bookworm-updates\n\
                    Components: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n\n\
                    Enabled: no\nTypes: deb\nURIs: http://off.example/debian\nSuites: bookworm\nComponents: main\n\n\
                    Types: deb-src\nURIs: http://src.example/debian\nSuites: bookworm\nComponents: main";
        let sources = parse_deb822_sources(text);
        assert_eq!(sources.len(), 1);
        assert_eq!(sources[0].suites, ["bookworm", "bookworm-updates"]);
        assert_eq!(debian_mirrors(&sources), ["http://mirror.example/debian"]);
    }

    #[test]
    fn other_vendors_are_not_debian_and_proxied_mirrors_are() {
        let text = "deb https://packages.example/apt cloud-sdk-bookworm main\n\
                    deb https://docker.example/linux/debian bookworm stable\n\
                    deb https://node.example/node_20.x nodistro main\n\
                    deb https://pg.example/repos/apt bookworm-pgdg main\n\
                    deb https://proxy.example/repository/deb-all bookworm main\n\
                    deb https://mirror.example/debian/ bookworm-updates main\n\
                    deb https://mirror.example/debian-security bookworm-security main\n";
        let found = debian_mirrors(&parse_one_line_sources(text));
        assert_eq!(found, ["https://mirror.example/debian/", "https://proxy.example/repository/deb-all"]);
    }
}
