/* Calling functions: this module's directly, the server's by their OIDs. */
#include "guest.h"

#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "utils/lsyscache.h"

static Datum call_server(FunctionCallInfo fcinfo)
{
	return plf_server_function(fcinfo->flinfo->fn_oid, fcinfo->fncollation, fcinfo->nargs, fcinfo->args, &fcinfo->isnull);
}

void fmgr_info_cxt(Oid function, FmgrInfo *info, MemoryContext context)
{
	*info = (FmgrInfo){.fn_addr = call_server, .fn_oid = function, .fn_mcxt = context};
}

void fmgr_info(Oid function, FmgrInfo *info)
{
	fmgr_info_cxt(function, info, CurrentMemoryContext);
}

void fmgr_info_copy(FmgrInfo *to, FmgrInfo *from, MemoryContext context)
{
	*to = *from;
	to->fn_mcxt = context;
	to->fn_extra = NULL;
}

static Datum invoke(FunctionCallInfo fcinfo, PGFunction function)
{
	Datum result = function(fcinfo);

	if (unlikely(fcinfo->isnull)) {
		if (fcinfo->flinfo != NULL && fcinfo->flinfo->fn_oid != InvalidOid)
			elog(ERROR, "function %u returned NULL", fcinfo->flinfo->fn_oid);
		elog(ERROR, "function %p returned NULL", (void *) function);
	}
	return result;
}

#define NAMES_0
#define NAMES_1 , Datum a0
#define NAMES_2 NAMES_1, Datum a1
#define NAMES_3 NAMES_2, Datum a2
#define NAMES_4 NAMES_3, Datum a3
#define NAMES_5 NAMES_4, Datum a4
#define NAMES_6 NAMES_5, Datum a5
#define NAMES_7 NAMES_6, Datum a6
#define NAMES_8 NAMES_7, Datum a7
#define NAMES_9 NAMES_8, Datum a8
#define PUT_0
#define PUT_1 fcinfo->args[0] = (NullableDatum){a0, false};
#define PUT_2 PUT_1 fcinfo->args[1] = (NullableDatum){a1, false};
#define PUT_3 PUT_2 fcinfo->args[2] = (NullableDatum){a2, false};
#define PUT_4 PUT_3 fcinfo->args[3] = (NullableDatum){a3, false};
#define PUT_5 PUT_4 fcinfo->args[4] = (NullableDatum){a4, false};
#define PUT_6 PUT_5 fcinfo->args[5] = (NullableDatum){a5, false};
#define PUT_7 PUT_6 fcinfo->args[6] = (NullableDatum){a6, false};
#define PUT_8 PUT_7 fcinfo->args[7] = (NullableDatum){a7, false};
#define PUT_9 PUT_8 fcinfo->args[8] = (NullableDatum){a8, false};

#define WITH_INFO(n)                                                                  \
	Datum FunctionCall##n##Coll(FmgrInfo *info, Oid collation NAMES_##n)          \
	{                                                                             \
		LOCAL_FCINFO(fcinfo, n);                                              \
                                                                                      \
		InitFunctionCallInfoData(*fcinfo, info, n, collation, NULL, NULL);    \
		PUT_##n return invoke(fcinfo, info->fn_addr);                         \
	}                                                                             \
                                                                                      \
	Datum OidFunctionCall##n##Coll(Oid function, Oid collation NAMES_##n)         \
	{                                                                             \
		FmgrInfo info;                                                        \
		LOCAL_FCINFO(fcinfo, n);                                              \
                                                                                      \
		fmgr_info(function, &info);                                           \
		InitFunctionCallInfoData(*fcinfo, &info, n, collation, NULL, NULL);   \
		PUT_##n return invoke(fcinfo, info.fn_addr);                          \
	}

#define DIRECT(n)                                                                     \
	Datum DirectFunctionCall##n##Coll(PGFunction function, Oid collation NAMES_##n) \
	{                                                                             \
		LOCAL_FCINFO(fcinfo, n);                                              \
                                                                                      \
		InitFunctionCallInfoData(*fcinfo, NULL, n, collation, NULL, NULL);    \
		PUT_##n return invoke(fcinfo, function);                              \
	}

#define CALLERS(n)                                                                    \
	Datum CallerFInfoFunctionCall##n(PGFunction function, FmgrInfo *info, Oid collation NAMES_##n) \
	{                                                                             \
		LOCAL_FCINFO(fcinfo, n);                                              \
                                                                                      \
		InitFunctionCallInfoData(*fcinfo, info, n, collation, NULL, NULL);    \
		PUT_##n return invoke(fcinfo, function);                              \
	}

WITH_INFO(0)
WITH_INFO(1)
WITH_INFO(2)
WITH_INFO(3)
WITH_INFO(4)
WITH_INFO(5)
WITH_INFO(6)
WITH_INFO(7)
WITH_INFO(8)
WITH_INFO(9)
DIRECT(1)
DIRECT(2)
DIRECT(3)
DIRECT(4)
DIRECT(5)
DIRECT(6)
DIRECT(7)
DIRECT(8)
DIRECT(9)
CALLERS(1)
CALLERS(2)

/* ------------------------------------------------------------------------------------------------- input and output */

Datum InputFunctionCall(FmgrInfo *info, char *text, Oid ioparam, int32 typmod)
{
	LOCAL_FCINFO(fcinfo, 3);
	Datum result;

	InitFunctionCallInfoData(*fcinfo, info, 3, InvalidOid, NULL, NULL);
	fcinfo->args[0] = (NullableDatum){CStringGetDatum(text), text == NULL};
	fcinfo->args[1] = (NullableDatum){ObjectIdGetDatum(ioparam), false};
	fcinfo->args[2] = (NullableDatum){Int32GetDatum(typmod), false};
	result = info->fn_addr(fcinfo);
	if (fcinfo->isnull != (text == NULL))
		elog(ERROR, text == NULL ? "input function %u returned non-NULL" : "input function %u returned NULL", info->fn_oid);
	return result;
}

Datum OidInputFunctionCall(Oid function, char *text, Oid ioparam, int32 typmod)
{
	FmgrInfo info;

	fmgr_info(function, &info);
	return InputFunctionCall(&info, text, ioparam, typmod);
}

char *OutputFunctionCall(FmgrInfo *info, Datum value)
{
	return DatumGetCString(FunctionCall1(info, value));
}

char *OidOutputFunctionCall(Oid function, Datum value)
{
	return DatumGetCString(OidFunctionCall1(function, value));
}

bytea *SendFunctionCall(FmgrInfo *info, Datum value)
{
	return DatumGetByteaP(FunctionCall1(info, value));
}

bytea *OidSendFunctionCall(Oid function, Datum value)
{
	return DatumGetByteaP(OidFunctionCall1(function, value));
}

/* ------------------------------------------------------------------------------------- what a call knows about itself */

Oid get_fn_expr_rettype(FmgrInfo *info)
{
	return InvalidOid;
}

Oid get_fn_expr_argtype(FmgrInfo *info, int number)
{
	return InvalidOid;
}

bool get_fn_expr_arg_stable(FmgrInfo *info, int number)
{
	return false;
}

bool get_fn_expr_variadic(FmgrInfo *info)
{
	return false;
}

bool has_fn_opclass_options(FmgrInfo *info)
{
	return false;
}

bytea *get_fn_opclass_options(FmgrInfo *info)
{
	ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("operator class options info is absent in function call context")));
}

int AggCheckCallContext(FunctionCallInfo fcinfo, MemoryContext *context)
{
	int kind = fcinfo->context == NULL              ? 0
		: IsA(fcinfo->context, AggState)        ? AGG_CONTEXT_AGGREGATE
		: IsA(fcinfo->context, WindowAggState)  ? AGG_CONTEXT_WINDOW
							: 0;

	if (context != NULL)
		*context = kind != 0 ? (MemoryContext) ((struct plf_aggregate *) fcinfo->context)->memory : NULL;
	return kind;
}

MemoryContext AggGetTempMemoryContext(FunctionCallInfo fcinfo)
{
	return AggCheckCallContext(fcinfo, NULL) != 0 ? &plf_call_context : NULL;
}

bool AggStateIsShared(FunctionCallInfo fcinfo)
{
	return AggCheckCallContext(fcinfo, NULL) != 0;
}
