#!/usr/bin/env bash
# gcc's own execution tests, built with `ringfence cc` and run in domains. Arguments go to the harness
# (--help); by default a fixed part of the programs is taken, --all takes each at each level.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export RINGFENCE=${RINGFENCE:-$target/release/ringfence}
work=build/torture

sources=$(sysroot/fetch.sh gcc)/gcc/testsuite/gcc.c-torture/execute
cargo build --release --quiet -p ringfence-cli -p ringfence-torture
exec "$target/release/torture" "$@" "$sources" "$work/out"
