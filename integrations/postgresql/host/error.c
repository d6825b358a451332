/* Failures of calls as SQL errors: code, function, line, backtrace; no addresses. */
#include "plfenced.h"

#include "miscadmin.h"

static int
code_of(rf_status status)
{
	switch (status) {
	case RF_FAULT_MEMORY:
		return ERRCODE_OUT_OF_MEMORY;
	case RF_FAULT_TIME:
	case RF_FAULT_INTERRUPT:
		return ERRCODE_QUERY_CANCELED;
	case RF_FAULT_STACK:
	case RF_ERROR_NESTING:
		return ERRCODE_STATEMENT_TOO_COMPLEX;
	case RF_ERROR_LIMIT:
		return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
	case RF_ERROR_UNSUPPORTED:
		return ERRCODE_FEATURE_NOT_SUPPORTED;
	case RF_ERROR_NO_FUNCTION:
		return ERRCODE_UNDEFINED_FUNCTION;
	case RF_ERROR_FORMAT:
	case RF_ERROR_REJECTED:
	case RF_ERROR_IMPORT:
		return ERRCODE_INVALID_BINARY_REPRESENTATION;
	case RF_ERROR_TEXT:
		return ERRCODE_SYNTAX_ERROR;
	case RF_ERROR_TYPE:
		return ERRCODE_INVALID_FUNCTION_DEFINITION;
	default:
		return ERRCODE_EXTERNAL_ROUTINE_EXCEPTION;
	}
}

/* Whether the whole message is for everybody: it is about a module's file, not about this process. */
static bool
is_public(rf_status status)
{
	return status == RF_ERROR_FORMAT || status == RF_ERROR_REJECTED || status == RF_ERROR_IMPORT || status == RF_ERROR_UNSUPPORTED ||
		status == RF_ERROR_NO_FUNCTION || status == RF_ERROR_NO_OBJECT || status == RF_ERROR_TYPE || status == RF_ERROR_TEXT;
}

/* What rf_error tells, in the server's memory. */
struct told {
	rf_status status;
	char *message;
	char *function;
	char *trace;
};

static void
take(struct told *told)
{
	const rf_error_info *e = rf_error();
	StringInfoData trace;

	memset(told, 0, sizeof *told);
	told->status = e ? e->status : RF_ERROR_INTERNAL;
	told->message = pstrdup(!e ? "unknown failure" : is_public(e->status) ? e->message : e->public_message);
	initStringInfo(&trace);
	/* Nothing is known of the code of a text. */
	for (uint32 i = 0; e && e->function && i < e->frame_count && i < (uint32) plf_trace; i++) {
		const rf_frame *f = &e->frames[i];

		appendStringInfo(&trace, "%s%s", i ? "\n" : "", f->function ? f->function : "(no name)");
		if (f->file)
			appendStringInfo(&trace, " at %s:%u", f->file, f->line);
	}
	if (trace.len > 0)
		told->trace = trace.data;
	if (e && e->function)
		told->function = e->file ? psprintf("%s at %s:%u", e->function, e->file, e->line) : pstrdup(e->function);
	rf_error_clear();
}

void
plf_throw(plf_domain *domain, const char *function)
{
	struct told told;

	take(&told);
	plf_domain_recover(domain);
	if (told.status == RF_FAULT_INTERRUPT)
		CHECK_FOR_INTERRUPTS();
	domain->faults++;
	ereport(ERROR,
		(errcode(code_of(told.status)),
			told.status == RF_FAULT_INTERRUPT
				? errmsg("canceling fenced function \"%s\"", function)
				: errmsg("fenced function \"%s\" failed: %s", function, told.message),
			told.trace ? errdetail("%s", told.trace) : 0,
			told.status == RF_FAULT_MEMORY ? errhint("The limit is plfenced.memory_limit.") : 0,
			told.status == RF_FAULT_TIME ? errhint("The limit is plfenced.time_limit.") : 0,
			told.function ? errcontext("%s", told.function) : 0));
}

void
plf_throw_library(const char *what)
{
	struct told told;

	take(&told);
	ereport(ERROR, (errcode(code_of(told.status)), errmsg("%s: %s", what, told.message),
		told.trace ? errdetail("%s", told.trace) : 0));
}
