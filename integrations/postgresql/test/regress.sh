#!/usr/bin/env bash
# PostgreSQL's own regression tests, in a server with plfenced preloaded and in one without it: both must say the same.
#   regress.sh [TEST...]      default: all, in the order of the server's own schedule
# Where the source is that of another minor version than the server, or the machine's own settings show, both differ alike from what the
# source expects.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$here/../tree.sh
out=$("$tree" out)
config=$(command -v "${PG_CONFIG:-pg_config}") || { echo "regress.sh: no pg_config: install postgresql-server-dev-15" >&2; exit 1; }
runner=$(dirname "$("$config" --pgxs)")/../test/regress/pg_regress
[[ -x $runner ]] || { echo "regress.sh: no $runner: install postgresql-server-dev-15" >&2; exit 1; }
[[ -d $out/source/src/test/regress ]] || "$here/contrib.sh" fetch
"$tree" make

work=$out/regress
source=$work/source
clusters=(without with)
stop() {
    local name
    for name in "${clusters[@]}"; do "$tree" stop "$work/$name" 2>/dev/null || true; done
}
stop
rm -rf "$work"
mkdir -p "$work/lib"
cp -r "$out/source/src/test/regress" "$source"
include=$("$config" --includedir-server)
# What the tests load: their own library, and two of the server's examples.
gcc -O2 -fPIC -shared -w -I"$include" -I"$source" -o "$work/lib/regress.so" "$source/regress.c"
for name in autoinc refint; do
    gcc -O2 -fPIC -shared -w -I"$include" -o "$work/lib/$name.so" "$out/source/contrib/spi/$name.c"
done
chmod -R a+rX "$work"

run() { # NAME SETTING...
    local name=$1
    shift
    "$tree" start "$work/$name" 'max_prepared_transactions = 10' 'max_connections = 60' "$@"
    "$tree" home "$work/$name/output"
    "$tree" psql "$work/$name" -c 'CREATE DATABASE regression TEMPLATE template0'
    # Fails where tests differ from the source's expectations: what counts is compared below.
    if ((${#tests[@]})); then
        regress "$name" "${tests[@]}"
    else
        regress "$name" --schedule="$source/parallel_schedule"
    fi >"$work/$name.log" 2>&1 || true
    "$tree" stop "$work/$name"
    grep -E '^(#|=+$| *[0-9]+ of| *All)' "$work/$name.log" | tail -3 || true
    # Whether each test passes, in the order of their names.
    sed -n 's/^\(test\|    \) *\([a-z_0-9]*\) *\.\.\. *\([a-zA-Z]*\).*/\2 \3/p' "$work/$name.log" | sort >"$work/$name.list"
    [[ -s $work/$name.list ]] || { cat "$work/$name.log" >&2; return 1; }
    if grep -E 'PANIC|was terminated by signal' "$work/$name/log"; then return 1; fi
}

regress() { # NAME ARGUMENT...
    local name=$1
    shift
    (
        cd "$work/$name"
        "$tree" as "$runner" --use-existing --host="$work/$name" --user=postgres --bindir="$("$tree" path)" \
            --dlpath="$work/lib" --inputdir="$source" --outputdir="$work/$name/output" --max-concurrent-tests=20 "$@"
    )
}
tests=("$@")
trap stop EXIT
run without
passed=$(grep -c ' ok$' "$work/without.list" || true)
if ((passed * 10 < $(wc -l <"$work/without.list") * 9)); then
    echo "regress: without plfenced only $passed tests pass: see $work/without/output/regression.diffs" >&2
    exit 1
fi
run with "shared_preload_libraries = 'plfenced'"
if diff -u "$work/without.list" "$work/with.list"; then
    echo "regress: $passed of $(wc -l <"$work/with.list") tests pass, the same with plfenced preloaded as without it"
else
    echo "regress: with plfenced preloaded, tests end otherwise; see $work/with/output/regression.diffs" >&2
    exit 1
fi
