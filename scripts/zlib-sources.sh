#!/usr/bin/env bash
# Prints the directory of zlib's unmodified sources: those that the pinned crate libz-sys carries.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$(sysroot/fetch.sh crate libz-sys 1.1.31 ff20308ecabd635a2dc1dd5834a86c462cca20efba1d5d3ddab1f8aea3455cb2)
echo "$dir/src/zlib"
