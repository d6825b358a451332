#!/usr/bin/env bash
# Fenced functions past one server: a standby by streaming replication, a server that works for another (postgres_fdw), a restored
# dump, and modules that the server verifies before its first session.
#   clusters.sh             RINGFENCE_PREFIX: where Ringfence is installed
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
tree=$here/../tree.sh
"$tree" make
out=$("$tree" out)
main=$out/clusters/main standby=$out/clusters/standby worker=$out/clusters/worker
modules=$out/clusters/modules
passed=0 failed=0

stop_all() {
    local cluster
    for cluster in "$standby" "$worker" "$main"; do "$tree" stop "$cluster" 2>/dev/null || true; done
}
ask() { # CLUSTER SQL: what it prints
    "$tree" psql "$1" -At -v ON_ERROR_STOP=1 -c "$2" 2>&1 || true
}
is() { # WHAT FOUND EXPECTED
    if [[ $2 == "$3" ]]; then
        printf ' ok %s\n' "$1"
        passed=$((passed + 1))
    else
        printf 'not ok %s: %s instead of %s\n' "$1" "$2" "$3"
        failed=$((failed + 1))
    fi
}
contains() { # WHAT FOUND PART
    if [[ $2 == *"$3"* ]]; then is "$1" yes yes; else is "$1" "$2" "…$3…"; fi
}

stop_all
rm -rf "$out/clusters"
mkdir -p "$modules"
"$("$tree" library)/plfenced-cc" -o "$modules/basics.rf" "$here/modules/basics.c"
"$("$tree" library)/plfenced-cc" -o "$out/clusters/shapes.rf" "$here/modules/shapes.c"
echo 'no module' >"$modules/broken.rf"
trap stop_all EXIT

# Before the first session: a file that is no module costs a line of the log, and nothing else.
"$tree" start "$main" "shared_preload_libraries = 'plfenced'" "plfenced.preload = '$modules'"
contains "a file that is no module is told in the log" "$(grep broken.rf "$main/log" || true)" broken.rf
"$tree" psql "$main" -v ON_ERROR_STOP=1 <<END
CREATE EXTENSION plfenced;
\o /dev/null
SELECT fenced.install('basics', pg_read_binary_file('$modules/basics.rf'));
SELECT fenced.install('shapes', pg_read_binary_file('$out/clusters/shapes.rf'));
\o
CREATE FUNCTION inc(int) RETURNS int AS 'basics:inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION crash(int8) RETURNS void AS 'basics:crash' LANGUAGE plfenced;
CREATE FUNCTION swap_words(int, OUT n int, OUT word text) RETURNS SETOF record AS 'shapes:words' LANGUAGE plfenced STRICT;
CREATE TABLE numbers AS SELECT generate_series(1, 1000) AS i;
CREATE INDEX ON numbers (inc(i));
END
is "a preloaded module's function" "$(ask "$main" 'SELECT inc(41)')" 42
is "and one that is not preloaded" "$(ask "$main" 'SELECT count(*) FROM swap_words(3)')" 3

# What functions have done is counted by each session, and told to all.
ask "$main" 'SELECT fenced.stat_reset()' >/dev/null
ask "$main" 'SELECT count(n) FROM swap_words(3)' >/dev/null
ask "$main" 'SELECT crash(0)' >/dev/null
ask "$main" 'BEGIN; SELECT crash(0)' >/dev/null
counted="SELECT funcname, calls, faults, errors, memory > 0, scope FROM fenced.pg_stat_fenced WHERE funcname IN ('crash', 'swap_words') ORDER BY 1"
is "other sessions' calls are counted" "$(ask "$main" "$counted")" "crash|2|2|0|t|server
swap_words|1|0|0|t|server"
contains "not anybody resets them" "$(ask "$main" 'CREATE ROLE anybody; SET ROLE anybody; SELECT fenced.stat_reset()')" 'permission denied'
is "reset, they begin anew" "$(ask "$main" "SELECT fenced.stat_reset(); $counted")" ""

# A standby: modules come with the data.
"$tree" home "$standby"
"$tree" run pg_basebackup -h "$main" -U postgres -D "$standby/data" -R --checkpoint=fast
"$tree" start "$standby" "unix_socket_directories = '$standby'" "plfenced.preload = ''"
is "a standby has the functions" "$(ask "$standby" 'SELECT pg_is_in_recovery(), inc(1)')" "t|2"
is "and the index" "$(ask "$standby" 'SET enable_seqscan = off; SELECT i FROM numbers WHERE inc(i) = 8')" 7
contains "a crash on the standby is an error" "$(ask "$standby" 'SELECT crash(0)')" 'ERROR:  fenced function'
is "and costs one statement" "$(ask "$standby" 'SELECT inc(2)')" 3
"$tree" psql "$main" -c "CREATE FUNCTION later(int) RETURNS int AS 'basics:plain_inc' LANGUAGE plfenced STRICT"
lsn=$(ask "$main" 'SELECT pg_current_wal_lsn()')
for ((i = 0; i < 600; i++)); do
    if [[ $(ask "$standby" "SELECT pg_last_wal_replay_lsn() >= '$lsn'") == t ]]; then break; fi
    sleep 0.1
done
is "what is made later arrives" "$(ask "$standby" 'SELECT later(5)')" 6
contains "installing on a standby is refused" \
    "$(ask "$standby" "SELECT fenced.install('x', pg_read_binary_file('$modules/basics.rf'))")" 'read-only transaction'
"$tree" run pg_ctl -D "$standby/data" -w promote >/dev/null
is "promoted, it takes modules" "$(ask "$standby" "SELECT fenced.install('x', pg_read_binary_file('$modules/basics.rf'))")" ""

# A dump restored into another server, which then works for the first.
"$tree" start "$worker"
"$tree" run pg_dump -h "$main" -U postgres -Fp postgres | "$tree" psql "$worker" -v ON_ERROR_STOP=1 -f - >/dev/null
is "a restored dump has modules and functions" "$(ask "$worker" 'SELECT inc(1), count(*) FROM fenced.modules')" "2|2"
is "not preloaded, a session sees its own calls" "$(ask "$worker" "SELECT inc(1); SELECT funcname, calls, scope FROM fenced.pg_stat_fenced")" "2
inc|1|session"
is "and indexes" "$(ask "$worker" 'SET enable_seqscan = off; SELECT i FROM numbers WHERE inc(i) = 8')" 7
# postgres_fdw sends functions of extensions that both have: the worker calls them on its rows, and sends what is left.
extensions=$out/tree$(pg_config --sharedir)/extension
cat >"$extensions/plusone.control" <<'END'
comment = 'a fenced function'
default_version = '1.0'
requires = 'plfenced'
END
echo "CREATE FUNCTION plus_one(int) RETURNS int AS 'basics:inc' LANGUAGE plfenced STRICT IMMUTABLE;" >"$extensions/plusone--1.0.sql"
for cluster in "$main" "$worker"; do
    "$tree" psql "$cluster" -v ON_ERROR_STOP=1 -c 'CREATE EXTENSION plusone'
done
"$tree" psql "$main" -v ON_ERROR_STOP=1 <<END
CREATE EXTENSION postgres_fdw;
CREATE SERVER worker FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '$worker', dbname 'postgres', extensions 'plusone');
CREATE USER MAPPING FOR postgres SERVER worker OPTIONS (user 'postgres');
CREATE FOREIGN TABLE far_numbers (i int) SERVER worker OPTIONS (table_name 'numbers');
CREATE TABLE part (i int) PARTITION BY RANGE (i);
CREATE TABLE part_here PARTITION OF part FOR VALUES FROM (1) TO (501);
CREATE FOREIGN TABLE part_there PARTITION OF part FOR VALUES FROM (501) TO (1001) SERVER worker OPTIONS (table_name 'numbers');
INSERT INTO part_here SELECT generate_series(1, 500);
END
"$tree" psql "$worker" -v ON_ERROR_STOP=1 -c 'DELETE FROM numbers WHERE i <= 500'
contains "a fenced function is part of the remote query" \
    "$(ask "$main" 'EXPLAIN (VERBOSE, COSTS OFF) SELECT i FROM far_numbers WHERE plus_one(i) = 600')" 'Remote SQL: SELECT i FROM public.numbers WHERE ((public.plus_one(i) = 600))'
is "which the worker answers" "$(ask "$main" 'SELECT i FROM far_numbers WHERE plus_one(i) = 600')" 599
is "partitions here and there" "$(ask "$main" 'SELECT sum(plus_one(i)), count(*) FROM part')" "501500|1000"

echo "postgresql-clusters: $passed passed, $failed failed"
((failed == 0))
