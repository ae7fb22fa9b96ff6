//! Gives the component the stack that scripts recurse on. Never used where it is built for this machine, for its tests.

/// In bytes; what others have is 1 MiB. How much of it is the script's says `LIMITS` in `src/realm.rs`.
const STACK: u32 = 2 << 20;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "wasm") {
        println!("cargo::rustc-link-arg-cdylib=-zstack-size={STACK}");
    }
}
