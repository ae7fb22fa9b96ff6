#!/bin/sh
# Builds a plugin in JavaScript as a component of its own: sh build.sh [FOLDER] [OUT]. The folder has `plugin.js` and
# `world.wit`. A plain script needs none of this: see `../typescript`.
#
# Needs `npm install componentize-qjs@0.4.5`. ATOLL_WIT: where the contract is (`wit` beside this file).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "${1:-$here}" && pwd)
out=${2:-$here/plugin.wasm}
wit=${ATOLL_WIT:-$here/wit}
PATH=$here/node_modules/.bin:$PATH
if ! command -v componentize-qjs >/dev/null; then
    echo "build.sh: there is no componentize-qjs; see the top of this file" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/deps/atoll"
cp "$folder/world.wit" "$work/world.wit"
cp "$wit"/*.wit "$work/deps/atoll"
componentize-qjs --wit "$work" --world plugin --js "$folder/plugin.js" --opt-size --output "$out"
