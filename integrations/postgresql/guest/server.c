/* Functions of the server's, by OID. */
#include "guest.h"

RF_IMPORT(Datum, plf_function_call, (Oid function, Oid collation, int nargs, const NullableDatum *args, bool *isnull))

Datum plf_server_function(Oid function, Oid collation, int nargs, const NullableDatum *args, bool *isnull)
{
	struct plf_state state;
	uint64 top = plf_area->top, offset;
	Datum result;

	plf_state_save(&state);
	*isnull = false;
	result = plf_function_call(function, collation, nargs, args, isnull);
	plf_state_restore(&state);
	/* A result that is a chunk put into the area just now goes where the caller works. */
	offset = (uint64) result - (uint64) plf_area;
	if (CurrentMemoryContext != &plf_call_context && !*isnull && offset > top && offset < plf_area->top &&
	    result == MAXALIGN(result) && MemoryContextContains(&plf_call_context, (void *) result))
		result = PointerGetDatum(plf_adopt((void *) result));
	return result;
}

/* What the builtins that modules call by name are: builtins.c has a line for each. */
Datum plf_forward(FunctionCallInfo fcinfo, Oid function)
{
	return plf_server_function(function, fcinfo->fncollation, fcinfo->nargs, fcinfo->args, &fcinfo->isnull);
}
