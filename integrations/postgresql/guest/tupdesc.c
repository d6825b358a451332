/* Descriptions of rows. */
#include "guest.h"

#include "access/tupdesc.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include <string.h>

RF_IMPORT(int32, plf_tupdesc_bless, (TupleDesc description))

TupleDesc CreateTemplateTupleDesc(int natts)
{
	TupleDesc result = palloc0(offsetof(struct TupleDescData, attrs) + (Size) natts * sizeof(FormData_pg_attribute));

	result->natts = natts;
	result->tdtypeid = RECORDOID;
	result->tdtypmod = -1;
	result->tdrefcount = -1;
	return result;
}

TupleDesc CreateTupleDesc(int natts, Form_pg_attribute *attributes)
{
	TupleDesc result = CreateTemplateTupleDesc(natts);

	for (int i = 0; i < natts; i++)
		memcpy(TupleDescAttr(result, i), attributes[i], ATTRIBUTE_FIXED_PART_SIZE);
	return result;
}

static void forget_constraints(Form_pg_attribute attribute)
{
	attribute->attnotnull = false;
	attribute->atthasdef = false;
	attribute->atthasmissing = false;
	attribute->attidentity = '\0';
	attribute->attgenerated = '\0';
}

void TupleDescCopy(TupleDesc to, TupleDesc from)
{
	memcpy(to, from, TupleDescSize(from));
	for (int i = 0; i < to->natts; i++)
		forget_constraints(TupleDescAttr(to, i));
	to->constr = NULL;
	to->tdrefcount = -1;
}

TupleDesc CreateTupleDescCopy(TupleDesc from)
{
	TupleDesc result = CreateTemplateTupleDesc(from->natts);

	TupleDescCopy(result, from);
	return result;
}

/* Constraints stay with the server. */
TupleDesc CreateTupleDescCopyConstr(TupleDesc from)
{
	TupleDesc result = CreateTupleDescCopy(from);

	for (int i = 0; i < from->natts; i++)
		TupleDescAttr(result, i)->attnotnull = TupleDescAttr(from, i)->attnotnull;
	return result;
}

void TupleDescCopyEntry(TupleDesc to, AttrNumber to_number, TupleDesc from, AttrNumber from_number)
{
	Form_pg_attribute attribute = TupleDescAttr(to, to_number - 1);

	memcpy(attribute, TupleDescAttr(from, from_number - 1), ATTRIBUTE_FIXED_PART_SIZE);
	attribute->attnum = to_number;
	attribute->attcacheoff = -1;
	forget_constraints(attribute);
}

void FreeTupleDesc(TupleDesc description)
{
	pfree(description);
}

void IncrTupleDescRefCount(TupleDesc description)
{
}

void DecrTupleDescRefCount(TupleDesc description)
{
}

bool equalTupleDescs(TupleDesc a, TupleDesc b)
{
	if (a->natts != b->natts || a->tdtypeid != b->tdtypeid)
		return false;
	for (int i = 0; i < a->natts; i++) {
		Form_pg_attribute x = TupleDescAttr(a, i), y = TupleDescAttr(b, i);

		if (strcmp(NameStr(x->attname), NameStr(y->attname)) != 0 || x->atttypid != y->atttypid || x->attlen != y->attlen ||
		    x->attndims != y->attndims || x->atttypmod != y->atttypmod || x->attbyval != y->attbyval ||
		    x->attalign != y->attalign || x->attstorage != y->attstorage || x->attnotnull != y->attnotnull ||
		    x->attisdropped != y->attisdropped || x->attcollation != y->attcollation)
			return false;
	}
	return true;
}

void TupleDescInitEntry(TupleDesc description, AttrNumber number, const char *name, Oid type, int32 typmod, int dimensions)
{
	Form_pg_attribute attribute = TupleDescAttr(description, number - 1);

	memset(attribute, 0, ATTRIBUTE_FIXED_PART_SIZE);
	attribute->attstattarget = -1;
	attribute->attcacheoff = -1;
	attribute->atttypmod = typmod;
	attribute->attnum = number;
	attribute->attndims = dimensions;
	attribute->attislocal = true;
	if (name != NULL)
		namestrcpy(&attribute->attname, name);
	attribute->atttypid = type;
	get_typlenbyvalalign(type, &attribute->attlen, &attribute->attbyval, &attribute->attalign);
	attribute->attstorage = get_typstorage(type);
	attribute->attcompression = '\0';
	attribute->attcollation = get_typcollation(type);
}

void TupleDescInitBuiltinEntry(TupleDesc description, AttrNumber number, const char *name, Oid type, int32 typmod, int dimensions)
{
	TupleDescInitEntry(description, number, name, type, typmod, dimensions);
}

void TupleDescInitEntryCollation(TupleDesc description, AttrNumber number, Oid collation)
{
	TupleDescAttr(description, number - 1)->attcollation = collation;
}

TupleDesc BlessTupleDesc(TupleDesc description)
{
	if (description->tdtypeid == RECORDOID && description->tdtypmod < 0) {
		struct plf_state state;

		plf_state_save(&state);
		description->tdtypmod = plf_tupdesc_bless(description);
		plf_state_restore(&state);
	}
	return description;
}

void assign_record_type_typmod(TupleDesc description)
{
	BlessTupleDesc(description);
}
