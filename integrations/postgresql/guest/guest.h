/* What the files of this library share. The library defines, for modules inside the fence, what PostgreSQL's headers declare. */
#ifndef PLFENCED_GUEST_H
#define PLFENCED_GUEST_H

#include "../include/plfenced_abi.h"

#include "common/int.h"
#include "utils/memutils.h"
#include "utils/palloc.h"

#include <ringfence/module.h>

extern struct plf_area *plf_area;

/* The context of the call in progress: it lives in the call area. */
extern MemoryContextData plf_call_context;

/* What a call of the server's must not find changed, and must not see: the server may call this module again meanwhile. */
struct plf_state {
	MemoryContext context;
	sigjmp_buf *exception;
	struct ErrorContextCallback *callbacks;
	int errors;
};
void plf_state_save(struct plf_state *);
void plf_state_restore(const struct plf_state *);

/* The FmgrInfo of one of the server's callers. */
struct plf_flinfo {
	FmgrInfo info;
	void *partition; /* what WinGetPartitionLocalMemory gives out */
	Size partition_size;
};

/* Number of errors being collected, less one. */
extern int plf_errors;

/* Forgets the errors, the memory and the connections of a call that is over. */
void plf_memory_release(void);

/* What an import has put into the call area, moved to the context in which the caller works: it may outlive the call. */
void *plf_adopt(void *pointer);

/* Like plf_function_call of the imports, and safe against being called again meanwhile. */
Datum plf_server_function(Oid function, Oid collation, int nargs, const NullableDatum *args, bool *isnull);

#endif
