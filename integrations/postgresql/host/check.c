/* What modules give as results, checked before the server sees it.
 *
 * The server's own code trusts the layout of its types: an array with wrong dimensions, a number with impossible digits, text in
 * no encoding would be a hole in the server. So each type that can be a result has its check here, and a type that has none is
 * refused when the function is made. Types whose own output function is fenced have no layout that the server knows. */
#include "plfenced.h"

#include "access/tupmacs.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/proclang.h"
#include "datatype/timestamp.h"
#include "mb/pg_wchar.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/geo_decls.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/varbit.h"

#include <emmintrin.h>
#include <sys/socket.h>

typedef enum kind {
	ANYTHING,
	TEXT,
	STRING, /* cstring */
	NAME,
	DATE,
	TIMESTAMP,
	TIME,
	TIME_ZONE,
	NUMERIC,
	BITS,
	PATH_,
	POLYGON_,
	ADDRESS,
	ENUM,
	ARRAY,
	ROW,
	DOMAIN_,
	REFUSED
} kind;

struct plf_result_check {
	kind kind;
	plf_value_type element; /* of an array; the base type of a domain */
	char align;
	bool by_value;
	void *domain; /* what domain_check keeps */
};

static void
bad(Oid type, const char *what)
{
	ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
		errmsg("a fenced function gave a damaged value of type %s", format_type_be(type)), errdetail_internal("%s", what)));
}

/* Whether the functions that know the type's layout are fenced themselves. */
static bool
is_fenced(Oid type)
{
	Oid output, language = InvalidOid, ours = get_language_oid("plfenced", true);
	bool varlena;
	HeapTuple proc;

	if (!get_typisdefined(type))
		return true;
	getTypeOutputInfo(type, &output, &varlena);
	proc = SearchSysCache1(PROCOID, ObjectIdGetDatum(output));
	if (HeapTupleIsValid(proc)) {
		language = ((Form_pg_proc) GETSTRUCT(proc))->prolang;
		ReleaseSysCache(proc);
	}
	return OidIsValid(ours) && language == ours;
}

static kind
kind_of(const plf_value_type *type)
{
	Oid oid = type->oid;

	switch (oid) {
	case TEXTOID:
	case VARCHAROID:
	case BPCHAROID:
	case JSONOID:
	case XMLOID:
	case REFCURSOROID:
		return TEXT;
	case CSTRINGOID:
		return STRING;
	case NAMEOID:
		return NAME;
	case DATEOID:
		return DATE;
	case TIMESTAMPOID:
	case TIMESTAMPTZOID:
		return TIMESTAMP;
	case TIMEOID:
		return TIME;
	case TIMETZOID:
		return TIME_ZONE;
	case NUMERICOID:
		return NUMERIC;
	case BITOID:
	case VARBITOID:
		return BITS;
	case PATHOID:
		return PATH_;
	case POLYGONOID:
		return POLYGON_;
	case INETOID:
	case CIDROID:
		return ADDRESS;
	case RECORDOID:
		return ROW;
	case BYTEAOID:
	case UUIDOID:
	case INTERVALOID:
	case POINTOID:
	case LSEGOID:
	case BOXOID:
	case LINEOID:
	case CIRCLEOID:
	case MACADDROID:
	case MACADDR8OID:
	case TIDOID:
	case VOIDOID:
	case INTERNALOID:
	case TRIGGEROID:
		return ANYTHING;
	}
	if (!get_typisdefined(oid))
		return ANYTHING;
	switch (get_typtype(oid)) {
	case TYPTYPE_DOMAIN:
		return DOMAIN_;
	case TYPTYPE_ENUM:
		return ENUM;
	case TYPTYPE_COMPOSITE:
		return ROW;
	}
	if (type->way == PLF_WAY_VALUE || type->way == PLF_WAY_FLOAT4 || type->way == PLF_WAY_FLOAT8)
		return ANYTHING;
	if (OidIsValid(get_element_type(oid)))
		return ARRAY;
	return is_fenced(oid) ? ANYTHING : REFUSED;
}

static void
refuse(Oid type)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		errmsg("functions in language plfenced cannot return type %s", format_type_be(type)),
		errdetail("The server trusts the layout of such values, and nothing checks it."),
		errhint("Return text, and cast it.")));
}

static plf_result_check *
make(plf_value_type *type)
{
	plf_result_check *c = MemoryContextAllocZero(type->context, sizeof *c);

	c->kind = kind_of(type);
	if (c->kind == ARRAY) {
		Oid element = get_element_type(type->oid);
		int16 length;

		plf_type_resolve(element, &c->element);
		c->element.context = type->context;
		get_typlenbyvalalign(element, &length, &c->by_value, &c->align);
	} else if (c->kind == DOMAIN_) {
		plf_type_resolve(getBaseType(type->oid), &c->element);
		c->element.context = type->context;
	}
	type->any = c->kind == ANYTHING && type->way == PLF_WAY_VALUE;
	return c;
}

void
plf_check_supported(const plf_value_type *type)
{
	kind k = kind_of(type);

	if (k == REFUSED)
		refuse(type->oid);
	if (k == ARRAY || k == DOMAIN_) {
		plf_value_type inner;

		plf_type_resolve(k == ARRAY ? get_element_type(type->oid) : getBaseType(type->oid), &inner);
		if (k == ARRAY && inner.composite)
			refuse(type->oid);
		plf_check_supported(&inner);
	}
}

/* ------------------------------------------------------------------------------------------------ the checks */

/* Whether there are bytes from 1 to 127 only: those are valid in every encoding of a database. */
static inline bool
is_ascii(const char *bytes, Size length)
{
	const __m128i zero = _mm_setzero_si128();
	__m128i ok;

	if (length < sizeof zero) {
		for (Size at = 0; at < length; at++)
			if ((signed char) bytes[at] <= 0)
				return false;
		return true;
	}
	/* The last sixteen bytes, which may overlap those before. */
	ok = _mm_cmpgt_epi8(_mm_loadu_si128((const __m128i *) (bytes + length - sizeof zero)), zero);
	for (Size at = 0; at + sizeof zero <= length; at += sizeof zero)
		ok = _mm_and_si128(ok, _mm_cmpgt_epi8(_mm_loadu_si128((const __m128i *) (bytes + at)), zero));
	return _mm_movemask_epi8(ok) == 0xffff;
}

static void
check_text(const char *bytes, Size length)
{
	if (likely(is_ascii(bytes, length)))
		return;
	pg_verify_mbstr(GetDatabaseEncoding(), bytes, length, false);
}

/* utils/adt/numeric.c describes the format. */
static void
check_numeric(const char *bytes, Size length)
{
	uint16 header;
	int16 digit, first = 1, last = 1;
	Size at;

	if (length < 2 || length % 2 != 0)
		bad(NUMERICOID, "its length");
	memcpy(&header, bytes, 2);
	if ((header & 0xC000) == 0xC000) {
		if ((header != 0xC000 && header != 0xD000 && header != 0xF000) || length != 2)
			bad(NUMERICOID, "its header");
		return;
	}
	at = header & 0x8000 ? 2 : 4;
	if (length < at)
		bad(NUMERICOID, "its length");
	for (Size i = at; i < length; i += 2) {
		memcpy(&digit, bytes + i, 2);
		if (digit < 0 || digit > 9999)
			bad(NUMERICOID, "its digits");
		if (i == at)
			first = digit;
		last = digit;
	}
	if (first == 0 || last == 0)
		bad(NUMERICOID, "its digits begin or end with zeros");
}

static void
check_bits(Oid type, struct varlena *value, Size size)
{
	int32 n;
	Size bytes;

	if (size < VARBITHDRSZ + VARHDRSZ)
		bad(type, "its length");
	n = VARBITLEN(value);
	bytes = size - VARBITHDRSZ - VARHDRSZ;
	if (n < 0 || ((Size) n + BITS_PER_BYTE - 1) / BITS_PER_BYTE != bytes)
		bad(type, "its number of bits");
	if (n % BITS_PER_BYTE != 0 && (VARBITS(value)[bytes - 1] & (BITMASK >> (n % BITS_PER_BYTE))) != 0)
		bad(type, "bits behind its end");
}

static void
check_points(Oid type, Size size, Size header, int32 count)
{
	if (count < 1 || (uint64) header + (uint64) count * sizeof(Point) != size)
		bad(type, "its number of points");
}

static void
check_address(Oid type, struct varlena *value, Size size)
{
	inet_struct *a = (inet_struct *) VARDATA_ANY(value);
	Size n = size - VARHDRSZ;
	int most;

	if (n < offsetof(inet_struct, ipaddr) || (a->family != PGSQL_AF_INET && a->family != PGSQL_AF_INET6))
		bad(type, "its family");
	most = a->family == PGSQL_AF_INET ? 4 : 16;
	if (n != offsetof(inet_struct, ipaddr) + most || a->bits > most * 8)
		bad(type, "its length");
}

static void
check_array(plf_value_type *type, ArrayType *a, Size size)
{
	plf_result_check *c = type->check;
	int64 items = 1;
	int ndim;
	Size at;
	const bits8 *nulls;

	if (size < sizeof(ArrayType))
		bad(type->oid, "its length");
	ndim = ARR_NDIM(a);
	if (ndim < 0 || ndim > MAXDIM || size < ARR_OVERHEAD_NONULLS(ndim))
		bad(type->oid, "its number of dimensions");
	if (ARR_ELEMTYPE(a) != c->element.oid)
		bad(type->oid, "the type of its elements");
	for (int i = 0; i < ndim; i++) {
		if (ARR_DIMS(a)[i] < 0 || (int64) ARR_LBOUND(a)[i] + ARR_DIMS(a)[i] > PG_INT32_MAX)
			bad(type->oid, "its dimensions");
		items *= ARR_DIMS(a)[i];
		if (items > (int64) MaxArraySize)
			bad(type->oid, "its number of elements");
	}
	if (ndim == 0)
		items = 0;
	if (ARR_HASNULL(a) && (Size) a->dataoffset != ARR_OVERHEAD_WITHNULLS(ndim, items))
		bad(type->oid, "the offset of its data");
	at = ARR_DATA_OFFSET(a);
	if (at > size)
		bad(type->oid, "its length");
	nulls = ARR_NULLBITMAP(a);
	for (int64 i = 0; i < items; i++) {
		const char *element;
		Size left, length;

		if (nulls && !(nulls[i / 8] & (1 << (i % 8))))
			continue;
		if (at >= size)
			bad(type->oid, "elements behind its end");
		at = att_align_pointer(at, c->align, c->element.length, (char *) a + at);
		if (at >= size)
			bad(type->oid, "elements behind its end");
		element = (char *) a + at;
		left = size - at;
		if (c->element.length > 0)
			length = c->element.length;
		else if (c->element.length == -2)
			length = strnlen(element, left) + 1;
		else if (left < VARHDRSZ && !VARATT_IS_1B(element))
			length = left + 1;
		else if (VARATT_IS_1B_E(element) || VARATT_IS_4B_C(element))
			bad(type->oid, "compressed or external elements");
		else
			length = VARSIZE_ANY(element);
		if (length > left || (c->element.length == -1 && length < (VARATT_IS_1B(element) ? VARHDRSZ_SHORT : VARHDRSZ)))
			bad(type->oid, "elements behind its end");
		plf_check_result(&c->element, fetch_att(element, c->by_value, c->element.length));
		at += length;
	}
}

/* The columns of a row of `size` bytes, checked, in `values`. */
static void
columns(HeapTupleHeader h, uint64 size, TupleDesc desc, Datum *values, bool *isnull)
{
	int natts = HeapTupleHeaderGetNatts(h);
	bool nulls = (h->t_infomask & HEAP_HASNULL) != 0;
	Oid type = desc->tdtypeid;
	uint64 at = h->t_hoff;

	if (natts > desc->natts)
		bad(type, "its number of columns");
	if (at < MAXALIGN(SizeofHeapTupleHeader + (nulls ? BITMAPLEN(natts) : 0)) || at > size)
		bad(type, "the offset of its data");
	for (int i = 0; i < desc->natts; i++) {
		Form_pg_attribute a = TupleDescAttr(desc, i);
		plf_value_type *column;
		char *p;
		uint64 length, left;

		values[i] = (Datum) 0;
		isnull[i] = true;
		if (i >= natts || (nulls && att_isnull(i, h->t_bits)))
			continue;
		if (a->attisdropped)
			bad(type, "a value in a column that was dropped");
		isnull[i] = false;
		if (at > size || (a->attlen == -1 && at == size))
			bad(type, "columns behind its end");
		at = att_align_pointer(at, a->attalign, a->attlen, (char *) h + at);
		if (at > size)
			bad(type, "columns behind its end");
		p = (char *) h + at;
		left = size - at;
		if (a->attlen > 0)
			length = a->attlen;
		else if (a->attlen == -2)
			length = strnlen(p, left) + 1;
		else if (left < 1 || (left < VARHDRSZ && !VARATT_IS_1B(p)))
			length = left + 1;
		else if (VARATT_IS_1B_E(p) || VARATT_IS_4B_C(p)) {
			bad(type, "compressed or external columns");
			pg_unreachable();
		} else
			length = VARSIZE_ANY(p);
		if (length > left || (a->attlen == -1 && length < (VARATT_IS_1B(p) ? VARHDRSZ_SHORT : VARHDRSZ)))
			bad(type, "columns behind its end");
		at += length;
		column = palloc(sizeof *column);
		plf_type_resolve(a->atttypid, column);
		if (column->way == PLF_WAY_VOID || column->way == PLF_WAY_INTERNAL || column->way == PLF_WAY_TRIGGER)
			bad(type, "a column of a type that no value has");
		values[i] = fetch_att(p, a->attbyval, a->attlen);
		/* The checks of rows within want a plain header. */
		if (a->attlen == -1 && VARATT_IS_1B(p))
			values[i] = PointerGetDatum(pg_detoast_datum_copy((struct varlena *) p));
		else if (!a->attbyval) {
			char *aligned = palloc(length);

			memcpy(aligned, p, length);
			values[i] = PointerGetDatum(aligned);
		}
		values[i] = plf_check_result(column, values[i]);
	}
}

HeapTuple
plf_check_row(const char *bytes, uint64 size, TupleDesc desc)
{
	Datum *values = palloc(sizeof *values * Max(desc->natts, 1));
	bool *isnull = palloc(sizeof *isnull * Max(desc->natts, 1));

	if (size < SizeofHeapTupleHeader)
		bad(desc->tdtypeid, "its length");
	columns((HeapTupleHeader) bytes, size, desc, values, isnull);
	return heap_form_tuple(desc, values, isnull);
}

static Datum
check_composite(plf_value_type *type, Datum value)
{
	HeapTupleHeader h = (HeapTupleHeader) DatumGetPointer(value);
	uint64 size = VARSIZE_4B(h);
	TupleDesc desc;
	HeapTuple tuple;
	Oid oid = type->oid == RECORDOID ? RECORDOID : getBaseType(type->oid);

	if (size < SizeofHeapTupleHeader)
		bad(type->oid, "its length");
	if (oid == RECORDOID) {
		oid = HeapTupleHeaderGetTypeId(h);
		if (oid != RECORDOID && get_typtype(oid) != TYPTYPE_COMPOSITE)
			bad(type->oid, "its type");
		desc = lookup_rowtype_tupdesc_copy(oid, HeapTupleHeaderGetTypMod(h));
	} else
		desc = lookup_rowtype_tupdesc_copy(oid, -1);
	tuple = plf_check_row((char *) h, size, desc);
	return HeapTupleGetDatum(tuple);
}

static bool
is_member(Oid type, Oid member)
{
	HeapTuple tuple = SearchSysCache1(ENUMOID, ObjectIdGetDatum(member));
	bool is = HeapTupleIsValid(tuple) && ((Form_pg_enum) GETSTRUCT(tuple))->enumtypid == type;

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return is;
}

Datum
plf_check_result(plf_value_type *type, Datum value)
{
	struct varlena *v = (struct varlena *) DatumGetPointer(value);
	plf_result_check *c = type->check;

	if (unlikely(!c))
		c = type->check = make(type);
	switch (c->kind) {
	case ANYTHING:
		break;
	case TEXT:
		check_text(VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v));
		break;
	case STRING:
		check_text(DatumGetCString(value), strlen(DatumGetCString(value)));
		break;
	case NAME:
		if (!memchr(DatumGetPointer(value), 0, NAMEDATALEN))
			bad(type->oid, "it does not end");
		check_text(DatumGetPointer(value), strlen(DatumGetPointer(value)));
		break;
	case DATE:
		if (!DATE_NOT_FINITE(DatumGetDateADT(value)) && !IS_VALID_DATE(DatumGetDateADT(value)))
			bad(type->oid, "it is out of range");
		break;
	case TIMESTAMP:
		if (!TIMESTAMP_NOT_FINITE(DatumGetTimestamp(value)) && !IS_VALID_TIMESTAMP(DatumGetTimestamp(value)))
			bad(type->oid, "it is out of range");
		break;
	case TIME:
		if (DatumGetTimeADT(value) < 0 || DatumGetTimeADT(value) > USECS_PER_DAY)
			bad(type->oid, "it is out of range");
		break;
	case TIME_ZONE: {
		TimeTzADT *t = DatumGetTimeTzADTP(value);

		if (t->time < 0 || t->time > USECS_PER_DAY || t->zone <= -16 * SECS_PER_HOUR || t->zone >= 16 * SECS_PER_HOUR)
			bad(type->oid, "it is out of range");
		break;
	}
	case NUMERIC:
		check_numeric(VARDATA_ANY(v), VARSIZE_ANY_EXHDR(v));
		break;
	case BITS:
	case PATH_:
	case POLYGON_:
	case ADDRESS:
	case ARRAY:
	case ROW:
		/* Those have layouts with a header of four bytes. */
		if (VARATT_IS_1B(v))
			v = pg_detoast_datum_copy(v);
		if (c->kind == BITS)
			check_bits(type->oid, v, VARSIZE_4B(v));
		else if (c->kind == ADDRESS)
			check_address(type->oid, v, VARSIZE_4B(v));
		else if (c->kind == ARRAY)
			check_array(type, (ArrayType *) v, VARSIZE_4B(v));
		else if (c->kind == ROW)
			return check_composite(type, PointerGetDatum(v));
		else if (VARSIZE_4B(v) < (c->kind == PATH_ ? offsetof(PATH, p) : offsetof(POLYGON, p)))
			bad(type->oid, "its length");
		else if (c->kind == PATH_)
			check_points(type->oid, VARSIZE_4B(v), offsetof(PATH, p), ((PATH *) v)->npts);
		else
			check_points(type->oid, VARSIZE_4B(v), offsetof(POLYGON, p), ((POLYGON *) v)->npts);
		break;
	case ENUM:
		if (!is_member(type->oid, DatumGetObjectId(value)))
			bad(type->oid, "it is no member of the enumeration");
		break;
	case DOMAIN_:
		value = plf_check_result(&c->element, value);
		domain_check(value, false, type->oid, &c->domain, type->context);
		break;
	case REFUSED:
		refuse(type->oid);
	}
	return value;
}
