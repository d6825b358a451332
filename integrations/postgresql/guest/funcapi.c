/* Functions that return sets or rows. */
#include "guest.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"

RF_IMPORT(int, plf_result_type, (FunctionCallInfo fcinfo, Oid *type, TupleDesc *description))
RF_IMPORT(void, plf_set_begin, (ReturnSetInfo *rsinfo))
RF_IMPORT(void, plf_set_put, (ReturnSetInfo *rsinfo, const Datum *values, const bool *isnull, int count))

int work_mem = 4096;

TypeFuncClass get_call_result_type(FunctionCallInfo fcinfo, Oid *type, TupleDesc *description)
{
	struct plf_state state;
	Oid found = InvalidOid;
	TupleDesc columns = NULL;
	int class;

	plf_state_save(&state);
	class = plf_result_type(fcinfo, &found, &columns);
	plf_state_restore(&state);
	if (type != NULL)
		*type = found;
	if (description != NULL)
		*description = plf_adopt(columns);
	return (TypeFuncClass) class;
}

/* ---------------------------------------------------------------------------------------------------- a row per call */

FuncCallContext *init_MultiFuncCall(PG_FUNCTION_ARGS)
{
	MemoryContext context;
	FuncCallContext *calls;

	if (fcinfo->resultinfo == NULL || !IsA(fcinfo->resultinfo, ReturnSetInfo))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		                errmsg("set-valued function called in context that cannot accept a set")));
	if (fcinfo->flinfo->fn_extra != NULL)
		elog(ERROR, "init_MultiFuncCall cannot be called more than once");
	context = AllocSetContextCreate(fcinfo->flinfo->fn_mcxt, "SRF multi-call context", ALLOCSET_SMALL_SIZES);
	calls = MemoryContextAllocZero(context, sizeof *calls);
	calls->multi_call_memory_ctx = context;
	fcinfo->flinfo->fn_extra = calls;
	return calls;
}

FuncCallContext *per_MultiFuncCall(PG_FUNCTION_ARGS)
{
	return fcinfo->flinfo->fn_extra;
}

void end_MultiFuncCall(PG_FUNCTION_ARGS, FuncCallContext *calls)
{
	fcinfo->flinfo->fn_extra = NULL;
	MemoryContextDelete(calls->multi_call_memory_ctx);
}

/* ---------------------------------------------------------------------------------------------- all rows in one call
 *
 * A tuplestore stands for the result of the call in progress: rows go to the server as they are put in. */

struct Tuplestorestate {
	TupleDesc columns; /* of the result, once a row without description was put in */
	int64 count;
};

Tuplestorestate *tuplestore_begin_heap(bool random_access, bool across_transactions, int kilobytes)
{
	Tuplestorestate *store = palloc0(sizeof *store);
	struct plf_state state;

	plf_state_save(&state);
	plf_set_begin(NULL);
	plf_state_restore(&state);
	return store;
}

static void put(Tuplestorestate *store, const Datum *values, const bool *nulls, int count)
{
	struct plf_state state;

	plf_state_save(&state);
	plf_set_put(NULL, values, nulls, count);
	plf_state_restore(&state);
	store->count++;
}

void tuplestore_putvalues(Tuplestorestate *store, TupleDesc description, Datum *values, bool *nulls)
{
	put(store, values, nulls, description->natts);
}

void tuplestore_puttuple(Tuplestorestate *store, HeapTuple tuple)
{
	Datum *values;
	bool *nulls;

	if (store->columns == NULL)
		get_call_result_type(NULL, NULL, &store->columns);
	if (store->columns == NULL)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH), errmsg("return type must be a row type")));
	values = palloc(store->columns->natts * sizeof *values);
	nulls = palloc(store->columns->natts * sizeof *nulls);
	heap_deform_tuple(tuple, store->columns, values, nulls);
	put(store, values, nulls, store->columns->natts);
	pfree(nulls);
	pfree(values);
}

int64 tuplestore_tuple_count(Tuplestorestate *store)
{
	return store->count;
}

void tuplestore_end(Tuplestorestate *store)
{
	pfree(store);
}

void InitMaterializedSRF(FunctionCallInfo fcinfo, bits32 flags)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	TupleDesc description;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
		                errmsg("set-valued function called in context that cannot accept a set")));
	if (!(rsinfo->allowedModes & SFRM_Materialize) || ((flags & MAT_SRF_USE_EXPECTED_DESC) != 0 && rsinfo->expectedDesc == NULL))
		ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR),
		                errmsg("materialize mode required, but it is not allowed in this context")));
	if ((flags & MAT_SRF_USE_EXPECTED_DESC) != 0)
		description = CreateTupleDescCopy(rsinfo->expectedDesc);
	else if (get_call_result_type(fcinfo, NULL, &description) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if ((flags & MAT_SRF_BLESS) != 0)
		BlessTupleDesc(description);
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult = tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0, false, work_mem);
	rsinfo->setDesc = description;
}

void SetSingleFuncCall(FunctionCallInfo fcinfo, bits32 flags)
{
	InitMaterializedSRF(fcinfo, flags);
}

/* ------------------------------------------------------------------------------------------------- rows out of text */

AttInMetadata *TupleDescGetAttInMetadata(TupleDesc description)
{
	int count = description->natts;
	AttInMetadata *meta = palloc(sizeof *meta);

	meta->tupdesc = BlessTupleDesc(description);
	meta->attinfuncs = palloc0(count * sizeof *meta->attinfuncs);
	meta->attioparams = palloc0(count * sizeof *meta->attioparams);
	meta->atttypmods = palloc0(count * sizeof *meta->atttypmods);
	for (int i = 0; i < count; i++) {
		Form_pg_attribute attribute = TupleDescAttr(description, i);
		Oid input;

		if (attribute->attisdropped)
			continue;
		getTypeInputInfo(attribute->atttypid, &input, &meta->attioparams[i]);
		fmgr_info(input, &meta->attinfuncs[i]);
		meta->atttypmods[i] = attribute->atttypmod;
	}
	return meta;
}

HeapTuple BuildTupleFromCStrings(AttInMetadata *meta, char **texts)
{
	int count = meta->tupdesc->natts;
	Datum *values = palloc0(count * sizeof *values);
	bool *nulls = palloc(count * sizeof *nulls);
	HeapTuple tuple;

	for (int i = 0; i < count; i++) {
		nulls[i] = texts[i] == NULL || TupleDescAttr(meta->tupdesc, i)->attisdropped;
		if (!nulls[i])
			values[i] = InputFunctionCall(&meta->attinfuncs[i], texts[i], meta->attioparams[i], meta->atttypmods[i]);
	}
	tuple = heap_form_tuple(meta->tupdesc, values, nulls);
	pfree(values);
	pfree(nulls);
	return tuple;
}
