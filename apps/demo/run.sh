#!/usr/bin/env bash
# Builds the demo's modules and runs it. --smoke: the same with fewer calls, as a test.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export RINGFENCE=${RINGFENCE:-$target/release/ringfence}
out=build/demo
mkdir -p "$out"

cargo build --release --quiet -p ringfence-cli -p ringfence-demo
[[ -e $target/lib/ringfence/sysroot/lib/libc.a ]] || sysroot/build.sh

zlib=$(scripts/zlib-sources.sh)
sources=()
for file in adler32 compress crc32 deflate inffast inflate inftrees trees uncompr zutil; do
    sources+=("$zlib/$file.c")
done
# the same sources twice: as any plug-in is built, and fenced
gcc -O2 -fPIC -shared -w -o "$out/zlib.so" "${sources[@]}"
"$RINGFENCE" cc -O2 -g -shared -w -o "$out/zlib.rf" "${sources[@]}"
"$RINGFENCE" cc -O2 -g -ffreestanding -shared -o "$out/hostile.rf" apps/demo/hostile.c
"$RINGFENCE" cc --no-rewrite --no-verify -ffreestanding -shared -nostdlib -o "$out/smuggle.rf" apps/demo/smuggle.s

# a real file of some megabytes that every machine with gcc has
exec "$target/release/ringfence-demo" "$out" "$(gcc -print-prog-name=cc1)" "$@"
