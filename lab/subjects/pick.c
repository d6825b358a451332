/* The fault that happens, for sessions of PostgreSQL; natively also a limit of processor time, which the language has by itself. */
#include "lab.h"

#include "postgres.h"
#include "fmgr.h"

#ifndef __ringfence__
#include <sys/resource.h>
#endif

PG_FUNCTION_INFO_V1(lab_pick);
Datum lab_pick(PG_FUNCTION_ARGS)
{
#ifndef __ringfence__
    struct rlimit most = {1, 2};

    setrlimit(RLIMIT_CPU, &most);
#endif
    lab_choose((unsigned)PG_GETARG_INT32(0));
    PG_RETURN_INT32(PG_GETARG_INT32(0));
}
