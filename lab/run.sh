#!/usr/bin/env bash
# Builds and runs the laboratory from the top of the repository; arguments go to it (--help lists them).
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export RINGFENCE=${RINGFENCE:-$target/release/ringfence}
cargo build --release --quiet -p ringfence-lab
exec "$target/release/lab" "$@"
