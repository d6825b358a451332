/* Values on their way into a domain and back. What goes in is laid into the call area, or into the domain's heap when it is too
 * large; what comes back is copied once and checked. */
#include "plfenced.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

void
plf_type_resolve(Oid oid, plf_value_type *into)
{
	bool by_value;

	memset(into, 0, sizeof *into);
	into->oid = oid;
	into->context = CurrentMemoryContext;
	switch (oid) {
	case VOIDOID:
		into->way = PLF_WAY_VOID;
		return;
	case FLOAT4OID:
		into->way = PLF_WAY_FLOAT4;
		into->length = 4;
		return;
	case FLOAT8OID:
		into->way = PLF_WAY_FLOAT8;
		into->length = 8;
		return;
	case CSTRINGOID:
		into->way = PLF_WAY_CSTRING;
		into->length = -2;
		return;
	case INTERNALOID:
		into->way = PLF_WAY_INTERNAL;
		into->length = 8;
		return;
	case TRIGGEROID:
		into->way = PLF_WAY_TRIGGER;
		into->length = 8;
		return;
	case RECORDOID:
		into->way = PLF_WAY_VARLENA;
		into->length = -1;
		into->composite = true;
		return;
	}
	if (!get_typisdefined(oid)) {
		/* A shell: its input function is being made. */
		into->way = PLF_WAY_VARLENA;
		into->length = -1;
		return;
	}
	if (get_typtype(oid) == TYPTYPE_PSEUDO)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("functions in language plfenced cannot take or return type %s", format_type_be(oid)),
			IsPolymorphicType(oid) ? errhint("Make a function for each type that is needed.") : 0));
	get_typlenbyval(oid, &into->length, &by_value);
	into->composite = get_typtype(getBaseType(oid)) == TYPTYPE_COMPOSITE;
	if (by_value)
		into->way = PLF_WAY_VALUE;
	else
		into->way = into->length == -1 ? PLF_WAY_VARLENA : into->length == -2 ? PLF_WAY_CSTRING : PLF_WAY_FIXED;
}

/* -------------------------------------------------------------------------------------------------------- in */

/* What stands in front of a chunk of the module's palloc: its size, and its context. */
struct chunk {
	uint64 size, context;
};

static char *
reserve(plf_writer *w, uint64 size, uint64 *address)
{
	plf_domain *d;
	void *given;

	w->top = MAXALIGN(w->top);
	if (likely(size <= PLF_AREA_SIZE && w->top <= PLF_AREA_SIZE - size)) {
		char *to = w->domain->view + w->top;

		*address = w->domain->inside + w->top;
		w->top += size;
		return to;
	}
	d = w->domain;
	if (d->heap_used == d->heap_size) {
		int larger = Max(16, d->heap_size * 2);

		d->heap = d->heap ? repalloc(d->heap, larger * sizeof *d->heap)
				  : MemoryContextAlloc(TopMemoryContext, larger * sizeof *d->heap);
		d->heap_size = larger;
	}
	given = rf_memory_alloc(d->handle, size);
	if (!given) {
		rf_error_clear();
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY),
			errmsg("a value of " UINT64_FORMAT " bytes does not fit into the domain of module \"%s\"", size,
				d->module->name),
			errhint("The limit is plfenced.memory_limit.")));
	}
	d->heap[d->heap_used++] = given;
	*address = (uint64) given;
	return NULL;
}

char *
plf_reserve(plf_writer *w, uint64 size, uint64 *address)
{
	struct chunk header = { size, 0 };
	char *to;

	if (likely(!w->chunks))
		return reserve(w, size, address);
	to = reserve(w, size + sizeof header, address);
	/* Without a context it is the server's, and pfree leaves it alone. */
	if (to) {
		header.context = w->domain->call_context;
		memcpy(to, &header, sizeof header);
		to += sizeof header;
	} else if (rf_memory_write(w->domain->handle, (void *) *address, &header, sizeof header) != RF_OK)
		plf_throw_library("copying a value into a domain");
	*address += sizeof header;
	return to;
}

/* Copies into what plf_reserve gave. */
static void
fill(plf_writer *w, char *to, uint64 address, uint64 offset, const void *from, uint64 size)
{
	if (likely(to != NULL))
		memcpy(to + offset, from, size);
	else if (rf_memory_write(w->domain->handle, (void *) (address + offset), from, size) != RF_OK)
		plf_throw_library("copying a value into a domain");
}

uint64
plf_put(plf_writer *w, const void *from, uint64 size)
{
	uint64 address;
	char *to = plf_reserve(w, size, &address);

	fill(w, to, address, 0, from, size);
	return address;
}

static uint64
put_varlena(plf_writer *w, struct varlena *packed)
{
	uint64 size = VARSIZE_ANY_EXHDR(packed) + VARHDRSZ, address;
	char *to = plf_reserve(w, size, &address);
	varattrib_4b header;

	SET_VARSIZE(&header, size);
	fill(w, to, address, 0, &header, VARHDRSZ);
	fill(w, to, address, VARHDRSZ, VARDATA_ANY(packed), size - VARHDRSZ);
	return address;
}

/* A row without compressed or foreign parts: the module has no means to get at those. */
static struct varlena *
flat_row(Datum value)
{
	HeapTupleHeader h = DatumGetHeapTupleHeader(value);
	TupleDesc desc;
	struct varlena *flat = (struct varlena *) h;

	if (HeapTupleHeaderGetNatts(h) == 0 || !(h->t_infomask & (HEAP_HASEXTERNAL | HEAP_HASVARWIDTH)))
		return flat;
	desc = lookup_rowtype_tupdesc(HeapTupleHeaderGetTypeId(h), HeapTupleHeaderGetTypMod(h));
	flat = (struct varlena *) DatumGetPointer(toast_flatten_tuple_to_datum(h, HeapTupleHeaderGetDatumLength(h), desc));
	ReleaseTupleDesc(desc);
	return flat;
}

Datum
plf_put_datum(plf_writer *w, const plf_value_type *type, Datum value)
{
	switch (type->way) {
	case PLF_WAY_VALUE:
	case PLF_WAY_FLOAT4:
	case PLF_WAY_FLOAT8:
		return value;
	case PLF_WAY_VARLENA: {
		struct varlena *given = (struct varlena *) DatumGetPointer(value);
		struct varlena *flat = type->composite ? flat_row(value) : pg_detoast_datum_packed(given);
		uint64 address = put_varlena(w, flat);

		if (flat != given)
			pfree(flat);
		return address;
	}
	case PLF_WAY_CSTRING:
		return plf_put(w, DatumGetCString(value), strlen(DatumGetCString(value)) + 1);
	case PLF_WAY_FIXED:
		return plf_put(w, DatumGetPointer(value), type->length);
	default:
		elog(ERROR, "value of type %s cannot be passed", format_type_be(type->oid));
	}
}

Datum
plf_lay(plf_domain *d, const plf_value_type *type, Datum value, uint64 *top)
{
	struct varlena *given = (struct varlena *) DatumGetPointer(value);
	uint64 at = *top, room = PLF_AREA_SIZE - at, size;
	char *to = d->view + at;

	if (type->way == PLF_WAY_FIXED) {
		size = type->length;
		if (size > room)
			return 0;
		memcpy(to, given, size);
	} else if (VARATT_IS_EXTERNAL_ONDISK(given)) {
		struct varatt_external out;
		Relation rel;

		VARATT_EXTERNAL_GET_POINTER(out, given);
		size = (uint64) VARATT_EXTERNAL_GET_EXTSIZE(out) + VARHDRSZ;
		if (VARATT_EXTERNAL_IS_COMPRESSED(out) || size == VARHDRSZ || size > room)
			return 0;
		/* Straight to where the module reads it: the server writes there, and reads nothing back. */
		rel = table_open(out.va_toastrelid, AccessShareLock);
		table_relation_fetch_toast_slice(rel, out.va_valueid, size - VARHDRSZ, 0, size - VARHDRSZ, (struct varlena *) to);
		table_close(rel, AccessShareLock);
		SET_VARSIZE(to, size);
	} else if (VARATT_IS_EXTERNAL(given) || VARATT_IS_COMPRESSED(given)) {
		return 0;
	} else {
		size = (uint64) VARSIZE_ANY_EXHDR(given) + VARHDRSZ;
		if (size > room)
			return 0;
		SET_VARSIZE(to, size);
		memcpy(to + VARHDRSZ, VARDATA_ANY(given), size - VARHDRSZ);
	}
	*top = at + MAXALIGN(size);
	return d->inside + at;
}

void
plf_writer_begin(plf_writer *w, plf_domain *d, uint64 top)
{
	w->domain = d;
	w->top = top;
	w->mark = d->heap_used;
	w->chunks = false;
}

void
plf_writer_end(plf_writer *w)
{
	if (unlikely(w->domain->heap_used > w->mark))
		plf_domain_free_to(w->domain, w->mark);
}

uint64
plf_put_tupdesc(plf_writer *w, TupleDesc desc)
{
	uint64 size = offsetof(TupleDescData, attrs) + desc->natts * sizeof(FormData_pg_attribute), address;
	TupleDesc copy = palloc0(size);
	char *to;

	memcpy(copy, desc, offsetof(TupleDescData, attrs));
	copy->constr = NULL;
	copy->tdrefcount = -1;
	for (int i = 0; i < desc->natts; i++) {
		memcpy(TupleDescAttr(copy, i), TupleDescAttr(desc, i), ATTRIBUTE_FIXED_PART_SIZE);
		TupleDescAttr(copy, i)->attcacheoff = -1;
	}
	to = plf_reserve(w, size, &address);
	fill(w, to, address, 0, copy, size);
	pfree(copy);
	return address;
}

uint64
plf_put_tuple(plf_writer *w, HeapTuple tuple, TupleDesc desc)
{
	Datum row = heap_copy_tuple_as_datum(tuple, desc);
	HeapTupleHeader h = DatumGetHeapTupleHeader(row);
	struct varlena *flat = (struct varlena *) DatumGetPointer(
		toast_flatten_tuple_to_datum(h, HeapTupleHeaderGetDatumLength(h), desc));
	HeapTupleData t;

	memset(&t, 0, sizeof t);
	t.t_len = VARSIZE_ANY_EXHDR(flat) + VARHDRSZ;
	t.t_self = tuple->t_self;
	t.t_tableOid = tuple->t_tableOid;
	t.t_data = (HeapTupleHeader) plf_put(w, flat, t.t_len);
	pfree(flat);
	return plf_put(w, &t, sizeof t);
}

/* ------------------------------------------------------------------------------------------------------- out */

static pg_noinline void
read_memory(plf_domain *d, uint64 from, void *to, uint64 size)
{
	if (rf_memory_read(d->handle, (void *) from, to, size) != RF_OK) {
		rf_error_clear();
		ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
			errmsg("module \"%s\" gave an address that is not its own", d->module->name)));
	}
}

static inline void
copy_out(plf_domain *d, uint64 from, void *to, uint64 size)
{
	uint64 at = from - d->inside;

	if (likely(at < PLF_AREA_SIZE && size <= PLF_AREA_SIZE - at))
		memcpy(to, d->view + at, size);
	else if (size > 0)
		read_memory(d, from, to, size);
}

void
plf_copy_out(plf_domain *d, uint64 from, void *to, uint64 size)
{
	copy_out(d, from, to, size);
}

/* A copy of the string at `from`, at most `most` bytes long; an error if it does not end there, or is not the domain's. */
static char *
read_string(plf_domain *d, uint64 from, Size most, Size *length)
{
	for (Size capacity = 256;; capacity *= 4) {
		Size size = Min(capacity, most + 1);
		char *copy = palloc_extended(size, MCXT_ALLOC_HUGE);

		if (rf_memory_read_string(d->handle, (void *) from, copy, size, length) == RF_OK)
			return copy;
		if (rf_error()->status != RF_ERROR_TOO_LONG || capacity > most) {
			rf_error_clear();
			ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				errmsg("module \"%s\" gave a string that does not end, or is not its own", d->module->name)));
		}
		rf_error_clear();
		pfree(copy);
	}
}

char *
plf_copy_string(plf_domain *d, uint64 from, Size most)
{
	Size length;
	char *copy;

	if (from == 0)
		return NULL;
	copy = read_string(d, from, most, &length);
	/* Messages with bytes that the client could not take. */
	if (!pg_verifymbstr(copy, length, true)) {
		for (Size i = 0; i < length; i++)
			if (IS_HIGHBIT_SET(copy[i]))
				copy[i] = '?';
	}
	return copy;
}

static Datum
by_value(plf_value_type *type, Datum v)
{
	switch (type->length) {
	case 1:
		return type->oid == BOOLOID ? BoolGetDatum((v & 0xff) != 0) : CharGetDatum((char) v);
	case 2:
		return Int16GetDatum((int16) v);
	case 4:
		return Int32GetDatum((int32) v);
	default:
		return v;
	}
}

Datum
plf_get_datum(plf_domain *d, plf_value_type *type, Datum value)
{
	uint64 size;
	char *copy;

	switch (type->way) {
	case PLF_WAY_VOID:
		return (Datum) 0;
	case PLF_WAY_FLOAT4:
		return Int32GetDatum((int32) value);
	case PLF_WAY_FLOAT8:
		return value;
	case PLF_WAY_VALUE:
		value = by_value(type, value);
		return likely(type->any) ? value : plf_check_result(type, value);
	case PLF_WAY_CSTRING: {
		Size length;

		return plf_check_result(type, CStringGetDatum(read_string(d, value, MaxAllocSize - 1, &length)));
	}
	case PLF_WAY_FIXED:
		size = type->length;
		copy = palloc(size);
		copy_out(d, value, copy, size);
		break;
	case PLF_WAY_VARLENA: {
		varattrib_4b header;

		copy_out(d, value, &header, VARHDRSZ);
		/* The plain form with a header of four bytes; the short one that some functions make of what they were given. */
		if (VARATT_IS_1B(&header) && !VARATT_IS_1B_E(&header)) {
			uint64 n = VARSIZE_1B(&header) - VARHDRSZ_SHORT;

			size = n + VARHDRSZ;
			copy = palloc(size);
			copy_out(d, value + VARHDRSZ_SHORT, copy + VARHDRSZ, n);
		} else if (VARATT_IS_4B_U(&header)) {
			size = VARSIZE_4B(&header);
			if (size < VARHDRSZ || size > MaxAllocSize)
				ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
					errmsg("a fenced function returned a value of " UINT64_FORMAT " bytes", size)));
			copy = palloc(size);
			copy_out(d, value, copy, size);
		} else
			ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				errmsg("a fenced function returned a compressed or external value")));
		/* The module may have changed it since the length was read. */
		SET_VARSIZE(copy, size);
		break;
	}
	default:
		elog(ERROR, "value of type %s cannot be returned", format_type_be(type->oid));
	}
	return plf_check_result(type, PointerGetDatum(copy));
}
