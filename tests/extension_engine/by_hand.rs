//! An extension as a language without async support makes it: everything is lifted synchronously.

use crate::common::plugins::workspace_root;

/// It wants `tool-call`; asked about one, it calls the tool `look` of its own accord, waits for it, and has no wish.
pub(super) fn one_thing_at_a_time() -> Vec<u8> {
    // At 64: `ok` with a subscription to one event, whose name is at 256. At 512: `ok` with `pass`. At 1024: room for what
    // the call gives.
    let module = r#"(module
        (import "atoll:plugin/table@0.1.0" "call" (func $call (param i32 i32 i32 i32 i32 i32 i32 i32)))
        (memory (export "memory") 1)
        (global $next (mut i32) (i32.const 8192))
        (data (i32.const 72) "\80\00\00\00\01\00\00\00")
        (data (i32.const 128) "\00\01\00\00\09\00\00\00")
        (data (i32.const 256) "tool-call")
        (data (i32.const 288) "look{}")
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
            (local $at i32)
            (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
            (global.set $next (i32.add (local.get $at) (local.get 3)))
            (local.get $at))
        (func (export "atoll:plugin/extension@0.1.0#start") (param i32) (result i32) (i32.const 64))
        (func (export "atoll:plugin/extension@0.1.0#on-event") (param i32) (result i32)
            (call $call (i32.const 0) (i32.const 0) (i32.const 0)
                (i32.const 288) (i32.const 4) (i32.const 292) (i32.const 2) (i32.const 1024))
            (i32.const 512))
        (func (export "atoll:plugin/extension@0.1.0#run-command") (param i32 i32 i32 i32 i32 i32) (result i32)
            (i32.const 512))
        (func (export "atoll:plugin/extension@0.1.0#complete-command") (param i32 i32 i32 i32) (result i32)
            (i32.const 512))
        (func (export "atoll:plugin/extension@0.1.0#stop")))"#;
    let mut module = wat::parse_str(module).unwrap();
    let mut resolve = wit_parser::Resolve::default();
    resolve.push_dir(workspace_root().join("wit")).unwrap();
    let made = "package atoll:made; world extension {
        import atoll:plugin/table@0.1.0;
        export atoll:plugin/extension@0.1.0;
    }";
    let package = resolve.push_str("made.wit", made).unwrap();
    let world = resolve.select_world(&[package], Some("extension")).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, wit_component::StringEncoding::UTF8).unwrap();
    wit_component::ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}
