/* Functions of every shape that the regression tests call. */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

PG_MODULE_MAGIC;

/* Plain C functions: their parameters are the SQL function's. */
int plain_inc(int x) { return x + 1; }
double plain_fma(double x, double y) { return x * y + 1; }
float plain_half(float x) { return x / 2; }
bool plain_not(bool x) { return !x; }
long plain_sum6(long a, short b, int c, long d, signed char e, int f) { return a + b + c + d + e + f; }

PG_FUNCTION_INFO_V1(inc);
Datum inc(PG_FUNCTION_ARGS) { PG_RETURN_INT32(PG_GETARG_INT32(0) + 1); }

PG_FUNCTION_INFO_V1(fma_v1);
Datum fma_v1(PG_FUNCTION_ARGS) { PG_RETURN_FLOAT8(PG_GETARG_FLOAT8(0) * PG_GETARG_FLOAT8(1) + 1); }

PG_FUNCTION_INFO_V1(either);
Datum
either(PG_FUNCTION_ARGS)
{
	int i;

	for (i = 0; i < PG_NARGS(); i++)
		if (!PG_ARGISNULL(i))
			PG_RETURN_INT64(PG_GETARG_INT64(i));
	PG_RETURN_NULL();
}

PG_FUNCTION_INFO_V1(upper_ascii);
Datum
upper_ascii(PG_FUNCTION_ARGS)
{
	text *t = PG_GETARG_TEXT_PP(0);
	int n = VARSIZE_ANY_EXHDR(t), i;
	text *r = palloc(n + VARHDRSZ);

	SET_VARSIZE(r, n + VARHDRSZ);
	for (i = 0; i < n; i++) {
		char c = VARDATA_ANY(t)[i];

		VARDATA(r)[i] = c >= 'a' && c <= 'z' ? c - 32 : c;
	}
	PG_RETURN_TEXT_P(r);
}

PG_FUNCTION_INFO_V1(repeat_text);
Datum
repeat_text(PG_FUNCTION_ARGS)
{
	int n = PG_GETARG_INT32(0);
	text *r = palloc(n + VARHDRSZ);

	SET_VARSIZE(r, n + VARHDRSZ);
	memset(VARDATA(r), 'x', n);
	PG_RETURN_TEXT_P(r);
}

PG_FUNCTION_INFO_V1(sum_array);
Datum
sum_array(PG_FUNCTION_ARGS)
{
	ArrayType *a = PG_GETARG_ARRAYTYPE_P(0);
	int64 sum = 0;
	int i, n = ArrayGetNItems(ARR_NDIM(a), ARR_DIMS(a));

	for (i = 0; i < n; i++)
		sum += ((int32 *) ARR_DATA_PTR(a))[i];
	PG_RETURN_INT64(sum);
}

PG_FUNCTION_INFO_V1(make_array);
Datum
make_array(PG_FUNCTION_ARGS)
{
	int n = PG_GETARG_INT32(0), i;
	Datum *d = palloc(sizeof *d * n);

	for (i = 0; i < n; i++)
		d[i] = Int32GetDatum(i * i);
	PG_RETURN_ARRAYTYPE_P(construct_array(d, n, INT4OID, 4, true, TYPALIGN_INT));
}

PG_FUNCTION_INFO_V1(counter);
Datum
counter(PG_FUNCTION_ARGS)
{
	static int64 n;

	PG_RETURN_INT64(++n);
}

PG_FUNCTION_INFO_V1(complain);
Datum
complain(PG_FUNCTION_ARGS)
{
	ereport(NOTICE, (errmsg("about to complain")));
	ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION), errmsg("complained of %d", PG_GETARG_INT32(0)), errdetail("in detail"),
		errhint("do not complain")));
}

PG_FUNCTION_INFO_V1(crash);
Datum
crash(PG_FUNCTION_ARGS)
{
	*(volatile int *) PG_GETARG_INT64(0) = 1;
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(spin);
Datum
spin(PG_FUNCTION_ARGS)
{
	for (;;)
		__asm__ volatile("");
}

static int
deeper(volatile int *n)
{
	volatile int m = *n + 1;

	return deeper(&m) + m;
}

PG_FUNCTION_INFO_V1(recurse);
Datum
recurse(PG_FUNCTION_ARGS)
{
	volatile int n = 0;

	PG_RETURN_INT32(deeper(&n));
}

PG_FUNCTION_INFO_V1(eat);
Datum
eat(PG_FUNCTION_ARGS)
{
	for (;;)
		memset(MemoryContextAlloc(TopMemoryContext, 1 << 20), 1, 1 << 20);
}

/* Values that the server must not believe. */
PG_FUNCTION_INFO_V1(wrong);
Datum
wrong(PG_FUNCTION_ARGS)
{
	char *p = palloc0(64);

	switch (PG_GETARG_INT32(0)) {
	case 0:
		PG_RETURN_DATUM(0);
	case 1:
		PG_RETURN_DATUM(0x7fffffffffff0);
	case 2: /* a length of 1 GB */
		SET_VARSIZE(p, 0x3fffffff);
		break;
	case 3: /* shorter than its header */
		*(uint32 *) p = 2 << 2;
		break;
	case 4: /* compressed */
		*(uint32 *) p = (20 << 2) | 2;
		break;
	case 5: /* elsewhere */
		p[0] = 1;
		p[1] = 18;
		break;
	default: /* no UTF-8 */
		SET_VARSIZE(p, VARHDRSZ + 2);
		p[4] = (char) 0xff;
		p[5] = (char) 0xfe;
	}
	PG_RETURN_POINTER(p);
}

void plain_block(void) {}

/* For each element of arrays. */
int plain_divide(int a, int b) { return a / b; }
int plain_forever(int x) { for (volatile int i = 0;;) i = x; }

int
plain_positive(int x)
{
	if (x < 0)
		ereport(ERROR, (errcode(ERRCODE_CHECK_VIOLATION), errmsg("%d is negative", x)));
	return x;
}

/* Counts in what PostgreSQL keeps for each place in a query that calls a function. */
PG_FUNCTION_INFO_V1(remember);
Datum
remember(PG_FUNCTION_ARGS)
{
	int64 **n = (int64 **) &fcinfo->flinfo->fn_extra;

	if (!*n)
		*n = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof **n);
	PG_RETURN_INT64(++**n);
}

/* The loop that such functions do without. */
PG_FUNCTION_INFO_V1(inc_array);
Datum
inc_array(PG_FUNCTION_ARGS)
{
	ArrayType *a = PG_GETARG_ARRAYTYPE_P(0), *r = palloc(VARSIZE(a));
	int i, n = ArrayGetNItems(ARR_NDIM(a), ARR_DIMS(a));

	memcpy(r, a, VARSIZE(a));
	for (i = 0; i < n; i++)
		((int32 *) ARR_DATA_PTR(r))[i]++;
	PG_RETURN_ARRAYTYPE_P(r);
}
