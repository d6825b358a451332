/* GiST's support functions: their arguments of type internal, by the number of the function in its operator family. */
#include "plfenced.h"

#include "access/genam.h"
#include "access/gist.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "storage/bufpage.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/regproc.h"
#include "utils/rel.h"
#include "utils/syscache.h"

struct plf_gist {
	int number; /* GIST_..._PROC */
	plf_value_type query; /* of the search in progress, by its operator: not always the declared one */
	MemoryContext context;
	plf_value_type key; /* what entries hold */
	plf_value_type given; /* what is indexed */
	/* Of the call: addresses in the domain. */
	uint64 entry, out, vector, split;
	int count;
};

static void
refuse(Oid function)
{
	ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		errmsg("fenced function %s cannot be called: it takes an argument of type internal", format_procedure(function)),
		errdetail("Such arguments are understood in the support functions of GiST operator classes.")));
}

/* What the operator class with that family and input type stores. */
static Oid
stored(Oid family, Oid input)
{
	Relation rel = table_open(OperatorClassRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	HeapTuple tuple;
	Oid key = input;

	while (HeapTupleIsValid(tuple = systable_getnext(scan))) {
		Form_pg_opclass c = (Form_pg_opclass) GETSTRUCT(tuple);

		if (c->opcfamily == family && c->opcintype == input && OidIsValid(c->opckeytype))
			key = c->opckeytype;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return key;
}

plf_gist *
plf_gist_create(Oid function)
{
	plf_gist *g = NULL;
	Relation rel = table_open(AccessMethodProcedureRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	HeapTuple tuple;

	/* No index of pg_amproc is by function; it is small, and this is once for each caller. */
	while (!g && HeapTupleIsValid(tuple = systable_getnext(scan))) {
		Form_pg_amproc p = (Form_pg_amproc) GETSTRUCT(tuple);
		HeapTuple family;

		if (p->amproc != function)
			continue;
		family = SearchSysCache1(OPFAMILYOID, ObjectIdGetDatum(p->amprocfamily));
		if (HeapTupleIsValid(family)) {
			if (((Form_pg_opfamily) GETSTRUCT(family))->opfmethod == GIST_AM_OID) {
				g = palloc0(sizeof *g);
				g->number = p->amprocnum;
				g->context = CurrentMemoryContext;
				plf_type_resolve(p->amproclefttype, &g->given);
				plf_type_resolve(stored(p->amprocfamily, p->amproclefttype), &g->key);
			}
			ReleaseSysCache(family);
		}
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return g;
}

/* A page with nothing on it but whether it is a leaf, which GIST_LEAF asks for. */
static uint64
put_page(plf_writer *w, bool leaf)
{
	char page[MAXALIGN(SizeOfPageHeaderData) + MAXALIGN(sizeof(GISTPageOpaqueData))] = { 0 };

	((PageHeader) page)->pd_special = MAXALIGN(SizeOfPageHeaderData);
	((GISTPageOpaque) (page + MAXALIGN(SizeOfPageHeaderData)))->flags = leaf ? F_LEAF : 0;
	return plf_put(w, page, sizeof page);
}

static GISTENTRY
entry_of(plf_gist *g, plf_writer *w, const GISTENTRY *host, const plf_value_type *type, uint64 page)
{
	GISTENTRY e;

	memset(&e, 0, sizeof e);
	e.key = DatumGetPointer(host->key) || type->way == PLF_WAY_VALUE || type->way == PLF_WAY_FLOAT8 || type->way == PLF_WAY_FLOAT4
		? plf_put_datum(w, type, host->key)
		: (Datum) 0;
	e.page = (Page) page;
	e.offset = host->offset;
	e.leafkey = host->leafkey;
	return e;
}

static uint64
put_entry(plf_gist *g, plf_writer *w, const GISTENTRY *host, const plf_value_type *type)
{
	GISTENTRY e = entry_of(g, w, host, type, put_page(w, host->page ? GIST_LEAF(host) : host->leafkey));

	return plf_put(w, &e, sizeof e);
}

/* `count` entries; the vector's first is not used by picksplit. */
static uint64
put_vector(plf_gist *g, plf_writer *w, const GistEntryVector *host, int first)
{
	Size size = GEVHDRSZ + sizeof(GISTENTRY) * host->n;
	GistEntryVector *v = palloc0(size);
	uint64 page = put_page(w, false), address;

	v->n = host->n;
	for (int i = first; i < host->n; i++)
		v->vector[i] = entry_of(g, w, &host->vector[i], &g->key, page);
	address = plf_put(w, v, size);
	pfree(v);
	return address;
}

bool
plf_gist_is_query(const plf_gist *g, int argument)
{
	return argument == 1 && (g->number == GIST_CONSISTENT_PROC || g->number == GIST_DISTANCE_PROC);
}

/* The arguments that are internal, by function: the others were put by their types. */
void
plf_gist_put(plf_gist *g, plf_writer *w, FunctionCallInfo fcinfo, NullableDatum *args)
{
	static const char zeros[sizeof(GIST_SPLITVEC)];

	switch (g->number) {
	case GIST_CONSISTENT_PROC:
	case GIST_DISTANCE_PROC:
		args[0].value = put_entry(g, w, (GISTENTRY *) fcinfo->args[0].value, &g->key);
		if (!fcinfo->args[1].isnull) {
			Oid subtype = fcinfo->nargs > 3 ? DatumGetObjectId(fcinfo->args[3].value) : InvalidOid;

			if (!OidIsValid(subtype) || IsPolymorphicType(subtype))
				subtype = g->given.oid;
			if (g->query.oid != subtype) {
				MemoryContext before = MemoryContextSwitchTo(g->context);

				plf_type_resolve(subtype, &g->query);
				MemoryContextSwitchTo(before);
			}
			args[1].value = plf_put_datum(w, &g->query, fcinfo->args[1].value);
		}
		if (fcinfo->nargs > 4)
			args[4].value = g->out = plf_put(w, DatumGetPointer(fcinfo->args[4].value), sizeof(bool));
		break;
	case GIST_UNION_PROC:
		args[0].value = put_vector(g, w, (GistEntryVector *) fcinfo->args[0].value, 0);
		args[1].value = g->out = plf_put(w, zeros, sizeof(int));
		break;
	case GIST_COMPRESS_PROC:
	case GIST_DECOMPRESS_PROC:
	case GIST_FETCH_PROC: {
		const GISTENTRY *e = (GISTENTRY *) fcinfo->args[0].value;
		bool is_given = g->number == GIST_COMPRESS_PROC && e->leafkey;

		args[0].value = g->entry = put_entry(g, w, e, is_given ? &g->given : &g->key);
		break;
	}
	case GIST_PENALTY_PROC:
		args[0].value = put_entry(g, w, (GISTENTRY *) fcinfo->args[0].value, &g->key);
		args[1].value = put_entry(g, w, (GISTENTRY *) fcinfo->args[1].value, &g->key);
		args[2].value = g->out = plf_put(w, DatumGetPointer(fcinfo->args[2].value), sizeof(float));
		break;
	case GIST_PICKSPLIT_PROC: {
		const GistEntryVector *v = (GistEntryVector *) fcinfo->args[0].value;

		g->count = v->n - 1;
		args[0].value = put_vector(g, w, v, FirstOffsetNumber);
		args[1].value = g->split = plf_put(w, zeros, sizeof(GIST_SPLITVEC));
		break;
	}
	case GIST_EQUAL_PROC:
		/* Declared with the type of what is indexed, and called with what is stored. */
		for (int i = 0; i < 2; i++)
			args[i].value = plf_put_datum(w, &g->key, fcinfo->args[i].value);
		args[2].value = g->out = plf_put(w, zeros, sizeof(bool));
		break;
	default:
		refuse(fcinfo->flinfo->fn_oid);
	}
}

/* One side of a split. Each entry has to be on one side, once. */
static OffsetNumber *
get_side(plf_gist *g, plf_domain *d, uint64 from, int count, bool *seen)
{
	OffsetNumber *side;

	if (count < 0 || count > g->count)
		ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg("a fenced function split a page into impossible halves")));
	side = palloc(sizeof *side * (count + 1));
	if (count > 0)
		plf_copy_out(d, from, side, sizeof *side * count);
	for (int i = 0; i < count; i++) {
		if (side[i] < FirstOffsetNumber || side[i] > g->count || seen[side[i]])
			ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
				errmsg("a fenced function split a page into halves that are no partition of its entries")));
		seen[side[i]] = true;
	}
	return side;
}

static void
get_split(plf_gist *g, plf_domain *d, GIST_SPLITVEC *host)
{
	GIST_SPLITVEC v;
	bool *seen = palloc0(g->count + 1);

	plf_copy_out(d, g->split, &v, sizeof v);
	host->spl_left = get_side(g, d, (uint64) v.spl_left, v.spl_nleft, seen);
	host->spl_right = get_side(g, d, (uint64) v.spl_right, v.spl_nright, seen);
	if (v.spl_nleft + v.spl_nright != g->count)
		ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
			errmsg("a fenced function split a page into halves that are no partition of its entries")));
	host->spl_nleft = v.spl_nleft;
	host->spl_nright = v.spl_nright;
	host->spl_ldatum = plf_get_datum(d, &g->key, v.spl_ldatum);
	host->spl_rdatum = plf_get_datum(d, &g->key, v.spl_rdatum);
	host->spl_ldatum_exists = host->spl_rdatum_exists = false;
	pfree(seen);
}

/* The size in bytes of a key, as union tells it to the server. */
static int
size_of(const plf_value_type *type, Datum key)
{
	if (type->way == PLF_WAY_VARLENA)
		return VARSIZE_ANY(DatumGetPointer(key));
	return type->length;
}

Datum
plf_gist_get(plf_gist *g, plf_domain *d, FunctionCallInfo fcinfo, Datum result)
{
	switch (g->number) {
	case GIST_CONSISTENT_PROC:
	case GIST_DISTANCE_PROC:
		if (fcinfo->nargs > 4) {
			uint8 recheck;

			plf_copy_out(d, g->out, &recheck, sizeof recheck);
			*(bool *) DatumGetPointer(fcinfo->args[4].value) = recheck != 0;
		}
		return g->number == GIST_CONSISTENT_PROC ? BoolGetDatum((result & 0xff) != 0) : result;
	case GIST_UNION_PROC: {
		Datum key = plf_get_datum(d, &g->key, result);

		*(int *) DatumGetPointer(fcinfo->args[1].value) = size_of(&g->key, key);
		return key;
	}
	case GIST_COMPRESS_PROC:
	case GIST_DECOMPRESS_PROC:
	case GIST_FETCH_PROC: {
		GISTENTRY *host = (GISTENTRY *) fcinfo->args[0].value, e, *made;
		plf_value_type *type = g->number == GIST_FETCH_PROC ? &g->given : &g->key;

		if (result == g->entry)
			return PointerGetDatum(host);
		plf_copy_out(d, result, &e, sizeof e);
		made = palloc(sizeof *made);
		gistentryinit(*made, e.key == 0 && type->way != PLF_WAY_VALUE ? (Datum) 0 : plf_get_datum(d, type, e.key), host->rel,
			host->page, host->offset, (*(uint8 *) &e.leafkey) != 0);
		return PointerGetDatum(made);
	}
	case GIST_PENALTY_PROC:
		plf_copy_out(d, g->out, DatumGetPointer(fcinfo->args[2].value), sizeof(float));
		return fcinfo->args[2].value;
	case GIST_PICKSPLIT_PROC:
		get_split(g, d, (GIST_SPLITVEC *) fcinfo->args[1].value);
		return fcinfo->args[1].value;
	case GIST_EQUAL_PROC: {
		uint8 same;

		plf_copy_out(d, g->out, &same, sizeof same);
		*(bool *) DatumGetPointer(fcinfo->args[2].value) = same != 0;
		return fcinfo->args[2].value;
	}
	default:
		refuse(fcinfo->flinfo->fn_oid);
		pg_unreachable();
	}
}
