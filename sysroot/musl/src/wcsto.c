/* Numbers in strings of wide characters. */
#include <string.h>
#include <wchar.h>

#include "floatscan.h"

float wcstof(const wchar_t *restrict s, wchar_t **restrict end)
{
	float x;
	struct rf_number number = __rf_wcstox(s, end, 0);
	memcpy(&x, &number, sizeof x);
	return x;
}

double wcstod(const wchar_t *restrict s, wchar_t **restrict end)
{
	double x;
	struct rf_number number = __rf_wcstox(s, end, 1);
	memcpy(&x, &number, sizeof x);
	return x;
}
