/* Arrays: taking apart, putting together, going through. */
#include "guest.h"

#include "access/tupmacs.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include <string.h>

int ArrayGetNItems(int ndim, const int *dims)
{
	int64 items = 1;

	if (ndim <= 0)
		return 0;
	for (int i = 0; i < ndim; i++) {
		if (dims[i] < 0)
			items = -1;
		else
			items *= dims[i];
		if (items < 0 || items > (int64) MaxArraySize)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			                errmsg("array size exceeds the maximum allowed (%d)", (int) MaxArraySize)));
	}
	return (int) items;
}

void ArrayCheckBounds(int ndim, const int *dims, const int *lb)
{
	for (int i = 0; i < ndim; i++) {
		int32 sum;

		if (pg_add_s32_overflow(dims[i], lb[i], &sum))
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("array lower bound is too large: %d", lb[i])));
	}
}

int ArrayGetOffset(int n, const int *dim, const int *lb, const int *index)
{
	int scale = 1, offset = 0;

	for (int i = n - 1; i >= 0; i--) {
		offset += (index[i] - lb[i]) * scale;
		scale *= dim[i];
	}
	return offset;
}

int ArrayGetOffset0(int n, const int *index, const int *scale)
{
	int offset = 0;

	for (int i = 0; i < n; i++)
		offset += index[i] * scale[i];
	return offset;
}

static bool is_null(const bits8 *bitmap, int at)
{
	return bitmap != NULL && (bitmap[at / 8] & (1 << (at % 8))) == 0;
}

bool array_contains_nulls(ArrayType *array)
{
	const bits8 *bitmap = ARR_NULLBITMAP(array);
	int count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));

	for (int i = 0; bitmap != NULL && i < count; i++)
		if (is_null(bitmap, i))
			return true;
	return false;
}

void array_bitmap_copy(bits8 *to, int to_offset, const bits8 *from, int from_offset, int count)
{
	for (int i = 0; i < count; i++) {
		int at = to_offset + i, mask = 1 << (at % 8);

		if (is_null(from, from_offset + i))
			to[at / 8] &= (bits8) ~mask;
		else
			to[at / 8] |= (bits8) mask;
	}
}

/* ---------------------------------------------------------------------------------------------------- construction */

/* Writes an element and returns where the next one may begin. */
static char *put(char *into, Datum value, int length, bool by_value, char align)
{
	Size size;

	if (by_value) {
		store_att_byval(into, value, length);
		return into + att_align_nominal(length, align);
	}
	size = datumGetSize(value, false, length);
	memcpy(into, DatumGetPointer(value), size);
	return into + att_align_nominal(size, align);
}

void CopyArrayEls(ArrayType *array, Datum *values, bool *nulls, int count, int length, bool by_value, char align, bool free_values)
{
	char *into = ARR_DATA_PTR(array);
	bits8 *bitmap = ARR_NULLBITMAP(array);

	for (int i = 0; i < count; i++) {
		bool null = nulls != NULL && nulls[i];

		if (null) {
			if (bitmap == NULL)
				elog(ERROR, "null array element where not supported");
		} else {
			into = put(into, values[i], length, by_value, align);
			if (bitmap != NULL)
				bitmap[i / 8] |= (bits8) (1 << (i % 8));
			if (free_values && !by_value)
				pfree(DatumGetPointer(values[i]));
		}
	}
}

ArrayType *construct_empty_array(Oid element)
{
	ArrayType *array = palloc0(sizeof *array);

	SET_VARSIZE(array, sizeof *array);
	array->elemtype = element;
	return array;
}

ArrayType *construct_md_array(Datum *values, bool *nulls, int ndim, int *dims, int *lbs, Oid element, int length, bool by_value,
	char align)
{
	ArrayType *array;
	bool has_nulls = false;
	Size size = 0;
	int count, offset = 0;

	if (ndim < 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid number of dimensions: %d", ndim)));
	if (ndim > MAXDIM)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
		                errmsg("number of array dimensions (%d) exceeds the maximum allowed (%d)", ndim, MAXDIM)));
	count = ArrayGetNItems(ndim, dims);
	ArrayCheckBounds(ndim, dims, lbs);
	if (count <= 0)
		return construct_empty_array(element);
	for (int i = 0; i < count; i++) {
		if (nulls != NULL && nulls[i]) {
			has_nulls = true;
			continue;
		}
		if (length == -1)
			values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));
		size += by_value ? (Size) length : datumGetSize(values[i], false, length);
		size = att_align_nominal(size, align);
		if (!AllocSizeIsValid(size))
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			                errmsg("array size exceeds the maximum allowed (%d)", (int) MaxAllocSize)));
	}
	if (has_nulls)
		size += offset = ARR_OVERHEAD_WITHNULLS(ndim, count);
	else
		size += ARR_OVERHEAD_NONULLS(ndim);
	array = palloc0(size);
	SET_VARSIZE(array, size);
	array->ndim = ndim;
	array->dataoffset = offset;
	array->elemtype = element;
	memcpy(ARR_DIMS(array), dims, ndim * sizeof *dims);
	memcpy(ARR_LBOUND(array), lbs, ndim * sizeof *lbs);
	CopyArrayEls(array, values, nulls, count, length, by_value, align, false);
	return array;
}

ArrayType *construct_array(Datum *values, int count, Oid element, int length, bool by_value, char align)
{
	int lb = 1;

	return construct_md_array(values, NULL, 1, &count, &lb, element, length, by_value, align);
}

ArrayType *construct_array_builtin(Datum *values, int count, Oid element)
{
	int16 length;
	bool by_value;
	char align;

	get_typlenbyvalalign(element, &length, &by_value, &align);
	return construct_array(values, count, element, length, by_value, align);
}

/* -------------------------------------------------------------------------------------------------- deconstruction */

static char *next_element(char *at, Datum *value, int length, bool by_value, char align)
{
	*value = fetch_att(at, by_value, length);
	at = (char *) att_addlength_pointer((uintptr_t) at, length, at);
	return (char *) att_align_nominal(at, align);
}

void deconstruct_array(ArrayType *array, Oid element, int length, bool by_value, char align, Datum **values, bool **nulls, int *count)
{
	int n = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const bits8 *bitmap = ARR_NULLBITMAP(array);
	char *at = ARR_DATA_PTR(array);

	*count = n;
	*values = palloc((Size) n * sizeof **values);
	if (nulls != NULL)
		*nulls = palloc0((Size) n * sizeof **nulls);
	for (int i = 0; i < n; i++) {
		if (!is_null(bitmap, i)) {
			at = next_element(at, &(*values)[i], length, by_value, align);
			continue;
		}
		(*values)[i] = (Datum) 0;
		if (nulls == NULL)
			ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("null array element not allowed")));
		(*nulls)[i] = true;
	}
}

void deconstruct_array_builtin(ArrayType *array, Oid element, Datum **values, bool **nulls, int *count)
{
	int16 length;
	bool by_value;
	char align;

	get_typlenbyvalalign(element, &length, &by_value, &align);
	deconstruct_array(array, element, length, by_value, align, values, nulls, count);
}

AnyArrayType *DatumGetAnyArrayP(Datum value)
{
	return (AnyArrayType *) DatumGetArrayTypeP(value);
}

/* Whether the subscripts are within bounds; *offset: which element they name. */
static bool locate(int ndim, const int *dims, const int *lbs, int count, const int *subscripts, int *offset)
{
	if (ndim != count || ndim <= 0 || ndim > MAXDIM)
		return false;
	for (int i = 0; i < ndim; i++)
		if (subscripts[i] < lbs[i] || (int64) subscripts[i] >= (int64) dims[i] + lbs[i])
			return false;
	*offset = ArrayGetOffset(ndim, dims, lbs, subscripts);
	return true;
}

Datum array_get_element(Datum value, int count, int *subscripts, int array_length, int length, bool by_value, char align, bool *null)
{
	int fixed_dims[1], fixed_lbs[1] = {0}, offset;
	ArrayType *array = NULL;
	const bits8 *bitmap = NULL;
	Datum result = (Datum) 0;
	char *at;
	bool found;

	if (array_length > 0) {
		fixed_dims[0] = array_length / length;
		found = locate(1, fixed_dims, fixed_lbs, count, subscripts, &offset);
		at = DatumGetPointer(value);
	} else {
		array = DatumGetArrayTypeP(value);
		found = locate(ARR_NDIM(array), ARR_DIMS(array), ARR_LBOUND(array), count, subscripts, &offset);
		at = ARR_DATA_PTR(array);
		bitmap = ARR_NULLBITMAP(array);
	}
	*null = !found || is_null(bitmap, offset);
	if (*null)
		return (Datum) 0;
	if (array == NULL || (length > 0 && bitmap == NULL)) {
		at += (Size) offset * att_align_nominal(length, align);
		return fetch_att(at, by_value, length);
	}
	for (int i = 0; i <= offset; i++)
		if (!is_null(bitmap, i))
			at = next_element(at, &result, length, by_value, align);
	return result;
}

Datum array_ref(ArrayType *array, int count, int *subscripts, int array_length, int length, bool by_value, char align, bool *null)
{
	return array_get_element(PointerGetDatum(array), count, subscripts, array_length, length, by_value, align, null);
}

static void refuse_subscripts(void)
{
	ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR), errmsg("wrong number of array subscripts")));
}

Datum array_set_element(Datum target, int count, int *subscripts, Datum value, bool null, int array_length, int length, bool by_value,
	char align)
{
	ArrayType *array;
	Datum *values;
	bool *nulls;
	int n, offset, dims[MAXDIM], lbs[MAXDIM], ndim, before = 0, after = 0;

	if (array_length > 0) {
		char *copy;

		if (count != 1)
			refuse_subscripts();
		if (subscripts[0] < 0 || subscripts[0] >= array_length / length)
			ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR), errmsg("array subscript out of range")));
		if (null)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			                errmsg("cannot assign null value to an element of a fixed-length array")));
		copy = memcpy(palloc(array_length), DatumGetPointer(target), array_length);
		put(copy + subscripts[0] * length, value, length, by_value, align);
		return PointerGetDatum(copy);
	}
	if (count <= 0 || count > MAXDIM)
		refuse_subscripts();
	array = DatumGetArrayTypeP(target);
	ndim = ARR_NDIM(array);
	if (ndim == 0) {
		for (int i = 0; i < count; i++)
			dims[i] = 1;
		return PointerGetDatum(construct_md_array(&value, &null, count, dims, subscripts, ARR_ELEMTYPE(array), length, by_value,
			align));
	}
	if (ndim != count)
		refuse_subscripts();
	memcpy(dims, ARR_DIMS(array), ndim * sizeof *dims);
	memcpy(lbs, ARR_LBOUND(array), ndim * sizeof *lbs);
	deconstruct_array(array, ARR_ELEMTYPE(array), length, by_value, align, &values, &nulls, &n);
	if (!locate(ndim, dims, lbs, count, subscripts, &offset)) {
		int64 first = Min(lbs[0], subscripts[0]), end = Max((int64) lbs[0] + dims[0], (int64) subscripts[0] + 1);
		Datum *wider;
		bool *wider_nulls;

		if (ndim != 1)
			ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR), errmsg("array subscript out of range")));
		if (end - first > (int64) MaxArraySize)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			                errmsg("array size exceeds the maximum allowed (%d)", (int) MaxArraySize)));
		before = (int) (lbs[0] - first);
		after = (int) (end - first) - before - n;
		wider = palloc0((Size) (end - first) * sizeof *wider);
		wider_nulls = palloc((Size) (end - first) * sizeof *wider_nulls);
		memset(wider_nulls, true, end - first);
		memcpy(wider + before, values, n * sizeof *values);
		memcpy(wider_nulls + before, nulls, n * sizeof *nulls);
		values = wider;
		nulls = wider_nulls;
		dims[0] = before + n + after;
		lbs[0] = (int) first;
		offset = subscripts[0] - lbs[0];
	}
	values[offset] = value;
	nulls[offset] = null;
	return PointerGetDatum(construct_md_array(values, nulls, ndim, dims, lbs, ARR_ELEMTYPE(array), length, by_value, align));
}

ArrayType *array_set(ArrayType *array, int count, int *subscripts, Datum value, bool null, int array_length, int length, bool by_value,
	char align)
{
	return DatumGetArrayTypeP(array_set_element(PointerGetDatum(array), count, subscripts, value, null, array_length, length,
		by_value, align));
}

int32 *ArrayGetIntegerTypmods(ArrayType *array, int *count)
{
	int32 *result;
	Datum *values;

	if (ARR_ELEMTYPE(array) != CSTRINGOID)
		ereport(ERROR, (errcode(ERRCODE_ARRAY_ELEMENT_ERROR), errmsg("typmod array must be type cstring[]")));
	if (ARR_NDIM(array) != 1)
		ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR), errmsg("typmod array must be one-dimensional")));
	if (array_contains_nulls(array))
		ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("typmod array must not contain nulls")));
	deconstruct_array(array, CSTRINGOID, -2, false, TYPALIGN_CHAR, &values, NULL, count);
	result = palloc((Size) *count * sizeof *result);
	for (int i = 0; i < *count; i++)
		result[i] = pg_strtoint32(DatumGetCString(values[i]));
	return result;
}
