/* Arrays built up element by element, and gone through element by element. */
#include "guest.h"

#include "access/tupmacs.h"
#include "utils/array.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"

#include <string.h>

ArrayBuildState *initArrayResult(Oid element, MemoryContext context, bool own_context)
{
	ArrayBuildState *state;

	if (own_context)
		context = AllocSetContextCreate(context, "accumArrayResult", ALLOCSET_DEFAULT_SIZES);
	state = MemoryContextAllocZero(context, sizeof *state);
	state->mcontext = context;
	state->private_cxt = own_context;
	state->alen = own_context ? 64 : 8;
	state->dvalues = MemoryContextAlloc(context, state->alen * sizeof(Datum));
	state->dnulls = MemoryContextAlloc(context, state->alen * sizeof(bool));
	state->element_type = element;
	get_typlenbyvalalign(element, &state->typlen, &state->typbyval, &state->typalign);
	return state;
}

ArrayBuildState *accumArrayResult(ArrayBuildState *state, Datum value, bool null, Oid element, MemoryContext context)
{
	MemoryContext old;

	if (state == NULL)
		state = initArrayResult(element, context, true);
	old = MemoryContextSwitchTo(state->mcontext);
	if (state->nelems >= state->alen) {
		state->alen *= 2;
		state->dvalues = repalloc(state->dvalues, state->alen * sizeof(Datum));
		state->dnulls = repalloc(state->dnulls, state->alen * sizeof(bool));
	}
	if (!null && !state->typbyval)
		value = state->typlen == -1 ? PointerGetDatum(PG_DETOAST_DATUM_COPY(value)) : datumCopy(value, false, state->typlen);
	state->dvalues[state->nelems] = value;
	state->dnulls[state->nelems++] = null;
	MemoryContextSwitchTo(old);
	return state;
}

Datum makeMdArrayResult(ArrayBuildState *state, int ndims, int *dims, int *lbs, MemoryContext context, bool release)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	ArrayType *array = construct_md_array(state->dvalues, state->dnulls, ndims, dims, lbs, state->element_type, state->typlen,
		state->typbyval, state->typalign);

	MemoryContextSwitchTo(old);
	if (release)
		MemoryContextDelete(state->mcontext);
	return PointerGetDatum(array);
}

Datum makeArrayResult(ArrayBuildState *state, MemoryContext context)
{
	int lb = 1;

	return makeMdArrayResult(state, state->nelems > 0 ? 1 : 0, &state->nelems, &lb, context, state->private_cxt);
}

/* --------------------------------------------------------------------------------------------------------- iterators */

struct ArrayIteratorData {
	ArrayType *array;
	Datum *values;
	bool *nulls;
	int count, at;
	int slice_ndim, slice_length;
	int16 length;
	bool by_value;
	char align;
};

ArrayIterator array_create_iterator(ArrayType *array, int slice_ndim, ArrayMetaState *meta)
{
	ArrayIterator iterator = palloc0(sizeof *iterator);

	if (slice_ndim < 0 || slice_ndim > ARR_NDIM(array))
		elog(ERROR, "invalid arguments to array_create_iterator");
	if (meta != NULL) {
		iterator->length = meta->typlen;
		iterator->by_value = meta->typbyval;
		iterator->align = meta->typalign;
	} else {
		get_typlenbyvalalign(ARR_ELEMTYPE(array), &iterator->length, &iterator->by_value, &iterator->align);
	}
	iterator->array = array;
	deconstruct_array(array, ARR_ELEMTYPE(array), iterator->length, iterator->by_value, iterator->align, &iterator->values,
		&iterator->nulls, &iterator->count);
	iterator->slice_ndim = slice_ndim;
	iterator->slice_length = ArrayGetNItems(slice_ndim, ARR_DIMS(array) + ARR_NDIM(array) - slice_ndim);
	return iterator;
}

bool array_iterate(ArrayIterator iterator, Datum *value, bool *null)
{
	ArrayType *array = iterator->array;
	int skipped = ARR_NDIM(array) - iterator->slice_ndim;

	if (iterator->at >= iterator->count)
		return false;
	if (iterator->slice_ndim == 0) {
		*null = iterator->nulls[iterator->at];
		*value = iterator->values[iterator->at++];
		return true;
	}
	*null = false;
	*value = PointerGetDatum(construct_md_array(iterator->values + iterator->at, iterator->nulls + iterator->at,
		iterator->slice_ndim, ARR_DIMS(array) + skipped, ARR_LBOUND(array) + skipped, ARR_ELEMTYPE(array), iterator->length,
		iterator->by_value, iterator->align));
	iterator->at += iterator->slice_length;
	return true;
}

void array_free_iterator(ArrayIterator iterator)
{
	pfree(iterator->values);
	pfree(iterator->nulls);
	pfree(iterator);
}

/* Helpers for loops over slices. */

void mda_get_range(int n, int *span, const int *first, const int *last)
{
	for (int i = 0; i < n; i++)
		span[i] = last[i] - first[i] + 1;
}

void mda_get_prod(int n, const int *range, int *products)
{
	products[n - 1] = 1;
	for (int i = n - 2; i >= 0; i--)
		products[i] = products[i + 1] * range[i + 1];
}

void mda_get_offset_values(int n, int *distances, const int *products, const int *span)
{
	distances[n - 1] = 0;
	for (int i = n - 2; i >= 0; i--) {
		distances[i] = products[i] - 1;
		for (int j = i + 1; j < n; j++)
			distances[i] -= (span[j] - 1) * products[j];
	}
}

int mda_next_tuple(int n, int *current, const int *span)
{
	for (int i = n - 1; i >= 0; i--) {
		current[i] = (current[i] + 1) % span[i];
		if (current[i] != 0)
			return i;
	}
	return -1;
}
