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
export STOCK_CFLAGS="-ffile-prefix-map=$here/="
mapfile -t known < <("$here/../stock.sh" list)
modules=$("$here/../stock.sh" build "${known[@]}" "$here/modules/mod_hostile.c")
exec "$here/stock.py" "$modules" "$@"
