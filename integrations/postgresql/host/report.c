/* Imports: reports of errors, types, calls of the server's functions, sets. Each is called by a module, with arguments of its
 * choice; each copies what these point to once. */
#include "plfenced.h"

#include "access/xact.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_language.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/formatting.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
#include "utils/varlena.h"

#include "import.h"

/* Most bytes of a message, and of one of its parts. */
#define MESSAGE_MOST (64 * 1024)

/* ------------------------------------------------------------------------------------------------- the frame */

/* The domain and the call that a callback belongs to. */
plf_domain *
plf_caller_domain(void)
{
	plf_call *call = plf_current_call;

	if (!call)
		ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg("a module asked the server for something outside of a call")));
	return call->domain;
}

/* Space in the call area for what a callback gives the module: it stays until the call ends. */
void
plf_callback_writer(plf_writer *w, plf_domain *d)
{
	uint64 top = ((volatile struct plf_area *) plf_area_of(d))->top;

	if (top < d->base || top > PLF_AREA_SIZE)
		top = d->base;
	plf_writer_begin(w, d, top);
	w->chunks = d->call_context != 0;
}

/* The module's next allocations come behind. */
void
plf_callback_done(plf_writer *w)
{
	plf_area_of(w->domain)->top = MAXALIGN(w->top);
}

/* Runs what may raise an SQL error. The error jumps over the module's call, to whoever catches it; the library is told of that before
 * its next use. Outside of a call of ours (in a constructor) nothing may be jumped over: there the call fails. */
void
plf_guard(rf_caller *caller, void (*body)(rf_caller *caller, void *context), void *context)
{
	MemoryContext before = CurrentMemoryContext;
	plf_call *call = plf_current_call;

	if (!call) {
		rf_caller_fail(caller, "outside of a call of a function");
		return;
	}
	call->mark = rf_call_mark();
	PG_TRY();
	{
		body(caller, context);
	}
	PG_CATCH();
	{
		/* Calls inside of this one have dropped themselves. */
		plf_current_call = call;
		plf_abandon();
		PG_RE_THROW();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(before);
	/* An error further in that somebody there has caught. */
	if (plf_has_abandoned)
		plf_end_abandoned();
}

/* ---------------------------------------------------------------------------------------------------- report */

GUARDED(report)
{
	plf_domain *d = plf_caller_domain();
	struct plf_report r;
	char *message, *detail, *hint, *context_, *file, *function;
	int level;

	plf_copy_out(d, ARG(0), &r, sizeof r);
	level = r.elevel >= ERROR || r.elevel < DEBUG5 ? ERROR : r.elevel;
	/* The server's log is not the module's to fill, nor a client's protocol. */
	if (level == LOG || level == LOG_SERVER_ONLY || level == WARNING_CLIENT_ONLY)
		level = level == WARNING_CLIENT_ONLY ? WARNING : NOTICE;
	message = plf_copy_string(d, (uint64) r.message, MESSAGE_MOST);
	detail = plf_copy_string(d, (uint64) r.detail, MESSAGE_MOST);
	hint = plf_copy_string(d, (uint64) r.hint, MESSAGE_MOST);
	context_ = plf_copy_string(d, (uint64) r.context, MESSAGE_MOST);
	file = plf_copy_string(d, (uint64) r.filename, 256);
	function = plf_copy_string(d, (uint64) r.funcname, 256);
	if (errstart(level, NULL)) {
		/* Five characters of a code, and no success for an error. */
		if (r.sqlerrcode != 0 && (r.sqlerrcode & ~0x3fffffff) == 0)
			errcode(r.sqlerrcode);
		errmsg_internal("%s", message ? message : "missing error text");
		if (detail)
			errdetail_internal("%s", detail);
		if (hint)
			errhint("%s", hint);
		if (context_)
			errcontext_msg("%s", context_);
		errfinish(file ? file : "module", r.lineno, function ? function : "");
	}
	if (level >= ERROR)
		pg_unreachable();
}

/* What a text says. */
static char *
said(rf_caller *caller)
{
	char *text = plf_copy_string(plf_caller_domain(), ARG(0), MESSAGE_MOST);

	return text ? text : "missing text";
}

GUARDED(notice)
{
	ereport(NOTICE, (errmsg_internal("%s", said(caller))));
}

GUARDED(error)
{
	ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg_internal("%s", said(caller))));
}

/* ----------------------------------------------------------------------------------------------------- types */

GUARDED(type_get)
{
	plf_domain *d = plf_caller_domain();
	Oid oid = (Oid) ARG(0);
	HeapTuple tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(oid));
	struct plf_type t;
	Form_pg_type p;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("type with OID %u does not exist", oid)));
	p = (Form_pg_type) GETSTRUCT(tuple);
	memset(&t, 0, sizeof t);
	t.oid = oid;
	t.element = p->typelem;
	t.input = p->typinput;
	t.output = p->typoutput;
	t.receive = p->typreceive;
	t.send = p->typsend;
	t.ioparam = getTypeIOParam(tuple);
	t.relation = p->typrelid;
	t.length = p->typlen;
	t.by_value = p->typbyval;
	t.align = p->typalign;
	t.kind = p->typtype;
	t.storage = p->typstorage;
	t.category = p->typcategory;
	t.base_typmod = -1;
	t.base = getBaseTypeAndTypmod(oid, &t.base_typmod);
	ReleaseSysCache(tuple);
	if (rf_memory_write(d->handle, (void *) ARG(1), &t, sizeof t) != RF_OK)
		plf_throw_library("plf_type_get");
}

GUARDED(text_compare)
{
	plf_domain *d = plf_caller_domain();
	Size n[2] = { (uint32) ARG(1), (uint32) ARG(3) };
	char *s[2];

	for (int i = 0; i < 2; i++) {
		if (n[i] > MaxAllocSize)
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("text of %zu bytes is too long", n[i])));
		s[i] = palloc(n[i] + 1);
		plf_copy_out(d, ARG(i * 2), s[i], n[i]);
		s[i][n[i]] = 0;
	}
	rf_caller_return_int(caller, (uint64) varstr_cmp(s[0], n[0], s[1], n[1], (Oid) ARG(4)));
	pfree(s[0]);
	pfree(s[1]);
}

GUARDED(text_case)
{
	plf_domain *d = plf_caller_domain();
	int which = (int) ARG(0);
	Size n = ARG(2);
	char *s, *out;
	plf_writer w;

	if (n > MaxAllocSize)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("text of %zu bytes is too long", n)));
	s = palloc(n + 1);
	plf_copy_out(d, ARG(1), s, n);
	s[n] = 0;
	/* What maps letters trusts the encoding. */
	pg_verify_mbstr(GetDatabaseEncoding(), s, n, false);
	out = which == 0 ? str_tolower(s, n, (Oid) ARG(3)) : which == 1 ? str_toupper(s, n, (Oid) ARG(3)) : str_initcap(s, n, (Oid) ARG(3));
	plf_callback_writer(&w, d);
	rf_caller_return_int(caller, plf_put(&w, out, strlen(out) + 1));
	plf_callback_done(&w);
	pfree(s);
	pfree(out);
}

/* ------------------------------------------------------------------------------------------------- functions */

GUARDED(function_call)
{
	plf_domain *d = plf_caller_domain();
	Oid oid = (Oid) ARG(0), collation = (Oid) ARG(1);
	int nargs = (int) ARG(2);
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	Form_pg_proc p;
	NullableDatum given[FUNC_MAX_ARGS];
	plf_value_type type;
	FmgrInfo info;
	LOCAL_FCINFO(fcinfo, FUNC_MAX_ARGS);
	Datum result = (Datum) 0;
	bool null = false;
	uint8 isnull;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION), errmsg("function with OID %u does not exist", oid)));
	p = (Form_pg_proc) GETSTRUCT(tuple);
	if (pg_proc_aclcheck(oid, GetUserId(), ACL_EXECUTE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, NameStr(p->proname));
	if (p->prokind != PROKIND_FUNCTION || p->proretset || nargs != p->pronargs)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("function %s cannot be called by a module with %d arguments", NameStr(p->proname), nargs)));
	plf_copy_out(d, ARG(3), given, sizeof *given * nargs);
	fmgr_info(oid, &info);
	InitFunctionCallInfoData(*fcinfo, &info, nargs, collation, NULL, NULL);
	for (int i = 0; i < nargs; i++) {
		fcinfo->args[i].isnull = *(uint8 *) &given[i].isnull != 0;
		fcinfo->args[i].value = (Datum) 0;
		null |= fcinfo->args[i].isnull;
		plf_type_resolve(p->proargtypes.values[i], &type);
		if (type.way == PLF_WAY_INTERNAL)
			ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				errmsg("function %s cannot be called by a module: it takes an argument of type internal", NameStr(p->proname))));
		/* The server trusts the layout of what its functions get, as it does with results. */
		if (!fcinfo->args[i].isnull) {
			plf_check_supported(&type);
			fcinfo->args[i].value = plf_get_datum(d, &type, given[i].value);
		}
	}
	plf_type_resolve(p->prorettype, &type);
	if (type.way == PLF_WAY_INTERNAL)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("function %s cannot be called by a module: it returns type internal", NameStr(p->proname))));
	ReleaseSysCache(tuple);
	isnull = null && info.fn_strict;
	if (!isnull) {
		result = FunctionCallInvoke(fcinfo);
		isnull = fcinfo->isnull;
	}
	if (!isnull && type.way != PLF_WAY_VOID) {
		plf_writer w;

		plf_callback_writer(&w, d);
		result = plf_put_datum(&w, &type, result);
		plf_callback_done(&w);
	}
	if (rf_memory_write(d->handle, (void *) ARG(4), &isnull, sizeof isnull) != RF_OK)
		plf_throw_library("plf_function_call");
	rf_caller_return_int(caller, isnull ? 0 : result);
}

/* ------------------------------------------------------------------------------------------------------ rows */

GUARDED(tupdesc_get)
{
	plf_domain *d = plf_caller_domain();
	TupleDesc desc = lookup_rowtype_tupdesc_copy((Oid) ARG(0), (int32) ARG(1));
	plf_writer w;

	plf_callback_writer(&w, d);
	rf_caller_return_int(caller, plf_put_tupdesc(&w, desc));
	plf_callback_done(&w);
	FreeTupleDesc(desc);
}

GUARDED(tupdesc_bless)
{
	plf_domain *d = plf_caller_domain();
	TupleDescData head;
	TupleDesc desc;

	plf_copy_out(d, ARG(0), &head, offsetof(TupleDescData, attrs));
	if (head.natts < 0 || head.natts > MaxTupleAttributeNumber)
		ereport(ERROR, (errcode(ERRCODE_TOO_MANY_COLUMNS), errmsg("a row of %d columns cannot be", head.natts)));
	desc = CreateTemplateTupleDesc(head.natts);
	for (int i = 0; i < head.natts; i++) {
		FormData_pg_attribute a;

		plf_copy_out(d, ARG(0) + offsetof(TupleDescData, attrs) + i * sizeof a, &a, sizeof a);
		NameStr(a.attname)[NAMEDATALEN - 1] = 0;
		pg_verify_mbstr(GetDatabaseEncoding(), NameStr(a.attname), strlen(NameStr(a.attname)), false);
		/* Length and alignment are the catalogue's. */
		TupleDescInitEntry(desc, i + 1, NameStr(a.attname), a.atttypid, a.atttypmod, 0);
		if (OidIsValid(a.attcollation))
			TupleDescInitEntryCollation(desc, i + 1, a.attcollation);
	}
	BlessTupleDesc(desc);
	rf_caller_return_int(caller, (uint64) desc->tdtypmod);
}

GUARDED(result_type)
{
	plf_domain *d = plf_caller_domain();
	Oid type = InvalidOid;
	TupleDesc desc = NULL;
	TypeFuncClass class = TYPEFUNC_OTHER;
	uint64 address = 0;

	if (plf_current_call->fcinfo && plf_current_call->fcinfo->flinfo->fn_oid != InvalidOid)
		class = get_call_result_type(plf_current_call->fcinfo, &type, &desc);
	if (desc) {
		plf_writer w;

		plf_callback_writer(&w, d);
		address = plf_put_tupdesc(&w, desc);
		plf_callback_done(&w);
	}
	if ((ARG(1) != 0 && rf_memory_write(d->handle, (void *) ARG(1), &type, sizeof type) != RF_OK) ||
		(ARG(2) != 0 && rf_memory_write(d->handle, (void *) ARG(2), &address, sizeof address) != RF_OK))
		plf_throw_library("plf_result_type");
	rf_caller_return_int(caller, class);
}

/* ------------------------------------------------------------------------------------------------------ sets */

GUARDED(set_begin)
{
	plf_call *call = plf_current_call;
	ReturnSetInfo *rsinfo;
	MemoryContext before;
	TupleDesc desc = NULL;
	Oid type;

	plf_caller_domain();
	rsinfo = call->fcinfo ? (ReturnSetInfo *) call->fcinfo->resultinfo : NULL;
	if (!rsinfo || !IsA(rsinfo, ReturnSetInfo) || !call->fcinfo->flinfo->fn_retset)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("set-valued function called in context that cannot accept a set")));
	if (!(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("materialize mode required, but it is not allowed in this context")));
	if (call->store)
		return;
	before = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	if (get_call_result_type(call->fcinfo, &type, &desc) == TYPEFUNC_SCALAR) {
		desc = CreateTemplateTupleDesc(1);
		TupleDescInitEntry(desc, 1, "value", type, -1, 0);
	} else if (!desc)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("function returning record called in context that cannot accept type record")));
	else
		desc = CreateTupleDescCopy(desc);
	call->store_desc = desc;
	call->store_types = palloc(sizeof *call->store_types * Max(desc->natts, 1));
	for (int i = 0; i < desc->natts; i++)
		plf_type_resolve(TupleDescAttr(desc, i)->atttypid, &call->store_types[i]);
	call->store = tuplestore_begin_heap((rsinfo->allowedModes & SFRM_Materialize_Random) != 0, false, work_mem);
	MemoryContextSwitchTo(before);
}

GUARDED(set_put)
{
	plf_call *call = plf_current_call;
	plf_domain *d = plf_caller_domain();
	int n = (int) ARG(3);
	Datum *values;
	bool *isnull;

	if (!call->store || n != call->store_desc->natts)
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_SRF_PROTOCOL_VIOLATED), errmsg("a fenced function gave a row of %d columns", n)));
	values = palloc(sizeof *values * (n + 1));
	isnull = palloc(sizeof *isnull * (n + 1));
	plf_copy_out(d, ARG(1), values, sizeof *values * n);
	plf_copy_out(d, ARG(2), isnull, sizeof *isnull * n);
	for (int i = 0; i < n; i++) {
		isnull[i] = ((uint8 *) isnull)[i] != 0;
		if (!isnull[i]) {
			plf_check_supported(&call->store_types[i]);
			values[i] = plf_get_datum(d, &call->store_types[i], values[i]);
		}
	}
	tuplestore_putvalues(call->store, call->store_desc, values, isnull);
	pfree(values);
	pfree(isnull);
}
