//! The component as it is kept when it has begun.

use atoll_engine::pre_initialise;

use crate::common::plugins::{test_plugin, workspace_root};

fn begun(wasm: &[u8]) -> Result<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(pre_initialise(wasm))
}

/// Clocks and random numbers of the machine that builds it would differ.
#[test]
fn what_is_kept_of_a_component_that_has_begun_is_the_same_each_time() {
    let path = workspace_root().join("target/guests/wasm32-wasip2/guest/atoll_tool_codemode.wasm");
    let wasm = std::fs::read(path).unwrap();
    let (one, two) = (begun(&wasm).unwrap(), begun(&wasm).unwrap());
    assert!(one == two, "two of {} and {} bytes", one.len(), two.len());
    assert!(one.len() > wasm.len(), "an engine was made in it: {} bytes became {}", wasm.len(), one.len());
}

#[test]
fn what_brings_no_tools_is_not_kept() {
    let refused = begun(&test_plugin("moody")).unwrap_err();
    assert!(refused.contains("list-tools"), "{refused}");
    assert!(begun(b"nonsense").unwrap_err().starts_with("it can not be started at build time"));
}
