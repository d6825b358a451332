/* Functions that `bench.py` measures in every language. */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(gcd);
Datum
gcd(PG_FUNCTION_ARGS)
{
	int64 a = PG_GETARG_INT64(0), b = PG_GETARG_INT64(1);

	while (b != 0) {
		int64 rest = a % b;

		a = b;
		b = rest;
	}
	PG_RETURN_INT64(a);
}

PG_FUNCTION_INFO_V1(collatz);
Datum
collatz(PG_FUNCTION_ARGS)
{
	int64 n = PG_GETARG_INT64(0);
	int32 steps = 0;

	for (; n > 1; steps++)
		n = n % 2 ? 3 * n + 1 : n / 2;
	PG_RETURN_INT32(steps);
}

/* Whether the last of 13 digits checks the others (EAN-13, ISBN). */
PG_FUNCTION_INFO_V1(checked);
Datum
checked(PG_FUNCTION_ARGS)
{
	text *t = PG_GETARG_TEXT_PP(0);
	const char *digits = VARDATA_ANY(t);
	int sum = 0;

	if (VARSIZE_ANY_EXHDR(t) != 13)
		PG_RETURN_BOOL(false);
	for (int i = 0; i < 13; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			PG_RETURN_BOOL(false);
		sum += (digits[i] - '0') * (i % 2 ? 3 : 1);
	}
	PG_RETURN_BOOL(sum % 10 == 0);
}

/* Number of words, between blanks. */
PG_FUNCTION_INFO_V1(words);
Datum
words(PG_FUNCTION_ARGS)
{
	text *t = PG_GETARG_TEXT_PP(0);
	const char *s = VARDATA_ANY(t);
	int n = VARSIZE_ANY_EXHDR(t), count = 0;
	bool inside = false;

	for (int i = 0; i < n; i++) {
		bool blank = s[i] == ' ';

		count += inside && blank;
		inside = !blank;
	}
	PG_RETURN_INT32(count + inside);
}

/* Fowler, Noll and Vo's hash (1a, 64 bits). */
PG_FUNCTION_INFO_V1(fnv);
Datum
fnv(PG_FUNCTION_ARGS)
{
	text *t = PG_GETARG_TEXT_PP(0);
	const unsigned char *s = (const unsigned char *) VARDATA_ANY(t);
	int n = VARSIZE_ANY_EXHDR(t);
	uint64 h = UINT64CONST(0xcbf29ce484222325);

	for (int i = 0; i < n; i++)
		h = (h ^ s[i]) * UINT64CONST(0x100000001b3);
	PG_RETURN_INT64((int64) h);
}
