use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{
    test_tools::{exposed, runner, tool},
    tool::{Exposure, Namespace},
};

fn tree() -> Tool {
    Tool {
        description: "Lists items.\n\nGoes as deep as it may. */ ```\u{7} Ends here.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "depth": {"type": "integer", "description": "How deep"},
                "filter": {"$ref": "#/$defs/Filter"},
                "not": {"$ref": "#/$defs/Filter"},
            },
            "$defs": {"Filter": {"type": "object", "properties": {"name": {"type": "string"}}}},
        }),
        output_schema: Some(std::sync::Arc::new(json!({
            "type": "object",
            "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
            "required": ["items"],
            "$defs": {"Node": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
                "required": ["id"],
            }},
        }))),
        ..tool("list-items")
    }
}

#[test]
fn a_tool_is_a_method_with_its_types_before_it() {
    let Declaration { types, method } = declaration(&tree(), Some("list_items"));
    assert_snapshot!(format!("{types}{method}"));
    // Another tool has the identifier.
    let Declaration { types, method } = declaration(&tree(), None);
    assert_snapshot!(format!("{types}{method}"));
}

#[test]
fn what_a_tool_needs_and_gives_shows() {
    let needs = Tool {
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}),
        ..tool("read")
    };
    assert_eq!(declaration(&needs, Some("read")).method, "read(args: { path: string }): Promise<string>;");
    assert_eq!(
        declaration(&tool("ping"), Some("ping")).method,
        "ping(args?: Record<string, unknown>): Promise<string>;"
    );
    let long = Tool { description: "word ".repeat(200), ..tool("long") };
    let method = declaration(&long, Some("long")).method;
    assert!(method.contains("word… */") && method.chars().count() < 600, "{method}");
}

fn grouped(name: &str, namespace: &str, length: usize) -> Tool {
    let description = "x".repeat(length);
    let group = Namespace {
        name: namespace.to_owned(),
        aliases: Vec::new(),
        description: Some(format!("All of {namespace}.")),
        instructions: None,
    };
    Tool { description, namespace: (!namespace.is_empty()).then_some(group), ..tool(name) }
}

fn pieces(tools: &[Tool]) -> Vec<Piece> {
    let identifiers = identifiers(tools.iter().map(|tool| tool.name.as_str()));
    tools.iter().zip(identifiers).map(|(tool, identifier)| Piece::new(tool, identifier.as_deref())).collect()
}

#[test]
fn groups_take_turns_and_the_shortest_come_first() {
    let tools = [
        grouped("a_long", "a", 300),
        grouped("a_short", "a", 10),
        grouped("alone", "", 10),
        grouped("b_long", "b", 300),
        grouped("b_short", "b", 10),
        grouped("a_last", "a", 10),
    ];
    let mut listing = Listing::default();
    listing.add(&pieces(&tools), 120);
    assert_snapshot!(listing.text());
    let mut all = Listing::default();
    all.add(&pieces(&tools), 3_000);
    assert_snapshot!(all.text());
    let mut none = Listing::default();
    none.add(&pieces(&tools), 0);
    assert_snapshot!(none.text(), @r#"6 tools can be called; find them with searchTools("words")."#);
    assert_eq!(Listing::default().text(), "");
}

#[test]
fn scripts_reach_what_is_active_or_made_for_them_and_the_types_say_so() {
    let mut table = Table::new();
    let mut off = tool("off");
    off.default_active = false;
    let tools = vec![
        tool("read"),
        exposed("only-model", Exposure::ModelOnly),
        exposed("for-scripts", Exposure::Codemode),
        exposed("for_scripts", Exposure::Deferred),
        off,
    ];
    table.register("p", tools, &runner()).unwrap();
    let names: Vec<(String, Option<String>)> = (table.scriptable().into_iter())
        .map(|Scriptable { entry, identifier }| (entry.tool.name.clone(), identifier))
        .collect();
    let written = |name: &str, identifier: Option<&str>| (name.to_owned(), identifier.map(str::to_owned));
    assert_eq!(
        names,
        [written("read", Some("read")), written("for-scripts", None), written("for_scripts", Some("for_scripts"))]
    );
    let types = table.script_types();
    assert_snapshot!(types.strip_prefix(GLOBALS).unwrap());
}

#[test]
fn a_sentence_says_what_a_call_gives_as_far_as_it_is_short() {
    let gives = |schema: serde_json::Value| result_type(&Tool { output_schema: Some(schema.into()), ..tool("t") });
    assert_eq!(result_type(&tool("t")), "a string");
    let commented = json!({"type": "object", "required": ["text"],
        "properties": {"text": {"enum": ["\"//", "b"], "description": "All of it"}, "cut": {"type": "boolean"}}});
    assert_eq!(gives(commented), r#"`{ text: "\"//" | "b"; cut?: boolean; }`"#);
    let many: serde_json::Map<String, serde_json::Value> =
        (10..40).map(|number| (format!("field_{number}"), json!({"type": "string"}))).collect();
    let long = gives(json!({"type": "object", "properties": many}));
    assert!(long.starts_with("an object with `field_10`, `field_11`, "), "{long}");
    assert!(long.ends_with("`field_21`, more; see `describeTool(\"t\")`"), "{long}");
    let list = json!({"type": "array", "items": {"enum": ["a".repeat(90), "b".repeat(90), "c".repeat(90)]}});
    assert_eq!(gives(list), "data, see `describeTool(\"t\")`");
}

proptest! {
    /// Whatever comes and goes, what was listed stays: only the end of the text changes.
    #[test]
    fn the_text_grows_at_its_end(
        steps in proptest::collection::vec(proptest::collection::vec((0..12_usize, 0..3_usize, 0..90_usize), 0..8), 1..6),
        budget in 0..400_usize,
    ) {
        let mut listing = Listing::default();
        let mut before = listing.clone();
        for step in steps {
            let mut tools: Vec<Tool> = Vec::new();
            for (name, group, length) in step {
                if !tools.iter().any(|tool| tool.name == format!("t{name}")) {
                    tools.push(grouped(&format!("t{name}"), ["", "a", "b"][group], length));
                }
            }
            listing.add(&pieces(&tools), budget);
            prop_assert!(listing.text.starts_with(&before.text));
            prop_assert!(listing.tokens <= budget);
            before = listing.clone();
        }
    }

    #[test]
    fn declarations_are_bounded_and_one_comment_long(description in any::<String>(), name in "[a-z]{1,8}") {
        let tool = Tool { description, ..tool(&name) };
        let Declaration { types, method } = declaration(&tool, Some(&name));
        prop_assert!(types.len() + method.len() <= MAX_BYTES);
        prop_assert!(method.matches("*/").count() <= 1 && !method.contains("```"));
    }
}
