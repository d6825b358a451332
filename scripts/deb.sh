#!/usr/bin/env bash
# Makes a Debian package of what is built.
#   scripts/deb.sh RELEASE_DIR [DIRECTORY]
# Prints its path: DIRECTORY (build/deb)/ringfence_VERSION_amd64.deb. Needs no root.
set -euo pipefail
cd "$(dirname "$0")/.."

release=$1 to=${2:-build/deb}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"

scripts/install.sh "$release" "$tree" /usr >/dev/null
# debug information of the commands and the libraries is most of their size
strip --strip-debug "$tree"/usr/bin/{ringfence,rfdump} "$tree"/usr/libexec/ringfence/* "$tree/usr/lib/libringfence.so.$version" "$tree/usr/lib/libringfence.a"
install -D -m 644 -t "$tree/usr/share/doc/ringfence" LICENSE-APACHE LICENSE-MIT README.md RELEASES.md
install -D -m 644 -t "$tree/usr/share/doc/ringfence/docs" docs/*.md
cat LICENSE-MIT >"$tree/usr/share/doc/ringfence/copyright"

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<EOF
Package: ringfence
Version: $version
Architecture: amd64
Maintainer: The Ringfence project <ringfence@localhost>
Section: devel
Priority: optional
Depends: libc6 (>= 2.36), libgcc-s1, gcc (>= 4:12), binutils
Recommends: g++, pkg-config, libpcap0.8
Installed-Size: $(du -sk "$tree/usr" | cut -f1)
Description: load native modules that nobody has to trust, and call them
 Modules are ordinary C or C++, compiled by gcc with "ringfence cc" in front. They run in the address
 space of the program that loads them, and can neither read nor write nor run anything outside.
EOF
echo 'activate-noawait ldconfig' >"$tree/DEBIAN/triggers"

mkdir -p "$to"
package=$to/ringfence_${version}_amd64.deb
dpkg-deb --root-owner-group -Zgzip --build "$tree" "$package" >/dev/null
echo "$package"
