/* Checks of domains over types: the server's, by way of text. */
#include "guest.h"

#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

void domain_check(Datum value, bool null, Oid type, void **extra, MemoryContext context)
{
	NullableDatum arguments[3] = {
		{(Datum) 0, true}, {ObjectIdGetDatum(type), false}, {Int32GetDatum(-1), false}};
	bool is_null;

	if (!null) {
		Oid output;
		bool is_varlena;

		getTypeOutputInfo(getBaseType(type), &output, &is_varlena);
		arguments[0] = (NullableDatum){CStringGetDatum(OidOutputFunctionCall(output, value)), false};
	}
	plf_server_function(F_DOMAIN_IN, InvalidOid, 3, arguments, &is_null);
}
