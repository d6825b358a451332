/* text, bytea and other values of variable length. The server hands over values that are neither compressed nor out of line. */
#include "guest.h"

#include "mb/pg_wchar.h"
#include "utils/builtins.h"

#include <string.h>

text *cstring_to_text_with_len(const char *string, int length)
{
	text *result = palloc((Size) length + VARHDRSZ);

	SET_VARSIZE(result, length + VARHDRSZ);
	memcpy(VARDATA(result), string, length);
	return result;
}

text *cstring_to_text(const char *string)
{
	return cstring_to_text_with_len(string, (int) strlen(string));
}

char *text_to_cstring(const text *value)
{
	text *plain = pg_detoast_datum_packed(unconstify(text *, value));
	int length = VARSIZE_ANY_EXHDR(plain);
	char *result = palloc((Size) length + 1);

	memcpy(result, VARDATA_ANY(plain), length);
	result[length] = '\0';
	return result;
}

void text_to_cstring_buffer(const text *value, char *into, size_t room)
{
	text *plain = pg_detoast_datum_packed(unconstify(text *, value));
	size_t length = VARSIZE_ANY_EXHDR(plain);

	if (room == 0)
		return;
	if (length >= room)
		length = pg_mbcliplen(VARDATA_ANY(plain), (int) length, (int) room - 1);
	memcpy(into, VARDATA_ANY(plain), length);
	into[length] = '\0';
}

static void refuse_toasted(const struct varlena *value)
{
	if (VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value))
		elog(ERROR, "a fenced function cannot read a compressed or external value");
}

struct varlena *pg_detoast_datum_packed(struct varlena *value)
{
	if (unlikely(VARATT_IS_EXTERNAL(value) || VARATT_IS_COMPRESSED(value)))
		refuse_toasted(value);
	return value;
}

struct varlena *pg_detoast_datum_copy(struct varlena *value)
{
	struct varlena *copy;
	Size length;

	refuse_toasted(value);
	length = VARSIZE_ANY_EXHDR(value);
	copy = palloc(length + VARHDRSZ);
	SET_VARSIZE(copy, length + VARHDRSZ);
	memcpy(VARDATA(copy), VARDATA_ANY(value), length);
	return copy;
}

struct varlena *pg_detoast_datum(struct varlena *value)
{
	if (likely(VARATT_IS_4B_U(value)))
		return value;
	return pg_detoast_datum_copy(value);
}

struct varlena *pg_detoast_datum_slice(struct varlena *value, int32 first, int32 count)
{
	struct varlena *slice;
	int32 length;

	refuse_toasted(value);
	length = VARSIZE_ANY_EXHDR(value);
	if (first < 0)
		elog(ERROR, "invalid sliceoffset: %d", first);
	if (first > length)
		first = length;
	if (count < 0 || count > length - first)
		count = length - first;
	slice = palloc((Size) count + VARHDRSZ);
	SET_VARSIZE(slice, count + VARHDRSZ);
	memcpy(VARDATA(slice), VARDATA_ANY(value) + first, count);
	return slice;
}

Size toast_raw_datum_size(Datum value)
{
	struct varlena *plain = pg_detoast_datum_packed((struct varlena *) DatumGetPointer(value));

	return VARSIZE_ANY_EXHDR(plain) + VARHDRSZ;
}

Size toast_datum_size(Datum value)
{
	return VARSIZE_ANY(DatumGetPointer(value));
}

size_t varsize_any(void *value)
{
	return VARSIZE_ANY(value);
}

void namestrcpy(Name name, const char *string)
{
	strncpy(NameStr(*name), string, NAMEDATALEN);
	NameStr(*name)[NAMEDATALEN - 1] = '\0';
}

int namestrcmp(Name name, const char *string)
{
	if (name == NULL || string == NULL)
		return name == NULL && string == NULL ? 0 : name == NULL ? -1 : 1;
	return strncmp(NameStr(*name), string, NAMEDATALEN);
}
