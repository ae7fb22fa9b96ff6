//! Tools that the tests of codemode have their scripts call: with and without a result type, that fail, that are slow, whose
//! results are large, and whose names a script can hardly write.

use atoll_plugin::types::{Exposure, Namespace};
use atoll_plugin::{Call, Error, Tool, ToolInfo, ToolOutput, clock, export_tools};
use serde_json::{Value, json};

/// A tool that scripts may call and models are not told of.
fn info(name: &str, description: &str) -> ToolInfo {
    ToolInfo::new(name, description).exposure(Exposure::Codemode).parameters(&json!({"type": "object"}))
}

fn number(arguments: &Value, key: &str, otherwise: u64) -> u64 {
    arguments.get(key).and_then(Value::as_u64).unwrap_or(otherwise)
}

macro_rules! tool {
    ($type:ident, $info:expr, |$arguments:ident| $run:block) => {
        struct $type;

        impl Tool for $type {
            type Arguments = Value;

            fn info() -> ToolInfo {
                $info
            }

            async fn run($arguments: Value, _: Call) -> Result<ToolOutput, Error> $run
        }
    };
}

tool!(Echo, info("echo", "Gives back its arguments as data.").output_schema(&json!({"type": "object"})), |arguments| {
    Ok(ToolOutput::text(arguments.to_string()).with_structured(&arguments))
});

tool!(Say, info("say", "Gives back its arguments as text."), |arguments| {
    Ok(ToolOutput::text(arguments.to_string()))
});

tool!(FailMe, info("fail-me", "Always fails, with a result that says so."), |arguments| {
    Ok(ToolOutput::failure(format!("failed as asked: {arguments}")))
});

tool!(Refuse, info("refuse", "Always fails, with an error."), |arguments| {
    Err(Error::unavailable(format!("not now: {arguments}")))
});

tool!(
    ListItems,
    info("list_items", "Lists items of a shop.")
        .output_schema(&json!({"type": "array", "items": {"type": "object"}}))
        .namespace(Namespace {
            name: "shop".into(),
            aliases: Vec::new(),
            description: Some("A shop.".into()),
            instructions: None
        }),
    |arguments| {
        let items: Value = (0..number(&arguments, "n", 3))
            .map(|at| json!({"id": at, "name": format!("item {at}"), "price": (at * 7) % 5}))
            .collect();
        Ok(ToolOutput::text(items.to_string()).with_structured(&items))
    }
);

tool!(Sleep, info("sleep", "Takes some time."), |arguments| {
    clock::sleep(number(&arguments, "ms", 10)).await;
    Ok(ToolOutput::text("awake"))
});

tool!(Big, info("big", "Gives many records.").output_schema(&json!({"type": "array"})), |arguments| {
    let filler = "x".repeat(usize::try_from(number(&arguments, "filler", 450)).unwrap_or(0));
    let records: Value = (0..number(&arguments, "records", 10_000))
        .map(|at| json!({"id": at, "group": at % 7, "filler": filler}))
        .collect();
    Ok(ToolOutput::text("many records").with_structured(&records))
});

tool!(Raw, info("raw", "Gives the JSON that it is given as text.").output_schema(&json!({})), |arguments| {
    let json = arguments.get("json").and_then(Value::as_str).unwrap_or("null");
    Ok(ToolOutput { structured: Some(json.to_owned()), ..ToolOutput::text("raw") })
});

tool!(Picture, info("picture", "Gives a picture."), |_arguments| {
    const DOT: &[u8] = &[
        0x89, b'P', b'N', b'G', 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8,
        0, 0, 0, 0, 0x3A, 0x7E, 0x9B, 0x55, 0, 0, 0, 10, b'I', b'D', b'A', b'T', 0x78, 0x9C, 0x63, 0, 0, 0, 2, 0, 1,
        0x48, 0xAF, 0xA4, 0x71, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xAE, 0x42, 0x60, 0x82,
    ];
    Ok(ToolOutput::text("a dot").with_image(DOT.to_vec(), "image/png"))
});

tool!(
    FailWithData,
    info("fail_with_data", "Fails, and has data.").output_schema(&json!({"type": "object"})),
    |arguments| { Ok(ToolOutput::failure("it failed").with_structured(&json!({"failed": arguments}))) }
);

tool!(Then, info("then", "Has a name that promises look for."), |_arguments| { Ok(ToolOutput::text("then")) });
tool!(Proto, info("__proto__", "Has a name that objects have."), |_arguments| { Ok(ToolOutput::text("proto")) });
tool!(Constructor, info("constructor", "Has a name that objects have."), |_arguments| {
    Ok(ToolOutput::text("constructor"))
});
tool!(Underscore, info("a_b", "Has an underscore."), |_arguments| { Ok(ToolOutput::text("underscore")) });
tool!(Dash, info("a-b", "Has a dash."), |_arguments| { Ok(ToolOutput::text("dash")) });

export_tools!(
    Echo,
    Say,
    FailMe,
    Refuse,
    ListItems,
    Sleep,
    Big,
    Raw,
    Picture,
    FailWithData,
    Then,
    Proto,
    Constructor,
    Underscore,
    Dash
);
