#!/usr/bin/env bash
# The integration's own tests: a cluster of a private copy of the server, test/sql/*.sql against test/expected/*.out.
#   run.sh [NAME...]        RINGFENCE_PREFIX: where Ringfence is installed; ACCEPT=1 writes the expected files
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
all=(basics shapes uses roles polygons text each windows)
(($#)) || set -- "${all[@]}"

command -v pg_config >/dev/null || { echo "postgresql: no pg_config: install postgresql-15 and postgresql-server-dev-15" >&2; exit 1; }
"$here/../tree.sh" make
out=$("$here/../tree.sh" out)
library=$("$here/../tree.sh" library)
mkdir -p "$out/modules"
cd "$here/modules"
for source in *.c; do
    "$library/plfenced-cc" -g "-fdebug-prefix-map=$PWD=." -o "$out/modules/${source%.c}.rf" "$source"
done
# The same functions, and other bytes.
"$library/plfenced-cc" -O1 -o "$out/modules/basics2.rf" basics.c
# The same source, for LANGUAGE C.
gcc -O2 -fPIC -shared -I"$(pg_config --includedir-server)" -o "$out/modules/polygons.so" polygons.c

cluster=$out/cluster
"$here/../tree.sh" stop "$cluster" 2>/dev/null || true
rm -rf "$cluster"
"$here/../tree.sh" start "$cluster"
trap '"$here/../tree.sh" stop "$cluster" || true' EXIT
passed=0 failed=0
mkdir -p "$out/results"
for name; do
    # Lines of the server's sources are another in each of its versions.
    # A lost connection is a difference like others.
    { "$here/../tree.sh" psql "$cluster" -a -v modules="$out/modules" -f "$here/sql/$name.sql" 2>&1 || true; } |
        sed -e 's/^psql:[^ ]*: //' -e '/^LOCATION:/d' >"$out/results/$name.out"
    if [[ ${ACCEPT:-} ]]; then cp "$out/results/$name.out" "$here/expected/$name.out"; fi
    if diff -u "$here/expected/$name.out" "$out/results/$name.out"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
    fi
done
# Nobody has crashed the server.
if grep -E 'PANIC|was terminated by signal|server process .* exited' "$cluster/log"; then failed=$((failed + 1)); fi
echo "postgresql: $passed passed, $failed failed"
((failed == 0))
