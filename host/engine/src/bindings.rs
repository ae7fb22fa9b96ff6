//! The contract `atoll:plugin@0.1.0` as Rust, generated. A later version of the contract gets a module of its
//! own beside this one.

#![allow(missing_docs, reason = "generated from the WIT files, which carry the documentation")]
#![allow(clippy::all, reason = "generated code")]
#![allow(unreachable_pub, reason = "generated code")]

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "atoll:plugin/plugin@0.1.0",
    imports: {
        "atoll:plugin/process.[method]child.stdout": store | trappable,
        "atoll:plugin/process.[method]child.stderr": store | trappable,
        default: trappable,
    },
    exports: { default: async },
    with: {
        "atoll:plugin/files.reader": crate::imports::files::Reader,
        "atoll:plugin/files.exclusive": crate::imports::files::Exclusive,
        "atoll:plugin/files.walker": crate::imports::files::Walker,
        "atoll:plugin/listener.pending": crate::imports::listener::Pending,
        "atoll:plugin/store.lease": crate::imports::store::Lease,
        "atoll:plugin/process.child": crate::imports::process::Child,
    },
});

/// The version of the contract that this module serves.
pub const VERSION: &str = "0.1.0";
