#!/usr/bin/env bash
# Shows the language plfenced in a temporary cluster: a function from C source, what a crash and an endless loop cost, the price
# of a call.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
say() { printf '\n== %s\n' "$*"; }

say "PostgreSQL with plfenced, in a cluster of its own"
"$here/tree.sh" make
out=$("$here/tree.sh" out)
library=$("$here/tree.sh" library)
cluster=$out/demo
"$here/tree.sh" stop "$cluster" 2>/dev/null || true
rm -rf "$cluster"
"$here/tree.sh" start "$cluster"
trap '"$here/tree.sh" stop "$cluster" || true' EXIT
psql() { "$here/tree.sh" psql "$cluster" "$@"; }

say "A function in C, as one would write it for PostgreSQL itself"
mkdir -p "$out/modules"
cat >"$out/modules/demo.c" <<'END'
#include "postgres.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(inc);
Datum inc(PG_FUNCTION_ARGS) { PG_RETURN_INT32(PG_GETARG_INT32(0) + 1); }

PG_FUNCTION_INFO_V1(crash);
Datum crash(PG_FUNCTION_ARGS) { *(volatile int *) 8 = 1; PG_RETURN_VOID(); }

PG_FUNCTION_INFO_V1(spin);
Datum spin(PG_FUNCTION_ARGS) { for (;;) __asm__ volatile(""); }
END
sed 's/^/    /' "$out/modules/demo.c"
"$library/plfenced-cc" -g -o "$out/modules/demo.rf" "$out/modules/demo.c"
psql -v file="$out/modules/demo.rf" <<'END'
CREATE EXTENSION plfenced;
\o /dev/null
SELECT fenced.install('demo', pg_read_binary_file(:'file'));
\o
CREATE FUNCTION inc(int) RETURNS int AS 'demo:inc' LANGUAGE plfenced STRICT IMMUTABLE;
CREATE FUNCTION crash() RETURNS void AS 'demo:crash' LANGUAGE plfenced;
CREATE FUNCTION spin() RETURNS void AS 'demo:spin' LANGUAGE plfenced;
CREATE FUNCTION inc_plpgsql(x int) RETURNS int AS 'BEGIN RETURN x + 1; END' LANGUAGE plpgsql STRICT IMMUTABLE;
SELECT inc(41);
END

say "A crash costs one statement, and so does an endless loop"
psql 2>&1 <<'END'
SELECT pg_backend_pid() AS before \gset
SELECT crash();
SET statement_timeout = '200ms';
SELECT spin();
RESET statement_timeout;
SELECT inc(1) AS still_works, pg_backend_pid() = :before AS same_session;
END

say "A million calls in one statement"
psql <<'END'
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE TEMP TABLE t AS SELECT i FROM generate_series(1, 1000000) i;
\o /dev/null
SELECT sum(i), sum(inc(i)) FROM t;
\o
\timing on
\echo nothing:
SELECT sum(i) FROM t;
\echo a fenced function:
SELECT sum(inc(i)) FROM t;
\echo the same in PL/pgSQL:
SELECT sum(inc_plpgsql(i)) FROM t;
END
