/* The part of the library that each module carries: what the server reaches by name. */
#include "guest.h"

RF_EXPORT struct plf_area *plf_area;
RF_EXPORT const uint32 plf_version = PLF_ABI_VERSION;
RF_EXPORT const uint32 plf_server_version = PG_VERSION_NUM;

RF_EXPORT void plf_release(void)
{
	error_context_stack = NULL;
	PG_exception_stack = NULL;
	plf_errors = -1;
	plf_memory_release();
}

RF_EXPORT FmgrInfo *plf_flinfo_create(Oid function, int nargs, int flags)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "function", ALLOCSET_SMALL_SIZES);
	struct plf_flinfo *own = MemoryContextAllocZero(context, sizeof *own);
	FmgrInfo *info = &own->info;

	info->fn_oid = function;
	info->fn_nargs = nargs;
	info->fn_strict = (flags & PLF_FLINFO_STRICT) != 0;
	info->fn_retset = (flags & PLF_FLINFO_RETSET) != 0;
	info->fn_mcxt = context;
	return info;
}

RF_EXPORT void plf_flinfo_destroy(FmgrInfo *info)
{
	MemoryContextDelete(info->fn_mcxt);
}

RF_EXPORT MemoryContext plf_memory_create(void)
{
	return AllocSetContextCreate(TopMemoryContext, "aggregate", ALLOCSET_SMALL_SIZES);
}

RF_EXPORT void plf_memory_destroy(MemoryContext memory)
{
	MemoryContextDelete(memory);
}
