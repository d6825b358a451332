/* A function that SQL calls: what a row of pg_proc says, and the function of a domain that it stands for. */
#ifndef PLF_FUNCTION_H
#define PLF_FUNCTION_H

#include "plfenced.h"

/* Registers that a plain function's arguments may take. */
#define INTS 6
#define FLOATS 8

/* What calls a function. */
typedef enum plf_use {
	PLF_USE_PLAIN,
	PLF_USE_TRIGGER,
	PLF_USE_AGGREGATE, /* as one of its support functions */
	PLF_USE_WINDOW /* as a window function */
} plf_use;

struct plf_function {
	plf_domain *domain;
	char *module, *name;
	char *text; /* NULL: of a module */
	Oid oid, role;
	uint32 epoch;
	MemoryContext context;
	MemoryContextCallback gone;
	void *thunk;
	plf_use use;
	bool v1, strict, retset, simple, internal;
	bool flat; /* arguments and result are simple, or bytes to copy */
	bool integers; /* arguments and result are, and simple */
	bool for_each; /* a plain function over arrays: arguments and result are their elements' */
	int nargs;
	plf_value_type *args;
	plf_value_type result;
	plf_gist *gist;
	plf_numbers *numbers;
	plf_each_plan *each;
	uint64 address; /* in the domain, of a function of a module for each element */
	/* The module's FmgrInfo for this one, or a text's thunk: valid in the domain's generation, see renew. */
	uint64 flinfo;
	uint32 generation;
	/* Of an aggregate's function: the server's memory of the groups that were last worked on, and the module's for it. */
	MemoryContext groups;
	uint64 memory, memory_epoch;
};

/* Whether values of a type are bytes that may be copied as they are. */
static inline bool
is_bytes(const plf_value_type *t)
{
	return (t->way == PLF_WAY_VARLENA || t->way == PLF_WAY_FIXED) && !t->composite;
}

/* A row's function, bound to a domain; it lives as long as `context`. */
plf_function *plf_function_resolve(Oid oid, MemoryContext context, plf_use use);
/* The function of a DO block's text, likewise, in the current context. */
plf_function *plf_function_of_block(const char *text);
/* The module or the text was replaced, or somebody else calls. */
void plf_function_bind_again(plf_function *f);
/* Makes what is of the domain as it is now: it is another one, or has been reset. */
void plf_function_renew(plf_function *f);

/* Who calls an aggregate's function, for the module. */
struct plf_aggregate plf_aggregate_of(plf_function *f, FunctionCallInfo fcinfo);
/* The module's address of an aggregate's state, and the value by which the server knows the state that a function returned: 0 for 0. */
uint64 plf_state_address(const plf_function *f, Datum value);
Datum plf_state_keep(const plf_function *f, FunctionCallInfo fcinfo, uint64 address);

/* What stands for the window in a window function's call; `flinfo`: the module's FmgrInfo. The address in the domain. */
uint64 plf_put_window(plf_writer *w, uint64 flinfo);

#endif
