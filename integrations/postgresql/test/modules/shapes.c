/* Sets, rows, triggers and queries, written as for the server itself. */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(series);
Datum
series(PG_FUNCTION_ARGS)
{
	FuncCallContext *c;

	if (SRF_IS_FIRSTCALL()) {
		c = SRF_FIRSTCALL_INIT();
		c->max_calls = PG_GETARG_INT32(0);
	}
	c = SRF_PERCALL_SETUP();
	if (c->call_cntr < c->max_calls) {
		int32 n = (int32) c->call_cntr * 10; /* the macro counts first */

		SRF_RETURN_NEXT(c, Int32GetDatum(n));
	}
	SRF_RETURN_DONE(c);
}

/* (n int, word text), by materialising. */
PG_FUNCTION_INFO_V1(words);
Datum
words(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *r = (ReturnSetInfo *) fcinfo->resultinfo;
	int n = PG_GETARG_INT32(0), i;

	InitMaterializedSRF(fcinfo, 0);
	for (i = 0; i < n; i++) {
		Datum values[2] = {Int32GetDatum(i), CStringGetTextDatum(psprintf("word %d", i))};
		bool nulls[2] = {false, i % 2 == 1};

		tuplestore_putvalues(r->setResult, r->setDesc, values, nulls);
	}
	return (Datum) 0;
}

PG_FUNCTION_INFO_V1(swap);
Datum
swap(PG_FUNCTION_ARGS)
{
	HeapTupleHeader row = PG_GETARG_HEAPTUPLEHEADER(0);
	TupleDesc desc;
	Datum values[2];
	bool nulls[2];

	values[0] = GetAttributeByName(row, "b", &nulls[0]);
	values[1] = GetAttributeByNum(row, 1, &nulls[1]);
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "no row is wanted");
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls)));
}

/* Puts the trigger's argument in front of column "word"; drops rows without one. */
PG_FUNCTION_INFO_V1(prefix);
Datum
prefix(PG_FUNCTION_ARGS)
{
	TriggerData *t = (TriggerData *) fcinfo->context;
	HeapTuple row;
	TupleDesc desc;
	int column;
	char *word;
	Datum value;
	bool isnull = false;

	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "not called as a trigger");
	desc = t->tg_relation->rd_att;
	row = TRIGGER_FIRED_BY_UPDATE(t->tg_event) ? t->tg_newtuple : t->tg_trigtuple;
	column = SPI_fnumber(desc, "word");
	word = SPI_getvalue(row, desc, column);
	if (!word)
		return PointerGetDatum(NULL);
	value = CStringGetTextDatum(psprintf("%s%s", t->tg_trigger->tgargs[0], word));
	return PointerGetDatum(heap_modify_tuple_by_cols(row, desc, 1, &column, &value, &isnull));
}

PG_FUNCTION_INFO_V1(count_rows);
Datum
count_rows(PG_FUNCTION_ARGS)
{
	char *sql = text_to_cstring(PG_GETARG_TEXT_PP(0));
	int64 n;

	SPI_connect();
	if (SPI_execute(sql, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "no SELECT");
	n = (int64) SPI_processed;
	SPI_finish();
	PG_RETURN_INT64(n);
}

PG_FUNCTION_INFO_V1(first_text);
Datum
first_text(PG_FUNCTION_ARGS)
{
	char *sql = text_to_cstring(PG_GETARG_TEXT_PP(0)), *value;
	text *result;

	SPI_connect();
	SPI_execute(sql, true, 1);
	value = SPI_processed > 0 ? SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1) : NULL;
	result = value ? cstring_to_text(value) : NULL;
	SPI_finish();
	if (!result)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(result);
}

/* An aggregate's transition. */
PG_FUNCTION_INFO_V1(add_pair);
Datum
add_pair(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(PG_GETARG_INT64(0) + PG_GETARG_INT32(1));
}

/* Puts two sums of parts together. */
PG_FUNCTION_INFO_V1(add_long);
Datum
add_long(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(PG_GETARG_INT64(0) + PG_GETARG_INT64(1));
}

/* A trigger that fails for rows with n = 13. */
PG_FUNCTION_INFO_V1(fail_late);
Datum
fail_late(PG_FUNCTION_ARGS)
{
	TriggerData *t = (TriggerData *) fcinfo->context;
	bool isnull;

	if (DatumGetInt32(SPI_getbinval(t->tg_trigtuple, t->tg_relation->rd_att, 1, &isnull)) == 13)
		*(volatile int *) 8 = 1;
	return PointerGetDatum(NULL);
}

/* No number for 13. */
PG_FUNCTION_INFO_V1(no_number);
Datum
no_number(PG_FUNCTION_ARGS)
{
	int32 n = PG_GETARG_INT32(0);

	PG_RETURN_FLOAT8(n == 13 ? __builtin_nan("") : n);
}

/* Its argument, but for 13. */
PG_FUNCTION_INFO_V1(picky);
Datum
picky(PG_FUNCTION_ARGS)
{
	if (PG_GETARG_INT32(0) == 13)
		*(volatile int *) 8 = 1;
	PG_RETURN_INT32(PG_GETARG_INT32(0));
}

/* No UTF-8. */
PG_FUNCTION_INFO_V1(broken_text);
Datum
broken_text(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text("a\xc3("));
}

/* An order that is none. */
PG_FUNCTION_INFO_V1(odd_order);
Datum
odd_order(PG_FUNCTION_ARGS)
{
	static unsigned state = 1;

	state = state * 1664525 + 1013904223;
	PG_RETURN_INT32((int) (state >> 30) - 1);
}
