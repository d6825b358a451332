/* Rows: forming, taking apart, changing. */
#include "guest.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/typcache.h"

#include <string.h>

/* Whether a value can have a header of one byte in a row. */
static bool packs(Form_pg_attribute attribute, Datum value)
{
	return attribute->attlen == -1 && attribute->attstorage != TYPSTORAGE_PLAIN && VARATT_CAN_MAKE_SHORT(DatumGetPointer(value));
}

Size heap_compute_data_size(TupleDesc description, Datum *values, bool *nulls)
{
	Size size = 0;

	for (int i = 0; i < description->natts; i++) {
		Form_pg_attribute attribute = TupleDescAttr(description, i);

		if (nulls[i])
			continue;
		if (packs(attribute, values[i])) {
			size += VARATT_CONVERTED_SHORT_SIZE(DatumGetPointer(values[i]));
			continue;
		}
		size = att_align_datum(size, attribute->attalign, attribute->attlen, values[i]);
		size = att_addlength_datum(size, attribute->attlen, values[i]);
	}
	return size;
}

void heap_fill_tuple(TupleDesc description, Datum *values, bool *nulls, char *data, Size room, uint16 *infomask, bits8 *bitmap)
{
	char *at = data;

	*infomask &= ~(HEAP_HASNULL | HEAP_HASVARWIDTH | HEAP_HASEXTERNAL);
	if (bitmap != NULL)
		memset(bitmap, 0, BITMAPLEN(description->natts));
	for (int i = 0; i < description->natts; i++) {
		Form_pg_attribute attribute = TupleDescAttr(description, i);
		Size size;

		if (nulls != NULL && nulls[i]) {
			*infomask |= HEAP_HASNULL;
			continue;
		}
		if (bitmap != NULL)
			bitmap[i / 8] |= (bits8) (1 << (i % 8));
		if (attribute->attbyval) {
			at = (char *) att_align_nominal(at, attribute->attalign);
			store_att_byval(at, values[i], attribute->attlen);
			at += attribute->attlen;
			continue;
		}
		if (attribute->attlen < 0)
			*infomask |= HEAP_HASVARWIDTH;
		if (packs(attribute, values[i])) {
			size = VARATT_CONVERTED_SHORT_SIZE(DatumGetPointer(values[i]));
			SET_VARSIZE_SHORT(at, size);
			memcpy(at + 1, VARDATA(DatumGetPointer(values[i])), size - 1);
		} else {
			at = (char *) att_align_datum(at, attribute->attalign, attribute->attlen, values[i]);
			size = datumGetSize(values[i], false, attribute->attlen);
			memcpy(at, DatumGetPointer(values[i]), size);
		}
		at += size;
	}
}

void heap_tuple_set_datum(HeapTupleHeader header, TupleDesc description, uint32 length)
{
	HeapTupleHeaderSetDatumLength(header, length);
	HeapTupleHeaderSetTypeId(header, description->tdtypeid);
	HeapTupleHeaderSetTypMod(header, description->tdtypmod);
}

/* The server says what rows of a type look like when it hands them over; it checks the rows that it gets back. */
void heap_datum_check(HeapTupleHeader header, TupleDesc description)
{
}

void heap_datum_update_type(HeapTupleHeader header, TupleDesc description)
{
	HeapTupleHeaderSetTypeId(header, description->tdtypeid);
	HeapTupleHeaderSetTypMod(header, description->tdtypmod);
}

HeapTuple heap_form_tuple(TupleDesc description, Datum *values, bool *nulls)
{
	bool has_null = false;
	Size header_size = offsetof(HeapTupleHeaderData, t_bits), data_size;
	HeapTuple tuple;
	HeapTupleHeader header;

	if (description->natts > MaxTupleAttributeNumber)
		ereport(ERROR, (errcode(ERRCODE_TOO_MANY_COLUMNS),
		                errmsg("number of columns (%d) exceeds limit (%d)", description->natts, MaxTupleAttributeNumber)));
	for (int i = 0; i < description->natts; i++)
		has_null = has_null || nulls[i];
	if (has_null)
		header_size += BITMAPLEN(description->natts);
	header_size = MAXALIGN(header_size);
	data_size = heap_compute_data_size(description, values, nulls);
	tuple = palloc0(HEAPTUPLESIZE + header_size + data_size);
	tuple->t_data = header = (HeapTupleHeader) ((char *) tuple + HEAPTUPLESIZE);
	tuple->t_len = header_size + data_size;
	ItemPointerSetInvalid(&tuple->t_self);
	tuple->t_tableOid = InvalidOid;
	heap_tuple_set_datum(header, description, tuple->t_len);
	ItemPointerSetInvalid(&header->t_ctid);
	HeapTupleHeaderSetNatts(header, description->natts);
	header->t_hoff = header_size;
	heap_fill_tuple(description, values, nulls, (char *) header + header_size, data_size, &header->t_infomask,
		has_null ? header->t_bits : NULL);
	return tuple;
}

static Datum missing_value(Form_pg_attribute attribute, bool *null)
{
	*null = true;
	return (Datum) 0;
}

Datum getmissingattr(TupleDesc description, int number, bool *null)
{
	return missing_value(TupleDescAttr(description, number - 1), null);
}

/* The first `limit` columns. */
static void deform(HeapTuple tuple, TupleDesc description, int limit, Datum *values, bool *nulls)
{
	HeapTupleHeader header = tuple->t_data;
	int stored = Min(HeapTupleHeaderGetNatts(header), limit);
	char *data = (char *) header + header->t_hoff;
	Size at = 0;

	for (int i = 0; i < stored; i++) {
		Form_pg_attribute attribute = TupleDescAttr(description, i);

		nulls[i] = HeapTupleHasNulls(tuple) && att_isnull(i, header->t_bits);
		if (nulls[i]) {
			values[i] = (Datum) 0;
			continue;
		}
		at = att_align_pointer(at, attribute->attalign, attribute->attlen, data + at);
		values[i] = fetchatt(attribute, data + at);
		at = att_addlength_pointer(at, attribute->attlen, data + at);
	}
	for (int i = stored; i < limit; i++)
		values[i] = missing_value(TupleDescAttr(description, i), &nulls[i]);
}

void heap_deform_tuple(HeapTuple tuple, TupleDesc description, Datum *values, bool *nulls)
{
	deform(tuple, description, description->natts, values, nulls);
}

Datum nocachegetattr(HeapTuple tuple, int number, TupleDesc description)
{
	HeapTupleHeader header = tuple->t_data;
	char *data = (char *) header + header->t_hoff;
	Size at = 0;

	for (int i = 0;; i++) {
		Form_pg_attribute attribute = TupleDescAttr(description, i);

		if (HeapTupleHasNulls(tuple) && att_isnull(i, header->t_bits))
			continue;
		at = att_align_pointer(at, attribute->attalign, attribute->attlen, data + at);
		if (i == number - 1)
			return fetchatt(attribute, data + at);
		at = att_addlength_pointer(at, attribute->attlen, data + at);
	}
}

bool heap_attisnull(HeapTuple tuple, int number, TupleDesc description)
{
	if (number > (int) HeapTupleHeaderGetNatts(tuple->t_data))
		return true;
	if (number > 0)
		return HeapTupleHasNulls(tuple) && att_isnull(number - 1, tuple->t_data->t_bits);
	if (number < FirstLowInvalidHeapAttributeNumber + 1 || number == 0)
		elog(ERROR, "invalid attnum: %d", number);
	return false;
}

Datum heap_getsysattr(HeapTuple tuple, int number, TupleDesc description, bool *null)
{
	*null = false;
	switch (number) {
	case SelfItemPointerAttributeNumber:
		return PointerGetDatum(&tuple->t_self);
	case MinTransactionIdAttributeNumber:
		return TransactionIdGetDatum(HeapTupleHeaderGetRawXmin(tuple->t_data));
	case MaxTransactionIdAttributeNumber:
		return TransactionIdGetDatum(HeapTupleHeaderGetRawXmax(tuple->t_data));
	case MinCommandIdAttributeNumber:
	case MaxCommandIdAttributeNumber:
		return CommandIdGetDatum(HeapTupleHeaderGetRawCommandId(tuple->t_data));
	case TableOidAttributeNumber:
		return ObjectIdGetDatum(tuple->t_tableOid);
	default:
		elog(ERROR, "invalid attnum: %d", number);
	}
}

/* ----------------------------------------------------------------------------------------------------------- copies */

void heap_copytuple_with_tuple(HeapTuple from, HeapTuple to)
{
	*to = *from;
	if (from->t_data != NULL)
		to->t_data = memcpy(palloc(from->t_len), from->t_data, from->t_len);
}

HeapTuple heap_copytuple(HeapTuple from)
{
	HeapTuple copy;

	if (from == NULL || from->t_data == NULL)
		return NULL;
	copy = palloc(HEAPTUPLESIZE + from->t_len);
	*copy = *from;
	copy->t_data = (HeapTupleHeader) ((char *) copy + HEAPTUPLESIZE);
	memcpy(copy->t_data, from->t_data, from->t_len);
	return copy;
}

void heap_freetuple(HeapTuple tuple)
{
	pfree(tuple);
}

Datum heap_copy_tuple_as_datum(HeapTuple tuple, TupleDesc description)
{
	HeapTupleHeader copy = palloc(tuple->t_len);

	memcpy(copy, tuple->t_data, tuple->t_len);
	heap_tuple_set_datum(copy, description, tuple->t_len);
	return PointerGetDatum(copy);
}

static HeapTuple form_like(HeapTuple model, TupleDesc description, Datum *values, bool *nulls)
{
	HeapTuple result = heap_form_tuple(description, values, nulls);

	result->t_data->t_ctid = model->t_data->t_ctid;
	result->t_self = model->t_self;
	result->t_tableOid = model->t_tableOid;
	pfree(values);
	pfree(nulls);
	return result;
}

HeapTuple heap_modify_tuple(HeapTuple tuple, TupleDesc description, Datum *new_values, bool *new_nulls, bool *replace)
{
	Datum *values = palloc(description->natts * sizeof *values);
	bool *nulls = palloc(description->natts * sizeof *nulls);

	heap_deform_tuple(tuple, description, values, nulls);
	for (int i = 0; i < description->natts; i++)
		if (replace[i]) {
			values[i] = new_values[i];
			nulls[i] = new_nulls[i];
		}
	return form_like(tuple, description, values, nulls);
}

HeapTuple heap_modify_tuple_by_cols(HeapTuple tuple, TupleDesc description, int count, int *columns, Datum *new_values, bool *new_nulls)
{
	Datum *values = palloc(description->natts * sizeof *values);
	bool *nulls = palloc(description->natts * sizeof *nulls);

	heap_deform_tuple(tuple, description, values, nulls);
	for (int i = 0; i < count; i++) {
		if (columns[i] <= 0 || columns[i] > description->natts)
			elog(ERROR, "invalid column number %d", columns[i]);
		values[columns[i] - 1] = new_values[i];
		nulls[columns[i] - 1] = new_nulls[i];
	}
	return form_like(tuple, description, values, nulls);
}

/* ------------------------------------------------------------------------------------------------- rows as values */

HeapTupleHeader DatumGetHeapTupleHeaderExt(Datum value, bool *was_datum)
{
	HeapTupleHeader header = (HeapTupleHeader) PG_DETOAST_DATUM(value);

	if (was_datum != NULL)
		*was_datum = HeapTupleHeaderIsDatum(header);
	return header;
}

HeapTupleHeader DatumGetHeapTupleHeader(Datum value)
{
	return (HeapTupleHeader) PG_DETOAST_DATUM(value);
}

HeapTupleHeader DatumGetHeapTupleHeaderCopy(Datum value)
{
	return (HeapTupleHeader) PG_DETOAST_DATUM_COPY(value);
}

Datum HeapTupleHeaderGetDatum(HeapTupleHeader header)
{
	return PointerGetDatum(header);
}

Datum GetAttributeByNum(HeapTupleHeader header, AttrNumber number, bool *null)
{
	HeapTupleData tuple;
	TupleDesc description;

	if (!AttributeNumberIsValid(number))
		elog(ERROR, "invalid attribute number %d", number);
	if (null == NULL)
		elog(ERROR, "a NULL isNull pointer was passed");
	if (header == NULL) {
		*null = true;
		return (Datum) 0;
	}
	description = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
	tuple = (HeapTupleData){.t_len = HeapTupleHeaderGetDatumLength(header), .t_data = header};
	ItemPointerSetInvalid(&tuple.t_self);
	return heap_getattr(&tuple, number, description, null);
}

Datum GetAttributeByName(HeapTupleHeader header, const char *name, bool *null)
{
	TupleDesc description;

	if (name == NULL)
		elog(ERROR, "invalid attribute name");
	if (null == NULL)
		elog(ERROR, "a NULL isNull pointer was passed");
	if (header == NULL) {
		*null = true;
		return (Datum) 0;
	}
	description = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(header), HeapTupleHeaderGetTypMod(header));
	for (int i = 0; i < description->natts; i++)
		if (namestrcmp(&TupleDescAttr(description, i)->attname, name) == 0)
			return GetAttributeByNum(header, TupleDescAttr(description, i)->attnum, null);
	elog(ERROR, "attribute \"%s\" does not exist", name);
}
