/* Numbers in strings, read as long double. */
#define _GNU_SOURCE
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "floatscan.h"

long double strtold(const char *restrict s, char **restrict end)
{
	long double x = 0;
	struct rf_number number = __rf_strtox(s, end, 2);
	memcpy(&x, &number, 10);
	return x;
}

long double strtold_l(const char *restrict s, char **restrict end, locale_t l) { return strtold(s, end); }
weak_alias(strtold_l, __strtold_l);
