/* Aggregates whose state stays inside the fence, and window functions, written as for the server itself. */
#include "postgres.h"

#include "fmgr.h"
#include "libpq/pqformat.h"
#include "utils/builtins.h"
#include "windowapi.h"

#include <limits.h>
#include <stdlib.h>

PG_MODULE_MAGIC;

/* The numbers that were seen, for their median. */
typedef struct seen {
	int count, room;
	int32 *values;
} seen;

static seen *
make_seen(MemoryContext memory, int room)
{
	seen *s = MemoryContextAlloc(memory, sizeof *s);

	s->count = 0;
	s->room = room;
	s->values = MemoryContextAlloc(memory, room * sizeof *s->values);
	return s;
}

static void
add(seen *s, int32 value)
{
	if (s->count == s->room) {
		s->room *= 2;
		s->values = repalloc(s->values, s->room * sizeof *s->values);
	}
	s->values[s->count++] = value;
}

static MemoryContext
memory_of(FunctionCallInfo fcinfo)
{
	MemoryContext memory;

	if (!AggCheckCallContext(fcinfo, &memory))
		elog(ERROR, "not called as an aggregate");
	return memory;
}

PG_FUNCTION_INFO_V1(median_add);
Datum
median_add(PG_FUNCTION_ARGS)
{
	MemoryContext memory = memory_of(fcinfo);
	seen *s = PG_ARGISNULL(0) ? make_seen(memory, 4) : (seen *) PG_GETARG_POINTER(0);

	if (!PG_ARGISNULL(1))
		add(s, PG_GETARG_INT32(1));
	PG_RETURN_POINTER(s);
}

PG_FUNCTION_INFO_V1(median_combine);
Datum
median_combine(PG_FUNCTION_ARGS)
{
	MemoryContext memory = memory_of(fcinfo);
	seen *one = PG_ARGISNULL(0) ? make_seen(memory, 4) : (seen *) PG_GETARG_POINTER(0);

	if (!PG_ARGISNULL(1)) {
		seen *other = (seen *) PG_GETARG_POINTER(1);

		for (int i = 0; i < other->count; i++)
			add(one, other->values[i]);
	}
	PG_RETURN_POINTER(one);
}

PG_FUNCTION_INFO_V1(median_out);
Datum
median_out(PG_FUNCTION_ARGS)
{
	seen *s = (seen *) PG_GETARG_POINTER(0);
	bytea *bytes = palloc(VARHDRSZ + s->count * sizeof *s->values);

	memory_of(fcinfo);
	SET_VARSIZE(bytes, VARHDRSZ + s->count * sizeof *s->values);
	memcpy(VARDATA(bytes), s->values, s->count * sizeof *s->values);
	PG_RETURN_BYTEA_P(bytes);
}

PG_FUNCTION_INFO_V1(median_in);
Datum
median_in(PG_FUNCTION_ARGS)
{
	bytea *bytes = PG_GETARG_BYTEA_PP(0);
	int count = VARSIZE_ANY_EXHDR(bytes) / sizeof(int32);
	seen *s = make_seen(memory_of(fcinfo), Max(count, 1));

	memcpy(s->values, VARDATA_ANY(bytes), count * sizeof *s->values);
	s->count = count;
	PG_RETURN_POINTER(s);
}

static int
order(const void *a, const void *b)
{
	int32 x = *(const int32 *) a, y = *(const int32 *) b;

	return x < y ? -1 : x > y;
}

PG_FUNCTION_INFO_V1(median_end);
Datum
median_end(PG_FUNCTION_ARGS)
{
	seen *s = PG_ARGISNULL(0) ? NULL : (seen *) PG_GETARG_POINTER(0);

	memory_of(fcinfo);
	if (!s || s->count == 0)
		PG_RETURN_NULL();
	qsort(s->values, s->count, sizeof *s->values, order);
	PG_RETURN_INT32(s->values[(s->count - 1) / 2]);
}

/* What it says of who calls it: 0 for nobody, 1 for an aggregate, 2 for one over a window. */
PG_FUNCTION_INFO_V1(called_by);
Datum
called_by(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(AggCheckCallContext(fcinfo, NULL));
}

/* A state that is no memory of its own, for its final function to read. */
PG_FUNCTION_INFO_V1(wild_add);
Datum
wild_add(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER((void *) 0x10);
}

/* The value of so many rows before, as lag(). */
PG_FUNCTION_INFO_V1(ago);
Datum
ago(PG_FUNCTION_ARGS)
{
	WindowObject w = PG_WINDOW_OBJECT();
	bool isnull, isout;
	int32 rows = DatumGetInt32(WinGetFuncArgCurrent(w, 1, &isnull));
	Datum value;

	if (isnull)
		PG_RETURN_NULL();
	value = WinGetFuncArgInPartition(w, 0, -rows, WINDOW_SEEK_CURRENT, false, &isnull, &isout);
	if (isnull || isout)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(value);
}

/* dense_rank() */
PG_FUNCTION_INFO_V1(dense);
Datum
dense(PG_FUNCTION_ARGS)
{
	WindowObject w = PG_WINDOW_OBJECT();
	int64 *rank = WinGetPartitionLocalMemory(w, sizeof *rank), at = WinGetCurrentPosition(w);

	if (at == 0 || !WinRowsArePeers(w, at - 1, at))
		++*rank;
	WinSetMarkPosition(w, at);
	PG_RETURN_INT64(*rank);
}

/* percent_rank() of row numbers */
PG_FUNCTION_INFO_V1(part);
Datum
part(PG_FUNCTION_ARGS)
{
	WindowObject w = PG_WINDOW_OBJECT();
	int64 rows = WinGetPartitionRowCount(w);

	PG_RETURN_FLOAT8(rows <= 1 ? 0 : (double) WinGetCurrentPosition(w) / (rows - 1));
}

/* last_value() */
PG_FUNCTION_INFO_V1(last_of_frame);
Datum
last_of_frame(PG_FUNCTION_ARGS)
{
	bool isnull;
	Datum value = WinGetFuncArgInFrame(PG_WINDOW_OBJECT(), 0, 0, WINDOW_SEEK_TAIL, true, &isnull, NULL);

	if (isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(value);
}

/* What a window function must not ask. */
PG_FUNCTION_INFO_V1(ask);
Datum
ask(PG_FUNCTION_ARGS)
{
	WindowObject w = PG_WINDOW_OBJECT();
	bool isnull, isout;

	switch (DatumGetInt32(WinGetFuncArgCurrent(w, 0, &isnull))) {
	case 0:
		WinGetFuncArgCurrent(w, 7, &isnull);
		break;
	case 1:
		WinGetFuncArgInPartition(w, 0, 0, 99, false, &isnull, &isout);
		break;
	case 2:
		WinSetMarkPosition(w, INT64CONST(1) << 40);
		break;
	case 3:
		WinRowsArePeers(w, -5, INT64CONST(1) << 40);
		break;
	case 4:
		WinGetFuncArgInFrame(w, 0, INT_MIN, WINDOW_SEEK_TAIL, true, &isnull, &isout);
		break;
	case 5:
		*(volatile int *) 8 = 1;
	}
	PG_RETURN_INT32(0);
}
