/* Numbers in strings; those that are read as long double are in a file of their own, which has x87 code. */
#define _GNU_SOURCE
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "floatscan.h"
#include "shgetc.h"

struct rf_number __rf_strtox(const char *s, char **end, int prec)
{
	FILE f;
	sh_fromstring(&f, s);
	shlim(&f, 0);
	struct rf_number number = __floatscan(&f, prec, 1);
	if (end)
		*end = (char *)s + shcnt(&f);
	return number;
}

float strtof(const char *restrict s, char **restrict end)
{
	float x;
	struct rf_number number = __rf_strtox(s, end, 0);
	memcpy(&x, &number, sizeof x);
	return x;
}

double strtod(const char *restrict s, char **restrict end)
{
	double x;
	struct rf_number number = __rf_strtox(s, end, 1);
	memcpy(&x, &number, sizeof x);
	return x;
}

float strtof_l(const char *restrict s, char **restrict end, locale_t l) { return strtof(s, end); }
double strtod_l(const char *restrict s, char **restrict end, locale_t l) { return strtod(s, end); }
weak_alias(strtof_l, __strtof_l);
weak_alias(strtod_l, __strtod_l);
