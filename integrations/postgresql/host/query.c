/* Imports: SPI, under the rights of whoever calls. What it returns stays in the call area, or in the domain's heap, until the call
 * of the module ends. */
#include "plfenced.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/portal.h"

#include "import.h"

/* Most bytes of a statement. */
#define STATEMENT_MOST (1024 * 1024)
/* Most rows that one request brings: each is copied. */
#define ROWS_MOST (16 * 1024 * 1024)

/* A prepared statement of a domain; its handle is its place in the list, from 1 on. */
struct plan {
	plf_domain *domain;
	SPIPlanPtr plan;
};
static struct plan *plans;
static int plan_count;

/* Arguments as SPI wants them. */
struct arguments {
	int count;
	Oid *types;
	Datum *values;
	char *nulls;
};

static plf_call *
connected(void)
{
	plf_call *call = plf_current_call;

	plf_caller_domain();
	if (call->spi == 0)
		ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg("a module asked for SPI without SPI_connect")));
	return call;
}

static void
get_arguments(plf_domain *d, struct arguments *a, int count, uint64 values)
{
	NullableDatum *given;

	if (count < 0 || count > FUNC_MAX_ARGS)
		ereport(ERROR, (errcode(ERRCODE_TOO_MANY_ARGUMENTS), errmsg("a statement of a module cannot have %d arguments", count)));
	given = palloc(sizeof *given * (count + 1));
	a->count = count;
	a->values = palloc(sizeof *a->values * (count + 1));
	a->nulls = palloc0(count + 1);
	plf_copy_out(d, values, given, sizeof *given * count);
	for (int i = 0; i < count; i++) {
		plf_value_type type;
		bool isnull = *(uint8 *) &given[i].isnull != 0;

		a->nulls[i] = isnull ? 'n' : ' ';
		a->values[i] = (Datum) 0;
		if (isnull)
			continue;
		plf_type_resolve(a->types[i], &type);
		plf_check_supported(&type);
		a->values[i] = plf_get_datum(d, &type, given[i].value);
	}
}

static Oid *
get_types(plf_domain *d, int count, uint64 types)
{
	Oid *copy;

	if (count < 0 || count > FUNC_MAX_ARGS)
		ereport(ERROR, (errcode(ERRCODE_TOO_MANY_ARGUMENTS), errmsg("a statement of a module cannot have %d arguments", count)));
	copy = palloc(sizeof *copy * (count + 1));
	plf_copy_out(d, types, copy, sizeof *copy * count);
	return copy;
}

/* Gives the module what SPI has brought. */
static void
put_result(plf_domain *d, uint64 to)
{
	struct plf_spi_result r = { SPI_processed, NULL, NULL };
	SPITupleTable *table = SPI_tuptable;

	if (table) {
		plf_writer w;
		uint64 *tuples = palloc(sizeof *tuples * (table->numvals + 1));

		plf_callback_writer(&w, d);
		r.tupdesc = (TupleDesc) plf_put_tupdesc(&w, table->tupdesc);
		for (uint64 i = 0; i < table->numvals; i++)
			tuples[i] = plf_put_tuple(&w, table->vals[i], table->tupdesc);
		r.processed = table->numvals;
		r.tuples = (HeapTuple *) plf_put(&w, tuples, sizeof *tuples * table->numvals);
		plf_callback_done(&w);
		pfree(tuples);
		SPI_freetuptable(table);
	}
	if (to != 0 && rf_memory_write(d->handle, (void *) to, &r, sizeof r) != RF_OK)
		plf_throw_library("SPI");
}

static long
limited(int64 limit)
{
	return limit <= 0 || limit > ROWS_MOST ? ROWS_MOST : limit;
}

GUARDED(spi_connect)
{
	int code;

	plf_caller_domain();
	code = SPI_connect();
	if (code == SPI_OK_CONNECT)
		plf_current_call->spi++;
	rf_caller_return_int(caller, code);
}

GUARDED(spi_finish)
{
	plf_call *call = plf_current_call;

	plf_caller_domain();
	if (call->spi == 0) {
		rf_caller_return_int(caller, SPI_ERROR_UNCONNECTED);
		return;
	}
	call->spi--;
	rf_caller_return_int(caller, SPI_finish());
}

void
plf_spi_leave(plf_call *call)
{
	MemoryContext before = CurrentMemoryContext;

	for (; call->spi > 0; call->spi--)
		SPI_finish();
	MemoryContextSwitchTo(before);
}

GUARDED(spi_execute)
{
	plf_domain *d = connected()->domain;
	struct plf_spi_query q;
	struct arguments a;
	char *sql;

	plf_copy_out(d, ARG(0), &q, sizeof q);
	sql = plf_copy_string(d, (uint64) q.sql, STATEMENT_MOST);
	if (!sql) {
		rf_caller_return_int(caller, SPI_ERROR_ARGUMENT);
		return;
	}
	a.types = get_types(d, q.nargs, (uint64) q.types);
	get_arguments(d, &a, q.nargs, (uint64) q.values);
	rf_caller_return_int(caller, SPI_execute_with_args(sql, a.count, a.types, a.values, a.nulls, *(uint8 *) &q.read_only != 0, limited(q.limit)));
	put_result(d, ARG(1));
}

GUARDED(spi_prepare)
{
	plf_domain *d = connected()->domain;
	char *sql = plf_copy_string(d, ARG(0), STATEMENT_MOST);
	int count = (int) ARG(1), slot;
	SPIPlanPtr plan = sql ? SPI_prepare(sql, count, get_types(d, count, ARG(2))) : NULL;

	if (!plan || SPI_keepplan(plan) != 0) {
		rf_caller_return_int(caller, 0);
		return;
	}
	for (slot = 0; slot < plan_count && plans[slot].plan; slot++)
		;
	if (slot == plan_count) {
		int larger = Max(16, plan_count * 2);

		if (larger > 65536)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("modules have prepared too many statements")));
		plans = plans ? repalloc(plans, larger * sizeof *plans) : MemoryContextAlloc(TopMemoryContext, larger * sizeof *plans);
		memset(plans + plan_count, 0, (larger - plan_count) * sizeof *plans);
		plan_count = larger;
	}
	plans[slot] = (struct plan) { d, plan };
	rf_caller_return_int(caller, slot + 1);
}

/* The plan of a handle, if it is the domain's own. */
static SPIPlanPtr
plan_of(plf_domain *d, uint64 handle)
{
	if (handle == 0 || handle > (uint64) plan_count || plans[handle - 1].domain != d || !plans[handle - 1].plan)
		ereport(ERROR, (errcode(ERRCODE_INVALID_SQL_STATEMENT_NAME), errmsg("a module used a prepared statement that it does not have")));
	return plans[handle - 1].plan;
}

static void
plan_arguments(plf_domain *d, SPIPlanPtr plan, struct arguments *a, int count, uint64 values)
{
	if (count != SPI_getargcount(plan))
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("a prepared statement with %d arguments was given %d",
			SPI_getargcount(plan), count)));
	a->types = palloc(sizeof *a->types * (count + 1));
	for (int i = 0; i < count; i++)
		a->types[i] = SPI_getargtypeid(plan, i);
	get_arguments(d, a, count, values);
}

GUARDED(spi_execute_plan)
{
	plf_domain *d = connected()->domain;
	SPIPlanPtr plan = plan_of(d, ARG(0));
	struct arguments a;

	plan_arguments(d, plan, &a, (int) ARG(2), ARG(1));
	rf_caller_return_int(caller, SPI_execute_plan(plan, a.values, a.nulls, (ARG(3) & 0xff) != 0, limited((int64) ARG(4))));
	put_result(d, ARG(5));
}

GUARDED(spi_free)
{
	plf_domain *d = plf_caller_domain();
	SPIPlanPtr plan = plan_of(d, ARG(0));

	plans[ARG(0) - 1].plan = NULL;
	SPI_freeplan(plan);
}

/* Cursors are the server's portals; a handle is the number in the portal's name. */
#define CURSOR "plfenced cursor " UINT64_FORMAT

static Portal
cursor_of(uint64 handle)
{
	char name[64];
	Portal portal;

	snprintf(name, sizeof name, CURSOR, handle);
	portal = SPI_cursor_find(name);
	if (!portal)
		ereport(ERROR, (errcode(ERRCODE_INVALID_CURSOR_NAME), errmsg("a module used a cursor that is not open")));
	return portal;
}

GUARDED(spi_cursor_open)
{
	static uint64 last;
	plf_domain *d = connected()->domain;
	SPIPlanPtr plan = plan_of(d, ARG(0));
	struct arguments a;
	char name[64];

	plan_arguments(d, plan, &a, (int) ARG(2), ARG(1));
	snprintf(name, sizeof name, CURSOR, ++last);
	SPI_cursor_open(name, plan, a.values, a.nulls, (ARG(3) & 0xff) != 0);
	rf_caller_return_int(caller, last);
}

GUARDED(spi_cursor_fetch)
{
	plf_domain *d = connected()->domain;

	SPI_cursor_fetch(cursor_of(ARG(0)), (ARG(1) & 0xff) != 0, limited((int64) ARG(2)));
	put_result(d, ARG(3));
	rf_caller_return_int(caller, SPI_OK_FETCH);
}

GUARDED(spi_cursor_close)
{
	plf_caller_domain();
	SPI_cursor_close(cursor_of(ARG(0)));
}
