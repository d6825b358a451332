/* A plain C function over arrays: `AS 'each module:function'`, or a text behind `each`.
 *
 * The SQL function takes and returns arrays; the function in C takes and returns elements. The handler lays the elements of some
 * thousand calls into the call area, crosses once, and takes the results out: what a crossing costs is shared by them. */
#include "plfenced.h"

#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

/* Elements of one crossing: few enough for the processor's caches, and enough to forget what it costs. */
#define CHUNK 2048

struct plf_each_plan {
	bool *is_array; /* of each argument; the others are the same for all elements */
	Oid element; /* of the result */
	int16 length;
	plf_value_type *args, *result; /* the elements' types */
	int nargs;
};

/* Where a column's next element is. */
struct column {
	const char *at;
	const bits8 *nulls;
	int16 length;
	Datum value; /* of what is no array */
};

/* The call in progress, for the line in an error's CONTEXT. */
struct progress {
	struct plf_each *each;
	const bool *null;
	int64 first; /* element where the chunk begins */
	int64 items;
	uint64 count;
};

static void
to_element(plf_value_type *t, Oid element)
{
	MemoryContext context = t->context;

	plf_type_resolve(element, t);
	t->context = context;
}

static bool
in_word(const plf_value_type *t)
{
	return t->way == PLF_WAY_VALUE || t->way == PLF_WAY_FLOAT4 || t->way == PLF_WAY_FLOAT8;
}

plf_each_plan *
plf_each_create(plf_value_type *args, int nargs, plf_value_type *result)
{
	plf_each_plan *p = palloc0(sizeof *p);
	Oid element = get_element_type(result->oid);
	bool any = false;

	p->is_array = palloc0(sizeof *p->is_array * Max(nargs, 1));
	for (int k = 0; k < nargs; k++) {
		Oid of = get_element_type(args[k].oid);

		p->is_array[k] = OidIsValid(of);
		any |= p->is_array[k];
		if (p->is_array[k])
			to_element(&args[k], of);
		if (!in_word(&args[k]))
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("type %s cannot be an argument for each element", format_type_be(args[k].oid)),
				errhint("Elements are numbers and other types that pass by value. Write the loop over the array in the function.")));
	}
	if (!any || !OidIsValid(element))
		ereport(ERROR, (errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			errmsg("a function for each element takes arrays, and returns one"),
			errhint("Declare it like f(integer[]) RETURNS integer[].")));
	to_element(result, element);
	if (!in_word(result))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("type %s cannot be a result for each element", format_type_be(element)),
			errhint("Elements are numbers and other types that pass by value. Write the loop over the array in the function.")));
	p->element = element;
	p->length = get_typlen(element);
	p->args = args;
	p->nargs = nargs;
	p->result = result;
	return p;
}

/* The same loop for a text, beside its function: `type` tells what a parameter or the result (-1) is in C. */
char *
plf_each_text(const char *name, const plf_value_type *args, int nargs, const plf_value_type *result,
	const char *(*type)(const plf_value_type *))
{
	StringInfoData s;
	const uint64 words = offsetof(struct plf_each, column) / sizeof(uint64);

	initStringInfo(&s);
	appendStringInfo(&s, "%s %s(", type(result), name);
	for (int k = 0; k < nargs; k++)
		appendStringInfo(&s, "%s%s", k ? ", " : "", type(&args[k]));
	appendStringInfo(&s, ");\nvoid plf_each(long *e) {\n");
	for (int k = 0; k < nargs; k++) {
		const char *as = in_word(&args[k]) && args[k].way != PLF_WAY_VALUE ? type(&args[k]) : "long";

		appendStringInfo(&s, "const %s *a%d = (const %s *) e[%d];\n", as, k, as, (int) words + k);
	}
	appendStringInfo(&s, "%s *r = (%s *) e[%d];\nlong count = e[%d];\nfor (long k = 0; k < count; ) {\nr[k%s] = %s(",
		result->way == PLF_WAY_VALUE ? "long" : type(result), result->way == PLF_WAY_VALUE ? "long" : type(result),
		(int) (offsetof(struct plf_each, results) / sizeof(uint64)), (int) (offsetof(struct plf_each, count) / sizeof(uint64)),
		result->way == PLF_WAY_FLOAT4 ? " * 2" : "", name);
	for (int k = 0; k < nargs; k++)
		appendStringInfo(&s, "%s(%s) a%d[k%s]", k ? ", " : "", type(&args[k]), k, args[k].way == PLF_WAY_FLOAT4 ? " * 2" : "");
	appendStringInfo(&s, ");\nk++;\ne[%d] = k;\n}\n}\n", (int) (offsetof(struct plf_each, done) / sizeof(uint64)));
	return s.data;
}

/* Which elements have a NULL in any of the arrays; NULL if none has. */
static bool *
find_nulls(ArrayType *const *arrays, int nargs, int64 items)
{
	bool *null = NULL;

	for (int k = 0; k < nargs; k++) {
		const bits8 *bits = arrays[k] ? ARR_NULLBITMAP(arrays[k]) : NULL;

		if (bits && !null)
			null = palloc0(items);
		for (int64 i = 0; bits && i < items; i++)
			null[i] |= (bits[i / 8] & (1 << (i % 8))) == 0;
	}
	return null;
}

/* Registers for the elements from `from` to `to`, but those that are NULL in any array. */
static void
lay(struct column *c, uint64 *into, int64 from, int64 to, const bool *null)
{
	if (!c->at) {
		for (int64 i = from; i < to; i++)
			if (!null || !null[i])
				*into++ = c->value;
		return;
	}
#define LAY(type)                                                                                           \
	if (!null) {                                                                                        \
		const type *values = (const type *) c->at;                                                  \
                                                                                                            \
		for (int64 i = 0; i < to - from; i++)                                                       \
			into[i] = (uint64) (int64) values[i];                                               \
		c->at += (to - from) * sizeof(type);                                                        \
	} else                                                                                              \
		for (int64 i = from; i < to; i++) {                                                         \
			if (c->nulls && (c->nulls[i / 8] & (1 << (i % 8))) == 0)                            \
				continue;                                                                   \
			if (!null[i])                                                                       \
				*into++ = (uint64) (int64) *(const type *) c->at;                           \
			c->at += sizeof(type);                                                              \
		}
	switch (c->length) {
	case 1:
		LAY(int8)
		break;
	case 2:
		LAY(int16)
		break;
	case 4:
		LAY(int32)
		break;
	default:
		LAY(int64)
	}
#undef LAY
}

/* Results as the server has them, checked. */
static void
take(plf_domain *d, plf_value_type *type, const uint64 *results, char *into, uint64 count)
{
#define TAKE(ctype)                                       \
	for (uint64 i = 0; i < count; i++)                \
		((ctype *) into)[i] = (ctype) results[i];
	if (type->any || type->way != PLF_WAY_VALUE) {
		switch (type->length) {
		case 2:
			TAKE(int16)
			return;
		case 4:
			TAKE(int32)
			return;
		case 8:
			TAKE(int64)
			return;
		}
	}
#undef TAKE
	for (uint64 i = 0; i < count; i++) {
		/* Read once. */
		Datum word = ((const volatile uint64 *) results)[i];

		store_att_byval(into + i * type->length, plf_get_datum(d, type, word), type->length);
	}
}

static void
context_line(void *progress)
{
	struct progress *p = progress;
	uint64 done = ((const volatile struct plf_each *) p->each)->done;
	int64 element = p->first;

	/* The module's word, so it may be any. */
	if (done >= p->count)
		return;
	for (; element < p->items; element++) {
		if (p->null && p->null[element])
			continue;
		if (done-- == 0)
			break;
	}
	errcontext("element " INT64_FORMAT " of the arrays", element + 1);
}

/* How many elements of the chunk from `from` on have no NULL, and where it ends. */
static uint64
live(const bool *null, int64 from, int64 *to, int64 items, uint64 room)
{
	uint64 n = 0;
	int64 i = from;

	if (!null) {
		*to = Min(items, from + (int64) room);
		return *to - from;
	}
	for (; i < items && n < room; i++)
		n += !null[i];
	*to = i;
	return n;
}

Datum
plf_each_call(plf_each_plan *plan, plf_domain *d, const char *name, void *thunk, uint64 function, plf_numbers *numbers,
	FunctionCallInfo fcinfo)
{
	plf_value_type *args = plan->args, *result = plan->result;
	int nargs = plan->nargs;
	ArrayType *arrays[PLF_EACH_INTEGERS + PLF_EACH_NUMBERS] = { NULL }, *first = NULL, *out;
	struct column columns[PLF_EACH_INTEGERS + PLF_EACH_NUMBERS];
	ErrorContextCallback line;
	struct progress progress;
	struct plf_each *each;
	uint64 base = MAXALIGN(plf_frame_base(d)), at = base + MAXALIGN(sizeof *each), room, size;
	int64 items, from, to;
	bool *null;
	char *data;
	plf_call call;

	for (int k = 0; k < nargs; k++) {
		columns[k].at = NULL;
		columns[k].value = fcinfo->args[k].value;
		if (!plan->is_array[k])
			continue;
		arrays[k] = DatumGetArrayTypeP(fcinfo->args[k].value);
		columns[k].at = ARR_DATA_PTR(arrays[k]);
		columns[k].nulls = ARR_NULLBITMAP(arrays[k]);
		columns[k].length = args[k].length;
		if (!first)
			first = arrays[k];
		if (ARR_NDIM(arrays[k]) != ARR_NDIM(first) ||
			memcmp(ARR_DIMS(arrays[k]), ARR_DIMS(first), ARR_NDIM(first) * sizeof(int)) != 0)
			ereport(ERROR, (errcode(ERRCODE_ARRAY_SUBSCRIPT_ERROR),
				errmsg("the arrays of function \"%s\" have different dimensions", name)));
	}
	items = ArrayGetNItems(ARR_NDIM(first), ARR_DIMS(first));
	if (items == 0)
		return PointerGetDatum(construct_empty_array(plan->element));
	null = find_nulls(arrays, nargs, items);

	room = at < PLF_AREA_SIZE ? (PLF_AREA_SIZE - at) / (sizeof(uint64) * (nargs + 1)) : 0;
	if (room == 0)
		ereport(ERROR, (errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
			errmsg("calls of module \"%s\" are nested too deeply", d->module->name)));
	room = Min(room, CHUNK);
	live(null, 0, &to, items, items);
	size = (null ? ARR_OVERHEAD_WITHNULLS(ARR_NDIM(first), items) : ARR_OVERHEAD_NONULLS(ARR_NDIM(first)));
	if (!AllocSizeIsValid(size + items * plan->length))
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			errmsg("array size exceeds the maximum allowed (%d)", (int) MaxAllocSize)));
	out = palloc0(size + items * plan->length);
	out->ndim = ARR_NDIM(first);
	out->dataoffset = null ? size : 0;
	out->elemtype = plan->element;
	memcpy(ARR_DIMS(out), ARR_DIMS(first), ARR_NDIM(first) * sizeof(int));
	memcpy(ARR_LBOUND(out), ARR_LBOUND(first), ARR_NDIM(first) * sizeof(int));
	for (int64 i = 0; null && i < items; i++)
		if (!null[i])
			ARR_NULLBITMAP(out)[i / 8] |= 1 << (i % 8);
	data = ARR_DATA_PTR(out);

	progress.null = null;
	progress.items = items;
	line.callback = context_line;
	line.arg = &progress;
	line.previous = error_context_stack;
	for (from = 0; from < items; from = to) {
		uint64 count = live(null, from, &to, items, room), inside = d->inside + at;

		if (count == 0)
			continue;
		each = (struct plf_each *) (d->view + base);
		memset(each, 0, sizeof *each);
		each->function = function;
		each->count = count;
		each->columns = nargs;
		for (int k = 0; k < nargs; k++) {
			lay(&columns[k], (uint64 *) (d->view + at) + k * count, from, to, null);
			each->column[k] = (const uint64 *) (inside + k * count * sizeof(uint64));
			each->numbers |= (uint32) (args[k].way != PLF_WAY_VALUE) << k;
		}
		each->results = (uint64 *) (inside + nargs * count * sizeof(uint64));
		each->returns_number = result->way != PLF_WAY_VALUE;

		progress.each = each;
		progress.first = from;
		progress.count = count;
		error_context_stack = &line;
		plf_enter(&call, d);
		call.numbers = numbers;
		plf_area_of(d)->top = d->base = at + (nargs + 1) * count * sizeof(uint64);
		((void (*)(uint64)) thunk)(d->inside + base);
		d->calls += count;
		numbers->calls += count;
		plf_leave(&call, name);
		error_context_stack = line.previous;

		take(d, result, (const uint64 *) (d->view + at) + nargs * count, data, count);
		data += count * plan->length;
		CHECK_FOR_INTERRUPTS();
	}
	SET_VARSIZE(out, data - (char *) out);
	return PointerGetDatum(out);
}
