//! Hands the target's name to the crate, so that images are compiled for it and not for one machine.
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Ok(target) = std::env::var("TARGET") {
        println!("cargo::rustc-env=ATOLL_TARGET={target}");
    }
}
