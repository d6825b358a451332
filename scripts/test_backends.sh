#!/usr/bin/env bash
# Runs the tests of the Rust interface on the back ends that are not the default; `cargo test` has run them on that one.
# A test that needs what a back end lacks checks that it is told so, by the typed error of docs/backends.md.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --workspace --quiet --bin ringfence-worker

# on BACKEND TEST…
on() {
    local backend=$1 tests=()
    shift
    for name in "$@"; do tests+=(--test "$name"); done
    echo "-- $backend"
    RINGFENCE_TEST_BACKEND=$backend cargo test --workspace --quiet --no-fail-fast "${tests[@]}"
}

# these have a back end of their own, or none
all=() status=0
for file in crates/ringfence/tests/*.rs; do
    name=$(basename "$file" .rs)
    case $name in process | backends | options) ;; *) all+=("$name") ;; esac
done
on process "${all[@]}" || status=1
# most of the others crash something on purpose, or exhaust it
on none calls imports || status=1
exit $status
