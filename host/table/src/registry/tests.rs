use serde_json::json;

use super::*;
use crate::{
    Caller,
    test_tools::{exposed, namespace, runner, tool},
    tool::Namespace,
};

fn table(names: &[&str]) -> Table {
    let mut table = Table::new();
    table.register("p", names.iter().map(|name| tool(name)).collect(), &runner()).unwrap();
    table
}

fn add(table: &mut Table, registration: Registration, names: &[&str]) {
    table.register(registration, names.iter().map(|name| tool(name)).collect(), &runner()).unwrap();
}

fn active(table: &Table) -> Vec<String> {
    table.active().iter().map(|entry| entry.tool.name.clone()).collect()
}

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn owner(table: &Table, name: &str) -> String {
    match table.find(name) {
        Ok(entry) => format!("{}/{}", entry.plugin, entry.local),
        Err(error) => error.code().to_owned(),
    }
}

#[test]
fn a_new_tool_is_declared_after_the_old_ones() {
    let mut table = table(&["read", "bash"]);
    add(&mut table, "q".into(), &["aaa"]);
    assert_eq!(active(&table), ["read", "bash", "aaa"]);
    assert_eq!(table.declarations().len(), 3);
}

#[test]
fn what_cannot_be_added_adds_nothing() {
    let mut table = table(&["read"]);
    for (bad, why) in [
        (vec![tool("new"), tool("a b")], "can not name a tool"),
        (vec![tool("new"), tool("")], "can not name a tool"),
        (vec![tool("new"), tool(&"x".repeat(65))], "can not name a tool"),
        (vec![tool("new"), tool("new")], "two tools named"),
        (vec![tool("new"), Tool { parameters: json!({"type": "string"}), ..tool("s") }], "\"type\": \"object\""),
    ] {
        let error = table.register("q", bad, &runner()).unwrap_err();
        assert_eq!(error.code(), "invalid-arguments");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(table.tools().len(), 1);
    }
}

#[test]
fn a_plugin_cannot_fill_the_table() {
    let mut table = Table::new();
    let many: Vec<Tool> = (0..=10_000).map(|n| tool(&format!("t{n}"))).collect();
    assert_eq!(table.register("p", many[1..].to_vec(), &runner()), Ok(()));
    assert_eq!(table.register("p", many[..1].to_vec(), &runner()).unwrap_err().code(), "limit");
    assert_eq!(table.register("p", many[1..].to_vec(), &runner()), Ok(()), "the same ones again are no more");
    assert_eq!(table.register("q", many[..1].to_vec(), &runner()), Ok(()));
    // What is withdrawn gives its place to what is new, and not to another plugin's.
    table.unregister("p", Origin::User, &strings(&["t1", "t2"])).unwrap();
    assert_eq!(table.register("p", many[..1].to_vec(), &runner()), Ok(()));
    assert_eq!((table.tools().len(), owner(&table, "t1").as_str()), (10_001, "not-found"));
    assert!(table.is_active("t3") && table.is_active("p__t0"));
    assert_eq!(table.register("p", many[1..3].to_vec(), &runner()).unwrap_err().code(), "limit");
    assert_eq!(table.register("p", many[1..2].to_vec(), &runner()), Ok(()));
    let fewer = Registration::user("r").at_most(2);
    assert_eq!(table.register(fewer.clone(), many[..2].to_vec(), &runner()), Ok(()));
    let error = table.register(fewer, many[2..3].to_vec(), &runner()).unwrap_err();
    assert_eq!(error, Error::Limit { name: "tools".to_owned(), value: 2 });
}

#[test]
fn registering_again_replaces_in_place() {
    let mut table = table(&["a", "b", "c"]);
    table.select(&strings(&["-c"])).unwrap();
    let new = vec![Tool { description: "new".into(), ..tool("a") }, tool("c"), tool("d")];
    table.register("p", new, &runner()).unwrap();
    let names: Vec<&str> = table.tools().iter().map(|entry| entry.tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d"]);
    assert_eq!(active(&table), ["a", "b", "d"], "what was switched off stays off");
    assert_eq!(table.find("a").unwrap().tool.description, "new");
}

#[test]
fn a_withdrawn_tool_is_hidden_and_comes_back_where_it_was() {
    let mut table = table(&["a", "b", "c"]);
    assert_eq!(table.unregister("p", Origin::User, &strings(&["b", "x"])).unwrap_err().code(), "not-found");
    assert_eq!(table.unregister("q", Origin::User, &strings(&["b"])).unwrap_err().code(), "not-found");
    assert_eq!(active(&table), ["a", "b", "c"]);
    table.unregister("p", Origin::User, &strings(&["b"])).unwrap();
    assert_eq!(active(&table), ["a", "c"]);
    assert_eq!(owner(&table, "b"), "not-found");
    assert_eq!(table.tools()[1].tool.exposure, Exposure::Hidden);
    assert_eq!(table.activate(&strings(&["b"]), true).unwrap_err().code(), "not-found");
    table.register("p", vec![tool("b")], &runner()).unwrap();
    assert_eq!(active(&table), ["a", "b", "c"]);
}

#[test]
fn a_tool_becomes_active_when_it_first_becomes_declarable() {
    let mut table = table(&["a"]);
    table.register("p", vec![exposed("later", Exposure::Deferred)], &runner()).unwrap();
    table.register("p", vec![Tool { default_active: false, ..tool("off") }], &runner()).unwrap();
    assert_eq!(active(&table), ["a"]);
    table.register("p", vec![tool("later"), tool("off")], &runner()).unwrap();
    assert_eq!(active(&table), ["a", "later"], "`off` was declarable before and was not to be active");
}

#[test]
fn a_built_in_tool_keeps_its_name() {
    let mut table = Table::new();
    add(&mut table, "mine".into(), &["read"]);
    assert_eq!(owner(&table, "read"), "mine/read");
    add(&mut table, Registration::builtin("read"), &["read"]);
    assert_eq!(owner(&table, "read"), "read/read", "whoever came first");
    assert_eq!(owner(&table, "mine__read"), "mine/read");
    assert_eq!(owner(&table, "read__read"), "read/read");
    assert_eq!(active(&table), ["mine__read", "read"], "the order stays");
    let collision = Collision {
        name: "read".into(),
        answers: Some("read".into()),
        claims: vec![("mine".into(), Some("mine__read".into())), ("read".into(), Some("read".into()))],
    };
    assert_eq!(table.collisions(), [collision]);
    let again = table.register(Registration::builtin("other"), vec![tool("read")], &runner()).unwrap_err();
    assert_eq!(again.to_string(), "plugin other: the tool `read` is already there, from plugin read");
}

#[test]
fn a_plugin_that_says_so_stands_in_for_a_built_in_tool() {
    let mut table = Table::new();
    add(&mut table, Registration::builtin("read"), &["read"]);
    add(&mut table, Registration::builtin("bash"), &["bash"]);
    add(&mut table, Registration::user("mine").replacing(["read"]), &["read", "bash"]);
    assert_eq!(owner(&table, "read"), "mine/read");
    assert_eq!(owner(&table, "read__read"), "not-found", "there is no way around the replacement");
    assert_eq!(owner(&table, "bash"), "bash/bash", "that one it did not name");
    assert_eq!(active(&table), ["read", "bash", "mine__bash"], "it takes the place of the other");
    table.unregister("mine", Origin::User, &strings(&["read"])).unwrap();
    assert_eq!(owner(&table, "read"), "read/read");
    assert_eq!(active(&table), ["read", "bash", "mine__bash"]);
}

#[test]
fn two_that_stand_in_for_the_same_tool_are_ambiguous() {
    let mut table = Table::new();
    add(&mut table, Registration::builtin("read"), &["read"]);
    add(&mut table, Registration::user("a").replacing(["read"]), &["read"]);
    add(&mut table, Registration::project("b").replacing(["read"]), &["read"]);
    let error = table.find("read").err().unwrap();
    assert_eq!(error.to_string(), "`read` is ambiguous: it could be a__read, b__read");
}

#[test]
fn a_plugin_with_the_name_of_a_built_in_one_is_another() {
    let mut table = Table::new();
    add(&mut table, Registration::builtin("read"), &["read"]);
    add(&mut table, Registration::user("read"), &["read"]);
    let names: Vec<(Origin, &str)> =
        table.tools().iter().map(|entry| (entry.origin, entry.tool.name.as_str())).collect();
    assert_eq!(names, [(Origin::Builtin, "read"), (Origin::User, "read__read")]);
    assert_eq!(table.find("read__read").unwrap().origin, Origin::User);
}

#[test]
fn a_name_of_two_plugins_is_ambiguous_until_one_lets_go() {
    let mut table = table(&["x", "y"]);
    assert_eq!(owner(&table, "p__x"), "p/x", "the long form always works");
    add(&mut table, "q".into(), &["x"]);
    assert_eq!(owner(&table, "x"), "ambiguous");
    assert_eq!((owner(&table, "p__x"), owner(&table, "q__x")), ("p/x".into(), "q/x".into()));
    assert_eq!(active(&table), ["p__x", "y", "q__x"]);
    assert_eq!(table.select(&strings(&["x"])).unwrap_err().code(), "ambiguous");
    assert_eq!(table.reach(Caller::Model, "x").err().unwrap().code(), "ambiguous");
    table.unregister("p", Origin::User, &strings(&["x"])).unwrap();
    assert_eq!(owner(&table, "x"), "q/x");
    assert_eq!(active(&table), ["y", "x"]);
}

#[test]
fn a_generated_name_never_meets_another() {
    let mut table = table(&["q__x"]);
    add(&mut table, "q".into(), &["x"]);
    add(&mut table, "r".into(), &["x"]);
    assert_eq!(owner(&table, "q__x"), "p/q__x");
    let names: HashSet<&str> = table.tools().iter().map(|entry| entry.tool.name.as_str()).collect();
    assert_eq!(names.len(), 3);
    let generated = &table.tools()[1].tool.name;
    assert!(generated.starts_with("q__x_") && is_valid_name(generated), "{generated}");
    assert_eq!(owner(&table, generated), "q/x");
    let long = "y".repeat(60);
    add(&mut table, "s".into(), &[&long]);
    add(&mut table, "t".into(), &[&long]);
    assert!(table.tools().iter().all(|entry| is_valid_name(&entry.tool.name)));
}

#[test]
fn selections_are_lists_or_changes() {
    let mut table = table(&["read", "write", "bash"]);
    table.register("p", vec![exposed("later", Exposure::Deferred)], &runner()).unwrap();
    table.select(&strings(&["r*", "bash"])).unwrap();
    assert_eq!(active(&table), ["read", "bash"]);
    table.select(&strings(&["-read", "+write", "+bash"])).unwrap();
    assert_eq!(active(&table), ["bash", "write"]);
    assert_eq!(table.select(&strings(&["read", "-bash"])).unwrap_err().code(), "invalid-arguments");
    assert_eq!(table.select(&strings(&["+read", "+x*"])).unwrap_err().code(), "not-found");
    assert_eq!(active(&table), ["bash", "write"], "a bad selection changes nothing");
    table.select(&strings(&["*"])).unwrap();
    assert_eq!(active(&table), ["read", "write", "bash"], "a pattern does not mean deferred tools");
    table.select(&strings(&["+later"])).unwrap();
    assert_eq!(active(&table), ["read", "write", "bash", "later"]);
}

#[test]
fn activating_goes_to_the_end_and_moves_nothing() {
    let mut table = table(&["a", "b"]);
    table.register("p", vec![exposed("c", Exposure::Deferred)], &runner()).unwrap();
    assert_eq!(table.activate(&strings(&["c", "a", "c"]), true), Ok(strings(&["c"])));
    assert_eq!(active(&table), ["a", "b", "c"]);
    assert_eq!(table.activate(&strings(&["a", "nope"]), false).unwrap_err().code(), "not-found");
    assert_eq!(table.activate(&strings(&["a"]), false), Ok(strings(&["a"])));
    assert_eq!(active(&table), ["b", "c"]);
}

#[test]
fn what_the_user_switched_off_no_tool_switches_on() {
    let off = |table: &mut Table, name: &str| table.activate(&strings(&[name]), true).unwrap_err().code() == "denied";
    let mut table = table(&["read", "write", "bash"]);
    let inactive = Tool { default_active: false, ..tool("find") };
    table.register("p", vec![inactive, exposed("later", Exposure::Deferred)], &runner()).unwrap();
    table.select(&strings(&["-bash", "-find"])).unwrap();
    assert!(off(&mut table, "bash") && off(&mut table, "find"), "what was not active can be switched off too");
    assert_eq!(table.activate(&strings(&["later", "bash"]), true).unwrap_err().code(), "denied");
    assert_eq!(active(&table), ["read", "write"], "then nothing changes");
    assert_eq!(table.activate(&strings(&["bash"]), false), Ok(Vec::new()));
    // A list leaves out what would be active without it, not what is there to be switched on.
    table.select(&strings(&["read"])).unwrap();
    assert!(off(&mut table, "write") && off(&mut table, "bash"));
    assert_eq!(table.activate(&strings(&["find", "later"]), true), Ok(strings(&["find", "later"])));
    // The user's last word counts.
    table.select(&strings(&["+bash"])).unwrap();
    table.activate(&strings(&["bash"]), false).unwrap();
    assert_eq!(table.activate(&strings(&["bash"]), true), Ok(strings(&["bash"])));
    assert!(off(&mut table, "write"));
}

#[test]
fn what_stands_behind_a_tool_that_was_switched_off_does_not_come_to_the_front() {
    let mut table = Table::new();
    table.register(Registration::builtin("bash"), vec![tool("bash")], &runner()).unwrap();
    table.register(Registration::user("p").replacing(["bash"]), vec![tool("bash")], &runner()).unwrap();
    table.select(&strings(&["-bash"])).unwrap();
    table.unregister("p", Origin::User, &strings(&["bash"])).unwrap();
    assert_eq!(owner(&table, "bash"), "bash/bash");
    assert!(active(&table).is_empty());
    assert_eq!(table.activate(&strings(&["bash"]), true).unwrap_err().code(), "denied");
}

#[test]
fn an_unknown_name_suggests_near_ones() {
    let error = table(&["read", "write"]).find("quux").err().unwrap();
    assert_eq!(error.to_string(), "there is no tool `quux`; `atoll tool list` shows what there is");
    let error = table(&["read", "write"]).find("reed").err().unwrap();
    assert_eq!(error.to_string(), "there is no tool `reed`; did you mean `read`? `atoll tool list` shows all");
}

#[test]
fn a_caller_is_told_why_it_cannot_reach_a_tool() {
    let mut table = table(&["read", "bash", "write"]);
    table.register("p", vec![exposed("search", Exposure::ModelOnly)], &runner()).unwrap();
    table.activate(&strings(&["write"]), false).unwrap();
    table.select(&strings(&["-bash"])).unwrap();
    let why = |caller, name| table.reach(caller, name).map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(why(Caller::Model, "read"), Ok(()));
    assert_eq!(why(Caller::Person, "bash"), Ok(()));
    assert_eq!(why(Caller::Model, "bash"), Err("there is no tool `bash` among those you can call".into()));
    let off = "the tool `bash` is not there: the user has switched it off";
    assert_eq!(why(Caller::Script, "bash"), Err(off.into()));
    assert_eq!(
        why(Caller::NestedTool, "search"),
        Err("only the model can call `search`, not a script or another tool".into())
    );
    let inactive = "the tool `write` is there, but not active, so only the user can call it";
    assert_eq!(why(Caller::Script, "write"), Err(inactive.into()));
    let unlisted = "there is no tool `bas` among those you can call";
    assert_eq!(why(Caller::Model, "bas"), Err(unlisted.into()), "what it can not reach is not suggested");
    assert_eq!(
        why(Caller::Model, "reed"),
        Err("there is no tool `reed` among those you can call; did you mean `read`?".into())
    );
    assert_eq!(why(Caller::Person, "xyz"), Err("there is no tool `xyz`; `atoll tool list` shows what there is".into()));
}

#[test]
fn namespaces_answer_to_four_spellings() {
    let mut table = table(&["read"]);
    let group = Namespace { description: Some("Radius".into()), ..namespace("mcp__dev_radius", "dev-radius") };
    let in_group = |name: &str, group: &Namespace| Tool { namespace: Some(group.clone()), ..tool(name) };
    let second = Namespace { instructions: Some("ask".into()), description: Some("other".into()), ..group.clone() };
    let hidden = Tool { exposure: Exposure::Hidden, ..in_group("hidden", &group) };
    table.register("m", vec![in_group("a", &group), in_group("b", &second), hidden], &runner()).unwrap();
    let expected = Group {
        name: "mcp__dev_radius".into(),
        aliases: strings(&["dev-radius"]),
        description: Some("Radius".into()),
        instructions: Some("ask".into()),
        tools: strings(&["a", "b"]),
    };
    for name in ["mcp__dev_radius", "mcp__dev-radius", "dev-radius", "dev_radius"] {
        assert_eq!(table.namespace(name), Ok(expected.clone()), "{name}");
    }
    let error = table.namespace("dev-radios").unwrap_err().to_string();
    assert_eq!(error, "there is no namespace `dev-radios`; did you mean `dev-radius`?");
    table.register("n", vec![in_group("c", &namespace("other", "dev_radius"))], &runner()).unwrap();
    assert_eq!(table.namespace("dev_radius").unwrap().name, "other", "an alias as it is comes first");
    assert_eq!(table.namespace("dev.radius").unwrap_err().code(), "ambiguous");
}

/// All names used to be worked out for each of them, while nobody else could look at the table.
#[test]
fn tools_that_come_one_by_one_cost_no_more_than_their_own_names() {
    let mut table = Table::new();
    let runner = crate::test_tools::runner();
    table.register(Registration::builtin("read"), vec![crate::test_tools::tool("read")], &runner).unwrap();
    for number in 0..500 {
        table.register("many", vec![crate::test_tools::tool(&format!("t{number}"))], &runner).unwrap();
    }
    let more = (500..1_000).map(|number| crate::test_tools::tool(&format!("t{number}"))).collect();
    table.register("many", more, &runner).unwrap();
    let gone: Vec<String> = (600..1_000).map(|number| format!("t{number}")).collect();
    table.unregister("many", Origin::User, &gone).unwrap();
    assert_eq!(table.settled, 0);
    assert!(table.is_active("t599") && !table.is_active("t600") && table.tools().len() == 1_001);
    // Where somebody else claims the name, all of them are looked at.
    for (plugin, tool) in [("other", "t3"), ("other", "read"), ("many", "t4")] {
        let before = table.settled;
        table.register(plugin, vec![crate::test_tools::tool(tool)], &runner).unwrap();
        assert_eq!(table.settled, before + 1, "{plugin} {tool}");
    }
    let names: Vec<&str> = table.tools().iter().map(|entry| entry.tool.name.as_str()).collect();
    for name in ["many__t3", "other__t3", "other__read", "read", "t4"] {
        assert!(names.contains(&name), "{name}");
    }
    // Nor is a name that was made up for another given away.
    table.register("more", vec![crate::test_tools::tool("other__t3")], &runner).unwrap();
    let mut names: Vec<String> = table.tools().iter().map(|entry| entry.tool.name.clone()).collect();
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all, "two tools of one name");
}

proptest::proptest! {
    /// What is added without a look at everything is what a look at everything would have made of it.
    #[test]
    fn a_short_way_leads_to_the_same_names(
        added in proptest::collection::vec(
            (0_usize..4, 0_usize..7, proptest::bool::ANY, proptest::bool::ANY, proptest::bool::ANY), 1..12,
        ),
    ) {
        let plugins = [("p", Origin::User), ("q", Origin::User), ("p", Origin::Project), ("core", Origin::Builtin)];
        let names = ["x", "y", "z", "p__x", "q__x", "p__y", "core__x"];
        let mut table = Table::new();
        for (plugin, name, is_hidden, replaces, is_withdrawn) in added {
            let (plugin, origin) = plugins[plugin];
            let exposure = if is_hidden { Exposure::Hidden } else { Exposure::Direct };
            let replaced: &[&str] = if replaces { &[names[name]] } else { &[] };
            let registration = Registration::new(plugin, origin).replacing(replaced.iter().copied());
            let _ = match is_withdrawn {
                true => table.unregister(plugin, origin, &[names[name].to_owned()]),
                false => table.register(registration, vec![exposed(names[name], exposure)], &runner()),
            };
            let shown = |table: &Table| -> Vec<(String, Exposure)> {
                table.tools.iter().map(|entry| (entry.tool.name.clone(), entry.tool.exposure)).collect()
            };
            let (by_name, before) = (table.names.clone(), shown(&table));
            table.settle();
            proptest::prop_assert_eq!(&by_name, &table.names);
            proptest::prop_assert_eq!(before, shown(&table));
        }
    }
}

#[test]
fn what_the_user_takes_away_by_name_scripts_do_not_reach() {
    let tools = [exposed("mcp__a__x", Exposure::Codemode), exposed("mcp__a__y", Exposure::Deferred), tool("read")];
    let mut table = Table::new();
    table.register("p", tools.to_vec(), &runner()).unwrap();
    let reached = |table: &Table| {
        let names = ["mcp__a__x", "mcp__a__y", "read"];
        names.map(|name| table.reach(Caller::Script, name).is_ok())
    };
    assert_eq!(reached(&table), [true; 3]);
    table.select(&strings(&["-mcp__a__x"])).unwrap();
    assert_eq!(reached(&table), [false, true, true]);
    table.select(&strings(&["-mcp__*"])).unwrap();
    assert_eq!(reached(&table), [false, false, true]);
    assert_eq!(table.activate(&strings(&["mcp__a__y"]), true).unwrap_err().code(), "denied");
    table.select(&strings(&["+mcp__a__y"])).unwrap();
    assert_eq!(reached(&table), [false, true, true]);
}
