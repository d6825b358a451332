#!/usr/bin/env bash
# The bounds of docs/security/bounds.md in one table, measured here: target beside figure.
#   table.sh [--base REVISION] [--smoke] [--json FILE]
# Speeds are compared with those of an earlier revision, which is built below build/ and runs in turn
# with this one; without --base they are left out.
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
arguments=() base=''
while (($#)); do
    case $1 in
    --base) base=$2 && shift ;;
    --json) arguments+=(--json "$2") && shift ;;
    --smoke) arguments+=(--smoke) ;;
    *) echo "usage: table.sh [--base REVISION] [--smoke] [--json FILE]" >&2 && exit 2 ;;
    esac
    shift
done

cargo build --release --quiet -p ringfence-hostile
if [[ -n $base ]]; then
    tree=$PWD/build/base
    mkdir -p build
    git rev-parse --quiet --verify "$base^{commit}" >/dev/null || { echo "table.sh: there is no revision $base" >&2 && exit 2; }
    git worktree remove --force "$tree" 2>/dev/null || true
    git worktree add --quiet --detach "$tree" "$base"
    # cost DIRECTORY: builds its program and module, each by its own compiler
    cost() {
        (
            cd "$1"
            CARGO_TARGET_DIR=$2 cargo build --release --quiet -p ringfence-cli
            CARGO_TARGET_DIR=$2 cargo build --release --quiet -p ringfence-runtime --example call_cost
            "$2/release/ringfence" cc -O2 -nostdlib --import=host_add -o "$2/cost.rf" crates/runtime/tests/modules/cost.c
        )
    }
    cost "$PWD" "$target"
    cost "$tree" "$PWD/build/base-target"
    git worktree remove --force "$tree"
    arguments+=(--speed "$target/release/examples/call_cost" "$target/cost.rf")
    arguments+=(--base "$PWD/build/base-target/release/examples/call_cost" "$PWD/build/base-target/cost.rf")
fi
"$target/release/ringfence-hostile" table "${arguments[@]}"
