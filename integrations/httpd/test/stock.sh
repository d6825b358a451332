#!/usr/bin/env bash
# Stock modules of Apache, unmodified and fenced, beside the same modules as Debian's packages have them.
#   stock.sh [NAME...]      only tests whose name contains one of these. RINGFENCE_PREFIX: where Ringfence is installed
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

command -v apxs >/dev/null || { echo "httpd: no apxs: install apache2 and apache2-dev" >&2; exit 1; }
"$here/../tree.sh" make
if ! "$here/../stock.sh" fetch; then
    echo "httpd stock modules: skipped, their sources cannot be had: 0 passed, 0 failed"
    [[ ${CI:-} != true ]]
    exit
fi
mapfile -t known < <("$here/../stock.sh" list)
modules=$("$here/../stock.sh" build "${known[@]}" "$here/modules/mod_hostile.c")

out=$("$here/../tree.sh" out)
mkdir -p "$out/modules"
"${RINGFENCE_PREFIX:-$out/prefix}/bin/ringfence" cc -O2 -shared -I"$here/../include" -I"$(apxs -q APR_INCLUDEDIR)" -I"$(apxs -q APU_INCLUDEDIR)" \
    -I"$(apxs -q INCLUDEDIR)" -D_GNU_SOURCE -DLINUX -D_REENTRANT -o "$out/modules/older.rf" "$here/modules/older.c"
exec "$here/stock.py" "$modules" "$@"
