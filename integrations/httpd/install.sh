#!/usr/bin/env bash
# Installs mod_fenced into the Apache of APXS.
#   install.sh DESTDIR PREFIX         PREFIX: where Ringfence is installed, and where fenced-cc goes
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
destdir=${1:-} prefix=${2:-/usr/local} apxs=${APXS:-apxs}
[[ -x $destdir$prefix/bin/ringfence ]] ||
    { echo "install: no $destdir$prefix/bin/ringfence: run 'make install PREFIX=$prefix' first" >&2; exit 1; }

# A directory of its own: what tests have built looks for its library elsewhere.
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
make --no-print-directory -C "$here" -s OUT="$out" APXS="$apxs" RINGFENCE_PREFIX="$prefix" \
    LIBRARY="$destdir$prefix/lib" INCLUDE="$destdir$prefix/include" DESTDIR="$destdir" install
library=$destdir$prefix/lib/fenced
mkdir -p "$library"
RINGFENCE=$destdir$prefix/bin/ringfence sh "$here/guest/build.sh" "$library"
# The script names the command as it will be found.
sed -i "s|$destdir$prefix/bin/ringfence|$prefix/bin/ringfence|" "$library/fenced-cc"
ln -sf ../lib/fenced/fenced-cc "$destdir$prefix/bin/fenced-cc"
# Debian's way to switch modules on: a2enmod fenced.
available=$destdir$("$apxs" -q SYSCONFDIR)/mods-available
if [[ -d $("$apxs" -q SYSCONFDIR)/mods-available ]]; then
    mkdir -p "$available"
    echo "LoadModule fenced_module $("$apxs" -q LIBEXECDIR)/mod_fenced.so" >"$available/fenced.load"
fi
echo "installed: $("$apxs" -q LIBEXECDIR)/mod_fenced.so, $prefix/bin/fenced-cc"
