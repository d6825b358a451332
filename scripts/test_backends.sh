#!/usr/bin/env bash
# Runs the tests of the Rust and the C interface on the back ends that are not the default, on which they have run already.
#   scripts/test_backends.sh [DIRECTORY WITH libringfence_c.so, ringfence AND ringfence-worker] [--write]
# What a back end lacks, a test that needs it is told by the typed error of docs/backends.md, and leaves out. tests/backends.txt lists
# each that does, and why: one that is left out and not listed fails the step, and so does one that is listed and runs, or is gone.
# --write writes that list anew.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-target}/release write=0
for word in "$@"; do
    case $word in --write) write=1 ;; *) target=$word ;; esac
done
list=tests/backends.txt
RINGFENCE_TEST_LEFT_OUT=$(mktemp)
export RINGFENCE_TEST_LEFT_OUT
trap 'rm -f "$RINGFENCE_TEST_LEFT_OUT"' EXIT

cargo build --workspace --quiet --bin ringfence-worker

# these have a back end of their own
tests=() status=0
for file in crates/ringfence/tests/*.rs; do
    name=$(basename "$file" .rs)
    case $name in process* | backends | options | addressing) ;; *) tests+=(--test "$name") ;; esac
done
for backend in process none; do
    echo "-- $backend"
    RINGFENCE_TEST_BACKEND=$backend cargo test --workspace --quiet --no-fail-fast "${tests[@]}" || status=1
done
echo "-- the C interface"
tests/api/backends.sh "$target" || status=1

sort -u -o "$RINGFENCE_TEST_LEFT_OUT" "$RINGFENCE_TEST_LEFT_OUT"
if ((write)); then
    { sed -n '/^#/p' $list && cat "$RINGFENCE_TEST_LEFT_OUT"; } >"$list.new"
    mv "$list.new" $list
fi
if ! diff <(grep -v '^#' $list | LC_ALL=C sort) <(LC_ALL=C sort "$RINGFENCE_TEST_LEFT_OUT") >&2; then
    echo "test_backends.sh: < is listed in $list and was not left out, > was left out and is not listed" >&2
    status=1
fi
# each reason is a row of the page, with a "no" for that back end
while read -r backend rest; do
    reason=${rest#*: } column=4
    if [[ $backend == none ]]; then column=5; fi
    if ! awk -F' *[|] *' -v row="$reason" -v c=$column '$2 == row && $c == "no" { found = 1 } END { exit !found }' docs/backends.md; then
        echo "test_backends.sh: $list: docs/backends.md does not say that $backend lacks: $reason" >&2
        status=1
    fi
done < <(grep -v '^#' $list)
exit $status
