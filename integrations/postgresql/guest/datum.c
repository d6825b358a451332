/* Values of any type, by what the catalogue says of their length. */
#include "guest.h"

#include "utils/datum.h"

#include <string.h>

Size datumGetSize(Datum value, bool by_value, int length)
{
	if (by_value || length > 0)
		return length;
	if (DatumGetPointer(value) == NULL)
		ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION), errmsg("invalid Datum pointer")));
	if (length == -1)
		return VARSIZE_ANY(DatumGetPointer(value));
	if (length == -2)
		return strlen(DatumGetCString(value)) + 1;
	elog(ERROR, "invalid typLen: %d", length);
}

Datum datumCopy(Datum value, bool by_value, int length)
{
	Size size;

	if (by_value)
		return value;
	size = datumGetSize(value, by_value, length);
	return PointerGetDatum(memcpy(palloc(size), DatumGetPointer(value), size));
}

Datum datumTransfer(Datum value, bool by_value, int length)
{
	return datumCopy(value, by_value, length);
}

bool datumIsEqual(Datum a, Datum b, bool by_value, int length)
{
	Size size;

	if (by_value)
		return a == b;
	size = datumGetSize(a, by_value, length);
	return size == datumGetSize(b, by_value, length) && memcmp(DatumGetPointer(a), DatumGetPointer(b), size) == 0;
}
