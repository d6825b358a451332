#!/usr/bin/env bash
# Installs what was built.
#   scripts/install.sh RELEASE_DIR DESTDIR PREFIX
# The command finds its sysroot beside itself, so the tree may be moved afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."

release=$1 destdir=$2 prefix=$3
[[ $prefix == /* ]] || { echo "install: PREFIX must be an absolute path, not '$prefix'" >&2; exit 1; }
to=$destdir$prefix
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

install -D -m 755 "$release/ringfence" "$to/bin/ringfence"
# Packets through fenced filters; finds libpcap when an expression comes.
install -D -m 755 "$release/rfdump" "$to/bin/rfdump"
# What the back end "process" runs domains in; the library looks for it here.
install -D -m 755 "$release/ringfence-worker" "$to/libexec/ringfence/ringfence-worker"
# For tools that want a single word for the compiler.
ln -sf ringfence "$to/bin/ringfence-cc"
ln -sf ringfence "$to/bin/ringfence-c++"
install -D -m 755 "$release/libringfence_c.so" "$to/lib/libringfence.so.$version"
ln -sf "libringfence.so.$version" "$to/lib/libringfence.so.${version%%.*}"
ln -sf "libringfence.so.${version%%.*}" "$to/lib/libringfence.so"
install -D -m 644 "$release/libringfence_c.a" "$to/lib/libringfence.a"
install -D -m 644 -t "$to/include" include/ringfence.h include/ringfence.hpp
install -D -m 644 -t "$to/include/ringfence/host" include/ringfence/host/*.h
mkdir -p "$to/lib/pkgconfig" "$to/lib/ringfence"
sed -e "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" crates/capi/ringfence.pc.in >"$to/lib/pkgconfig/ringfence.pc"
mkdir -p "$to/lib/cmake/Ringfence"
sed -e "s|@VERSION@|$version|" share/RingfenceConfig.cmake.in >"$to/lib/cmake/Ringfence/RingfenceConfig.cmake"
install -D -m 644 -t "$to/include/ringfence" include/ringfence/module.h include/ringfence/bound.h \
    include/ringfence/by_value.hpp include/ringfence/tainted.hpp include/ringfence/rlbox_ringfence_sandbox.hpp
install -D -m 644 -t "$to/share/ringfence" share/ringfence.cmake share/ringfence.meson share/ringfence-gdb.py
install -D -m 755 -t "$to/share/ringfence" share/ringfence-perf
if [[ -d build/sysroot ]]; then
    rm -rf "$to/lib/ringfence/sysroot"
    cp -R build/sysroot "$to/lib/ringfence/sysroot"
fi
echo "installed below $to: bin/{ringfence,rfdump}, lib/libringfence.{so,a}, include/ringfence.{h,hpp}"
