#!/usr/bin/env bash
# What ends a fenced loop from outside, and what goes on meanwhile: cancel, termination, timeout, notifications, the server's own ANALYZE.
# `run.sh` first: it makes the tree and the modules.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$here/../tree.sh
out=$("$tree" out)
[[ -f $out/modules/basics.rf ]] || { echo "interrupts.sh: no $out/modules/basics.rf: run test/run.sh first" >&2; exit 1; }
cluster=$out/interrupts
"$tree" stop "$cluster" 2>/dev/null || true
rm -rf "$cluster"
"$tree" start "$cluster" 'autovacuum_naptime = 1s' 'autovacuum_analyze_threshold = 1'
trap '"$tree" stop "$cluster" || true' EXIT
passed=0 failed=0

sql() { "$tree" psql "$cluster" -At "$@" 2>&1; }
check() { # NAME PATTERN TEXT
    if grep -q -- "$2" <<<"$3"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'interrupts: %s: expected "%s" in:\n%s\n' "$1" "$2" "$3" >&2
    fi
}

sql -c 'CREATE EXTENSION plfenced' \
    -c "SELECT fenced.install('basics', pg_read_binary_file('$out/modules/basics.rf'))" \
    -c "SELECT fenced.install('shapes', pg_read_binary_file('$out/modules/shapes.rf'))" \
    -c "CREATE FUNCTION forever(int) RETURNS int AS 'basics:plain_forever' LANGUAGE plfenced STRICT" \
    -c "CREATE FUNCTION inc(int) RETURNS int AS 'basics:inc' LANGUAGE plfenced STRICT" \
    -c "CREATE FUNCTION picky(int) RETURNS int AS 'shapes:picky' LANGUAGE plfenced STRICT IMMUTABLE" >/dev/null

# A session that runs statements behind `application_name`; `during` runs once it is in its loop.
session() { # NAME SQL... -- COMMAND OF THE OTHER SESSION
    local name=$1 statements=() pid
    shift
    while [[ $1 != -- ]]; do statements+=(-c "$1"); shift; done
    shift
    PGAPPNAME=$name sql "${statements[@]}" >"$cluster/$name.out" &
    pid=$!
    until [[ $(sql -c "SELECT count(*) FROM pg_stat_activity WHERE application_name = '$name' AND state = 'active' AND query LIKE '%forever%'") == 1 ]]; do
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.05
    done
    if [[ $1 ]]; then sql -c "$1" >/dev/null; fi
    wait "$pid" || true
}

of() { echo "SELECT $1(pid) FROM pg_stat_activity WHERE application_name = '$2'"; }

session cancelled 'SELECT forever(1)' 'SELECT inc(41)' -- "$(of pg_cancel_backend cancelled)"
check cancel 'canceling statement due to user request' "$(<"$cluster/cancelled.out")"
check 'after a cancel' '^42$' "$(<"$cluster/cancelled.out")"

session timed 'SET statement_timeout = 200' 'SELECT forever(1)' 'SELECT inc(41)' -- ''
check timeout 'canceling statement due to statement timeout' "$(<"$cluster/timed.out")"
check 'after a timeout' '^42$' "$(<"$cluster/timed.out")"

session ended 'SELECT forever(1)' -- "$(of pg_terminate_backend ended)"
check terminate 'terminating connection due to administrator command' "$(<"$cluster/ended.out")"

# Others are told at once, who runs fenced code when its statement ends.
session listening 'LISTEN news' 'SELECT forever(1)' -- "NOTIFY news, 'fresh'; $(of pg_cancel_backend listening)"
check listen 'Asynchronous notification "news" with payload "fresh"' "$(<"$cluster/listening.out")"
check 'others meanwhile' '^42$' "$(sql -c 'SELECT inc(41)')"

# The server's own ANALYZE meets a fault: that analysis ends, nothing else.
sql -c 'CREATE TABLE odd (n int)' -c 'CREATE STATISTICS odd_picky ON (picky(n)) FROM odd' \
    -c 'INSERT INTO odd SELECT generate_series(1, 1000)' >/dev/null
for _ in {1..600}; do
    if grep -q 'automatic analyze of table' "$cluster/log"; then break; fi
    sleep 0.1
done
check autovacuum 'fenced function "picky" failed' "$(<"$cluster/log")"
check 'autovacuum goes on' '^42$' "$(sql -c 'SELECT inc(41)')"

if grep -E 'PANIC|was terminated by signal' "$cluster/log"; then failed=$((failed + 1)); fi
echo "interrupts: $passed passed, $failed failed"
((failed == 0))
