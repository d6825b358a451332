/* ereport, elog, PG_TRY. An error that nothing inside the fence catches goes to the server, and the call ends with it. */
#include "guest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

RF_IMPORT(void, plf_report, (const struct plf_report *))

#define DEPTH 5

ErrorContextCallback *error_context_stack;
sigjmp_buf *PG_exception_stack;
int plf_errors = -1;

static ErrorData stack[DEPTH];
static int context_depth;

void plf_state_save(struct plf_state *state)
{
	state->context = CurrentMemoryContext;
	state->exception = PG_exception_stack;
	state->callbacks = error_context_stack;
	state->errors = plf_errors;
	CurrentMemoryContext = &plf_call_context;
	PG_exception_stack = NULL;
	error_context_stack = NULL;
}

void plf_state_restore(const struct plf_state *state)
{
	CurrentMemoryContext = state->context;
	PG_exception_stack = state->exception;
	error_context_stack = state->callbacks;
	plf_errors = state->errors;
}

static ErrorData *current(void)
{
	if (plf_errors < 0 || plf_errors >= DEPTH) {
		plf_errors = -1;
		elog(ERROR, "errstart was not called");
	}
	return &stack[plf_errors];
}

static void report(const ErrorData *e)
{
	struct plf_report report = {
		.elevel = e->elevel,
		.sqlerrcode = e->sqlerrcode,
		.message = e->message,
		.detail = e->detail,
		.hint = e->hint,
		.context = e->context,
		.filename = e->filename,
		.funcname = e->funcname,
		.lineno = e->lineno,
	};
	struct plf_state state;

	plf_state_save(&state);
	plf_report(&report);
	plf_state_restore(&state);
}

static void pg_attribute_noreturn() leave(const ErrorData *e)
{
	ErrorData last = *e;

	plf_errors = -1;
	report(&last);
	__rf_abort(0); /* the server has not ended the call */
}

bool message_level_is_interesting(int elevel)
{
	return true;
}

bool errstart(int elevel, const char *domain)
{
	ErrorData *e;

	if (plf_errors < 0)
		MemoryContextReset(ErrorContext);
	if (++plf_errors >= DEPTH) {
		plf_errors = -1;
		stack[0] = (ErrorData){.elevel = ERROR,
			.sqlerrcode = ERRCODE_INTERNAL_ERROR,
			.message = "ERRORDATA_STACK_SIZE exceeded"};
		leave(&stack[0]);
	}
	e = &stack[plf_errors];
	*e = (ErrorData){
		.elevel = elevel,
		.sqlerrcode = elevel >= ERROR       ? ERRCODE_INTERNAL_ERROR
			: elevel >= WARNING ? ERRCODE_WARNING
					    : ERRCODE_SUCCESSFUL_COMPLETION,
		.domain = domain,
		.context_domain = domain,
		.output_to_server = true,
		.output_to_client = true,
		.saved_errno = errno,
		.assoc_context = ErrorContext,
	};
	return true;
}

bool errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

void errfinish(const char *filename, int lineno, const char *funcname)
{
	ErrorData *e = current();
	MemoryContext old = MemoryContextSwitchTo(ErrorContext);

	if (filename != NULL) {
		const char *slash = strrchr(filename, '/');

		e->filename = slash != NULL ? slash + 1 : filename;
	}
	e->lineno = lineno;
	e->funcname = funcname;
	/* A callback that fails must not run again. */
	if (++context_depth < DEPTH)
		for (ErrorContextCallback *c = error_context_stack; c != NULL; c = c->previous)
			c->callback(c->arg);
	context_depth = 0;
	if (e->elevel == ERROR) {
		if (PG_exception_stack == NULL)
			CurrentMemoryContext = old;
		pg_re_throw();
	}
	if (e->elevel > ERROR)
		leave(e);
	report(e);
	plf_errors--;
	MemoryContextSwitchTo(old);
	errno = e->saved_errno;
}

void pg_re_throw(void)
{
	if (PG_exception_stack != NULL)
		siglongjmp(*PG_exception_stack, 1);
	leave(current());
}

/* -------------------------------------------------------------------------------------------------- the parts of it */

static char *format(const ErrorData *e, const char *text, va_list list)
{
	va_list again;
	char *result;
	int length;

	va_copy(again, list);
	errno = e->saved_errno;
	length = vsnprintf(NULL, 0, text, list);
	result = MemoryContextAlloc(ErrorContext, (Size) Max(length, 0) + 1);
	errno = e->saved_errno;
	if (length < 0 || vsnprintf(result, (Size) length + 1, text, again) < 0)
		*result = '\0';
	va_end(again);
	return result;
}

#define PART(function, field)                         \
	int function(const char *text, ...)           \
	{                                             \
		ErrorData *e = current();             \
		va_list list;                         \
                                                      \
		va_start(list, text);                 \
		e->field = format(e, text, list);     \
		va_end(list);                         \
		return 0;                             \
	}

#define PLURAL(function, field)                                                                  \
	int function(const char *singular, const char *plural, unsigned long n, ...)             \
	{                                                                                        \
		ErrorData *e = current();                                                        \
		va_list list;                                                                    \
                                                                                                 \
		va_start(list, n);                                                               \
		e->field = format(e, n == 1 ? singular : plural, list);                          \
		va_end(list);                                                                    \
		return 0;                                                                        \
	}

PART(errmsg, message)
PART(errmsg_internal, message)
PART(errdetail, detail)
PART(errdetail_internal, detail)
PART(errdetail_log, detail_log)
PART(errhint, hint)
PLURAL(errmsg_plural, message)
PLURAL(errdetail_plural, detail)
PLURAL(errdetail_log_plural, detail_log)
PLURAL(errhint_plural, hint)

int errcontext_msg(const char *text, ...)
{
	ErrorData *e = current();
	char *before = e->context, *line;
	va_list list;

	va_start(list, text);
	line = format(e, text, list);
	va_end(list);
	if (before != NULL) {
		Size first = strlen(before), second = strlen(line);
		char *both = MemoryContextAlloc(ErrorContext, first + second + 2);

		memcpy(both, before, first);
		both[first] = '\n';
		memcpy(both + first + 1, line, second + 1);
		line = both;
	}
	e->context = line;
	return 0;
}

int set_errcontext_domain(const char *domain)
{
	current()->context_domain = domain;
	return 0;
}

int errcode(int code)
{
	current()->sqlerrcode = code;
	return 0;
}

int errcode_for_file_access(void)
{
	ErrorData *e = current();

	switch (e->saved_errno) {
	case EPERM:
	case EACCES:
	case EROFS:
		return errcode(ERRCODE_INSUFFICIENT_PRIVILEGE);
	case ENOENT:
		return errcode(ERRCODE_UNDEFINED_FILE);
	case EEXIST:
		return errcode(ERRCODE_DUPLICATE_FILE);
	case ENOTDIR:
	case EISDIR:
	case ENOTEMPTY:
		return errcode(ERRCODE_WRONG_OBJECT_TYPE);
	case ENOSPC:
		return errcode(ERRCODE_DISK_FULL);
	case ENFILE:
	case EMFILE:
		return errcode(ERRCODE_INSUFFICIENT_RESOURCES);
	case EIO:
		return errcode(ERRCODE_IO_ERROR);
	default:
		return errcode(ERRCODE_INTERNAL_ERROR);
	}
}

int errhidestmt(bool hide)
{
	current()->hide_stmt = hide;
	return 0;
}

int errhidecontext(bool hide)
{
	current()->hide_ctx = hide;
	return 0;
}

int errbacktrace(void)
{
	return 0;
}

int errposition(int position)
{
	current()->cursorpos = position;
	return 0;
}

int internalerrposition(int position)
{
	current()->internalpos = position;
	return 0;
}

int internalerrquery(const char *query)
{
	current()->internalquery = query != NULL ? MemoryContextStrdup(ErrorContext, query) : NULL;
	return 0;
}

int err_generic_string(int field, const char *text)
{
	ErrorData *e = current();
	char *copy = MemoryContextStrdup(ErrorContext, text);

	switch (field) {
	case PG_DIAG_SCHEMA_NAME:
		e->schema_name = copy;
		break;
	case PG_DIAG_TABLE_NAME:
		e->table_name = copy;
		break;
	case PG_DIAG_COLUMN_NAME:
		e->column_name = copy;
		break;
	case PG_DIAG_DATATYPE_NAME:
		e->datatype_name = copy;
		break;
	case PG_DIAG_CONSTRAINT_NAME:
		e->constraint_name = copy;
		break;
	default:
		elog(ERROR, "unsupported ErrorData field id: %d", field);
	}
	return 0;
}

int geterrcode(void)
{
	return current()->sqlerrcode;
}

int geterrposition(void)
{
	return current()->cursorpos;
}

int getinternalerrposition(void)
{
	return current()->internalpos;
}

/* ------------------------------------------------------------------------------------------------- in error handlers */

static char *copied(const char *text)
{
	return text != NULL ? pstrdup(text) : NULL;
}

static void copy_strings(ErrorData *e)
{
	e->message = copied(e->message);
	e->detail = copied(e->detail);
	e->detail_log = copied(e->detail_log);
	e->hint = copied(e->hint);
	e->context = copied(e->context);
	e->backtrace = copied(e->backtrace);
	e->schema_name = copied(e->schema_name);
	e->table_name = copied(e->table_name);
	e->column_name = copied(e->column_name);
	e->datatype_name = copied(e->datatype_name);
	e->constraint_name = copied(e->constraint_name);
	e->internalquery = copied(e->internalquery);
	e->assoc_context = CurrentMemoryContext;
}

ErrorData *CopyErrorData(void)
{
	ErrorData *copy = palloc(sizeof *copy);

	*copy = *current();
	copy_strings(copy);
	return copy;
}

void FreeErrorData(ErrorData *e)
{
	char *strings[] = {e->message, e->detail, e->detail_log, e->hint, e->context, e->backtrace, e->schema_name,
		e->table_name, e->column_name, e->datatype_name, e->constraint_name, e->internalquery};

	for (int i = 0; i < (int) lengthof(strings); i++)
		if (strings[i] != NULL)
			pfree(strings[i]);
	pfree(e);
}

void FlushErrorState(void)
{
	plf_errors = -1;
	context_depth = 0;
	MemoryContextReset(ErrorContext);
}

void EmitErrorReport(void)
{
	ErrorData e = *current();

	/* The call goes on: what is told must not end it. */
	e.elevel = Min(e.elevel, WARNING);
	report(&e);
}

static void push_copy(const ErrorData *e)
{
	MemoryContext old;

	errstart(e->elevel, e->domain);
	old = MemoryContextSwitchTo(ErrorContext);
	stack[plf_errors] = *e;
	copy_strings(&stack[plf_errors]);
	MemoryContextSwitchTo(old);
}

void ReThrowError(ErrorData *e)
{
	push_copy(e);
	pg_re_throw();
}

void ThrowErrorData(ErrorData *e)
{
	push_copy(e);
	errfinish(e->filename, e->lineno, e->funcname);
}

static int saved_errno;

void pre_format_elog_string(int number, const char *domain)
{
	saved_errno = number;
}

char *format_elog_string(const char *text, ...)
{
	ErrorData e = {.saved_errno = saved_errno};
	va_list list;
	char *result;

	va_start(list, text);
	result = format(&e, text, list);
	va_end(list);
	return result;
}

char *unpack_sql_state(int code)
{
	static char text[6];

	for (int i = 0; i < 5; i++, code >>= 6)
		text[i] = PGUNSIXBIT(code);
	return text;
}

void write_stderr(const char *text, ...)
{
	ErrorData e = {.elevel = LOG, .saved_errno = errno};
	va_list list;

	va_start(list, text);
	e.message = format(&e, text, list);
	va_end(list);
	report(&e);
}
