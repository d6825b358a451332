#!/usr/bin/env bash
# The tests of the image server: over its sockets, and its page in a browser.
set -euo pipefail
cd "$(dirname "$0")/../../.."
release=$PWD/${CARGO_TARGET_DIR:-target}/release
export RINGFENCE=${RINGFENCE:-$release/ringfence}
export RINGFENCE_WORKER=${RINGFENCE_WORKER:-$release/ringfence-worker}

apps/transcode/build.sh
cargo test --quiet -p ringfence-transcode -- --include-ignored
cargo build --release --quiet -p ringfence-transcode
apps/transcode/test/page.sh "$release/ringfence-transcode"
apps/transcode/test/install.sh "$release"
