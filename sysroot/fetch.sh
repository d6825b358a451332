#!/usr/bin/env bash
# Fetches a pinned source and unpacks it below build/sources; does nothing if it is there already.
# Sources come through apt, pip and cargo by package name; what arrives is checked against a hash.
#
#   sysroot/fetch.sh gcc      libgcc, libstdc++, the demangler and the torture programs, from Debian's gcc-12-source
#   sysroot/fetch.sh musl     musl, libc++ and libunwind, from PyPI's ziglang
#   sysroot/fetch.sh crate NAME VERSION SHA256
#   sysroot/fetch.sh deb NAME VERSION SHA256     a Debian package of source files: headers
#
# Prints the directory.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
sources=${RINGFENCE_SOURCES:-$root/build/sources}
mkdir -p "$sources"

die() {
	echo "fetch.sh: $*" >&2
	exit 1
}

check() { # FILE SHA256
	local have
	have=$(sha256sum "$1" | cut -d' ' -f1)
	[ "$have" = "$2" ] || die "$(basename "$1") has SHA-256 $have where $2 is pinned; nothing was unpacked"
}

# A directory appears under its final name only when it is complete. One that lacks a file which is wanted by now was
# fetched for an older sysroot.
scratch=
finish() { # NAME
	rm -rf "${sources:?}/$1"
	mv "$scratch/out" "$sources/$1"
}
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT

begin() { # NAME [FILE]
	if [ -e "$sources/$1/${2:-}" ]; then
		echo "$sources/$1"
		exit 0
	fi
	scratch=$(mktemp -d "$sources/.fetch.XXXXXX")
	mkdir "$scratch/out"
}

fetch_gcc() {
	begin gcc-12.2.0 libiberty/cp-demangle.c
	(cd "$scratch" && apt-get download -qq gcc-12-source >&2) ||
		die "apt cannot download gcc-12-source; run 'apt-get update' on a Debian 12 first"
	local deb
	deb=$(echo "$scratch"/gcc-12-source_*.deb)
	# The package's revision may move; the tarball inside it is upstream's and does not.
	dpkg-deb --fsys-tarfile "$deb" | tar -x -C "$scratch" ./usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz
	local tarball=$scratch/usr/src/gcc-12/gcc-12.2.0-dfsg.tar.xz
	check "$tarball" 50c63ff82919323c25fbbb4a9eae259edc974118a0fb30c905190cb782ec11c2
	tar -xJf "$tarball" -C "$scratch/out" --strip-components=1 --wildcards \
		'gcc-12.2.0/libgcc/*' 'gcc-12.2.0/include/*' 'gcc-12.2.0/libstdc++-v3/*' 'gcc-12.2.0/libiberty/cp-dem*' \
		'gcc-12.2.0/gcc/testsuite/gcc.c-torture/*' 'gcc-12.2.0/gcc/testsuite/g++.dg/*'
	finish gcc-12.2.0
	echo "$sources/gcc-12.2.0"
}

fetch_musl() {
	begin musl-1.2.5 linux-include/linux/types.h
	python3 -m pip download -q --no-deps --no-cache-dir --only-binary :all: \
		-d "$scratch" ziglang==0.13.0.post1 >&2 ||
		die "pip cannot download ziglang==0.13.0.post1; is python3-pip installed?"
	local wheel
	wheel=$(echo "$scratch"/ziglang-*.whl)
	check "$wheel" 5ff0f2cb0d583b4f94820909612043f62e4d1d9a8bed77ceec088a01fc2ef015
	python3 - "$wheel" "$scratch/out" <<-'PY'
		import sys, zipfile
		wheel, out = sys.argv[1:]
		keep = {
		    "ziglang/lib/libc/musl/": "",
		    "ziglang/lib/libc/include/generic-musl/": "generic-include/",
		    "ziglang/lib/libc/include/x86_64-linux-musl/": "x86_64-include/",
		    # The kernel's headers for programs, as its `make headers_install` writes them.
		    "ziglang/lib/libc/include/any-linux-any/": "linux-include/",
		    "ziglang/lib/libc/include/x86-linux-any/": "linux-include/",
		}
		import pathlib
		with zipfile.ZipFile(wheel) as z:
		    for name in z.namelist():
		        for old, new in keep.items():
		            if name.startswith(old) and not name.endswith("/"):
		                to = pathlib.Path(out, new + name[len(old):])
		                to.parent.mkdir(parents=True, exist_ok=True)
		                to.write_bytes(z.read(name))
	PY
	finish musl-1.2.5
	echo "$sources/musl-1.2.5"
}

# cargo checks a registry package against the checksum in the lock file; it is checked here once more, against
# the recipe's pin.
fetch_crate() { # NAME VERSION SHA256
	local name=$1 version=$2 sum=$3
	begin "$name-$version"
	mkdir -p "$scratch/probe/src"
	cat >"$scratch/probe/Cargo.toml" <<-TOML
		[package]
		name = "probe"
		version = "0.0.0"
		edition = "2021"
		[dependencies]
		$name = "=$version"
		[workspace]
	TOML
	: >"$scratch/probe/src/lib.rs"
	(cd "$scratch/probe" && cargo vendor --quiet --versioned-dirs "$scratch/vendor" >/dev/null) ||
		die "cargo cannot fetch $name $version"
	local lock
	lock=$(awk -v n="\"$name\"" '$1 == "name" { hit = $3 == n } hit && $1 == "checksum" { gsub(/"/, "", $3); print $3; exit }' \
		"$scratch/probe/Cargo.lock")
	[ "$lock" = "$sum" ] || die "$name $version has SHA-256 ${lock:-none} where $sum is pinned"
	rmdir "$scratch/out"
	mv "$scratch/vendor/$name-$version" "$scratch/out"
	finish "$name-$version"
	echo "$sources/$name-$version"
}

# VERSION is the package's own; its epoch and revision may not move, for the hash is that of the package.
fetch_deb() { # NAME VERSION SHA256
	local name=$1 version=$2 sum=$3 file
	begin "$name-$version"
	(cd "$scratch" && apt-get download -qq "$name=$version" >&2) ||
		die "apt cannot download $name $version; run 'apt-get update' on a Debian 12 first"
	file=$(echo "$scratch/$name"_*.deb)
	check "$file" "$sum"
	dpkg-deb --fsys-tarfile "$file" | tar -x -C "$scratch/out"
	finish "$name-$version"
	echo "$sources/$name-$version"
}

case ${1:-} in
gcc) fetch_gcc ;;
musl) fetch_musl ;;
crate)
	[ $# = 4 ] || die "usage: fetch.sh crate NAME VERSION SHA256"
	fetch_crate "$2" "$3" "$4"
	;;
deb)
	[ $# = 4 ] || die "usage: fetch.sh deb NAME VERSION SHA256"
	fetch_deb "$2" "$3" "$4"
	;;
*) die "usage: fetch.sh gcc | musl | crate NAME VERSION SHA256 | deb NAME VERSION SHA256" ;;
esac
