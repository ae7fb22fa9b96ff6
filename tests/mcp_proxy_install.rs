//! Having the other adapter for MCP servers in place of the built-in one, by the commands that its description gives.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;

use crate::{
    common::{Command, Finished, plugins::workspace_root},
    mcp_proxy::Place,
};

const README: &str = include_str!("../guest-extensions/mcp-proxy/README.md");

/// The other adapter is there, and not the built-in one; and the other way round.
const PROXY: (bool, bool) = (true, false);
const BUILT_IN: (bool, bool) = (false, true);

/// Whether each of the two adapters has tools in a table, the other one first.
fn tools(table: &Finished) -> (bool, bool) {
    let table = table.json();
    let of = |plugin: &str| table.as_array().unwrap().iter().any(|tool| tool["plugin"] == plugin);
    (of("mcp-proxy"), of("mcp"))
}

fn table(command: Command) -> Finished {
    command.args(["tool", "list", "--json"]).run().ok()
}

/// The commands of this program in each of its blocks, without what is said of them.
fn blocks() -> Vec<Vec<&'static str>> {
    let blocks = README.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let commands = |block: &'static str| {
        let lines = block.lines().map(|line| line.split(" #").next().unwrap().trim());
        lines.filter(|line| line.starts_with("atoll ")).collect()
    };
    blocks.map(commands).collect()
}

#[test]
fn the_commands_of_its_description_have_it_stand_in_and_the_built_in_one_come_back() {
    let place = Place::of_peer(&json!({}), &json!({})).known();
    fs::remove_file(place.sandbox.atoll_home().join("grants.toml")).unwrap();
    for folder in ["target", "guest-extensions"] {
        symlink(workspace_root().join(folder), place.sandbox.work().join(folder)).unwrap();
    }
    let in_force = || tools(&table(place.sandbox.atoll()));
    let blocks = blocks();
    let [installing, one_run, ..] = &blocks[..] else { panic!("{blocks:?}") };
    let ([pack, install, remove], [again, disable, run]) = (&installing[..], &one_run[..]) else {
        panic!("{blocks:?}")
    };
    place.sandbox.shell(pack).ok();
    assert_eq!(in_force(), BUILT_IN);
    place.sandbox.shell(install).ok();
    assert_eq!(in_force(), PROXY);
    place.sandbox.shell(remove).ok();
    assert_eq!(in_force(), BUILT_IN);
    // In some runs only.
    place.sandbox.shell(again).ok();
    place.sandbox.shell(disable).ok();
    assert_eq!(in_force(), BUILT_IN);
    let run = place.sandbox.shell(&format!("{run} --json")).ok();
    assert_eq!(tools(&run), PROXY, "{run:#?}");
    assert!(run.stderr.contains("the built-in mcp is replaced by the plugin mcp-proxy"), "{run:#?}");
}

#[test]
fn named_for_one_run_it_stands_in_for_that_one() {
    let place = Place::of_peer(&json!({}), &json!({})).known();
    let run = table(place.atoll());
    assert_eq!(tools(&run), PROXY, "{run:#?}");
    assert_eq!(tools(&table(place.sandbox.atoll())), BUILT_IN);
}

#[test]
fn a_person_who_installs_it_by_its_file_and_manifest_has_it() {
    let place = Place::of_peer(&json!({}), &json!({})).known();
    fs::remove_file(place.sandbox.atoll_home().join("grants.toml")).unwrap();
    place.sandbox.atoll().args(["plugin", "install", "--yes", "--grant-all"]).arg(&place.file).run().ok();
    assert_eq!(tools(&table(place.sandbox.atoll())), PROXY);
    assert!(place.sandbox.grants().contains("[plugin.mcp-proxy.listener]"), "{}", place.sandbox.grants());
}
