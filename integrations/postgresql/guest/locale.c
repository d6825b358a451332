/* Classes of characters, as the server's text search knows them: by the database's locale, or by ASCII if that is C. */
#include "guest.h"

#include "catalog/pg_collation.h"
#include "mb/pg_wchar.h"
#include "tsearch/ts_locale.h"
#include "utils/formatting.h"

#include <ctype.h>
#include <string.h>
#include <wctype.h>

/* The server tells by what it makes of a letter outside of ASCII. */
static bool ascii_only(void)
{
	static int known;

	if (known == 0) {
		if (plf_area->encoding != PG_UTF8)
			known = 1;
		else
			known = strcmp(str_tolower("\xc3\x89", 2, DEFAULT_COLLATION_OID), "\xc3\xa9") == 0 ? 2 : 1;
	}
	return known == 1;
}

static bool is_class(const char *text, int length, int (*narrow)(int), int (*wide)(wint_t))
{
	if (length == 1 || ascii_only())
		return narrow((unsigned char) *text) != 0;
	return wide(utf8_to_unicode((const unsigned char *) text)) != 0;
}

#define CLASS(class)                                                                                 \
	int t_is##class##_with_len(const char *text, int length)                                     \
	{                                                                                            \
		return is_class(text, pg_mblen_with_len(text, length), is##class, isw##class);       \
	}                                                                                            \
	int t_is##class##_cstr(const char *text)                                                     \
	{                                                                                            \
		return is_class(text, pg_mblen_cstr(text), is##class, isw##class);                   \
	}                                                                                            \
	int t_is##class##_unbounded(const char *text)                                                \
	{                                                                                            \
		return is_class(text, pg_mblen_unbounded(text), is##class, isw##class);              \
	}                                                                                            \
	int t_is##class(const char *text)                                                            \
	{                                                                                            \
		return t_is##class##_unbounded(text);                                                \
	}

CLASS(alpha)
CLASS(digit)
CLASS(print)
CLASS(space)

char *lowerstr_with_len(const char *text, int length)
{
	return str_tolower(text, length, DEFAULT_COLLATION_OID);
}

char *lowerstr(const char *text)
{
	return lowerstr_with_len(text, (int) strlen(text));
}
