/* What the files of the extension share. Files import one way: error, cancel, stat; module; domain; type; convert, check; callback
 * (report, query, window); call (function, each, gist, aggregate); entry. */
#ifndef PLFENCED_H
#define PLFENCED_H

#include "postgres.h"

#include "access/htup_details.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "funcapi.h"
#include "lib/ilist.h"
#include "nodes/execnodes.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/tuplestore.h"

#include <ringfence.h>

#include "../include/plfenced_abi.h"

/* Only the server's entry points are for others. */
#pragma GCC visibility push(hidden)

/* Bytes of memory that the server and a domain share. */
#define PLF_AREA_SIZE ((uint64)1 << 20)

/* ----------------------------------------------------------------------------------------------- settings */

enum plf_keep { PLF_KEEP, PLF_KEEP_TRANSACTION, PLF_KEEP_CALL };

extern int plf_memory_limit; /* KiB */
extern int plf_time_limit; /* ms */
extern int plf_state; /* an enum plf_keep */
extern int plf_trace; /* frames of a backtrace in DETAIL */

/* ------------------------------------------------------------------------------------------------ modules */

/* A version of an installed module, verified once in a session, as long as which it lives; or of a function's text. */
typedef struct plf_module {
	dlist_node link;
	char *name; /* of a text: the function that it is for */
	uint8 hash[32]; /* SHA-256 of its bytes */
	rf_module *handle; /* NULL for a text */
	Oid oid; /* of a text: the function */
	char *text;
	bool current; /* false: replaced or removed since; domains of it end with the transaction */
	bool changed; /* of a text: the function may be another one, or gone */
	int domains; /* there are of it */
} plf_module;

/* The module installed under that name; an error if there is none. */
extern plf_module *plf_module_get(const char *name);
/* The text of a function; InvalidOid: of a block. */
extern plf_module *plf_module_of_text(Oid oid, const char *name, const char *text);
extern void plf_module_init(void);
/* Forgets texts that no domain is of. */
extern void plf_module_sweep(void);
/* Changes when modules may have been replaced or removed. */
extern uint32 plf_module_epoch;
/* Whether the present user may make functions of the module: its owner, or a member of the owner's role. */
extern void plf_module_check_usage(const char *name);

/* ------------------------------------------------------------------------------- errors and interruptions */

struct plf_domain;
/* How the module's call that just failed ended, as an SQL error. */
extern void plf_throw(struct plf_domain *domain, const char *function) pg_attribute_noreturn();
/* The same for an operation of the library. */
extern void plf_throw_library(const char *what) pg_attribute_noreturn();

/* Not 0 while calls have to end because the statement is cancelled or the session ends. */
extern volatile int plf_cancel;
extern void plf_cancel_init(void);
/* Before a call: takes back what an earlier cancel has left. */
extern void plf_cancel_check(void);

/* --------------------------------------------------------------------------------------------- statistics */

/* What a function has done. */
typedef struct plf_numbers {
	int64 calls, faults, errors;
	int64 memory; /* the most that a domain of it was seen to have, in bytes */
	TimestampTz looked; /* when that was */
} plf_numbers;

extern void plf_stat_init(void);
/* Where the session counts for a function: stays until it ends. */
extern plf_numbers *plf_stat_of(Oid function);
/* Notes the memory of a domain that the function has used, now and then. */
extern void plf_stat_look(plf_numbers *numbers, struct plf_domain *domain);
/* At a transaction's end: for all sessions to see. */
extern void plf_stat_flush(void);

/* ------------------------------------------------------------------------------------------------ domains */

/* The domain of a role and a module in this session. */
typedef struct plf_domain {
	dlist_node link;
	Oid role;
	plf_module *module;
	rf_domain *handle;
	rf_runtime *runtime; /* of a text: what the domain is of, and the function; NULL otherwise */
	rf_function *function;
	rf_function *each; /* of a text: its loop over arrays, once that was asked for */
	rf_region *region;
	char *view; /* of the call area: the server's address of it */
	uint64 inside; /* and the domain's */
	uint64 call_context; /* the domain's address of the context in which its palloc works during calls */
	uint64 base; /* offset in the area behind the frames of the calls in progress */
	int depth; /* calls in progress */
	int users; /* functions that are kept for their callers */
	uint32 generation; /* other than before after each reset: what was allocated inside is gone */
	bool abandoned; /* a call was left in the middle: the library puts itself in order before the next */
	LocalTransactionId transaction;
	void (*release)(void);
	uint64 (*flinfo_create)(Oid, int, int);
	void (*flinfo_destroy)(uint64);
	uint64 (*memory_create)(void);
	void (*memory_destroy)(uint64);
	void **heap; /* large values of the calls in progress, in the domain's heap */
	int heap_used, heap_size;
	dlist_head garbage; /* of plf_garbage */
	uint64 calls, faults, errors;
} plf_domain;

/* What the module keeps for somebody of the server's who is gone: ended when the domain is next called. */
typedef struct plf_garbage {
	dlist_node link;
	void (*destroy)(uint64);
	uint64 address;
} plf_garbage;

extern plf_domain *plf_domain_get(plf_module *module, Oid role);
/* What plf_domain_prepare does when there is something to do. */
extern void plf_domain_tidy(plf_domain *domain);
/* Frees large values of calls that have ended. */
extern void plf_domain_free_to(plf_domain *domain, int mark);
/* After a fault: the state as it was made, unless calls are in progress. */
extern void plf_domain_recover(plf_domain *domain);
/* The state as it was made; not with calls in progress. */
extern void plf_domain_reset(plf_domain *domain);
/* Ends what the module keeps at that address, by one of its functions, before the domain's next call from outside. Raises no error. */
extern void plf_domain_discard(plf_domain *domain, void (*destroy)(uint64), uint64 address);
/* At a transaction's end: domains of replaced modules go. */
extern void plf_domain_sweep(void);
extern dlist_head plf_domains;

/* Before a call from outside: resets the domain if it waits for that, or if the setting says so. */
static inline void
plf_domain_prepare(plf_domain *d)
{
	if (unlikely(plf_cancel != 0 || plf_state != PLF_KEEP || d->transaction != MyProc->lxid || d->heap_used > 0 || d->abandoned ||
			!dlist_is_empty(&d->garbage)))
		plf_domain_tidy(d);
}

static inline struct plf_area *
plf_area_of(plf_domain *domain)
{
	return (struct plf_area *) domain->view;
}

/* -------------------------------------------------------------------------------------------------- types */

/* How values of a type cross. */
typedef enum plf_way {
	PLF_WAY_VOID,
	PLF_WAY_VALUE, /* by value, in an integer */
	PLF_WAY_FLOAT4,
	PLF_WAY_FLOAT8,
	PLF_WAY_VARLENA,
	PLF_WAY_CSTRING,
	PLF_WAY_FIXED, /* by reference, of fixed length */
	PLF_WAY_INTERNAL, /* of an index's support function */
	PLF_WAY_TRIGGER
} plf_way;

typedef struct plf_result_check plf_result_check;

typedef struct plf_value_type {
	Oid oid;
	plf_way way;
	int16 length;
	bool composite;
	bool any; /* results need no check: by value, and every value is one of the type's; known when one was checked */
	plf_result_check *check; /* of results; NULL until it is needed */
	MemoryContext context; /* where that is kept */
} plf_value_type;

extern void plf_type_resolve(Oid oid, plf_value_type *into);

/* A block of the call area that grows upwards during the preparation of a call. */
typedef struct plf_writer {
	plf_domain *domain;
	uint64 top; /* offset of the first free byte */
	int mark; /* how many allocations in the domain's heap were there before */
	bool chunks; /* each piece is one that the module may pfree: with a header in front */
} plf_writer;

/* `size` bytes, aligned for every type: what to write to (the server's view, or NULL if the domain's heap has it), and the
 * domain's address in *address. */
extern char *plf_reserve(plf_writer *writer, uint64 size, uint64 *address);
/* Copies `size` bytes in; the domain's address. */
extern uint64 plf_put(plf_writer *writer, const void *from, uint64 size);
/* A value as the module sees it. */
extern Datum plf_put_datum(plf_writer *writer, const plf_value_type *type, Datum value);
/* The same for bytes, without a writer: into the area at *top, which moves behind them. 0 if that is not enough: compressed values,
 * large ones, and those that only the server knows. */
extern Datum plf_lay(plf_domain *domain, const plf_value_type *type, Datum value, uint64 *top);
extern void plf_writer_begin(plf_writer *writer, plf_domain *domain, uint64 top);
/* Gives back what plf_reserve took from the domain's heap. After an error the domain's next call does. */
extern void plf_writer_end(plf_writer *writer);
/* A tuple descriptor as the module sees it. */
extern uint64 plf_put_tupdesc(plf_writer *writer, TupleDesc desc);
/* A tuple (HeapTuple) as the module sees it. */
extern uint64 plf_put_tuple(plf_writer *writer, HeapTuple tuple, TupleDesc desc);

/* Copies `size` bytes out of the domain; an error if they are not there. */
extern void plf_copy_out(plf_domain *domain, uint64 from, void *to, uint64 size);
/* A string of the module's, at most `most` bytes long, valid in the database's encoding; NULL for NULL. */
extern char *plf_copy_string(plf_domain *domain, uint64 from, Size most);
/* A value that the module gives, checked: nothing that the server's code cannot bear. */
extern Datum plf_get_datum(plf_domain *domain, plf_value_type *type, Datum value);

/* Checks a value of a type whose layout the server trusts, a copy of what a module gave: what comes back may be used. */
extern Datum plf_check_result(plf_value_type *type, Datum value);
/* An error if results of the type cannot be checked. */
extern void plf_check_supported(const plf_value_type *type);
/* A row of a module, as the server makes them. `bytes` (`size` of them) is a copy. */
extern HeapTuple plf_check_row(const char *bytes, uint64 size, TupleDesc desc);

/* -------------------------------------------------------------------------------------------------- calls */

typedef struct plf_function plf_function;

/* The call that the module is in. */
typedef struct plf_call {
	struct plf_call *outer;
	plf_domain *domain;
	plf_numbers *numbers; /* of the function; NULL: of one of the library */
	FunctionCallInfo fcinfo; /* NULL: of a function of the library, or of a block */
	uint64 base; /* of the domain, before the call */
	rf_mark mark; /* of the callback in progress */
	Tuplestorestate *store;
	TupleDesc store_desc;
	plf_value_type *store_types;
	int spi; /* plf_spi_connect without plf_spi_finish */
} plf_call;

extern plf_call *plf_current_call;

/* Around a call of the module's library: what it asks for meanwhile is asked for by this domain, whatever call is in progress
 * outside. plf_leave tells a failure as an SQL error. */
extern void plf_enter(plf_call *call, plf_domain *domain);
extern void plf_leave(plf_call *call, const char *function);
/* Drops the current call, which an SQL error is about to jump over. */
extern void plf_abandon(void);
/* Ends, in the library, the calls that were abandoned. Has to be done before the thread calls domains again, or goes back into one. */
extern bool plf_has_abandoned;
extern void plf_end_abandoned(void);

extern const rf_import *plf_imports(size_t *count);
extern const rf_built_in *plf_built_ins(size_t *count);
/* Finishes what the module has left connected. */
extern void plf_spi_leave(plf_call *call);
/* Where frames of a call begin: behind those of the calls in progress, and behind what the module has taken since. */
extern uint64 plf_frame_base(plf_domain *domain);

extern Datum plf_call_function(FunctionCallInfo fcinfo);
extern void plf_validate_function(Oid oid);
extern void plf_call_block(const char *text);

/* A plain function that is called for each element of arrays. */
typedef struct plf_each_plan plf_each_plan;
/* From the SQL function's types, which become those of the elements, and are the caller's. */
extern plf_each_plan *plf_each_create(plf_value_type *args, int nargs, plf_value_type *result);
/* The loop for a text's function, as text; `type` tells a parameter's or the result's type in C. */
extern char *plf_each_text(const char *name, const plf_value_type *args, int nargs, const plf_value_type *result,
	const char *(*type)(const plf_value_type *));
/* `thunk` leads to the loop, `function` is an address in the domain. */
extern Datum plf_each_call(plf_each_plan *plan, plf_domain *domain, const char *name, void *thunk, uint64 function, plf_numbers *numbers,
	FunctionCallInfo fcinfo);

/* Arguments of type internal of GiST's support functions. */
typedef struct plf_gist plf_gist;
extern plf_gist *plf_gist_create(Oid function);
/* Whether an argument is the query of a search: its type is told with each call. */
extern bool plf_gist_is_query(const plf_gist *g, int argument);
extern void plf_gist_put(plf_gist *gist, plf_writer *writer, FunctionCallInfo fcinfo, NullableDatum *args);
extern Datum plf_gist_get(plf_gist *gist, plf_domain *domain, FunctionCallInfo fcinfo, Datum result);

#pragma GCC visibility pop

#endif
