#!/usr/bin/env bash
# Apache's own tests (perl-framework, as Debian's source package has it), by a server with its own modules and by one whose stock modules are
# fenced, all at once: each single test has the same result, or a line in framework-differences.txt.
#   framework.sh [--quick | FILE...]      all that this server can run; the part for every day; or these files (t/modules/alias.t)
# RINGFENCE_PREFIX: where Ringfence is installed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

command -v apxs >/dev/null || { echo "httpd: no apxs: install apache2 and apache2-dev" >&2; exit 1; }
if ! perl -e 'use LWP; use DateTime' 2>/dev/null; then
    echo "httpd-framework: skipped, install libwww-perl and libdatetime-perl: 0 passed, 0 failed"
    [[ ${CI:-} != true ]]
    exit
fi
"$here/../tree.sh" make
out=$("$here/../tree.sh" out)/framework
if ! "$here/../stock.sh" fetch || ! "$here/framework.py" fetch "$out"; then
    echo "httpd-framework: skipped, its sources cannot be had: 0 passed, 0 failed"
    [[ ${CI:-} != true ]]
    exit
fi
modules=$("$here/../stock.sh" build)
exec "$here/framework.py" run "$out" "$modules" "$@"
