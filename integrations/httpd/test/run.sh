#!/usr/bin/env bash
# The integration's own tests, with private servers.
#   run.sh [NAME...]        only tests whose name contains one of these. RINGFENCE_PREFIX: where Ringfence is installed
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

command -v apxs >/dev/null || { echo "httpd: no apxs: install apache2 and apache2-dev" >&2; exit 1; }
"$here/../tree.sh" make
out=$("$here/../tree.sh" out)
mkdir -p "$out/modules"
cd "$here/modules"
for source in page none needs; do
    "$out/library/fenced-cc" -g "-fdebug-prefix-map=$PWD=." -o "$out/modules/$source.rf" "$source.c"
done
# One whose loads are not confined, which a server does not take.
"$out/library/fenced-cc" --isolation=integrity -o "$out/modules/integrity.rf" none.c
for source in program loop stream; do
    "$out/library/fenced-cc" --program -g "-fdebug-prefix-map=$PWD=." -o "$out/modules/$source.rf" "$source.c"
done
exec "$here/test.py" "$@"
