//! Small components, written for one purpose each.

use super::plugins::workspace_root;

/// A component from its text.
pub(crate) fn component(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// A component that imports one interface and nothing else.
pub(crate) fn importing(interface: &str) -> Vec<u8> {
    component(&format!("(component (import \"{interface}\" (instance)))"))
}

/// A core module, which is no component.
pub(crate) fn core_module() -> Vec<u8> {
    component("(module (func (export \"run\")))")
}

/// Where a static text of [`tool`] is in its memory.
struct Data {
    bytes: Vec<u8>,
    base: u32,
}

impl Data {
    fn text(&mut self, text: &str) -> [u32; 2] {
        let at = self.base + u32::try_from(self.bytes.len()).unwrap();
        self.bytes.extend_from_slice(text.as_bytes());
        [at, u32::try_from(text.len()).unwrap()]
    }
}

/// A plugin with one tool without parameters, from the body of its `call` in the text format. `call` gives back the
/// address of a `result<tool-output, error>`; `(i32.const 64)` is that of an empty good one. There is a memory
/// and a table `$table`. It lifts the async `call` synchronously, as a language without async support does.
pub(crate) fn tool(name: &str, call: &str) -> Vec<u8> {
    tool_with(name, call, "", "(i32.const 16)")
}

/// The same with another schema of its parameters.
pub(crate) fn tool_described(name: &str, call: &str, schema: &str) -> Vec<u8> {
    built(name, call, "", "", "(i32.const 16)", schema)
}

/// The same with more fields of the module, and another body of `list-tools`, whose good answer is at 16.
pub(crate) fn tool_with(name: &str, call: &str, fields: &str, list_tools: &str) -> Vec<u8> {
    built(name, call, "", fields, list_tools, OBJECT)
}

/// The same with functions that the module imports.
pub(crate) fn tool_importing(name: &str, imports: &str, fields: &str, list_tools: &str) -> Vec<u8> {
    built(name, "(i32.const 64)", imports, fields, list_tools, OBJECT)
}

/// The schema of a tool without parameters.
const OBJECT: &str = "{\"type\":\"object\"}";

fn built(name: &str, call: &str, imports: &str, fields: &str, list_tools: &str, schema: &str) -> Vec<u8> {
    let mut data = Data { bytes: Vec::new(), base: 1024 };
    let mut words: Vec<u32> = Vec::new();
    for text in [name, name, "Made by hand.", schema] {
        words.extend(data.text(text));
    }
    // No output schema, no snippet, no guidelines.
    words.extend([0; 8]);
    // exposure direct, active, parallel.
    words.push(0x0000_0100);
    // No namespace, no annotations, no preparation.
    words.extend([0; 14]);
    let record: String = words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("\\{byte:02x}")).collect();
    let texts: String = data.bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
    // At 16: the list with the one tool at 256. At 64: `ok` with an output of nothing.
    let module = format!(
        r#"(module
            {imports}
            (memory (export "memory") 1)
            (table $table 1 funcref)
            {fields}
            (global $next (mut i32) (i32.const 8192))
            (data (i32.const 16) "\00\01\00\00\01\00\00\00")
            (data (i32.const 256) "{record}")
            (data (i32.const 1024) "{texts}")
            (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (local $at i32)
                (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
                (global.set $next (i32.add (local.get $at) (local.get 3)))
                (local.get $at))
            (func (export "atoll:plugin/tools@0.1.0#list-tools") (result i32) {list_tools})
            (func (export "atoll:plugin/tools@0.1.0#prepare") (param i32 i32 i32 i32) (result i32) unreachable)
            (func (export "atoll:plugin/tools@0.1.0#call")
                (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) {call}))"#
    );
    let mut module = wat::parse_str(module).unwrap();
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve.push_dir(workspace_root().join("wit")).unwrap();
    let world = resolve.select_world(&[package], Some("tool-plugin")).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8).unwrap();
    wit_component::ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}
