/* What the catalogue says of types. */
#include "guest.h"

#include "access/tupdesc.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/typcache.h"

RF_IMPORT(void, plf_type_get, (Oid type, struct plf_type *into))
RF_IMPORT(TupleDesc, plf_tupdesc_get, (Oid type, int32 typmod))

/* Types asked for in this transaction. */
#define KEPT 32
static struct {
	uint64 transaction;
	struct plf_type type;
} kept[KEPT];

static const struct plf_type *get(Oid type)
{
	int at = (int) (type % KEPT);

	if (kept[at].type.oid != type || kept[at].transaction != plf_area->transaction) {
		struct plf_type fresh = {0};
		struct plf_state state;

		plf_state_save(&state);
		plf_type_get(type, &fresh);
		plf_state_restore(&state);
		kept[at].type = fresh;
		kept[at].type.oid = type;
		kept[at].transaction = plf_area->transaction;
	}
	return &kept[at].type;
}

void get_typlenbyvalalign(Oid type, int16 *length, bool *by_value, char *align)
{
	const struct plf_type *t = get(type);

	*length = t->length;
	*by_value = t->by_value;
	*align = t->align;
}

void get_typlenbyval(Oid type, int16 *length, bool *by_value)
{
	const struct plf_type *t = get(type);

	*length = t->length;
	*by_value = t->by_value;
}

int16 get_typlen(Oid type)
{
	return get(type)->length;
}

bool get_typbyval(Oid type)
{
	return get(type)->by_value;
}

char get_typstorage(Oid type)
{
	return get(type)->storage;
}

char get_typtype(Oid type)
{
	return get(type)->kind;
}

Oid get_element_type(Oid type)
{
	const struct plf_type *t = get(type);

	return t->length == -1 && t->category == TYPCATEGORY_ARRAY ? t->element : InvalidOid;
}

Oid get_base_element_type(Oid type)
{
	return get_element_type(getBaseType(type));
}

Oid getBaseTypeAndTypmod(Oid type, int32 *typmod)
{
	const struct plf_type *t = get(type);

	if (t->kind == TYPTYPE_DOMAIN && t->base != InvalidOid) {
		*typmod = t->base_typmod;
		return t->base;
	}
	return type;
}

Oid getBaseType(Oid type)
{
	int32 typmod = -1;

	return getBaseTypeAndTypmod(type, &typmod);
}

bool type_is_rowtype(Oid type)
{
	return type == RECORDOID || get_typtype(type) == TYPTYPE_COMPOSITE ||
		(get_typtype(type) == TYPTYPE_DOMAIN && get_typtype(getBaseType(type)) == TYPTYPE_COMPOSITE);
}

bool type_is_enum(Oid type)
{
	return get_typtype(type) == TYPTYPE_ENUM;
}

bool type_is_range(Oid type)
{
	return get_typtype(type) == TYPTYPE_RANGE;
}

bool type_is_multirange(Oid type)
{
	return get_typtype(type) == TYPTYPE_MULTIRANGE;
}

Oid get_typ_typrelid(Oid type)
{
	return get(type)->relation;
}

void getTypeInputInfo(Oid type, Oid *input, Oid *ioparam)
{
	const struct plf_type *t = get(type);

	*input = t->input;
	*ioparam = t->ioparam;
	if (t->input == InvalidOid)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("no input function available for type %u", type)));
}

void getTypeOutputInfo(Oid type, Oid *output, bool *is_varlena)
{
	const struct plf_type *t = get(type);

	*output = t->output;
	*is_varlena = !t->by_value && t->length == -1;
	if (t->output == InvalidOid)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("no output function available for type %u", type)));
}

void getTypeBinaryInputInfo(Oid type, Oid *receive, Oid *ioparam)
{
	const struct plf_type *t = get(type);

	*receive = t->receive;
	*ioparam = t->ioparam;
	if (t->receive == InvalidOid)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("no binary input function available for type %u", type)));
}

void getTypeBinaryOutputInfo(Oid type, Oid *send, bool *is_varlena)
{
	const struct plf_type *t = get(type);

	*send = t->send;
	*is_varlena = !t->by_value && t->length == -1;
	if (t->send == InvalidOid)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("no binary output function available for type %u", type)));
}

void get_type_io_data(Oid type, IOFuncSelector which, int16 *length, bool *by_value, char *align, char *delimiter, Oid *ioparam,
	Oid *function)
{
	const struct plf_type *t = get(type);

	*length = t->length;
	*by_value = t->by_value;
	*align = t->align;
	*delimiter = type == BOXOID ? ';' : ',';
	*ioparam = t->ioparam;
	*function = which == IOFunc_input   ? t->input
		: which == IOFunc_output    ? t->output
		: which == IOFunc_receive   ? t->receive
					    : t->send;
}

/* ---------------------------------------------------------------------------------------------------- row types
 *
 * Each look-up gets the type as it is now. The result is the caller's; it has no reference count. */

TupleDesc lookup_rowtype_tupdesc_noerror(Oid type, int32 typmod, bool no_error)
{
	struct plf_state state;
	TupleDesc result;

	if (type == RECORDOID && typmod < 0) {
		if (!no_error)
			ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("record type has not been registered")));
		return NULL;
	}
	plf_state_save(&state);
	result = plf_tupdesc_get(type, typmod);
	plf_state_restore(&state);
	if (result == NULL && !no_error)
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("type %u is not composite", type)));
	return plf_adopt(result);
}

TupleDesc lookup_rowtype_tupdesc(Oid type, int32 typmod)
{
	return lookup_rowtype_tupdesc_noerror(type, typmod, false);
}

TupleDesc lookup_rowtype_tupdesc_copy(Oid type, int32 typmod)
{
	return CreateTupleDescCopyConstr(lookup_rowtype_tupdesc(type, typmod));
}

TupleDesc lookup_rowtype_tupdesc_domain(Oid type, int32 typmod, bool no_error)
{
	return lookup_rowtype_tupdesc_noerror(getBaseTypeAndTypmod(type, &typmod), typmod, no_error);
}

/* By category: the server's own collatable types are strings and their arrays. */
Oid get_typcollation(Oid type)
{
	const struct plf_type *t = get(type);

	if (type == NAMEOID)
		return C_COLLATION_OID;
	if (t->category == TYPCATEGORY_STRING)
		return DEFAULT_COLLATION_OID;
	if (t->category == TYPCATEGORY_ARRAY && t->element != InvalidOid && t->element != type)
		return get_typcollation(t->element);
	return InvalidOid;
}

bool type_is_collatable(Oid type)
{
	return get_typcollation(type) != InvalidOid;
}
