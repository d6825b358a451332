#!/usr/bin/env bash
# The runtime's and the Rust interface's tests under ThreadSanitizer, the standard library built with it too: without that its
# locks would be unseen, and reports false. docs/debugging.md tells what the sanitizer sees and what not.
#   tests/tsan/run.sh [SECONDS OF THE STRESS TEST]
# Needs a Rust toolchain with the standard library's source and the sanitizer's runtime: the default one (then with
# RUSTC_BOOTSTRAP=1) or rustup's "nightly". Without one it says so, and runs nothing.
# Ends with "N passed, M failed".
set -euo pipefail
cd "$(dirname "$0")/../.."

export RINGFENCE_SECONDS=${1:-60}
target=x86_64-unknown-linux-gnu
toolchain=()
fit() { # RUSTC…
    local root
    root=$("$@" --print sysroot 2>/dev/null) || return 1
    [[ -e $root/lib/rustlib/src/rust/library/std/src/lib.rs ]] &&
        compgen -G "$root/lib/rustlib/$target/lib/librustc-*_rt.tsan.a" >/dev/null
}
if fit rustc; then
    export RUSTC_BOOTSTRAP=1
elif fit rustc +nightly; then
    toolchain=(+nightly)
else
    echo "tsan: skipped, no Rust toolchain here has both rust-src and ThreadSanitizer's runtime"
    exit 0
fi

dir=$(readlink -m "${CARGO_TARGET_DIR:-target}")/tsan
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR=$dir
export RUSTFLAGS="-Zsanitizer=thread --cfg ringfence_tsan"
# Tests of fork make threads in children of processes with several.
export TSAN_OPTIONS=die_after_fork=0
tests() { # DIRECTORY ARGUMENT…
    local where=$1
    shift
    env -C "$where" cargo "${toolchain[@]}" test -Zbuild-std --target $target --quiet --no-fail-fast "$@"
}

passed=0 failed=0
verdict() { # NAME WHETHER
    if (($2)); then passed=$((passed + 1)) && echo "ok      $1"; else failed=$((failed + 1)) && echo "FAILED  $1"; fi
}
for package in ringfence-runtime ringfence; do
    log=$work/$package
    status=0
    tests . -p "$package" --lib --tests >"$log" 2>&1 || status=$?
    # what children of tests report makes those tests fail by their exit status
    reports=$(grep -c 'WARNING: ThreadSanitizer' "$log" || true)
    verdict "$package: $(awk '/^test result:/ { n += $4 } END { print n + 0 }' "$log") tests, $reports reports" \
        $((status == 0 && reports == 0))
    if ((status || reports)); then grep -v '^$' "$log" | tail -400; fi
done

echo "$passed passed, $failed failed"
((failed == 0))
