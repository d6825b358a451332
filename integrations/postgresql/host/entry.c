/* Where the server comes in: settings, the handler of the language, what SQL may ask. */
#include "plfenced.h"

#include "access/xact.h"
#include "commands/proclang.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/tuplestore.h"

#include <signal.h>

#include "import.h"

PG_MODULE_MAGIC;

extern char *plf_preload;
void _PG_init(void);

const rf_import *
plf_imports(size_t *count)
{
#define PLF_IMPORT(name) RF_IMPORT_INIT_CALLBACK("plf_" #name, plf_import_##name, NULL),
	static const rf_import imports[] = { PLF_IMPORTS(PLF_IMPORT) };
#undef PLF_IMPORT

	*count = lengthof(imports);
	return imports;
}

const rf_built_in *
plf_built_ins(size_t *count)
{
#define PLF_BUILT_IN(name, declaration) { declaration, plf_import_##name, NULL },
	static const rf_built_in built_ins[] = { PLF_BUILT_INS(PLF_BUILT_IN) };
#undef PLF_BUILT_IN

	*count = lengthof(built_ins);
	return built_ins;
}

PG_FUNCTION_INFO_V1(plfenced_call_handler);
Datum
plfenced_call_handler(PG_FUNCTION_ARGS)
{
	return plf_call_function(fcinfo);
}

PG_FUNCTION_INFO_V1(plfenced_inline_handler);
Datum
plfenced_inline_handler(PG_FUNCTION_ARGS)
{
	plf_call_block(((InlineCodeBlock *) PG_GETARG_POINTER(0))->source_text);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(plfenced_validator);
Datum
plfenced_validator(PG_FUNCTION_ARGS)
{
	Oid function = PG_GETARG_OID(0);

	if (CheckFunctionValidatorAccess(fcinfo->flinfo->fn_oid, function))
		plf_validate_function(function);
	PG_RETURN_VOID();
}

/* fenced.domains: what this session has. */
PG_FUNCTION_INFO_V1(plfenced_domains);
Datum
plfenced_domains(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *r = (ReturnSetInfo *) fcinfo->resultinfo;
	dlist_iter i;

	InitMaterializedSRF(fcinfo, 0);
	dlist_foreach(i, &plf_domains) {
		plf_domain *d = dlist_container(plf_domain, link, i.cur);
		rf_usage u = RF_USAGE_INIT;
		Datum values[8];
		bool nulls[8] = { false };

		if (!has_privs_of_role(GetUserId(), d->role))
			continue;
		rf_domain_usage(d->handle, &u);
		values[0] = CStringGetTextDatum(d->module->name);
		values[1] = ObjectIdGetDatum(d->role);
		values[2] = Int64GetDatum(d->calls);
		values[3] = Int64GetDatum(d->faults);
		values[4] = Int64GetDatum(d->errors);
		values[5] = Int64GetDatum(u.resets);
		values[6] = Int64GetDatum(u.memory);
		values[7] = BoolGetDatum(d->module->current);
		tuplestore_putvalues(r->setResult, r->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/* A row of fenced.inspect. */
struct symbol_row {
	struct symbol_row *next;
	rf_symbol symbol;
	char name[FLEXIBLE_ARRAY_MEMBER];
};

struct symbol_rows {
	struct symbol_row *first, **last;
	bool complete;
};

/* Keeps a symbol. Raises no error: that would jump over the library. */
static int
keep_symbol(void *context, const rf_symbol *symbol)
{
	struct symbol_rows *rows = context;
	Size length = strlen(symbol->name) + 1;
	struct symbol_row *row = palloc_extended(offsetof(struct symbol_row, name) + length, MCXT_ALLOC_HUGE | MCXT_ALLOC_NO_OOM);

	rows->complete = row != NULL;
	if (!row)
		return 1;
	row->next = NULL;
	row->symbol = *symbol;
	memcpy(row->name, symbol->name, length);
	*rows->last = row;
	rows->last = &row->next;
	return 0;
}

/* fenced.inspect(): what a module exports and imports. */
PG_FUNCTION_INFO_V1(plfenced_inspect);
Datum
plfenced_inspect(PG_FUNCTION_ARGS)
{
	static const char *const kinds[] = { "function", "object", "thread-local object" };
	ReturnSetInfo *r = (ReturnSetInfo *) fcinfo->resultinfo;
	char *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	struct symbol_rows rows = { NULL, &rows.first, true };

	plf_module_check_usage(name);
	if (rf_module_visit(plf_module_get(name)->handle, keep_symbol, &rows) != RF_OK)
		plf_throw_library(psprintf("module \"%s\"", name));
	if (!rows.complete)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	InitMaterializedSRF(fcinfo, 0);
	for (struct symbol_row *row = rows.first; row; row = row->next) {
		Datum values[4];
		bool nulls[4] = { false };

		/* The module's author may have put any bytes into a name. */
		if (!pg_verifymbstr(row->name, strlen(row->name), true))
			continue;
		values[0] = CStringGetTextDatum(row->name);
		values[1] = CStringGetTextDatum(kinds[row->symbol.kind]);
		values[2] = BoolGetDatum(row->symbol.imported != 0);
		values[3] = Int64GetDatum(row->symbol.size);
		nulls[3] = row->symbol.imported != 0;
		tuplestore_putvalues(r->setResult, r->setDesc, values, nulls);
		CHECK_FOR_INTERRUPTS();
	}
	return (Datum) 0;
}

/* fenced.reset(): this role's domains of a module begin anew. */
PG_FUNCTION_INFO_V1(plfenced_reset);
Datum
plfenced_reset(PG_FUNCTION_ARGS)
{
	char *name = PG_ARGISNULL(0) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(0));
	int32 count = 0;
	dlist_iter i;

	dlist_foreach(i, &plf_domains) {
		plf_domain *d = dlist_container(plf_domain, link, i.cur);

		if (d->role != GetUserId() || (name && strcmp(name, d->module->name) != 0))
			continue;
		if (d->depth > 0)
			ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE), errmsg("module \"%s\" is being called", d->module->name)));
		plf_domain_reset(d);
		count++;
	}
	PG_RETURN_INT32(count);
}

static void
at_end_of_transaction(XactEvent event, void *unused)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE ||
		event == XACT_EVENT_PARALLEL_COMMIT || event == XACT_EVENT_PARALLEL_ABORT) {
		plf_current_call = NULL;
		if (plf_has_abandoned)
			plf_end_abandoned();
		plf_domain_sweep();
		plf_stat_flush();
	}
}

void
_PG_init(void)
{
	static const struct config_enum_entry states[] = { { "keep", PLF_KEEP, false }, { "transaction", PLF_KEEP_TRANSACTION, false },
		{ "call", PLF_KEEP_CALL, false }, { NULL, 0, false } };
	rf_process_options options = RF_PROCESS_OPTIONS_INIT;

	DefineCustomIntVariable("plfenced.memory_limit", "Memory of each domain of a role and a module.", NULL, &plf_memory_limit, 65536,
		1024, 4 * 1024 * 1024 - 65536, PGC_SUSET, GUC_UNIT_KB, NULL, NULL, NULL);
	DefineCustomIntVariable("plfenced.time_limit", "Time that one call of a fenced function may take; 0: only statement_timeout holds.",
		NULL, &plf_time_limit, 0, 0, INT_MAX, PGC_SUSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomEnumVariable("plfenced.state", "How long a domain keeps its state: keep (session), transaction, or call.", NULL, &plf_state,
		PLF_KEEP, states, PGC_USERSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("plfenced.backtrace", "Most functions of a backtrace in an error's DETAIL.", NULL, &plf_trace, 8, 0, 100,
		PGC_USERSET, 0, NULL, NULL, NULL);
	/* Of the server, so only when it starts. */
	if (process_shared_preload_libraries_in_progress)
			DefineCustomStringVariable("plfenced.preload", "Directory of module files to verify when the server starts.",
			"Sessions find them by what they contain. Needs plfenced in shared_preload_libraries.", &plf_preload, "", PGC_POSTMASTER, 0,
			NULL, NULL, NULL);
#if PG_VERSION_NUM >= 150000
	MarkGUCPrefixReserved("plfenced");
#else
	EmitWarningsOnPlaceholders("plfenced");
#endif
	/* The server's latches are woken by SIGURG, the library's default. */
	options.tick_signal = SIGRTMIN + 1;
	if (rf_process_init(&options) != RF_OK)
		plf_throw_library("plfenced");
	plf_module_init();
	plf_stat_init();
	RegisterXactCallback(at_end_of_transaction, NULL);
}
