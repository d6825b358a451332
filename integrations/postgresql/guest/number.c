/* Numbers from and to text. Floats are written by the server, which knows extra_float_digits and the shortest form. */
#include "guest.h"

#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/fmgroids.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void refuse_syntax(const char *type, const char *text)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION), errmsg("invalid input syntax for type %s: \"%s\"", type, text)));
}

static void refuse_range(const char *type, const char *text)
{
	ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("value \"%s\" is out of range for type %s", text, type)));
}

/* --------------------------------------------------------------------------------------------------------- integers */

static int64 parse_integer(const char *text, int64 lowest, int64 highest, const char *type)
{
	const char *p = text;
	uint64 value = 0, limit;
	bool negative = false, overflow = false;

	while (isspace((unsigned char) *p))
		p++;
	if (*p == '-' || *p == '+')
		negative = *p++ == '-';
	if (!isdigit((unsigned char) *p))
		refuse_syntax(type, text);
	limit = negative ? -(uint64) lowest : (uint64) highest;
	for (; isdigit((unsigned char) *p); p++) {
		unsigned digit = (unsigned) (*p - '0');

		overflow = overflow || value > (limit - digit) / 10;
		value = value * 10 + digit;
	}
	while (isspace((unsigned char) *p))
		p++;
	if (overflow)
		refuse_range(type, text);
	if (*p != '\0')
		refuse_syntax(type, text);
	return (int64) (negative ? -value : value);
}

int16 pg_strtoint16(const char *text)
{
	return (int16) parse_integer(text, PG_INT16_MIN, PG_INT16_MAX, "smallint");
}

int32 pg_strtoint32(const char *text)
{
	return (int32) parse_integer(text, PG_INT32_MIN, PG_INT32_MAX, "integer");
}

int64 pg_strtoint64(const char *text)
{
	return parse_integer(text, PG_INT64_MIN, PG_INT64_MAX, "bigint");
}

int pg_ulltoa_n(uint64 value, char *into)
{
	char digits[20];
	int count = 0;

	do {
		digits[count++] = (char) ('0' + value % 10);
		value /= 10;
	} while (value != 0);
	for (int i = 0; i < count; i++)
		into[i] = digits[count - 1 - i];
	return count;
}

int pg_ultoa_n(uint32 value, char *into)
{
	return pg_ulltoa_n(value, into);
}

int pg_lltoa(int64 value, char *into)
{
	int length = 0;

	if (value < 0)
		into[length++] = '-';
	length += pg_ulltoa_n(value < 0 ? -(uint64) value : (uint64) value, into + length);
	into[length] = '\0';
	return length;
}

int pg_ltoa(int32 value, char *into)
{
	return pg_lltoa(value, into);
}

int pg_itoa(int16 value, char *into)
{
	return pg_lltoa(value, into);
}

char *pg_ultostr(char *into, uint32 value)
{
	return into + pg_ultoa_n(value, into);
}

char *pg_ultostr_zeropad(char *into, uint32 value, int32 width)
{
	char digits[20];
	int count = pg_ultoa_n(value, digits), pad = Max(width - count, 0);

	memset(into, '0', pad);
	memcpy(into + pad, digits, count);
	return into + pad + count;
}

/* ----------------------------------------------------------------------------------------------------------- floats */

int extra_float_digits = 1;

void float_overflow_error(void)
{
	ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("value out of range: overflow")));
}

void float_underflow_error(void)
{
	ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("value out of range: underflow")));
}

void float_zero_divide_error(void)
{
	ereport(ERROR, (errcode(ERRCODE_DIVISION_BY_ZERO), errmsg("division by zero")));
}

int is_infinite(double value)
{
	return isinf(value) ? (signbit(value) ? -1 : 1) : 0;
}

int float4_cmp_internal(float4 a, float4 b)
{
	return float4_gt(a, b) ? 1 : float4_lt(a, b) ? -1 : 0;
}

int float8_cmp_internal(float8 a, float8 b)
{
	return float8_gt(a, b) ? 1 : float8_lt(a, b) ? -1 : 0;
}

static double parse_float(char *text, char **end, const char *type, const char *original, bool single, bool *failed)
{
	double value;
	char *after;

	while (isspace((unsigned char) *text))
		text++;
	errno = 0;
	value = single ? strtof(text, &after) : strtod(text, &after);
	if (after == text) {
		if (failed != NULL)
			return *failed = true, 0;
		refuse_syntax(type, original);
	}
	/* Denormal results may set ERANGE as well; they are no errors. */
	if (errno == ERANGE && (value == 0 || isinf(value))) {
		if (failed != NULL)
			return *failed = true, 0;
		ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
		                errmsg("\"%.*s\" is out of range for type %s", single ? (int) strlen(original) : (int) (after - text),
		                       single ? original : text, single ? "real" : "double precision")));
	}
	while (isspace((unsigned char) *after))
		after++;
	if (end != NULL) {
		*end = after;
	} else if (*after != '\0') {
		if (failed != NULL)
			return *failed = true, 0;
		refuse_syntax(type, original);
	}
	return value;
}

double float8in_internal(char *text, char **end, const char *type, const char *original)
{
	return parse_float(text, end, type, original, false, NULL);
}

double float8in_internal_opt_error(char *text, char **end, const char *type, const char *original, bool *failed)
{
	return parse_float(text, end, type, original, false, failed);
}

Datum float8in(PG_FUNCTION_ARGS)
{
	char *text = PG_GETARG_CSTRING(0);

	PG_RETURN_FLOAT8(parse_float(text, NULL, "double precision", text, false, NULL));
}

Datum float4in(PG_FUNCTION_ARGS)
{
	char *text = PG_GETARG_CSTRING(0);

	PG_RETURN_FLOAT4((float4) parse_float(text, NULL, "real", text, true, NULL));
}

char *float8out_internal(double value)
{
	NullableDatum argument = {Float8GetDatum(value), false};
	bool null;

	return DatumGetCString(plf_server_function(F_FLOAT8OUT, InvalidOid, 1, &argument, &null));
}
