/* What aggregates keep in the module's memory.
 *
 * AggCheckCallContext tells the module a memory of its own for each of the server's: it goes when that goes, with the group, the
 * batch of groups, or the query.
 *
 * A state that is `internal` is the address of what the module keeps there. The server never has the address itself: what it passes
 * around is a pointer to a record of this file, found again by a table. A value that is no such record, or one of another domain,
 * is refused. */
#include "function.h"

#include "utils/hsearch.h"

/* The module's memory for one of the server's: known by this record until that one goes. */
typedef struct groups {
	struct {
		MemoryContext memory;
		plf_domain *domain; /* held: one of its users */
	} key; /* of the table */
	MemoryContextCallback gone;
	uint32 generation;
	uint64 address;
} groups;

static HTAB *all_groups;
static uint64 epoch = 1; /* another one after each that has gone */

static void
end_groups(void *g)
{
	groups ended = *(groups *) g;
	plf_domain *d = ended.key.domain;

	hash_search(all_groups, &ended.key, HASH_REMOVE, NULL);
	epoch++;
	d->users--;
	if (ended.generation == d->generation)
		plf_domain_discard(d, d->memory_destroy, ended.address);
}

/* The module's memory; makes it if it is the first call for the server's, or the domain has begun anew since. */
static uint64
memory_for(plf_domain *d, MemoryContext server)
{
	groups *g, key = { { server, d }, { 0 }, 0, 0 };
	plf_call call;
	bool known;
	uint64 address;

	if (!all_groups) {
		HASHCTL control = { .keysize = sizeof key.key, .entrysize = sizeof *g };

		all_groups = hash_create("plfenced groups", 16, &control, HASH_ELEM | HASH_BLOBS);
	}
	g = hash_search(all_groups, &key.key, HASH_FIND, NULL);
	if (g && g->generation == d->generation)
		return g->address;
	plf_enter(&call, d);
	address = d->memory_create();
	plf_leave(&call, "plf_memory_create");
	g = hash_search(all_groups, &key.key, HASH_ENTER, &known);
	g->generation = d->generation;
	g->address = address;
	if (!known) {
		d->users++;
		g->gone.func = end_groups;
		g->gone.arg = g;
		MemoryContextRegisterResetCallback(server, &g->gone);
	}
	return address;
}

struct plf_aggregate
plf_aggregate_of(plf_function *f, FunctionCallInfo fcinfo)
{
	struct plf_aggregate a = { nodeTag(fcinfo->context), 0, 0 };
	MemoryContext server;

	AggCheckCallContext(fcinfo, &server);
	if (unlikely(f->groups != server || f->memory_epoch != epoch)) {
		f->memory = memory_for(f->domain, server);
		f->groups = server;
		f->memory_epoch = epoch;
	}
	a.memory = f->memory;
	return a;
}

/* In the memory of the aggregate's group, and gone with it. */
typedef struct state {
	MemoryContextCallback gone;
	plf_domain *domain; /* compared only: it may be gone */
	uint32 generation;
	uint64 address;
} state;

static HTAB *states;

static void
forget(void *s)
{
	hash_search(states, &s, HASH_REMOVE, NULL);
}

static state *
find(const plf_function *f, Datum value)
{
	void *key = DatumGetPointer(value);
	state *s = states && hash_search(states, &key, HASH_FIND, NULL) ? key : NULL;

	if (!s || s->domain != f->domain)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
			errmsg("the state that fenced function \"%s\" gets is not of its module", f->name),
			errhint("All functions of an aggregate whose state is internal have to be of one module and run as one role.")));
	if (s->generation != f->domain->generation)
		ereport(ERROR, (errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION), errmsg("the state of an aggregate is lost"),
			errdetail("The domain of fenced function \"%s\" began anew.", f->name)));
	return s;
}

uint64
plf_state_address(const plf_function *f, Datum value)
{
	return value ? find(f, value)->address : 0;
}

Datum
plf_state_keep(const plf_function *f, FunctionCallInfo fcinfo, uint64 address)
{
	MemoryContext group;
	state *s;

	if (address == 0)
		return (Datum) 0;
	/* The transition's own state lives on under the same name, wherever the module has moved it. */
	if (f->nargs > 0 && f->args[0].way == PLF_WAY_INTERNAL && !fcinfo->args[0].isnull && fcinfo->args[0].value != 0) {
		find(f, fcinfo->args[0].value)->address = address;
		return fcinfo->args[0].value;
	}
	if (!AggCheckCallContext(fcinfo, &group))
		elog(ERROR, "a state outside of an aggregate");
	if (!states) {
		HASHCTL control = { .keysize = sizeof(void *), .entrysize = sizeof(void *) };

		states = hash_create("plfenced states", 64, &control, HASH_ELEM | HASH_BLOBS);
	}
	s = MemoryContextAlloc(group, sizeof *s);
	s->domain = f->domain;
	s->generation = f->domain->generation;
	s->address = address;
	s->gone.func = forget;
	s->gone.arg = s;
	hash_search(states, &s, HASH_ENTER, NULL);
	MemoryContextRegisterResetCallback(group, &s->gone);
	return PointerGetDatum(s);
}
