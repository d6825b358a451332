#!/usr/bin/env bash
# The words mode: a driver on 32 of 144 bytes of the host's own descriptor, from Rust and from C (docs/words.md).
#   examples/words/demo.sh [DIRECTORY WITH ringfence AND libringfence_c.so]
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath "${1:-${CARGO_TARGET_DIR:-target}/release}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$target/ringfence" cc -O2 -g -nostdlib -fno-tree-loop-distribute-patterns --isolation=words -o "$work/driver.rf" examples/words/driver.c
"$target/examples/words" "$work/driver.rf"

echo
echo "The same host in C (examples/words/host.c):"
mkdir "$work/lib"
soname=$(readelf -d "$target/libringfence_c.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
ln -s "$target/libringfence_c.so" "$work/lib/$soname"
ln -s "$soname" "$work/lib/libringfence.so"
gcc -std=c11 -O1 -g -Wall -Wextra -Werror -Iinclude examples/words/host.c -o "$work/host" -L"$work/lib" -lringfence
LD_LIBRARY_PATH=$work/lib "$work/host" "$work/driver.rf"
