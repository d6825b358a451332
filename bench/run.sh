#!/usr/bin/env bash
# Builds and runs the benchmark from the top of the repository; arguments go to it (--help lists them).
# `run.sh report` renders docs/performance.md from the figures; neither it nor `run.sh count` and `charts` builds peers.
set -euo pipefail
RINGFENCE_BENCH_STARTED=$(date +%s)
export RINGFENCE_BENCH_STARTED
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export RINGFENCE=${RINGFENCE:-$target/release/ringfence}
# A target directory outside the tree has no sysroot beside it.
[[ ! -d build/sysroot ]] || export RINGFENCE_SYSROOT=${RINGFENCE_SYSROOT-$PWD/build/sysroot}
cargo build --release --quiet -p ringfence-cli -p ringfence-bench
case " $* " in
*" report "* | *" count "* | *" charts "* | *" words "* | *" --quick "* | *" --smoke "* | *" --help "*) ;;
*)
    # Wasmtime is a peer only where it builds; what is missing is said, and left out of the tables.
    peer=$target/bench-wasmtime
    if CARGO_TARGET_DIR=$peer cargo build --release --quiet --locked --manifest-path bench/wasmtime/Cargo.toml; then
        export RINGFENCE_WASMTIME=$peer/release/ringfence-bench-wasmtime
    else
        echo "bench: Wasmtime does not build here; its columns are left out" >&2
    fi
    ;;
esac
"$target/release/bench" "$@"
