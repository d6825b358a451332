#!/usr/bin/env bash
# Makes a Debian package of the language plfenced, for the PostgreSQL of PG_CONFIG.
#   integrations/postgresql/deb.sh RELEASE_DIR [DIRECTORY]
# Prints its path: DIRECTORY (build/deb)/postgresql-MAJOR-plfenced_VERSION_amd64.deb. Needs no root.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."

release=$1 to=${2:-build/deb}
config=$(command -v "${PG_CONFIG:-pg_config}") || { echo "deb.sh: no pg_config: install postgresql-server-dev-15" >&2; exit 1; }
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
major=$("$config" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
name=postgresql-$major-plfenced
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
mkdir "$tree"
chmod 755 "$tree"

# What it is built against and stands beside is in the package ringfence.
PG_CONFIG=$config scripts/beside.sh "$release" "$tree" "$here/install.sh"
strip --strip-debug "$tree$("$config" --pkglibdir)/plfenced.so"
install -D -m 644 LICENSE-MIT "$tree/usr/share/doc/$name/copyright"
install -D -m 644 -t "$tree/usr/share/doc/$name" docs/postgresql.md

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: amd64
Maintainer: The Ringfence project <ringfence@localhost>
Section: database
Priority: optional
Depends: postgresql-$major, ringfence (= $version)
Recommends: postgresql-server-dev-$major
Installed-Size: $(du -sk "$tree/usr" | cut -f1)
Description: trusted language of PostgreSQL $major for functions in native code
 Any role that may use the language plfenced makes functions in C, from text or from compiled modules. They run
 as verified machine code in a domain of their own: a crash, an endless loop or too much memory costs one statement.
 plfenced-cc, which compiles modules, needs postgresql-server-dev-$major.
END

mkdir -p "$to"
package=$to/${name}_${version}_amd64.deb
dpkg-deb --root-owner-group -Zgzip --build "$tree" "$package" >/dev/null
echo "$package"
