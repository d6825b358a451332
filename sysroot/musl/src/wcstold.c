/* Numbers in strings of wide characters, read as long double. */
#include <string.h>
#include <wchar.h>

#include "floatscan.h"

long double wcstold(const wchar_t *restrict s, wchar_t **restrict end)
{
	long double x = 0;
	struct rf_number number = __rf_wcstox(s, end, 2);
	memcpy(&x, &number, 10);
	return x;
}
