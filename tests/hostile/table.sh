#!/usr/bin/env bash
# The bounds of docs/security/bounds.md in one table, measured here: target beside figure.
#   table.sh [--base REVISION] [--build] [--smoke] [--json FILE]
# Speeds are compared with those of an earlier revision, which is built below build/ and runs in turn
# with this one; without --base they are left out. Both are measured by this revision's program.
#   table.sh --base REVISION --build
# builds all of it and measures nothing.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
arguments=() base='' build=0
while (($#)); do
    case $1 in
    --base) base=$2 && shift ;;
    --json) arguments+=(--json "$2") && shift ;;
    --smoke) arguments+=(--smoke) ;;
    --build) build=1 ;;
    *) echo "usage: table.sh [--base REVISION] [--build] [--smoke] [--json FILE]" >&2 && exit 2 ;;
    esac
    shift
done

cargo build --release --quiet -p ringfence-hostile
if [[ -n $base ]]; then
    other=$PWD/build/base-target tree=$PWD/build/base
    revision=$(git rev-parse --quiet --verify "$base^{commit}") || { echo "table.sh: there is no revision $base" >&2 && exit 2; }
    sources=(crates/runtime/examples/paired_cost.rs crates/runtime/tests/modules/cost.c)
    # cost DIRECTORY TARGET: builds its program and module, each by its own compiler
    cost() {
        (
            cd "$1"
            CARGO_TARGET_DIR=$2 cargo build --release --quiet -p ringfence-cli
            CARGO_TARGET_DIR=$2 cargo build --release --quiet -p ringfence-runtime --example paired_cost
            "$2/release/ringfence" cc -O2 -nostdlib --import=host_add -o "$2/cost.rf" crates/runtime/tests/modules/cost.c
        )
    }
    cost "$PWD" "$target"
    # what was built before is there still
    built="$revision $(cat "${sources[@]}" | sha256sum)"
    if [[ $(cat "$other/built" 2>/dev/null) != "$built" ]]; then
        git worktree remove --force "$tree" 2>/dev/null || true
        git worktree prune
        git worktree add --quiet --detach "$tree" "$revision"
        for source in "${sources[@]}"; do cp "$source" "$tree/$source"; done
        cost "$tree" "$other"
        git worktree remove --force "$tree"
        echo "$built" >"$other/built"
    fi
    arguments+=(--speed "$target/release/examples/paired_cost" "$target/cost.rf")
    arguments+=(--base "$other/release/examples/paired_cost" "$other/cost.rf")
fi
((build)) || "$target/release/ringfence-hostile" table "${arguments[@]}"
