#!/usr/bin/env bash
# Builds and runs the benchmark from the top of the repository; arguments go to it (--help lists them).
# Without arguments the workloads of modules/ follow.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export RINGFENCE=${RINGFENCE:-$target/release/ringfence}
cargo build --release --quiet -p ringfence-cli -p ringfence-bench
ZLIB_SOURCES=$(scripts/zlib-sources.sh)
export ZLIB_SOURCES
"$target/release/bench" "$@"
if (($# == 0)); then
    printf '\nrecipes, gcc -O2 with glibc against ringfence cc -O2 with its own libc\n'
    modules/make.sh bench | tee build/bench-recipes.txt
fi
