/* Calls of functions of domains.
 *
 * A module's function has one of two shapes. With PG_FUNCTION_INFO_V1 it gets a FunctionCallInfo, as functions in C do: the
 * handler lays one into the call area. Without, it is a plain C function whose parameters are the SQL function's. So is one that comes
 * as text, in the SQL function's body. */
#include "function.h"

#include "commands/trigger.h"
#include "miscadmin.h"

plf_call *plf_current_call;

typedef uint64 (*call_v1)(uint64);
typedef uint64 (*call_two)(int64, int64);
typedef uint64 (*call_int)(int64, int64, int64, int64, int64, int64);
typedef uint64 (*call_mixed)(int64, int64, int64, int64, int64, int64, double, double, double, double, double, double, double, double);
typedef double (*call_double)(int64, int64, int64, int64, int64, int64, double, double, double, double, double, double, double, double);
typedef float (*call_float)(int64, int64, int64, int64, int64, int64, double, double, double, double, double, double, double, double);

/* A float in the low half of a register for doubles. */
static double
widened(Datum value)
{
	double x = 0;
	uint32 bits = DatumGetInt32(value);

	memcpy(&x, &bits, sizeof bits);
	return x;
}

static Datum
call_plain(plf_function *f, const NullableDatum *args)
{
	int64 i[INTS] = { 0 };
	double x[FLOATS] = { 0 };
	int ints = 0, floats = 0;

	/* The most frequent shapes, whose other registers need not be set: a plain function reads those of its parameters. */
	if (f->integers && f->nargs <= 2)
		return ((call_two) f->thunk)(f->nargs > 0 ? args[0].value : 0, f->nargs > 1 ? args[1].value : 0);
	for (int k = 0; k < f->nargs; k++) {
		if (f->args[k].way == PLF_WAY_FLOAT8)
			x[floats++] = DatumGetFloat8(args[k].value);
		else if (f->args[k].way == PLF_WAY_FLOAT4)
			x[floats++] = widened(args[k].value);
		else
			i[ints++] = args[k].value;
	}
	if (f->result.way == PLF_WAY_FLOAT8)
		return Float8GetDatum(((call_double) f->thunk)(i[0], i[1], i[2], i[3], i[4], i[5], x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]));
	if (f->result.way == PLF_WAY_FLOAT4)
		return Float4GetDatum(((call_float) f->thunk)(i[0], i[1], i[2], i[3], i[4], i[5], x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]));
	if (floats > 0)
		return ((call_mixed) f->thunk)(i[0], i[1], i[2], i[3], i[4], i[5], x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
	return ((call_int) f->thunk)(i[0], i[1], i[2], i[3], i[4], i[5]);
}

uint64
plf_frame_base(plf_domain *d)
{
	uint64 base = d->base;

	if (d->depth > 0) {
		uint64 top = ((volatile struct plf_area *) plf_area_of(d))->top;

		if (top > base && top <= PLF_AREA_SIZE)
			base = top;
	}
	return base;
}

bool plf_has_abandoned;
static rf_mark outside; /* of no call at all */

void
plf_abandon(void)
{
	plf_call *call = plf_current_call;

	call->domain->depth--;
	call->domain->base = call->base;
	call->domain->abandoned = true;
	call->domain->errors++;
	if (call->numbers)
		call->numbers->errors++;
	plf_current_call = call->outer;
	plf_has_abandoned = true;
}

void
plf_end_abandoned(void)
{
	plf_has_abandoned = false;
	if (rf_call_unwind(plf_current_call ? plf_current_call->mark : outside) != RF_OK)
		plf_throw_library("ending calls that an error has left");
}

/* Makes a call the current one. The thread has no abandoned calls. */
static inline void
enter(plf_call *call, plf_domain *d, plf_numbers *numbers, FunctionCallInfo fcinfo)
{
	call->outer = plf_current_call;
	call->domain = d;
	call->numbers = numbers;
	call->fcinfo = fcinfo;
	call->base = d->base;
	call->store = NULL;
	call->spi = 0;
	plf_current_call = call;
	d->depth++;
}

/* Takes it back when the module has returned or failed: then `result` is 0. */
static inline void
leave(plf_call *call, uint64 result, const char *function)
{
	plf_domain *d = call->domain;

	d->depth--;
	d->base = call->base;
	plf_current_call = call->outer;
	if (unlikely(result == 0 && rf_call_status() != RF_OK)) {
		if (call->numbers && rf_call_status() != RF_FAULT_INTERRUPT)
			call->numbers->faults++;
		plf_throw(d, function);
	}
	if (unlikely(call->spi > 0))
		plf_spi_leave(call);
}

void
plf_enter(plf_call *call, plf_domain *d)
{
	if (unlikely(plf_has_abandoned))
		plf_end_abandoned();
	enter(call, d, NULL, NULL);
}

void
plf_leave(plf_call *call, const char *function)
{
	leave(call, 0, function);
}

static void
release(plf_domain *d)
{
	volatile struct plf_area *area = plf_area_of(d);
	plf_call call;

	if (likely(area->spilled == 0) || d->depth > 0 || !d->release)
		return;
	area->spilled = 0;
	plf_enter(&call, d);
	d->release();
	plf_leave(&call, "plf_release");
}

/* Gives the module a ReturnSetInfo, at the offset in the area that is returned. */
static uint64
put_set(plf_writer *w, ReturnSetInfo *host)
{
	ReturnSetInfo r;

	memset(&r, 0, sizeof r);
	r.type = T_ReturnSetInfo;
	r.allowedModes = host->allowedModes & (SFRM_ValuePerCall | SFRM_Materialize | SFRM_Materialize_Random);
	r.returnMode = SFRM_ValuePerCall;
	r.isDone = ExprSingleResult;
	if (host->expectedDesc)
		r.expectedDesc = (TupleDesc) plf_put_tupdesc(w, host->expectedDesc);
	return plf_put(w, &r, sizeof r);
}

/* What the module says of its set. */
static void
get_set(plf_function *f, plf_call *call, uint64 address)
{
	ReturnSetInfo *host = (ReturnSetInfo *) call->fcinfo->resultinfo, r;

	plf_copy_out(f->domain, address, &r, sizeof r);
	if (call->store) {
		host->returnMode = SFRM_Materialize;
		host->setResult = call->store;
		host->setDesc = call->store_desc;
		return;
	}
	if (r.isDone != ExprSingleResult && r.isDone != ExprMultipleResult && r.isDone != ExprEndResult)
		ereport(ERROR, (errcode(ERRCODE_E_R_I_E_SRF_PROTOCOL_VIOLATED),
			errmsg("fenced function \"%s\" does not follow the protocol of sets", f->name)));
	host->isDone = r.isDone;
}

/* Triggers: the module's TriggerData, and what it returns. */
struct trigger_frame {
	uint64 address, old, new;
};

static void
put_trigger(plf_writer *w, TriggerData *host, struct trigger_frame *frame)
{
	TriggerData t;
	RelationData relation;
	Trigger trigger = *host->tg_trigger;
	TupleDesc desc = RelationGetDescr(host->tg_relation);
	FormData_pg_class *form = palloc(sizeof *form);
	char **args = palloc0(sizeof *args * (trigger.tgnargs + 1));

	memset(&t, 0, sizeof t);
	memset(&relation, 0, sizeof relation);
	memset(frame, 0, sizeof *frame);
	*form = *host->tg_relation->rd_rel;
	relation.rd_id = RelationGetRelid(host->tg_relation);
	relation.rd_rel = (Form_pg_class) plf_put(w, form, sizeof *form);
	relation.rd_att = (TupleDesc) plf_put_tupdesc(w, desc);
	t.type = T_TriggerData;
	t.tg_event = host->tg_event;
	t.tg_relation = (Relation) plf_put(w, &relation, sizeof relation);
	if (host->tg_trigtuple)
		frame->old = plf_put_tuple(w, host->tg_trigtuple, desc);
	if (host->tg_newtuple)
		frame->new = plf_put_tuple(w, host->tg_newtuple, desc);
	t.tg_trigtuple = (HeapTuple) frame->old;
	t.tg_newtuple = (HeapTuple) frame->new;
	for (int i = 0; i < trigger.tgnargs; i++)
		args[i] = (char *) plf_put(w, trigger.tgargs[i], strlen(trigger.tgargs[i]) + 1);
	trigger.tgargs = (char **) plf_put(w, args, sizeof *args * (trigger.tgnargs + 1));
	trigger.tgname = (char *) plf_put(w, trigger.tgname, strlen(trigger.tgname) + 1);
	trigger.tgattr = NULL;
	trigger.tgnattr = 0;
	trigger.tgqual = trigger.tgoldtable = trigger.tgnewtable = NULL;
	t.tg_trigger = (Trigger *) plf_put(w, &trigger, sizeof trigger);
	frame->address = plf_put(w, &t, sizeof t);
}

static Datum
get_trigger(plf_function *f, TriggerData *host, struct trigger_frame *frame, Datum result)
{
	HeapTupleData t;
	char *bytes;
	HeapTuple tuple;

	if (result == 0 || !TRIGGER_FIRED_FOR_ROW(host->tg_event) || TRIGGER_FIRED_AFTER(host->tg_event))
		return (Datum) 0;
	if (result == frame->old)
		return PointerGetDatum(host->tg_trigtuple);
	if (result == frame->new)
		return PointerGetDatum(host->tg_newtuple);
	plf_copy_out(f->domain, result, &t, sizeof t);
	if (t.t_len > MaxAllocSize)
		ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg("fenced function \"%s\" returned no row", f->name)));
	bytes = palloc(t.t_len);
	plf_copy_out(f->domain, (uint64) t.t_data, bytes, t.t_len);
	tuple = plf_check_row(bytes, t.t_len, RelationGetDescr(host->tg_relation));
	return PointerGetDatum(tuple);
}

/* Everything but the simple calls. */
static Datum
call_full(plf_function *f, FunctionCallInfo fcinfo)
{
	plf_domain *d = f->domain;
	plf_call call;
	plf_writer w;
	uint64 set = 0, frame = 0;
	struct trigger_frame trigger;
	FunctionCallInfoBaseData *in;
	bool isnull = false;
	Datum result;
	NullableDatum plain[FUNC_MAX_ARGS];
	NullableDatum *args = plain;
	Size head = SizeForFunctionCallInfo(f->nargs);
	struct plf_aggregate aggregate = { T_Invalid, 0, 0 };

	if (f->v1 && f->use == PLF_USE_AGGREGATE)
		aggregate = plf_aggregate_of(f, fcinfo);
	plf_writer_begin(&w, d, plf_frame_base(d));
	if (f->v1) {
		w.top = MAXALIGN(w.top);
		in = (FunctionCallInfoBaseData *) plf_reserve(&w, head, &frame);
		if (!in)
			ereport(ERROR, (errcode(ERRCODE_STATEMENT_TOO_COMPLEX),
				errmsg("calls of module \"%s\" are nested too deeply", d->module->name)));
		memset(in, 0, head);
		in->flinfo = (FmgrInfo *) f->flinfo;
		in->fncollation = fcinfo->fncollation;
		in->nargs = f->nargs;
		args = in->args;
		if (f->use == PLF_USE_TRIGGER) {
			put_trigger(&w, (TriggerData *) fcinfo->context, &trigger);
			in->context = (fmNodePtr) trigger.address;
		} else if (f->use == PLF_USE_WINDOW)
			in->context = (fmNodePtr) plf_put_window(&w, f->flinfo);
		else if (f->use == PLF_USE_AGGREGATE)
			in->context = (fmNodePtr) plf_put(&w, &aggregate, sizeof aggregate);
		if (fcinfo->resultinfo && IsA(fcinfo->resultinfo, ReturnSetInfo)) {
			set = put_set(&w, (ReturnSetInfo *) fcinfo->resultinfo);
			in->resultinfo = (fmNodePtr) set;
		}
	} else
		in = NULL;
	for (int k = 0; k < f->nargs && f->use != PLF_USE_TRIGGER; k++) {
		args[k].isnull = fcinfo->args[k].isnull;
		args[k].value = 0;
		if (args[k].isnull || (f->gist && plf_gist_is_query(f->gist, k)))
			continue;
		if (f->args[k].way != PLF_WAY_INTERNAL)
			args[k].value = plf_put_datum(&w, &f->args[k], fcinfo->args[k].value);
		else if (f->use == PLF_USE_AGGREGATE)
			args[k].value = plf_state_address(f, fcinfo->args[k].value);
	}
	if (f->internal && !f->gist && f->use != PLF_USE_AGGREGATE)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("fenced function \"%s\" cannot be called: it takes an argument of type internal", f->name),
			errdetail("Such arguments are understood in the support functions of GiST operator classes and of aggregates.")));
	if (f->gist)
		plf_gist_put(f->gist, &w, fcinfo, args);
	plf_area_of(d)->top = MAXALIGN(w.top);

	enter(&call, d, f->numbers, fcinfo);
	d->base = MAXALIGN(w.top);
	d->calls++;
	f->numbers->calls++;
	result = f->v1 ? ((call_v1) f->thunk)(frame) : call_plain(f, args);
	leave(&call, result, f->name);

	if (in)
		isnull = in->isnull != 0;
	if (set != 0 && f->retset)
		get_set(f, &call, set);
	if (f->use == PLF_USE_TRIGGER) {
		isnull = false;
		result = get_trigger(f, (TriggerData *) fcinfo->context, &trigger, result);
	} else if (f->gist)
		result = plf_gist_get(f->gist, d, fcinfo, result);
	else if (call.store)
		isnull = true;
	else if (!isnull && f->result.way != PLF_WAY_INTERNAL)
		result = plf_get_datum(d, &f->result, result);
	else if (f->use == PLF_USE_AGGREGATE && !isnull)
		result = plf_state_keep(f, fcinfo, result);
	else if (f->result.way == PLF_WAY_INTERNAL && !isnull)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("a fenced function cannot return type internal here")));
	if (f->result.way == PLF_WAY_VOID)
		isnull = false;
	fcinfo->isnull = isnull;
	plf_writer_end(&w);
	release(d);
	return isnull ? (Datum) 0 : result;
}

/* Values in registers; for functions that are given their arguments in memory, also bytes that fit into the call area. */
static inline Datum
call_simple(plf_function *f, FunctionCallInfo fcinfo)
{
	plf_domain *d = f->domain;
	plf_call call;
	uint64 at;
	FunctionCallInfoBaseData *in = NULL;
	Datum result;
	bool aggregates = f->v1 && f->use == PLF_USE_AGGREGATE;
	struct plf_aggregate aggregate;

	if (unlikely(aggregates))
		aggregate = plf_aggregate_of(f, fcinfo);
	at = MAXALIGN(plf_frame_base(d));
	if (f->v1) {
		Size node = MAXALIGN(SizeForFunctionCallInfo(f->nargs)), size = node + (aggregates ? sizeof aggregate : 0);
		uint64 top = at + size;

		if (unlikely(at > PLF_AREA_SIZE - size))
			return call_full(f, fcinfo);
		in = (FunctionCallInfoBaseData *) (d->view + at);
		in->flinfo = (FmgrInfo *) f->flinfo;
		in->context = in->resultinfo = NULL;
		if (unlikely(aggregates)) {
			*(struct plf_aggregate *) (d->view + at + node) = aggregate;
			in->context = (fmNodePtr) (d->inside + at + node);
		}
		in->fncollation = fcinfo->fncollation;
		in->isnull = false;
		in->nargs = f->nargs;
		for (int k = 0; k < f->nargs; k++) {
			bool isnull = fcinfo->args[k].isnull;
			Datum value = isnull ? (Datum) 0 : fcinfo->args[k].value;

			if (!isnull && is_bytes(&f->args[k])) {
				value = plf_lay(d, &f->args[k], value, &top);
				if (unlikely(value == 0))
					return call_full(f, fcinfo);
			}
			/* Nothing but the value: neither what stands in place of a NULL nor what is between the two. */
			in->args[k].value = value;
			*(uint64 *) &in->args[k].isnull = isnull;
		}
		enter(&call, d, f->numbers, fcinfo);
		plf_area_of(d)->top = d->base = top;
		result = ((call_v1) f->thunk)(d->inside + at);
	} else {
		enter(&call, d, f->numbers, fcinfo);
		plf_area_of(d)->top = d->base = at;
		result = call_plain(f, fcinfo->args);
	}
	d->calls++;
	f->numbers->calls++;
	leave(&call, result, f->name);
	if (in && unlikely(in->isnull != 0)) {
		fcinfo->isnull = true;
		result = 0;
	} else {
		fcinfo->isnull = false;
		result = plf_get_datum(d, &f->result, result);
	}
	if (unlikely(plf_area_of(d)->spilled != 0))
		release(d);
	return result;
}

/* The line in an error's CONTEXT. */
static void
context_line(void *function)
{
	plf_function *f = function;

	if (f->text)
		errcontext("fenced function \"%s\"", f->name);
	else
		errcontext("fenced function \"%s\" of module \"%s\"", f->name, f->module);
}

static plf_use
use_of(FunctionCallInfo fcinfo)
{
	if (!fcinfo->context)
		return PLF_USE_PLAIN;
	switch (nodeTag(fcinfo->context)) {
	case T_TriggerData:
		return PLF_USE_TRIGGER;
	case T_AggState:
	case T_WindowAggState:
		return PLF_USE_AGGREGATE;
	case T_WindowObjectData:
		return PLF_USE_WINDOW;
	default:
		return PLF_USE_PLAIN;
	}
}

Datum
plf_call_function(FunctionCallInfo fcinfo)
{
	ErrorContextCallback line;
	Datum result;

	plf_function *f = fcinfo->flinfo->fn_extra;

	if (unlikely(!f)) {
		if (!plf_current_call && !plf_has_abandoned)
			outside = rf_call_mark();
		f = fcinfo->flinfo->fn_extra = plf_function_resolve(fcinfo->flinfo->fn_oid, fcinfo->flinfo->fn_mcxt, use_of(fcinfo));
	}
	if (unlikely(!f->domain || f->epoch != plf_module_epoch || f->role != GetUserId()))
		plf_function_bind_again(f);
	if (unlikely(plf_has_abandoned))
		plf_end_abandoned();
	line.callback = context_line;
	line.arg = f;
	line.previous = error_context_stack;
	error_context_stack = &line;
	plf_domain_prepare(f->domain);
	if (unlikely(f->generation != f->domain->generation))
		plf_function_renew(f);
	if (f->simple || (f->flat && f->v1))
		result = call_simple(f, fcinfo);
	else if (f->each)
		result = plf_each_call(f->each, f->domain, f->name, f->thunk, f->address, f->numbers, fcinfo);
	else
		result = call_full(f, fcinfo);
	error_context_stack = line.previous;
	return result;
}

void
plf_call_block(const char *text)
{
	plf_function *f;
	plf_call call = { 0 };

	if (plf_has_abandoned)
		plf_end_abandoned();
	if (!plf_current_call)
		outside = rf_call_mark();
	f = plf_function_of_block(text);
	plf_domain_prepare(f->domain);
	if (f->v1) {
		FmgrInfo info = { 0 };
		LOCAL_FCINFO(fcinfo, 0);

		info.fn_mcxt = CurrentMemoryContext;
		InitFunctionCallInfoData(*fcinfo, &info, 0, InvalidOid, NULL, NULL);
		plf_function_renew(f);
		call_full(f, fcinfo);
		return;
	}
	plf_enter(&call, f->domain);
	call_plain(f, NULL);
	plf_leave(&call, f->name);
}
