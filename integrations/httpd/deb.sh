#!/usr/bin/env bash
# Makes a Debian package of mod_fenced, for the Apache of APXS.
#   integrations/httpd/deb.sh RELEASE_DIR [DIRECTORY]
# Prints its path: DIRECTORY (build/deb)/libapache2-mod-fenced_VERSION_amd64.deb. Needs no root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

release=$1 to=${2:-build/deb}
apxs=$(command -v "${APXS:-apxs}") || { echo "deb.sh: no apxs: install apache2-dev" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
name=libapache2-mod-fenced
modules=$("$apxs" -q LIBEXECDIR)
# The server's modules fit one number of its interface, which Debian's packages depend on.
magic=$(sed -n 's/^#define MODULE_MAGIC_NUMBER_MAJOR \([0-9]*\).*/\1/p' "$("$apxs" -q INCLUDEDIR)/ap_mmn.h")
[[ -n $magic ]] || { echo "deb.sh: ap_mmn.h of $apxs names no interface" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir "$tree"
chmod 755 "$tree"

# What it is built against and stands beside is in the package ringfence.
APXS=$apxs scripts/beside.sh "$release" "$tree" "$here/install.sh"
strip --strip-debug "$tree$modules/mod_fenced.so"
install -D -m 644 LICENSE-MIT "$tree/usr/share/doc/$name/copyright"
install -D -m 644 -t "$tree/usr/share/doc/$name" docs/httpd.md
available=$tree/etc/apache2/mods-available
mkdir -p "$available"
echo "LoadModule fenced_module $modules/mod_fenced.so" >"$available/fenced.load"
cat >"$available/fenced.conf" <<'END'
# What a page may take; docs/httpd.md (/usr/share/doc/libapache2-mod-fenced) has all directives.
FencedTimeLimit 5
FencedMemoryLimit 64M
FencedReset request

# What the modules have done, for this machine only.
<Location "/fenced-status">
	SetHandler fenced-status
	Require local
</Location>
END

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: amd64
Maintainer: The Ringfence project <ringfence@localhost>
Section: httpd
Priority: optional
Depends: apache2-api-$magic, ringfence (= $version)
Recommends: apache2
Installed-Size: $(du -sk "$tree/usr" | cut -f1)
Description: Apache module for pages in native code that cannot harm the server
 Pages in C, CGI and FastCGI programs among them, run as verified machine code in the server's own processes, each in a
 domain of its own: a crash, an endless loop or too much memory costs one request. fenced-cc compiles them; a2enmod fenced
 switches the module on.
END
printf '%s\n' /etc/apache2/mods-available/fenced.{load,conf} >"$tree/DEBIAN/conffiles"
# A server that still loads what is gone would not start again.
cat >"$tree/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && command -v a2dismod >/dev/null; then
	a2dismod -q -f fenced || true
fi
END
chmod 755 "$tree/DEBIAN/prerm"

mkdir -p "$to"
package=$to/${name}_${version}_amd64.deb
dpkg-deb --root-owner-group -Zgzip --build "$tree" "$package" >/dev/null
echo "$package"
