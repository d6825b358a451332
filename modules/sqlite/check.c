/* A database file through the C interface: 50,000 rows, indexes, joins, rollback, a corrupted file, a full database. */
#include "rfcheck.h"
#include <sqlite3.h>
#include <unistd.h>

static sqlite3 *db;

static int print(void *u, int n, char **values, char **names)
{
	(void)u, (void)names;
	for (int i = 0; i < n; i++)
		printf("%s%s", values[i] ? values[i] : "NULL", i + 1 < n ? "|" : "\n");
	return 0;
}

static void run(const char *sql)
{
	char *message = NULL;
	int r = sqlite3_exec(db, sql, print, NULL, &message);
	if (r)
		printf("%d: %s\n", r, message);
	sqlite3_free(message);
}

static int quiet(void *u, int n, char **values, char **names)
{
	(void)u, (void)n, (void)values, (void)names;
	return 0;
}

static void must(const char *sql) { RF_REQUIRE(!sqlite3_exec(db, sql, quiet, NULL, NULL)); }

static void fill(int rows)
{
	sqlite3_stmt *s;
	uint64_t seed = 41;
	must("create table t(a integer primary key, b text, c real, d blob); create table u(k text, v integer)");
	must("begin");
	RF_REQUIRE(!sqlite3_prepare_v2(db, "insert into t values (?, ?, ?, ?)", -1, &s, NULL));
	for (int i = 0; i < rows; i++) {
		char text[40];
		uint64_t r = rf_random(&seed);
		snprintf(text, sizeof text, "key %u", (unsigned)(r % 5000));
		sqlite3_bind_int(s, 1, i);
		sqlite3_bind_text(s, 2, text, -1, SQLITE_TRANSIENT);
		sqlite3_bind_double(s, 3, (double)(r >> 12) / 1e6);
		sqlite3_bind_blob(s, 4, &r, sizeof r, SQLITE_TRANSIENT);
		RF_REQUIRE(sqlite3_step(s) == SQLITE_DONE);
		sqlite3_reset(s);
	}
	sqlite3_finalize(s);
	must("insert into u select b, count(*) from t group by b");
	must("create index t_b on t(b); create index t_c on t(c)");
	must("commit");
}

static const char join[] = "select count(*), sum(t.c), max(u.v) from t join u on t.b = u.k where t.c > 100 and u.v % 2 = 0";
static const char scan[] = "select b, avg(c), group_concat(a) from (select * from t where a % 7 = 3 and b like '%9%') group by b order by 2 limit 5";

int main(int argc, char **argv)
{
	(void)argv;
	unlink("check.db");
	RF_REQUIRE(!sqlite3_open(argc > 1 ? ":memory:" : "check.db", &db));
	must("pragma synchronous = off");
	if (argc > 1) {
		RF_BENCH("fill", 3, must("drop table if exists t; drop table if exists u"); fill(50000));
		RF_BENCH("join", 5, must(join));
		RF_BENCH("scan", 5, must(scan));
		RF_BENCH("update", 3, must("begin; update t set c = c + 1, b = b || 'x' where a % 3 = 0; rollback"));
		sqlite3_close(db);
		return 0;
	}
	printf("SQLite %s\n", sqlite3_libversion());
	fill(50000);
	run(join);
	run(scan);
	run("begin; delete from t where a > 100; select count(*) from t; rollback; select count(*) from t");
	run("pragma integrity_check; pragma page_count; select sum(pgsize) from dbstat where name = 't_b'");
	run("update t set b = upper(b) where a between 1000 and 2000; select count(*), changes() from t where b glob 'KEY*'");
	sqlite3_close(db);

	FILE *f = fopen("check.db", "r+b");
	RF_REQUIRE(f);
	unsigned char page[4096];
	memset(page, 0xA5, sizeof page);
	fseek(f, 4096 * 60, SEEK_SET);
	fwrite(page, 1, sizeof page, f);
	fclose(f);
	RF_REQUIRE(!sqlite3_open("check.db", &db));
	run("pragma integrity_check(3)");
	run("select sum(length(b)) from t");
	sqlite3_close(db);

	RF_REQUIRE(!sqlite3_open(":memory:", &db));
	run("pragma max_page_count = 300; create table big(x); with recursive n(i) as (select 1 union all select i + 1 from n) insert into big select zeroblob(10000) from n");
	sqlite3_close(db);
	RF_REQUIRE(sqlite3_open_v2("no/such/dir.db", &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_CANTOPEN);
	sqlite3_close(db);
	return 0;
}
