/* Characters of the database's encoding. */
#include "guest.h"

#include "mb/pg_wchar.h"
#include "parser/scansup.h"

#include <string.h>

static const char *const names[] = {
	[PG_SQL_ASCII] = "SQL_ASCII", [PG_EUC_JP] = "EUC_JP", [PG_EUC_CN] = "EUC_CN", [PG_EUC_KR] = "EUC_KR",
	[PG_EUC_TW] = "EUC_TW", [PG_EUC_JIS_2004] = "EUC_JIS_2004", [PG_UTF8] = "UTF8",
	[PG_MULE_INTERNAL] = "MULE_INTERNAL", [PG_LATIN1] = "LATIN1", [PG_LATIN2] = "LATIN2", [PG_LATIN3] = "LATIN3",
	[PG_LATIN4] = "LATIN4", [PG_LATIN5] = "LATIN5", [PG_LATIN6] = "LATIN6", [PG_LATIN7] = "LATIN7",
	[PG_LATIN8] = "LATIN8", [PG_LATIN9] = "LATIN9", [PG_LATIN10] = "LATIN10", [PG_WIN1256] = "WIN1256",
	[PG_WIN1258] = "WIN1258", [PG_WIN866] = "WIN866", [PG_WIN874] = "WIN874", [PG_KOI8R] = "KOI8R",
	[PG_WIN1251] = "WIN1251", [PG_WIN1252] = "WIN1252", [PG_ISO_8859_5] = "ISO_8859_5",
	[PG_ISO_8859_6] = "ISO_8859_6", [PG_ISO_8859_7] = "ISO_8859_7", [PG_ISO_8859_8] = "ISO_8859_8",
	[PG_WIN1250] = "WIN1250", [PG_WIN1253] = "WIN1253", [PG_WIN1254] = "WIN1254", [PG_WIN1255] = "WIN1255",
	[PG_WIN1257] = "WIN1257", [PG_KOI8U] = "KOI8U",
};

int GetDatabaseEncoding(void)
{
	return plf_area->encoding;
}

int pg_get_client_encoding(void)
{
	return plf_area->encoding;
}

const char *pg_encoding_to_char(int encoding)
{
	return encoding >= 0 && encoding < (int) lengthof(names) && names[encoding] != NULL ? names[encoding] : "";
}

const char *GetDatabaseEncodingName(void)
{
	return pg_encoding_to_char(plf_area->encoding);
}

int pg_database_encoding_max_length(void)
{
	return plf_area->encoding_length;
}

/* The server converts the texts of binary formats itself. */
char *pg_server_to_client(const char *text, int length)
{
	return unconstify(char *, text);
}

char *pg_client_to_server(const char *text, int length)
{
	return unconstify(char *, text);
}

char *pg_any_to_server(const char *text, int length, int encoding)
{
	if (encoding != plf_area->encoding && encoding != PG_SQL_ASCII)
		for (int i = 0; i < length; i++)
			if (IS_HIGHBIT_SET(text[i]))
				ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				                errmsg("a fenced function cannot convert text from encoding \"%s\"",
				                       pg_encoding_to_char(encoding))));
	return unconstify(char *, text);
}

static int utf8_length(unsigned char first)
{
	return first < 0x80 ? 1 : (first & 0xe0) == 0xc0 ? 2 : (first & 0xf0) == 0xe0 ? 3 : (first & 0xf8) == 0xf0 ? 4 : 1;
}

int pg_utf_mblen(const unsigned char *text)
{
	return utf8_length(*text);
}

/* The length of a character, by its first byte. */
int pg_mblen_unbounded(const char *text)
{
	unsigned char first = (unsigned char) *text;

	if (first < 0x80 || plf_area->encoding_length == 1)
		return 1;
	switch (plf_area->encoding) {
	case PG_UTF8:
		return utf8_length(first);
	case PG_EUC_JP:
	case PG_EUC_JIS_2004:
	case PG_EUC_KR:
		return first == 0x8f ? 3 : 2;
	case PG_EUC_CN:
		return 2;
	case PG_EUC_TW:
		return first == 0x8e ? 4 : first == 0x8f ? 3 : 2;
	case PG_MULE_INTERNAL:
		return first <= 0x80 ? 1 : first <= 0x8d ? 2 : first <= 0x99 ? 3 : first <= 0x9b ? 3 : first <= 0x9d ? 4 : 1;
	default:
		return 1;
	}
}

int pg_mblen(const char *text)
{
	return pg_mblen_unbounded(text);
}

static void refuse_character(const char *text, int length)
{
	char bytes[8 * 5 + 1], *p = bytes;

	for (int i = 0; i < Min(length, 8); i++)
		p += sprintf(p, "%s0x%02x", i > 0 ? " " : "", (unsigned char) text[i]);
	ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE),
	                errmsg("invalid byte sequence for encoding \"%s\": %s", GetDatabaseEncodingName(), bytes)));
}

int pg_mblen_cstr(const char *text)
{
	int length = pg_mblen_unbounded(text);

	for (int i = 1; unlikely(i < length); i++)
		if (unlikely(text[i] == '\0'))
			refuse_character(text, i);
	return length;
}

int pg_mblen_range(const char *text, const char *end)
{
	int length = pg_mblen_unbounded(text);

	if (unlikely(length > end - text))
		refuse_character(text, (int) (end - text));
	return length;
}

int pg_mblen_with_len(const char *text, int limit)
{
	return pg_mblen_range(text, text + limit);
}

int pg_mbstrlen_with_len(const char *text, int limit)
{
	int count = 0;

	if (plf_area->encoding_length == 1)
		return limit;
	while (limit > 0 && *text != '\0') {
		int length = pg_mblen_with_len(text, limit);

		limit -= length;
		text += length;
		count++;
	}
	return count;
}

int pg_mbstrlen(const char *text)
{
	return pg_mbstrlen_with_len(text, (int) strlen(text));
}

/* The length of as many whole characters as fit into `limit` bytes. */
int pg_mbcliplen(const char *text, int length, int limit)
{
	int clipped = 0;

	while (clipped < length && text[clipped] != '\0') {
		int next = plf_area->encoding_length == 1 ? 1 : pg_mblen_unbounded(text + clipped);

		if (clipped + next > Min(limit, length))
			break;
		clipped += next;
	}
	return clipped;
}

/* The length of at most `limit` characters. */
int pg_mbcharcliplen(const char *text, int length, int limit)
{
	int clipped = 0;

	if (plf_area->encoding_length == 1)
		return (int) strnlen(text, Min(length, limit));
	for (int count = 0; count < limit && clipped < length && text[clipped] != '\0'; count++)
		clipped += pg_mblen_with_len(text + clipped, length - clipped);
	return Min(clipped, length);
}

void truncate_identifier(char *identifier, int length, bool warn)
{
	if (length < NAMEDATALEN)
		return;
	length = pg_mbcliplen(identifier, length, NAMEDATALEN - 1);
	if (warn)
		ereport(NOTICE, (errcode(ERRCODE_NAME_TOO_LONG),
		                 errmsg("identifier \"%s\" will be truncated to \"%.*s\"", identifier, length, identifier)));
	identifier[length] = '\0';
}

/* ------------------------------------------------------------------------------------------------- wide characters */

pg_wchar utf8_to_unicode(const unsigned char *c)
{
	switch (utf8_length(*c)) {
	case 2:
		return (pg_wchar) (c[0] & 0x1f) << 6 | (c[1] & 0x3f);
	case 3:
		return (pg_wchar) (c[0] & 0x0f) << 12 | (pg_wchar) (c[1] & 0x3f) << 6 | (c[2] & 0x3f);
	case 4:
		return (pg_wchar) (c[0] & 0x07) << 18 | (pg_wchar) (c[1] & 0x3f) << 12 | (pg_wchar) (c[2] & 0x3f) << 6 | (c[3] & 0x3f);
	default:
		return *c;
	}
}

unsigned char *unicode_to_utf8(pg_wchar c, unsigned char *into)
{
	if (c < 0x80) {
		into[0] = (unsigned char) c;
	} else if (c < 0x800) {
		into[0] = 0xc0 | (c >> 6);
		into[1] = 0x80 | (c & 0x3f);
	} else if (c < 0x10000) {
		into[0] = 0xe0 | (c >> 12);
		into[1] = 0x80 | ((c >> 6) & 0x3f);
		into[2] = 0x80 | (c & 0x3f);
	} else {
		into[0] = 0xf0 | ((c >> 18) & 0x07);
		into[1] = 0x80 | ((c >> 12) & 0x3f);
		into[2] = 0x80 | ((c >> 6) & 0x3f);
		into[3] = 0x80 | (c & 0x3f);
	}
	return into;
}

/* Other encodings of many bytes: the bytes of a character as one number, the first highest. */
int pg_mb2wchar_with_len(const char *from, pg_wchar *to, int length)
{
	int count = 0;

	while (length > 0 && *from != '\0') {
		int size = pg_mblen_unbounded(from);

		if (size > length)
			size = 1;
		if (plf_area->encoding == PG_UTF8) {
			to[count] = size > 1 ? utf8_to_unicode((const unsigned char *) from) : (unsigned char) *from;
		} else {
			to[count] = 0;
			for (int i = 0; i < size; i++)
				to[count] = to[count] << 8 | (unsigned char) from[i];
		}
		count++;
		from += size;
		length -= size;
	}
	to[count] = 0;
	return count;
}

int pg_mb2wchar(const char *from, pg_wchar *to)
{
	return pg_mb2wchar_with_len(from, to, (int) strlen(from));
}

int pg_wchar2mb_with_len(const pg_wchar *from, char *to, int length)
{
	int count = 0;

	for (; length > 0 && *from != 0; from++, length--) {
		if (plf_area->encoding == PG_UTF8) {
			unicode_to_utf8(*from, (unsigned char *) to + count);
			count += utf8_length((unsigned char) to[count]);
		} else {
			for (int shift = 24; shift >= 0; shift -= 8)
				if (*from >> shift != 0)
					to[count++] = (char) (*from >> shift);
		}
	}
	to[count] = '\0';
	return count;
}

int pg_wchar2mb(const pg_wchar *from, char *to)
{
	int length = 0;

	while (from[length] != 0)
		length++;
	return pg_wchar2mb_with_len(from, to, length);
}
