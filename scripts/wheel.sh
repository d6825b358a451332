#!/usr/bin/env bash
# Makes the Python wheel of what is built: the package ringfence, the host library and its headers.
#   scripts/wheel.sh RELEASE_DIR [DIRECTORY]
# Prints its path: DIRECTORY (build/wheel)/ringfence-VERSION-py3-none-linux_x86_64.whl. Needs pip.
set -euo pipefail
cd "$(dirname "$0")/.."

release=$1 to=${2:-build/wheel}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

cp -R bindings/python/. "$tree"
echo "$version" >"$tree/VERSION"
cp README.md LICENSE-APACHE LICENSE-MIT "$tree"
package=$tree/ringfence
install -m 755 "$release/libringfence_c.so" "$package/libringfence.so.${version%%.*}"
# The library looks for what its back end "process" runs domains in beside itself.
install -m 755 "$release/ringfence-worker" "$package/ringfence-worker"
strip --strip-debug "$package/libringfence.so.${version%%.*}" "$package/ringfence-worker"

cp -R include "$package/include"

mkdir -p "$to"
rm -f "$to"/ringfence-*.whl
python3 -m pip wheel --quiet --disable-pip-version-check --no-deps --no-cache-dir --wheel-dir "$to" "$tree" >&2
echo "$to"/ringfence-*.whl
