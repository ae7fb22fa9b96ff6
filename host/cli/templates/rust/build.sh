#!/bin/sh
# Builds plugin.wasm. Needs a Rust toolchain with the target: `rustup target add wasm32-wasip2`.
set -eu
cd "$(dirname "$0")"
cargo build --release --target wasm32-wasip2
cp "${CARGO_TARGET_DIR:-target}/wasm32-wasip2/release/plugin.wasm" plugin.wasm
