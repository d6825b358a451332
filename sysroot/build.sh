#!/usr/bin/env bash
# Builds what modules are linked with into build/sysroot: headers, the libc, the C++ library, the small support library
# (min/), the compiler's runtime. Needs a built `ringfence` (variable RINGFENCE, default: the one under target/release or
# on PATH).
#
#   sysroot/build.sh [min|builtins|libc|cxx|all]...
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

die() {
	echo "build.sh: $*" >&2
	exit 1
}

if [ -z "${RINGFENCE:-}" ]; then
	for candidate in "${CARGO_TARGET_DIR:-$root/target}/release/ringfence" "${CARGO_TARGET_DIR:-$root/target}/debug/ringfence"; do
		[ -x "$candidate" ] && RINGFENCE=$candidate && break
	done
	RINGFENCE=${RINGFENCE:-$(command -v ringfence || true)}
fi
[ -x "$RINGFENCE" ] || die "no ringfence command found; build it first (make build) or set RINGFENCE"
export RINGFENCE

[ $# -gt 0 ] || set -- all
for target; do
	case $target in
	min) ;;
	builtins) "$here/fetch.sh" gcc >/dev/null ;;
	libc) "$here/fetch.sh" musl >/dev/null ;;
	cxx | all)
		"$here/fetch.sh" gcc >/dev/null
		"$here/fetch.sh" musl >/dev/null
		;;
	*) die "unknown target '$target': min, builtins, libc, cxx or all" ;;
	esac
	make -s -j"${JOBS:-$(nproc)}" -C "$here" SOURCES="${RINGFENCE_SOURCES:-$root/build/sources}" "$target"
done

# What a module's source says about itself goes with every libc.
for include in "$root/build/sysroot/include" "$root/build/sysroot/min/include"; do
	[ ! -d "$include" ] || install -D -m 644 "$root/include/ringfence/module.h" "$include/ringfence/module.h"
done

# A command that runs from cargo's target directory finds the sysroot where an installed one would.
prefix=$(dirname "$(dirname "$RINGFENCE")")
if [ -e "$prefix/CACHEDIR.TAG" ]; then
	mkdir -p "$prefix/lib/ringfence"
	ln -sfn "$root/build/sysroot" "$prefix/lib/ringfence/sysroot"
fi
