/* SQLite: rows inserted and indexed, a join with grouping, a scan with text functions, an update rolled back. */
#include "kernel.h"
#include "rfcheck.h"
#include <sqlite3.h>

static sqlite3 *db;
static uint64_t trail;

static int row(void *u, int n, char **values, char **names)
{
    (void)u, (void)names;
    for (int i = 0; i < n; i++)
        for (const char *p = values[i] ? values[i] : "-"; *p; p++)
            trail = trail * 33 + (uint8_t)*p;
    return 0;
}

static void must(const char *sql) { REQUIRE(sqlite3_exec(db, sql, row, NULL, NULL) == SQLITE_OK); }

static void fill(int rows)
{
    sqlite3_stmt *s;
    uint64_t seed = 41;
    must("drop table if exists t; drop table if exists u; create table t(a integer primary key, b text, c integer, d blob); create table u(k text, v integer)");
    must("begin");
    REQUIRE(!sqlite3_prepare_v2(db, "insert into t values (?, ?, ?, ?)", -1, &s, NULL));
    for (int i = 0; i < rows; i++) {
        char text[40];
        uint64_t r = rf_random(&seed);
        snprintf(text, sizeof text, "key %u", (unsigned)(r % 500));
        sqlite3_bind_int(s, 1, i);
        sqlite3_bind_text(s, 2, text, -1, SQLITE_TRANSIENT);
        sqlite3_bind_int64(s, 3, (sqlite3_int64)(r >> 12));
        sqlite3_bind_blob(s, 4, &r, sizeof r, SQLITE_TRANSIENT);
        REQUIRE(sqlite3_step(s) == SQLITE_DONE);
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    must("insert into u select b, count(*) from t group by b");
    must("create index t_b on t(b); create index t_c on t(c); commit");
}

static void prepare(void)
{
    trail = 1;
    if (db)
        return;
    REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
    fill(AMOUNT(4000, 20));
}

WORKLOAD(insert)
{
    prepare();
    for (uint64_t round = 0; round < part(24, permille); round++)
        fill(AMOUNT(4000, 20));
    must("select count(*), sum(length(b)), max(c) from t");
    return trail;
}

WORKLOAD(join)
{
    prepare();
    for (uint64_t round = 0; round < part(90, permille); round++)
        must("select u.k, u.v, count(*), max(t.c) from u join t on t.b = u.k where t.a % 3 group by u.k order by u.v desc, u.k limit 20");
    return trail;
}

WORKLOAD(text)
{
    prepare();
    for (uint64_t round = 0; round < part(110, permille); round++)
        must("select count(*), sum(length(replace(upper(b), 'KEY', 'k' || a))), sum(b like '%7%'), sum(instr(hex(d), 'A')) from t");
    return trail;
}

WORKLOAD(update)
{
    prepare();
    for (uint64_t round = 0; round < part(40, permille); round++)
        must("begin; update t set c = c + 1, b = b || 'x' where a % 3 = 0; rollback");
    must("select count(*), sum(length(b)) from t");
    return trail;
}
