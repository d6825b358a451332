/* Functions of the server's, by OID. */
#include "guest.h"

RF_IMPORT(Datum, plf_function_call, (Oid function, Oid collation, int nargs, const NullableDatum *args, bool *isnull))

Datum plf_server_function(Oid function, Oid collation, int nargs, const NullableDatum *args, bool *isnull)
{
	struct plf_state state;
	Datum result;

	plf_state_save(&state);
	*isnull = false;
	result = plf_function_call(function, collation, nargs, args, isnull);
	plf_state_restore(&state);
	return result;
}

/* What the builtins that modules call by name are: builtins.c has a line for each. */
Datum plf_forward(FunctionCallInfo fcinfo, Oid function)
{
	return plf_server_function(function, fcinfo->fncollation, fcinfo->nargs, fcinfo->args, &fcinfo->isnull);
}
