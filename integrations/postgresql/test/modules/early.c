/* A module whose constructor asks the server for something, before it is in a call of its own. */
#include "postgres.h"

#include "fmgr.h"

PG_MODULE_MAGIC;

static void __attribute__((constructor)) before(void) { elog(NOTICE, "too early"); }

PG_FUNCTION_INFO_V1(early);
Datum early(PG_FUNCTION_ARGS) { PG_RETURN_INT32(1); }
