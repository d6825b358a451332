/* What the extension and the modules say to each other: the call area, and the functions of either side.
 *
 * Modules are compiled against PostgreSQL's own headers (postgres.h, fmgr.h), so that Datum, FunctionCallInfo, HeapTuple and
 * so on mean the same on both sides; all pointers in them are addresses of the domain. The library of modules (guest/) defines what
 * those headers declare. Authors of modules need not read this file.
 *
 * The call area is memory that the server and the domain share. It begins with a struct plf_area; behind it lie, as on a stack, what
 * calls get (arguments, FunctionCallInfo) and what palloc gives out during a call. What the module writes there is as
 * untrusted as its results: the server reads each word once and checks it. */
#ifndef PLFENCED_ABI_H
#define PLFENCED_ABI_H

#include "postgres.h"

#include "access/htup.h"
#include "access/tupdesc.h"
#include "fmgr.h"

#define PLF_ABI_VERSION 2

struct plf_area {
	/* Set by the server when the domain is made. */
	uint32 version; /* PLF_ABI_VERSION */
	int32 encoding; /* of the database */
	int32 encoding_length; /* pg_database_encoding_max_length() */
	uint32 server_version; /* PG_VERSION_NUM */
	uint64 size; /* of the area in bytes, this struct included */
	/* Set by the server before each call from outside. */
	uint64 transaction; /* another number with each transaction: memory of transactions may go */
	/* Used by both. */
	uint64 top; /* offset of the first free byte. The server sets it before a call; palloc raises it */
	uint64 spilled; /* not 0: palloc took memory from the heap for this call; the server calls plf_release afterwards */
};

/* A function called for each element of arrays. Columns and results have a word of 8 bytes for each element: integers, doubles, or a
 * float in the low half. */
#define PLF_EACH_INTEGERS 6 /* columns of integers at most */
#define PLF_EACH_NUMBERS 8 /* and of doubles and floats */

struct plf_each {
	uint64 function; /* its address in the domain; 0 in a text, whose loop is made for it */
	uint64 count;
	uint64 done; /* set by the module: how many calls have returned */
	uint64 *results;
	uint32 columns;
	uint32 numbers; /* bit by bit: whether a column is one of doubles or floats */
	uint64 returns_number;
	const uint64 *column[PLF_EACH_INTEGERS + PLF_EACH_NUMBERS];
};

/* ----------------------------------------------------------------- what a module's library exports to the server
 *
 * struct plf_area *plf_area;    the server writes the area's address (in the domain) there, after each reset too
 * uint32 plf_version;           PLF_ABI_VERSION
 * uint32 plf_server_version;    PG_VERSION_NUM of the headers: the major version has to be the server's
 * void plf_release(void);       ends the outermost call where it left something: frees what `spilled` tells of and forgets handlers of
 *                               errors (PG_TRY). Called after an outermost call if `spilled`, and whenever such a call did not return
 *                               (an error of its own or of an import, a fault, a cancel). Not after nested calls: the library
 *                               keeps its own state over calls of imports, so that a nested call may fail and leave it as it is.
 * FmgrInfo *plf_flinfo_create(Oid function, int nargs, int flags);   a FmgrInfo with fn_mcxt, kept by the server for each of its own
 * void plf_flinfo_destroy(FmgrInfo *);                               and ended with it
 * MemoryContext plf_memory_create(void);                             what an aggregate's groups keep, as long as the server keeps them
 * void plf_memory_destroy(MemoryContext);
 * void plf_each(struct plf_each *);                                  calls a plain function for each element
 */
/* fcinfo->context is NULL or a node in the call area: a struct plf_aggregate for a transition, final, combine, serialisation or
 * deserialisation function, a struct TriggerData, or a struct plf_window. An aggregate's state of type internal is an address of the module's. fn_extra of a set-returning function that was not run to its end stays: make a new FmgrInfo. */
#define PLF_FLINFO_STRICT 1
#define PLF_FLINFO_RETSET 2

/* Who calls an aggregate's function: AggCheckCallContext looks here. */
struct plf_aggregate {
	NodeTag tag; /* T_AggState or T_WindowAggState */
	uint32 reserved;
	uint64 memory; /* of plf_memory_create: goes with the groups that it is for */
};

/* The window of a window function's call. */
struct plf_window {
	NodeTag tag; /* T_WindowObjectData */
	uint32 reserved;
	uint64 flinfo; /* the module's FmgrInfo of the caller */
};

/* ------------------------------------------------------------------------------ what the server gives to modules
 *
 * All of these are imports. Where PostgreSQL reports an error, the call of the module ends with it: they do not return. */

/* What ereport has collected. NULL for what was not said. elevel from DEBUG5 to ERROR; above: ERROR. */
struct plf_report {
	int32 elevel;
	int32 sqlerrcode;
	const char *message, *detail, *hint, *context;
	const char *filename, *funcname; /* of the module's source */
	int32 lineno;
	int32 reserved;
};
/* void plf_report(const struct plf_report *);              does not return if elevel >= ERROR */

/* A type, as the catalogue has it. */
struct plf_type {
	Oid oid, element, input, output, ioparam, base, relation, receive, send; /* base: of a domain, else its own oid */
	int32 base_typmod;
	int16 length;
	bool by_value;
	char align, kind, storage, category; /* kind: typtype */
};
/* void plf_type_get(Oid type, struct plf_type *into); */

/* Calls a function of the server's (builtin or in SQL) under the caller's rights; NULLs and strictness as with SQL. Types are
 * those of the function's declaration, which may have no argument of type internal.
 * Result: the datum; *isnull tells a NULL. By-reference results are in the call area or in the heap (palloc'd either way). */
/* Datum plf_function_call(Oid function, Oid collation, int nargs, const NullableDatum *args, bool *isnull); */

/* varstr_cmp */
/* int plf_text_compare(const char *a, int a_length, const char *b, int b_length, Oid collation); */
/* str_tolower (0), str_toupper (1), str_initcap (2): palloc'd, NUL-terminated */
/* char *plf_text_case(int which, const char *text, size_t length, Oid collation); */

/* The columns of a composite type, or of the blessed record (RECORDOID, typmod); a flat copy that pfree may free. */
/* TupleDesc plf_tupdesc_get(Oid type, int32 typmod); */
/* Makes an anonymous record type known to the server; returns its typmod (BlessTupleDesc). */
/* int32 plf_tupdesc_bless(TupleDesc); */
/* Of the call in progress whose FunctionCallInfo this is: get_call_result_type. Returns a TypeFuncClass; *desc may become NULL. */
/* fcinfo NULL: of the innermost call in progress. */
/* int plf_result_type(FunctionCallInfo fcinfo, Oid *type, TupleDesc *desc); */

/* Materialised sets: appends a row to the result of the call whose ReturnSetInfo this is; allowedModes
 * tells whether it may be materialised. `values` by the columns of the declared result type. */
/* The library passes NULL as rsinfo: of the innermost call in progress (a tuplestore does not know whose result it will be). Whether
 * the result is materialised is told by rsinfo->returnMode; setResult then is an address that means nothing to the server. */
/* void plf_set_begin(ReturnSetInfo *rsinfo); */
/* void plf_set_put(ReturnSetInfo *rsinfo, const Datum *values, const bool *isnull, int count); */

/* SPI under the caller's rights. What is fetched stays until plf_spi_finish. Results as SPI_OK_... and SPI_ERROR_.... */
struct plf_spi_result {
	uint64 processed;
	TupleDesc tupdesc; /* NULL: no rows */
	HeapTuple *tuples; /* `processed` of them if there is a tupdesc */
};
struct plf_spi_query {
	const char *sql;
	const Oid *types;            /* of the arguments */
	const NullableDatum *values; /* of the arguments */
	int64 limit;                 /* of rows; 0: none */
	int32 nargs;
	bool read_only;
};
/* int plf_spi_connect(void); int plf_spi_finish(void);
 * int plf_spi_execute(const struct plf_spi_query *query, struct plf_spi_result *result);
 * int64 plf_spi_prepare(const char *sql, int nargs, const Oid *types);         > 0: a plan; 0: failed; kept until the session ends
 * int plf_spi_execute_plan(int64 plan, const NullableDatum *values, int count, bool read_only, int64 limit, struct plf_spi_result *);
 * void plf_spi_free(int64 plan);
 * int64 plf_spi_cursor_open(int64 plan, const NullableDatum *values, int count, bool read_only);
 * int plf_spi_cursor_fetch(int64 cursor, bool forward, int64 count, struct plf_spi_result *);
 * void plf_spi_cursor_close(int64 cursor); */

/* What a window function asks of its window: the innermost call's. Positions count from 0. */
#define PLF_WINDOW_PARTITION 0
#define PLF_WINDOW_FRAME 1
#define PLF_WINDOW_CURRENT 2
/* int plf_window_begin(void);                          whether it is the first of these calls in this partition
 * int64 plf_window_position(void); int64 plf_window_rows(void);
 * void plf_window_mark(int64 position);                rows in front are not asked for any more; not behind the current row
 * int plf_window_peers(int64 one, int64 other);
 * Datum plf_window_value(int where, int number, int offset, int seek, int mark, uint8 told[2]);
 *                                                      an argument's value; told: whether it is NULL, and whether there is no such row */

#endif
