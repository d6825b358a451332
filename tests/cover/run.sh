#!/usr/bin/env bash
# Fuzzes the loader and the verifier with module files, guided by what they cover.
#   tests/cover/run.sh [SECONDS [keep]]    keep: what is enough for the coverage becomes corpus.txt
# The corpus is text (attack pack, attack unpack); what crashes is left in build/cover.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${1:-60}
out=$PWD/build/cover
target=x86_64-unknown-linux-gnu
attack() { cargo run --release --quiet --package ringfence-attack -- "$@"; }

rm -rf "$out/corpus" "$out/small"
mkdir -p "$out/small"
attack unpack "$out/corpus"

# What cargo-fuzz sets, without what needs an unstable compiler. With a target, build scripts are not instrumented.
cover() {
    local flags=(-Cpasses=sancov-module -Ccodegen-units=1)
    local f
    for f in level=4 inline-8bit-counters pc-table trace-compares; do
        flags+=("-Cllvm-args=-sanitizer-coverage-$f")
    done
    RUSTFLAGS="${flags[*]}" cargo run --release --quiet --target "$target" --manifest-path tests/cover/Cargo.toml -- "$@"
}
common=(-max_len=16384 -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$out/" -handle_segv=0 -handle_bus=0 -handle_ill=0 -handle_fpe=0)
cover "${common[@]}" -max_total_time="$seconds" -print_final_stats=1 "$out/corpus"
if [[ ${2:-} == keep ]]; then
    cover "${common[@]}" -merge=1 "$out/small" "$out/corpus"
    attack pack "$out/small"
fi
