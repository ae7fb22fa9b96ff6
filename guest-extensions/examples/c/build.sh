#!/bin/sh
# Builds a plugin in C: sh build.sh [FOLDER] [OUT]. Everything that ends in .c in the folder, with the bindings in `bindings/`.
#
# Needs clang, LLVM's wasm-ld, the C library of the target (wasi-libc), and wasm-component-ld, which turns what wasm-ld
# makes into a component: all of them are in the WASI SDK, whose folder WASI_SDK_PATH names. Without it: `apt install clang lld
# wasi-libc` where the distribution's wasi-libc knows wasm32-wasip2; both linkers come with a Rust toolchain of rustup's too, and
# wasm-component-ld by `cargo install wasm-component-ld`.
# CC, CFLAGS, WASI_LIB, WASM_COMPONENT_LD and WASM_LD name others. ATOLL_WIT: where the contract is (`wit` beside this file).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here}
out=${2:-$here/plugin.wasm}
wit=${ATOLL_WIT:-$here/wit}

if [ -n "${WASI_SDK_PATH:-}" ]; then
    : "${CC:=$WASI_SDK_PATH/bin/clang}" "${WASM_COMPONENT_LD:=$WASI_SDK_PATH/bin/wasm-component-ld}"
    : "${WASM_LD:=$WASI_SDK_PATH/bin/wasm-ld}"
fi
: "${CC:=clang}"
tools=$(rustc --print sysroot 2>/dev/null)/lib/rustlib/$(rustc -vV 2>/dev/null | sed -n 's/^host: //p')/bin
if [ -z "${WASM_COMPONENT_LD:-}" ]; then
    if command -v wasm-component-ld >/dev/null; then
        WASM_COMPONENT_LD=wasm-component-ld
    elif [ -x "$tools/wasm-component-ld" ]; then
        WASM_COMPONENT_LD=$tools/wasm-component-ld
    else
        echo "build.sh: there is no wasm-component-ld; see the top of this file" >&2
        exit 1
    fi
fi
if [ -z "${WASM_LD:-}" ]; then
    if command -v wasm-ld >/dev/null; then
        WASM_LD=wasm-ld
    elif [ -x "$tools/gcc-ld/wasm-ld" ]; then
        WASM_LD=$tools/gcc-ld/wasm-ld
    else
        echo "build.sh: there is no wasm-ld; see the top of this file" >&2
        exit 1
    fi
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The world and the whole contract as one file, which says what the component's types are.
{
    cat "$here/world.wit"
    echo 'package atoll:plugin@0.1.0 {'
    sed '/^package /d' "$wit"/*.wit
    echo '}'
} >"$work/all.wit"
# wit-bindgen would put those types into an object file, and the bindings insist on it. The linker is told by text instead.
echo 'void __component_type_object_force_link_plugin(void) {}' >"$work/types.c"
objects=
number=0
for source in "$folder"/*.c "$here"/bindings/*.c "$work/types.c"; do
    number=$((number + 1))
    object=$work/$number.o
    # shellcheck disable=SC2086 # several flags
    "$CC" --target=wasm32-wasip2 ${CFLAGS:-} -O2 -Wall -I"$here/bindings" -c "$source" -o "$object"
    objects="$objects $object"
done
# A component has no `main`: it is a reactor.
: "${WASI_LIB:=$(dirname "$("$CC" --target=wasm32-wasip2 -print-file-name=crt1-reactor.o)")}"
# shellcheck disable=SC2086 # several objects
"$WASM_COMPONENT_LD" --wasm-ld-path "$WASM_LD" --component-type "$work/all.wit" --entry _initialize --strip-debug \
    "$WASI_LIB/crt1-reactor.o" $objects "$WASI_LIB/libc.a" -o "$out"
