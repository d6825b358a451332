/* pg_snprintf and its like: those of the libc. */
#include "guest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#undef vsnprintf
#undef snprintf
#undef vsprintf
#undef sprintf
#undef vfprintf
#undef fprintf
#undef vprintf
#undef printf

int pg_vsnprintf(char *into, size_t room, const char *format, va_list list)
{
	return vsnprintf(into, room, format, list);
}

int pg_snprintf(char *into, size_t room, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(into, room, format, list);
	va_end(list);
	return length;
}

int pg_vsprintf(char *into, const char *format, va_list list)
{
	return vsprintf(into, format, list);
}

int pg_sprintf(char *into, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsprintf(into, format, list);
	va_end(list);
	return length;
}

int pg_strfromd(char *into, size_t room, int precision, double value)
{
	return snprintf(into, room, "%.*g", Max(precision, 1), value);
}

char *psprintf(const char *format, ...)
{
	int saved = errno;
	size_t room = 128;

	for (;;) {
		char *result = palloc(room);
		va_list list;
		size_t needed;

		errno = saved;
		va_start(list, format);
		needed = pvsnprintf(result, room, format, list);
		va_end(list);
		if (needed < room)
			return result;
		pfree(result);
		room = needed;
	}
}

size_t pvsnprintf(char *into, size_t room, const char *format, va_list list)
{
	int length = vsnprintf(into, room, format, list);

	if (length < 0)
		elog(ERROR, "vsnprintf failed: %m with format string \"%s\"", format);
	if ((size_t) length >= MaxAllocSize - 1)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("out of memory")));
	return (size_t) length < room ? (size_t) length : (size_t) length + 1;
}
