#!/usr/bin/env bash
# gcc's own execution tests, built with `ringfence cc` and run in domains. Arguments go to the harness
# (--help); by default a fixed part of the programs is taken, --all takes each at each level.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export RINGFENCE=${RINGFENCE:-$target/release/ringfence}
work=build/torture

if [[ ! -e $work/src/.complete ]]; then
    shopt -s nullglob
    tarballs=(/usr/src/gcc-*/gcc-[0-9]*.tar.xz)
    if ((${#tarballs[@]} == 0)); then
        echo "torture: gcc's sources are missing; scripts/setup.sh test installs them (Debian's gcc-12-source)" >&2
        exit 1
    fi
    rm -rf "$work/src"
    mkdir -p "$work/src"
    tar -C "$work/src" --strip-components=3 -xf "${tarballs[0]}" --wildcards '*/gcc/testsuite/gcc.c-torture/execute/*'
    touch "$work/src/.complete"
fi

cargo build --release --quiet -p ringfence-cli -p ringfence-torture
exec "$target/release/torture" "$@" "$work/src/gcc.c-torture/execute" "$work/out"
