#!/usr/bin/env bash
# gcc's own execution tests, built with `ringfence cc` and run in domains. Arguments go to the harness
# (--help); by default a fixed part of the programs is taken, --all takes each at each level.
#   run.sh --c++ …                 g++'s tests instead
#   run.sh --random N [--seed S]   programs by csmith instead, compared with native builds
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export RINGFENCE=${RINGFENCE:-$target/release/ringfence}

cargo build --release --quiet -p ringfence-cli -p ringfence-torture
[[ -e $target/lib/ringfence/sysroot/lib/libc.a ]] || sysroot/build.sh

if [[ ${1:-} == --random ]]; then
    exec "$target/release/torture" "$@" build/random
fi
suite=gcc.c-torture/execute
if [[ ${1:-} == --c++ ]]; then
    suite=g++.dg
    shift
fi
exec "$target/release/torture" "$@" "$(sysroot/fetch.sh gcc)/gcc/testsuite/$suite" build/torture
