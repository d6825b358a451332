/* Strings that grow. */
#include "guest.h"

#include "lib/stringinfo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void initStringInfo(StringInfo string)
{
	string->maxlen = 1024;
	string->data = palloc(string->maxlen);
	resetStringInfo(string);
}

StringInfo makeStringInfo(void)
{
	StringInfo string = palloc(sizeof *string);

	initStringInfo(string);
	return string;
}

void resetStringInfo(StringInfo string)
{
	string->data[0] = '\0';
	string->len = 0;
	string->cursor = 0;
}

void enlargeStringInfo(StringInfo string, int needed)
{
	Size size;

	if (needed < 0)
		elog(ERROR, "invalid string enlargement request size: %d", needed);
	if ((Size) needed >= MaxAllocSize - (Size) string->len)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("out of memory"),
		                errdetail("Cannot enlarge string buffer containing %d bytes by %d more bytes.", string->len, needed)));
	needed += string->len + 1;
	if (needed <= string->maxlen)
		return;
	for (size = 2 * (Size) string->maxlen; size < (Size) needed;)
		size *= 2;
	size = Min(size, MaxAllocSize);
	string->data = repalloc(string->data, size);
	string->maxlen = (int) size;
}

int appendStringInfoVA(StringInfo string, const char *format, va_list list)
{
	int room = string->maxlen - string->len, length;

	if (room < 16)
		return 32;
	length = vsnprintf(string->data + string->len, room, format, list);
	if (length < 0)
		elog(ERROR, "vsnprintf failed: %m with format string \"%s\"", format);
	if (length < room) {
		string->len += length;
		return 0;
	}
	string->data[string->len] = '\0';
	if (length >= (int) MaxAllocSize - 1)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("out of memory")));
	return length + 1;
}

void appendStringInfo(StringInfo string, const char *format, ...)
{
	int saved = errno, needed;

	for (;;) {
		va_list list;

		errno = saved;
		va_start(list, format);
		needed = appendStringInfoVA(string, format, list);
		va_end(list);
		if (needed == 0)
			return;
		enlargeStringInfo(string, needed);
	}
}

void appendBinaryStringInfoNT(StringInfo string, const char *data, int length)
{
	enlargeStringInfo(string, length);
	memcpy(string->data + string->len, data, length);
	string->len += length;
}

void appendBinaryStringInfo(StringInfo string, const char *data, int length)
{
	appendBinaryStringInfoNT(string, data, length);
	string->data[string->len] = '\0';
}

void appendStringInfoString(StringInfo string, const char *text)
{
	appendBinaryStringInfo(string, text, (int) strlen(text));
}

void appendStringInfoChar(StringInfo string, char c)
{
	appendBinaryStringInfo(string, &c, 1);
}

void appendStringInfoSpaces(StringInfo string, int count)
{
	if (count <= 0)
		return;
	enlargeStringInfo(string, count);
	memset(string->data + string->len, ' ', count);
	string->len += count;
	string->data[string->len] = '\0';
}
