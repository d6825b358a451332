/* Domains: one for each role and module of a session. */
#include "plfenced.h"

#include "access/xact.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/guc.h"

int plf_memory_limit = 65536, plf_time_limit, plf_state = PLF_KEEP, plf_trace = 8;
dlist_head plf_domains = DLIST_STATIC_INIT(plf_domains);

static uint64 transactions;

/* Tells the module's library where the call area is; a module that is linked without it has none. */
static void
set_area(plf_domain *d)
{
	struct plf_area *area = plf_area_of(d);
	size_t size = 0;
	void *word = rf_domain_find_object(d->handle, "plf_area", &size);

	memset(area, 0, sizeof *area);
	area->version = PLF_ABI_VERSION;
	area->encoding = GetDatabaseEncoding();
	area->encoding_length = pg_database_encoding_max_length();
	area->server_version = PG_VERSION_NUM;
	area->size = PLF_AREA_SIZE;
	area->top = sizeof *area;
	if (word && size == sizeof d->inside) {
		if (rf_memory_write(d->handle, word, &d->inside, sizeof d->inside) != RF_OK)
			plf_throw_library(psprintf("module \"%s\"", d->module->name));
	} else
		rf_error_clear();
}

/* A function of the module's library, NULL if it is not linked. */
static void *
library(plf_domain *d, const char *prototype)
{
	void *f = rf_dlsym(d->handle, prototype);

	if (!f)
		rf_error_clear();
	return f;
}

static uint32
word(plf_domain *d, const char *name)
{
	size_t size = 0;
	uint32 value = 0;
	void *at = rf_domain_find_object(d->handle, name, &size);

	if (!at || size != sizeof value || rf_memory_read(d->handle, at, &value, sizeof value) != RF_OK)
		rf_error_clear();
	return value;
}

static void
check_versions(plf_domain *d)
{
	uint32 version = word(d, "plf_version"), server = word(d, "plf_server_version");

	if (d->flinfo_create && version != PLF_ABI_VERSION)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("module \"%s\" was linked with another version of plfenced", d->module->name),
			errhint("Link it again with plfenced-cc.")));
	if (d->flinfo_create && server / 100 != PG_VERSION_NUM / 100)
		ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			errmsg("module \"%s\" was compiled for PostgreSQL %u", d->module->name, server / 10000),
			errdetail("This server is PostgreSQL %d.", PG_VERSION_NUM / 10000),
			errhint("Compile it against this server's headers.")));
}

/* The domain of a module, or the runtime of a text. */
static rf_status
make(plf_domain *d, rf_domain_options *o)
{
	const rf_built_in *built_ins;
	size_t count;
	rf_status status;

	if (!d->module->text) {
		o->imports = plf_imports(&o->import_count);
		return rf_domain_create(d->module->handle, o, &d->handle);
	}
	built_ins = plf_built_ins(&count);
	status = rf_runtime_create(built_ins, count, o, &d->runtime);
	if (status == RF_OK)
		status = rf_runtime_create_function(d->runtime, d->module->name, d->module->text, &d->function);
	if (status == RF_OK)
		d->handle = rf_runtime_domain(d->runtime);
	return status;
}

static void
destroy(plf_domain *d)
{
	rf_function_destroy(d->each);
	rf_function_destroy(d->function);
	if (d->runtime)
		rf_runtime_destroy(d->runtime);
	else
		rf_domain_destroy(d->handle);
	rf_region_destroy(d->region);
	d->module->domains--;
	pfree(d);
}

static plf_domain *
create(plf_module *module, Oid role)
{
	plf_domain *d = MemoryContextAllocZero(TopMemoryContext, sizeof *d);
	rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
	plf_call *outer = plf_current_call;
	rf_status status;

	d->role = role;
	d->module = module;
	d->generation = 1;
	dlist_init(&d->garbage);
	o.memory_limit = (uint64) plf_memory_limit * 1024;
	o.time_limit = (uint64) plf_time_limit * 1000000;
	o.cancel = &plf_cancel;
	/* Constructors run in no call, whatever call is in progress outside: they get nothing of it. */
	plf_current_call = NULL;
	module->domains++;
	status = make(d, &o);
	plf_current_call = outer;
	PG_TRY();
	{
		if (status != RF_OK)
			plf_throw_library(psprintf(module->text ? "function \"%s\"" : "module \"%s\"", module->name));
		if (rf_region_create(PLF_AREA_SIZE, NULL, &d->region) != RF_OK ||
			rf_region_give(d->region, NULL, d->handle, RF_RIGHTS_WRITE) != RF_OK)
			plf_throw_library(psprintf("module \"%s\"", module->name));
		d->view = rf_region_host_address(d->region);
		d->inside = (uint64) rf_region_address(d->region, d->handle);
		d->base = MAXALIGN(sizeof(struct plf_area));
		set_area(d);
		d->release = (void (*)(void)) library(d, "void plf_release(void)");
		d->flinfo_create = (uint64 (*)(Oid, int, int)) library(d, "void *plf_flinfo_create(unsigned, int, int)");
		d->flinfo_destroy = (void (*)(uint64)) library(d, "void plf_flinfo_destroy(void *)");
		d->memory_create = (uint64 (*)(void)) library(d, "void *plf_memory_create(void)");
		d->memory_destroy = (void (*)(uint64)) library(d, "void plf_memory_destroy(void *)");
		check_versions(d);
		d->call_context = (uint64) rf_domain_find_object(d->handle, "plf_call_context", NULL);
		rf_error_clear();
	}
	PG_CATCH();
	{
		destroy(d);
		rf_error_clear();
		PG_RE_THROW();
	}
	PG_END_TRY();
	dlist_push_head(&plf_domains, &d->link);
	return d;
}

plf_domain *
plf_domain_get(plf_module *module, Oid role)
{
	dlist_iter i;

	plf_cancel_init();
	dlist_foreach(i, &plf_domains) {
		plf_domain *d = dlist_container(plf_domain, link, i.cur);

		if (d->module == module && d->role == role)
			return d;
	}
	return create(module, role);
}

void
plf_domain_reset(plf_domain *d)
{
	plf_call *outer = plf_current_call;
	rf_status status;

	plf_current_call = NULL;
	status = d->runtime ? rf_runtime_reset(d->runtime) : rf_domain_reset(d->handle);
	plf_current_call = outer;

	d->generation++;
	/* What was kept inside is gone. */
	while (!dlist_is_empty(&d->garbage))
		pfree(dlist_pop_head_node(&d->garbage));
	d->heap_used = 0;
	d->abandoned = false;
	if (status != RF_OK)
		plf_throw_library(psprintf("module \"%s\" cannot be put back to its first state", d->module->name));
	d->base = MAXALIGN(sizeof(struct plf_area));
	set_area(d);
}

void
plf_domain_free_to(plf_domain *d, int mark)
{
	while (d->heap_used > mark)
		rf_memory_free(d->handle, d->heap[--d->heap_used]);
	rf_error_clear();
}

void
plf_domain_recover(plf_domain *d)
{
	if (d->depth == 0 && rf_domain_state(d->handle) == RF_ERROR_FAULTED)
		plf_domain_reset(d);
}

void
plf_domain_tidy(plf_domain *d)
{
	plf_cancel_check();
	if (d->depth > 0)
		return;
	if (plf_state == PLF_KEEP_CALL ||
		(plf_state == PLF_KEEP_TRANSACTION && d->transaction != MyProc->lxid && d->transaction != 0))
		plf_domain_reset(d);
	if (d->transaction != MyProc->lxid) {
		d->transaction = MyProc->lxid;
		plf_area_of(d)->transaction = ++transactions;
		rf_domain_set_time_limit(d->handle, (uint64) plf_time_limit * 1000000);
	}
	if (unlikely(d->heap_used > 0))
		plf_domain_free_to(d, 0);
	if (unlikely(d->abandoned)) {
		plf_call call;

		d->abandoned = false;
		plf_area_of(d)->spilled = 0;
		if (d->release) {
			plf_enter(&call, d);
			d->release();
			plf_leave(&call, "plf_release");
		}
	}
	while (unlikely(!dlist_is_empty(&d->garbage))) {
		plf_garbage *g = dlist_container(plf_garbage, link, dlist_pop_head_node(&d->garbage));
		plf_garbage ended = *g;
		plf_call call;

		pfree(g);
		plf_enter(&call, d);
		ended.destroy(ended.address);
		plf_leave(&call, "a function of plfenced's library");
	}
}

void
plf_domain_discard(plf_domain *d, void (*destroy)(uint64), uint64 address)
{
	plf_garbage *g = MemoryContextAllocExtended(TopMemoryContext, sizeof *g, MCXT_ALLOC_NO_OOM);

	if (!g)
		return;
	g->destroy = destroy;
	g->address = address;
	dlist_push_head(&d->garbage, &g->link);
}

void
plf_domain_sweep(void)
{
	dlist_mutable_iter i;

	dlist_foreach_modify(i, &plf_domains) {
		plf_domain *d = dlist_container(plf_domain, link, i.cur);

		if (d->module->current || d->depth > 0 || d->users > 0)
			continue;
		dlist_delete(&d->link);
		destroy(d);
		rf_error_clear();
	}
	plf_module_sweep();
}
