#!/usr/bin/env bash
# Installs the language plfenced into the PostgreSQL of PG_CONFIG.
#   install.sh DESTDIR PREFIX         PREFIX: where Ringfence is installed, and where plfenced-cc goes
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
destdir=${1:-} prefix=${2:-/usr/local} config=${PG_CONFIG:-pg_config}
[[ -x $destdir$prefix/bin/ringfence ]] ||
    { echo "install: no $destdir$prefix/bin/ringfence: run 'make install PREFIX=$prefix' first" >&2; exit 1; }

# What tests have built looks for its library elsewhere.
make --no-print-directory -C "$here" -s clean PG_CONFIG="$config" >/dev/null
make --no-print-directory -C "$here" -s -j"$(nproc)" RINGFENCE_PREFIX="$prefix" PG_CONFIG="$config" \
    PG_LDFLAGS="-L$destdir$prefix/lib" PG_CPPFLAGS="-I$destdir$prefix/include"
make --no-print-directory -C "$here" -s RINGFENCE_PREFIX="$prefix" PG_CONFIG="$config" DESTDIR="$destdir" install
library=$destdir$prefix/lib/plfenced
mkdir -p "$library"
RINGFENCE=$destdir$prefix/bin/ringfence PG_CONFIG=$config sh "$here/guest/build.sh" "$library"
# The script names the command as it will be found.
sed -i "s|$destdir$prefix/bin/ringfence|$prefix/bin/ringfence|" "$library/plfenced-cc"
ln -sf ../lib/plfenced/plfenced-cc "$destdir$prefix/bin/plfenced-cc"
echo "installed for $("$config" --version): the extension plfenced, $prefix/bin/plfenced-cc"
