/* Helpers for strings and sorting that the server's port library has. */
#include "guest.h"

#include "parser/scansup.h"
#include "utils/builtins.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

unsigned char pg_toupper(unsigned char c)
{
	return (unsigned char) toupper(c);
}

unsigned char pg_tolower(unsigned char c)
{
	return (unsigned char) tolower(c);
}

unsigned char pg_ascii_toupper(unsigned char c)
{
	return c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
}

unsigned char pg_ascii_tolower(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

int pg_strncasecmp(const char *a, const char *b, size_t n)
{
	for (; n > 0; a++, b++, n--) {
		unsigned char x = pg_tolower((unsigned char) *a), y = pg_tolower((unsigned char) *b);

		if (x != y || x == '\0')
			return (int) x - (int) y;
	}
	return 0;
}

int pg_strcasecmp(const char *a, const char *b)
{
	return pg_strncasecmp(a, b, SIZE_MAX);
}

bool scanner_isspace(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
}

char *downcase_identifier(const char *identifier, int length, bool warn, bool truncate)
{
	char *result = palloc((Size) length + 1);
	bool single = plf_area->encoding_length == 1;

	for (int i = 0; i < length; i++) {
		unsigned char c = (unsigned char) identifier[i];

		result[i] = (char) (c >= 0x80 && single ? tolower(c) : pg_ascii_tolower(c));
	}
	result[length] = '\0';
	if (truncate)
		truncate_identifier(result, length, warn);
	return result;
}

char *downcase_truncate_identifier(const char *identifier, int length, bool warn)
{
	return downcase_identifier(identifier, length, warn, true);
}

char *asc_tolower(const char *text, size_t length)
{
	char *result = pnstrdup(text, length);

	for (char *p = result; *p != '\0'; p++)
		*p = (char) pg_ascii_tolower((unsigned char) *p);
	return result;
}

char *asc_toupper(const char *text, size_t length)
{
	char *result = pnstrdup(text, length);

	for (char *p = result; *p != '\0'; p++)
		*p = (char) pg_ascii_toupper((unsigned char) *p);
	return result;
}

int pg_qsort_strcmp(const void *a, const void *b)
{
	return strcmp(*(const char *const *) a, *(const char *const *) b);
}

void *bsearch_arg(const void *key, const void *base, size_t count, size_t size,
	int (*compare)(const void *, const void *, void *), void *argument)
{
	size_t low = 0;

	while (low < count) {
		size_t middle = low + (count - low) / 2;
		const char *item = (const char *) base + middle * size;
		int order = compare(key, item, argument);

		if (order == 0)
			return unconstify(char *, item);
		if (order < 0)
			count = middle;
		else
			low = middle + 1;
	}
	return NULL;
}
