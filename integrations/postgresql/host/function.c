/* From a row of pg_proc, or a DO block, to a function of a domain. */
#include "function.h"

#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/syscache.h"

static void
let_go(plf_function *f)
{
	plf_domain *d = f->domain;

	if (!d)
		return;
	plf_stat_look(f->numbers, d);
	f->domain = NULL;
	d->users--;
	if (f->flinfo != 0 && f->generation == d->generation)
		plf_domain_discard(d, d->flinfo_destroy, f->flinfo);
	f->flinfo = 0;
	f->memory_epoch = 0;
}

static void
gone(void *function)
{
	let_go(function);
}

/* The type of a plain function's parameter or result, in C. */
static const char *
c_type(const plf_value_type *t)
{
	switch (t->way) {
	case PLF_WAY_VOID:
		return "void";
	case PLF_WAY_FLOAT4:
		return "float";
	case PLF_WAY_FLOAT8:
		return "double";
	case PLF_WAY_VALUE:
		switch (t->length) {
		case 1:
			return t->oid == BOOLOID ? "bool" : "signed char";
		case 2:
			return "short";
		case 4:
			return "int";
		default:
			return "long";
		}
	default:
		return "void *";
	}
}

static char *
prototype(const plf_function *f)
{
	StringInfoData s;
	int floats = 0;

	initStringInfo(&s);
	appendStringInfo(&s, "%s %s(", c_type(&f->result), f->name);
	for (int i = 0; i < f->nargs; i++) {
		appendStringInfo(&s, "%s%s", i ? ", " : "", c_type(&f->args[i]));
		floats += f->args[i].way == PLF_WAY_FLOAT4 || f->args[i].way == PLF_WAY_FLOAT8;
	}
	appendStringInfo(&s, "%s)", f->nargs ? "" : "void");
	if (floats > FLOATS || f->nargs - floats > INTS)
		ereport(ERROR, (errcode(ERRCODE_TOO_MANY_ARGUMENTS),
			errmsg("plain function \"%s\" has more than %d arguments of one kind", f->name, INTS),
			errhint("Write it with PG_FUNCTION_INFO_V1.")));
	return s.data;
}

/* A C identifier, which cannot say more in a prototype than it should. */
static void
check_name(const char *name)
{
	bool ok = *name != 0 && !(*name >= '0' && *name <= '9') && strlen(name) < 256;

	for (const char *p = name; ok && *p; p++)
		ok = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_';
	if (!ok)
		ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("\"%s\" cannot be the name of a function in C", name)));
}

/* Whether a function's body is its text. */
static bool
is_text(const char *source)
{
	return strchr(source, '{') != NULL;
}

static bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What is behind the word `each`, if a body begins with it. */
static char *
behind_each(char *source)
{
	while (is_space(*source))
		source++;
	if (strncmp(source, "each", 4) != 0 || !is_space(source[4]))
		return NULL;
	for (source += 4; is_space(*source); source++)
		;
	return source;
}

static void
split(const char *source, char **module, char **name)
{
	char *copy = pstrdup(source), *colon = strchr(copy, ':');

	if (!colon)
		ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR), errmsg("a function in language plfenced is AS 'module:function', or its text in C"),
			errdetail("This one is '%s'.", source)));
	*colon = 0;
	*module = copy;
	*name = colon + 1;
	check_name(*name);
}

/* What the SQL function's body says. */
static void
read_source(plf_function *f, HeapTuple tuple)
{
	bool isnull;
	char *source = TextDatumGetCString(SysCacheGetAttr(PROCOID, tuple, Anum_pg_proc_prosrc, &isnull));
	char *rest = behind_each(source);

	f->for_each = rest != NULL;
	if (rest)
		source = rest;
	f->text = NULL;
	if (!is_text(source)) {
		split(source, &f->module, &f->name);
		return;
	}
	f->text = source;
	f->name = pstrdup(NameStr(((Form_pg_proc) GETSTRUCT(tuple))->proname));
	check_name(f->name);
}

/* The pointer to a text's function, of the domain as it is now. */
static void
point(plf_function *f)
{
	plf_domain *d = f->domain;

	f->thunk = rf_function_pointer(d->function, prototype(f));
	if (f->thunk && f->for_each) {
		if (!d->each && rf_runtime_create_function(d->runtime, "plf_each",
					plf_each_text(f->name, f->args, f->nargs, &f->result, c_type), &d->each) != RF_OK)
			plf_throw_library(psprintf("function \"%s\"", f->name));
		f->thunk = rf_function_pointer(d->each, "void plf_each(void *)");
	}
	if (!f->thunk)
		plf_throw_library(psprintf("function \"%s\"", f->name));
}

/* Finds the domain and the function in it. */
static void
bind(plf_function *f)
{
	plf_domain *d;
	char *finfo = psprintf("pg_finfo_%s", f->name);

	f->role = GetUserId();
	f->epoch = plf_module_epoch;
	d = plf_domain_get(f->text ? plf_module_of_text(f->oid, f->name, f->text) : plf_module_get(f->module), f->role);
	f->numbers = plf_stat_of(f->oid);
	f->domain = d;
	f->generation = 0; /* of no domain: they begin with 1 */
	d->users++;
	f->v1 = !f->text && rf_domain_find_symbol(d->handle, NULL, finfo) != NULL;
	rf_error_clear();
	if (!f->v1 && !f->strict && f->nargs > 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			errmsg("function \"%s\" cannot tell NULL arguments", f->name),
			errhint("Make it STRICT, or write it with PG_FUNCTION_INFO_V1.")));
	if (f->v1 && f->for_each)
		ereport(ERROR, (errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			errmsg("function \"%s\" has PG_FUNCTION_INFO_V1, and cannot be called for each element", f->name),
			errhint("Make it a plain C function, or write the loop over the array in the function.")));
	if (!f->v1 && (f->retset || f->internal || f->use == PLF_USE_TRIGGER || f->use == PLF_USE_WINDOW))
		ereport(ERROR, (errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			errmsg("function \"%s\" is a plain C function, which can be no trigger, no window function, take no internal, return no set", f->name),
			errhint("Write it with PG_FUNCTION_INFO_V1.")));
	if (f->text) {
		point(f);
		return;
	}
	if (f->v1 && !d->flinfo_create)
		ereport(ERROR, (errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
			errmsg("module \"%s\" is not linked with the library of plfenced", f->module),
			errhint("Link it with plfenced-cc.")));
	f->thunk = rf_dlsym(d->handle, f->v1 ? psprintf("unsigned long %s(void *)", f->name) : prototype(f));
	if (!f->thunk)
		plf_throw_library(psprintf("function \"%s\" of module \"%s\"", f->name, f->module));
	if (f->for_each) {
		f->address = (uint64) rf_domain_find_symbol(d->handle, NULL, f->name);
		f->thunk = rf_dlsym(d->handle, "void plf_each(void *)");
		if (!f->thunk || f->address == 0) {
			rf_error_clear();
			ereport(ERROR, (errcode(ERRCODE_INVALID_FUNCTION_DEFINITION),
				errmsg("module \"%s\" is linked with no library of plfenced that calls functions for each element", f->module),
				errhint("Link it with plfenced-cc.")));
		}
	}
}

static bool
in_register(const plf_value_type *t)
{
	return t->way == PLF_WAY_VALUE || t->way == PLF_WAY_FLOAT4 || t->way == PLF_WAY_FLOAT8;
}

/* How arguments and the result cross. */
static void
read_types(plf_function *f, Form_pg_proc p)
{
	bool plain = !f->retset && f->use != PLF_USE_TRIGGER && f->use != PLF_USE_WINDOW && !f->for_each;

	f->simple = f->flat = f->integers = plain;
	f->internal = false;
	for (int i = 0; i < f->nargs; i++) {
		plf_type_resolve(p->proargtypes.values[i], &f->args[i]);
		f->internal |= f->args[i].way == PLF_WAY_INTERNAL;
		f->simple &= in_register(&f->args[i]);
		f->flat &= in_register(&f->args[i]) || is_bytes(&f->args[i]);
		f->integers &= f->args[i].way == PLF_WAY_VALUE;
	}
	plf_type_resolve(p->prorettype, &f->result);
	f->simple &= in_register(&f->result);
	f->flat &= in_register(&f->result) || is_bytes(&f->result);
	f->integers &= f->result.way == PLF_WAY_VALUE;
	f->each = f->for_each ? plf_each_create(f->args, f->nargs, &f->result) : NULL;
}

plf_function *
plf_function_resolve(Oid oid, MemoryContext context, plf_use use)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	Form_pg_proc p;
	plf_function *f;
	MemoryContext before;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", oid);
	p = (Form_pg_proc) GETSTRUCT(tuple);
	before = MemoryContextSwitchTo(context);
	f = palloc0(sizeof *f);
	f->oid = oid;
	f->context = context;
	f->nargs = p->pronargs;
	f->strict = p->proisstrict;
	f->retset = p->proretset;
	f->use = use;
	read_source(f, tuple);
	f->args = palloc0(sizeof *f->args * Max(f->nargs, 1));
	read_types(f, p);
	f->gone.func = gone;
	f->gone.arg = f;
	MemoryContextRegisterResetCallback(context, &f->gone);
	bind(f);
	if (f->internal && use == PLF_USE_PLAIN)
		f->gist = plf_gist_create(oid);
	MemoryContextSwitchTo(before);
	ReleaseSysCache(tuple);
	return f;
}

void
plf_function_bind_again(plf_function *f)
{
	MemoryContext before = MemoryContextSwitchTo(f->context);
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(f->oid));

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", f->oid);
	let_go(f);
	read_source(f, tuple);
	if (f->for_each != (f->each != NULL))
		read_types(f, (Form_pg_proc) GETSTRUCT(tuple));
	ReleaseSysCache(tuple);
	bind(f);
	MemoryContextSwitchTo(before);
}

static void
make_flinfo(plf_function *f)
{
	plf_domain *d = f->domain;
	int flags = (f->strict ? PLF_FLINFO_STRICT : 0) | (f->retset ? PLF_FLINFO_RETSET : 0);
	plf_call call;
	uint64 flinfo;

	plf_enter(&call, d);
	flinfo = d->flinfo_create(f->oid, f->nargs, flags);
	plf_leave(&call, f->name);
	f->flinfo = flinfo;
}

void
plf_function_renew(plf_function *f)
{
	if (f->v1)
		make_flinfo(f);
	else if (f->text)
		point(f);
	f->memory_epoch = 0;
	f->generation = f->domain->generation;
}

void
plf_validate_function(Oid oid)
{
	HeapTuple tuple = SearchSysCache1(PROCOID, ObjectIdGetDatum(oid));
	Form_pg_proc p;
	plf_function f;
	plf_value_type type;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for function %u", oid);
	p = (Form_pg_proc) GETSTRUCT(tuple);
	read_source(&f, tuple);
	if (check_function_bodies) {
		for (int i = 0; i < p->pronargs; i++)
			plf_type_resolve(p->proargtypes.values[i], &type);
		plf_type_resolve(p->prorettype, &type);
		plf_check_supported(&type);
		if (!f.text)
			plf_module_check_usage(f.module);
		plf_function_resolve(oid, CurrentMemoryContext,
			p->prorettype == TRIGGEROID               ? PLF_USE_TRIGGER
				: p->prokind == PROKIND_WINDOW ? PLF_USE_WINDOW
							       : PLF_USE_PLAIN);
	}
	ReleaseSysCache(tuple);
}

plf_function *
plf_function_of_block(const char *text)
{
	plf_function *f = palloc0(sizeof *f);
	char *source = pstrdup(text);

	/* White space around the name is nobody's meaning. */
	while (is_space(*source))
		source++;
	for (char *end = source + strlen(source); end > source && is_space(end[-1]); *--end = 0)
		;
	if (is_text(source)) {
		f->text = source;
		f->name = "block";
	} else {
		split(source, &f->module, &f->name);
		plf_module_check_usage(f->module);
	}
	f->context = CurrentMemoryContext;
	f->result.way = PLF_WAY_VOID;
	f->gone.func = gone;
	f->gone.arg = f;
	MemoryContextRegisterResetCallback(CurrentMemoryContext, &f->gone);
	bind(f);
	return f;
}
