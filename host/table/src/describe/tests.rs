use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::test_tools::{runner, tool};

fn object(properties: impl Into<Value>) -> Value {
    let properties = properties.into();
    json!({"type": "object", "properties": properties})
}

#[test]
fn small_schemas_are_one_line() {
    let cases = [
        (json!({"type": "string"}), "string"),
        (json!({"type": "integer"}), "number"),
        (json!({"type": ["string", "null"]}), "string | null"),
        (json!({"type": "string", "nullable": true}), "string | null"),
        (json!({"type": "string", "format": "date-time"}), "string /* date-time */"),
        (json!({"type": "string", "format": "*/ evil"}), "string"),
        (json!({"type": "array", "items": {"type": "string", "format": "uri"}}), "(string /* uri */)[]"),
        (json!({"const": "a"}), "\"a\""),
        (json!({"const": null}), "null"),
        (json!({"const": {"a": [1]}}), "{\"a\":[1]}"),
        (json!({"type": "string", "enum": ["a", "b\"", 3, null]}), r#""a" | "b\"" | 3 | null"#),
        (json!({"enum": []}), "never"),
        (json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "string"}]}), "string | number"),
        (json!({"oneOf": [{"type": "string"}, {}]}), "unknown"),
        (json!({"anyOf": [{"type": "string"}, false]}), "string"),
        (json!({"type": "array"}), "unknown[]"),
        (json!({"type": "array", "items": {"type": ["number", "null"]}}), "(number | null)[]"),
        (
            json!({"prefixItems": [{"type": "number"}, {"const": 1}], "items": {"type": "string"}}),
            "[number, 1, ...string[]]",
        ),
        (json!({"items": [{"type": "number"}], "additionalItems": false}), "[number]"),
        (json!({"type": "object"}), "Record<string, unknown>"),
        (json!({"type": "object", "additionalProperties": false}), "{}"),
        (json!({"type": "object", "additionalProperties": {"type": "number"}}), "Record<string, number>"),
        (json!({"patternProperties": {"^a": {"type": "number"}}}), "Record<string, number>"),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}, "b-c": true}}),
            "{ a: string; \"b-c\"?: unknown }",
        ),
        (
            json!({"type": "object", "required": ["x", 5], "additionalProperties": true}),
            "{ x: unknown; [key: string]: unknown }",
        ),
        (
            json!({"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]}),
            "{ a?: 1 } & { b?: 2 }",
        ),
        (
            json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {}}}),
            "{ a?: unknown }",
        ),
        (
            json!({"type": "object", "oneOf": [{"properties": {"k": {"const": 1}}}, {"properties": {"k": {"const": 2}}}]}),
            "{ k?: 1 } | { k?: 2 }",
        ),
        (
            json!({"properties": {"a": {}}, "anyOf": [{"properties": {"k": {"const": 1}}}, {"type": "null"}]}),
            "{ a?: unknown } & ({ k?: 1 } | null)",
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(shape(&schema), expected, "{schema}");
    }
}

#[test]
fn malformed_schemas_are_unknown() {
    for schema in [
        json!(null),
        json!(5),
        json!("string"),
        json!([]),
        json!(true),
        json!({}),
        json!({"type": 5}),
        json!({"type": "strnig"}),
        json!({"type": [5]}),
        json!({"enum": "a"}),
        json!({"anyOf": {}}),
        json!({"$ref": 5}),
        json!({"$ref": "#/nowhere"}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"$ref": "#/$defs/%zz"}),
        json!({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}}),
    ] {
        assert_eq!(shape(&schema), "unknown", "{schema}");
    }
    assert_eq!(shape(&json!({"type": "object", "properties": [], "required": "a"})), "Record<string, unknown>");
    assert_eq!(shape(&json!({"type": "array", "items": 5})), "unknown[]");
}

#[test]
fn descriptions_become_comments() {
    assert_snapshot!(shape(&json!({
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "The file to read,\nrelative or absolute."},
            "offset": {"type": "integer", "minimum": 1, "description": "First line"},
            "long": {"type": "boolean", "description": format!("A first sentence. {}", "And more. ".repeat(20))},
            "longer": {"type": "boolean", "description": "word ".repeat(100)},
            "edits": {
                "type": "array",
                "description": "What to change */ // x",
                "items": {"type": "object", "required": ["old"], "properties": {
                    "old": {"type": "string", "description": "Text to find"},
                    "new": {"type": "string"}
                }}
            }
        }
    })));
}

#[test]
fn references_are_written_out_or_named() {
    assert_snapshot!(shape(&json!({
        "type": "object",
        "properties": {
            "once": {"$ref": "#/$defs/Once"},
            "from": {"$ref": "#/$defs/Place"},
            "to": {"$ref": "#/%24defs/Place", "description": "Where to"},
            "zone": {"$ref": "#/$defs/Zone"},
            "other": {"$ref": "#/$defs/Zone"},
            "odd": {"$ref": "#/$defs/string"},
            "odd2": {"$ref": "#/$defs/string"},
            "slash": {"$ref": "#/definitions/a~1b"}
        },
        "$defs": {
            "Once": {"properties": {"n": {"type": "number"}}},
            "Place": {"type": "object", "required": ["lat"], "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}},
            "Zone": {"type": "string"},
            "string": {"properties": {"s": {"type": "string"}}}
        },
        "definitions": {"a/b": {"const": 1}}
    })));
}

#[test]
fn recursive_references_are_named() {
    assert_snapshot!(
        "tree",
        shape(&json!({
            "type": "object",
            "properties": {"tree": {"$ref": "#/$defs/Node"}},
            "$defs": {"Node": {"type": "object", "required": ["value"], "properties": {
                "value": {"type": "number"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}
            }}}
        }))
    );
    assert_snapshot!(
        "mutual",
        shape(&json!({
            "$ref": "#/$defs/A",
            "$defs": {
                "A": {"properties": {"b": {"$ref": "#/$defs/B"}}},
                "B": {"properties": {"a": {"$ref": "#/$defs/A"}}}
            }
        }))
    );
    assert_snapshot!("root", shape(&json!({"properties": {"next": {"$ref": "#"}, "v": {"type": "number"}}})));
    assert_snapshot!(
        "inside",
        shape(&json!({"properties": {"a": {"properties": {"again": {"$ref": "#/properties/a"}}}}}))
    );
}

#[test]
fn huge_unions_and_objects_say_how_much_is_left_out() {
    let values: Vec<String> = (0..300).map(|n| format!("v{n}")).collect();
    assert_snapshot!("values", shape(&json!({"enum": values})));
    let members: Vec<Value> = (0..40).map(|n| json!({"properties": {"kind": {"const": n}}})).collect();
    assert_snapshot!("members", shape(&json!({"anyOf": members})));
    let properties: serde_json::Map<String, Value> =
        (0..130).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let text = shape(&object(properties));
    assert!(text.ends_with("  p99?: string;\n  // 30 more\n}"), "{text}");
    let tuple: Vec<Value> = (0..20).map(|_| json!({"type": "number"})).collect();
    assert!(shape(&json!({"prefixItems": tuple})).ends_with("number, ...unknown[] /* 4 more */]"));
}

#[test]
fn a_signature_has_arguments_and_result() {
    let arguments = object(json!({"a": {"$ref": "#/$defs/N"}, "b": {"$ref": "#/$defs/N"}}));
    let arguments = {
        let mut with = arguments;
        with["$defs"] = json!({"N": {"properties": {"n": {"type": "number"}}}});
        with
    };
    assert_eq!(
        signature(&arguments, Some(&arguments)),
        "type N = { n?: number };\ntype N2 = { n?: number };\n(args?: { a?: N; b?: N }) => Promise<{ a?: N2; b?: N2 }>"
    );
    assert_eq!(signature(&json!({"type": "object"}), None), "(args?: Record<string, unknown>) => Promise<string>");
}

#[test]
fn a_summary_says_what_a_tool_is() {
    let mut table = Table::new();
    table.register("p", vec![tool("read")], &runner()).unwrap();
    let summary = table.summary(&table.find("read").unwrap());
    assert_eq!((summary.name.as_str(), summary.active), ("read", true));
    assert_eq!(summary.shape, "(args?: Record<string, unknown>) => Promise<string>");
}

#[test]
fn hostile_schemas_stay_small() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = object(json!({ "in": deep }));
    }
    // Each level refers to the next one many times: 10^20 places if written out.
    let mut fan = serde_json::Map::new();
    for level in 0..20 {
        let next = json!({"$ref": format!("#/$defs/L{}", level + 1)});
        let properties: serde_json::Map<String, Value> = (0..10).map(|n| (format!("p{n}"), next.clone())).collect();
        fan.insert(format!("L{level}"), object(properties));
    }
    let long = "x".repeat(1_000_000);
    let wide: serde_json::Map<String, Value> = (0..5_000)
        .map(|n| {
            (
                format!("{n}{}", "k".repeat(100)),
                json!({"enum": [long.clone().split_off(999_950)], "description": "d".repeat(500)}),
            )
        })
        .collect();
    let unions: Vec<Value> = (0..16).map(|_| json!({"anyOf": (0..16).map(|n| json!({"anyOf": (0..16).map(|m| json!({"const": format!("{n}-{m}")})).collect::<Vec<_>>()})).collect::<Vec<_>>()})).collect();
    for schema in [
        deep,
        json!({"$ref": "#/$defs/L0", "$defs": fan}),
        object(wide),
        object(json!({ long.clone(): {"type": "string"}, "a": {"description": long, "const": long, "format": long} })),
        json!({ "anyOf": unions }),
        json!({"required": (0..100_000).map(|n| n.to_string()).collect::<Vec<_>>(), "type": "object"}),
    ] {
        // Some of these, followed to their ends, are longer than any run of this test: that it ends is the point.
        let text = signature(&schema, Some(&schema));
        assert!(text.len() <= MAX_BYTES, "{}", text.len());
    }
}

/// Any JSON, with a taste for the words of schemas.
fn any_schema() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        prop::sample::select(vec![
            "type",
            "properties",
            "items",
            "prefixItems",
            "anyOf",
            "oneOf",
            "allOf",
            "enum",
            "const",
            "$ref",
            "$defs",
            "required",
            "additionalProperties",
            "patternProperties",
            "description",
            "format",
            "nullable",
            "a",
            "b",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let word = prop_oneof![
        prop::sample::select(vec![
            "string",
            "number",
            "object",
            "array",
            "null",
            "#",
            "#/$defs/a",
            "#/$defs/b",
            "#/properties/a",
            "date",
            "a",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 200, 10, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..8).prop_map(|fields| fields.into_iter().collect::<Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_has_a_small_type(schema in any_schema()) {
        let text = shape(&schema);
        prop_assert!(!text.is_empty() && text.len() <= MAX_BYTES);
        prop_assert_eq!(&text, &shape(&schema));
        let text = signature(&schema, Some(&schema));
        prop_assert!(text.len() <= MAX_BYTES);
        let open = text.chars().filter(|c| *c == '\n').count();
        prop_assert!(open < 4_000);
    }
}
