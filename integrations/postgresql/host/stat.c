/* What functions have done: calls, faults, errors, memory. Each session counts for itself; at the end of its transactions it adds what
 * is new to the server's table, if there is one: shared_preload_libraries made it. */
#include "plfenced.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/timestamp.h"

/* Functions of all databases that the server's table has room for; and a session's own, where there is none. */
#define ENTRIES 2000
/* That much of it is for entries of those that find none: one for each database. */
#define OTHERS 100

/* Between two looks at a domain's memory, which cost microseconds. */
#define LOOK_AGAIN_US 1000000

struct key {
	Oid database, function; /* function 0: all that found no room */
};

struct entry {
	struct key key;
	plf_numbers numbers;
};

/* What this session has counted and not added yet; without the server's table, all. */
typedef struct plf_counts {
	struct key key;
	plf_numbers numbers;
} plf_counts;

static HTAB *mine; /* of plf_counts */
static HTAB *table; /* of struct entry; NULL: not preloaded */
static LWLock *lock;

#if PG_VERSION_NUM >= 150000
static shmem_request_hook_type request_before;
#endif
static shmem_startup_hook_type startup_before;

static Size
table_size(void)
{
	return hash_estimate_size(ENTRIES, sizeof(struct entry));
}

static void
request(void)
{
#if PG_VERSION_NUM >= 150000
	if (request_before)
		request_before();
#endif
	RequestAddinShmemSpace(table_size());
	RequestNamedLWLockTranche("plfenced", 1);
}

static void
startup(void)
{
	HASHCTL how = { .keysize = sizeof(struct key), .entrysize = sizeof(struct entry) };

	if (startup_before)
		startup_before();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	table = ShmemInitHash("plfenced", ENTRIES, ENTRIES, &how, HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
	lock = &GetNamedLWLockTranche("plfenced")->lock;
	LWLockRelease(AddinShmemInitLock);
}

void
plf_stat_init(void)
{
	HASHCTL how = { .keysize = sizeof(struct key), .entrysize = sizeof(struct plf_counts) };

	mine = hash_create("plfenced", 64, &how, HASH_ELEM | HASH_BLOBS);
	if (!process_shared_preload_libraries_in_progress)
		return;
#if PG_VERSION_NUM >= 150000
	request_before = shmem_request_hook;
	shmem_request_hook = request;
#else
	request();
#endif
	startup_before = shmem_startup_hook;
	shmem_startup_hook = startup;
}

static void
add(plf_numbers *to, const plf_numbers *numbers)
{
	to->calls += numbers->calls;
	to->faults += numbers->faults;
	to->errors += numbers->errors;
	to->memory = Max(to->memory, numbers->memory);
}

static void
forget(plf_numbers *numbers)
{
	numbers->calls = numbers->faults = numbers->errors = numbers->memory = 0;
}

/* The entry of a key, or of all that find no room; both are made if need be. */
static void *
entry_of(HTAB *in, struct key key)
{
	bool found;
	void *entry = hash_search(in, &key, HASH_FIND, NULL);

	if (entry)
		return entry;
	/* One is kept for those of each database that find none: memory was taken when the server started. */
	if (key.function != InvalidOid && hash_get_num_entries(in) >= ENTRIES - OTHERS) {
		key.function = InvalidOid;
		return entry_of(in, key);
	}
	entry = hash_search(in, &key, in == table ? HASH_ENTER_NULL : HASH_ENTER, &found);
	if (entry && !found)
		memset((char *) entry + sizeof key, 0, (in == table ? sizeof(struct entry) : sizeof(struct plf_counts)) - sizeof key);
	return entry;
}

/* Adds what is new to the server's table; `wait`: also if others are at it. */
static void
flush(bool wait)
{
	HASH_SEQ_STATUS all;
	plf_counts *c;
	bool locked = false;

	if (!table || hash_get_num_entries(mine) == 0)
		return;
	hash_seq_init(&all, mine);
	while ((c = hash_seq_search(&all)) != NULL) {
		struct entry *e;

		if (c->numbers.calls == 0 && c->numbers.faults == 0 && c->numbers.errors == 0 && c->numbers.memory == 0)
			continue;
		if (!locked) {
			if (wait)
				LWLockAcquire(lock, LW_EXCLUSIVE);
			else if (!LWLockConditionalAcquire(lock, LW_EXCLUSIVE)) {
				hash_seq_term(&all);
				return;
			}
			locked = true;
		}
		e = entry_of(table, c->key);
		if (e)
			add(&e->numbers, &c->numbers);
		forget(&c->numbers);
	}
	if (locked)
		LWLockRelease(lock);
}

static void
at_exit(int code, Datum unused)
{
	flush(true);
}

void
plf_stat_flush(void)
{
	flush(false);
}

plf_numbers *
plf_stat_of(Oid function)
{
	static pid_t registered;
	static plf_numbers of_blocks;
	struct key key = { MyDatabaseId, function };

	if (function == InvalidOid)
		return &of_blocks;
	if (registered != MyProcPid) {
		registered = MyProcPid;
		before_shmem_exit(at_exit, (Datum) 0);
	}
	return &((plf_counts *) entry_of(mine, key))->numbers;
}

void
plf_stat_look(plf_numbers *numbers, plf_domain *d)
{
	TimestampTz now = GetCurrentStatementStartTimestamp();
	rf_usage u = RF_USAGE_INIT;

	if (numbers->looked != 0 && now - numbers->looked < LOOK_AGAIN_US)
		return;
	numbers->looked = now;
	if (rf_domain_usage(d->handle, &u) == RF_OK)
		numbers->memory = Max(numbers->memory, u.memory);
	rf_error_clear();
}

static void
put(ReturnSetInfo *r, struct key key, const plf_numbers *n)
{
	Datum values[6] = { ObjectIdGetDatum(key.function), Int64GetDatum(n->calls), Int64GetDatum(n->faults), Int64GetDatum(n->errors),
		Int64GetDatum(n->memory), PointerGetDatum(NULL) };
	bool nulls[6] = { key.function == InvalidOid };

	if (key.database != MyDatabaseId)
		return;
	values[5] = CStringGetTextDatum(table ? "server" : "session");
	tuplestore_putvalues(r->setResult, r->setDesc, values, nulls);
}

/* fenced.stat(): what functions of this database have done. */
PG_FUNCTION_INFO_V1(plfenced_stat);
Datum
plfenced_stat(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *r = (ReturnSetInfo *) fcinfo->resultinfo;
	HASH_SEQ_STATUS all;
	plf_counts *c;
	struct entry *e;

	InitMaterializedSRF(fcinfo, 0);
	flush(true);
	if (!table) {
		hash_seq_init(&all, mine);
		while ((c = hash_seq_search(&all)) != NULL)
			put(r, c->key, &c->numbers);
		return (Datum) 0;
	}
	LWLockAcquire(lock, LW_SHARED);
	hash_seq_init(&all, table);
	while ((e = hash_seq_search(&all)) != NULL)
		put(r, e->key, &e->numbers);
	LWLockRelease(lock);
	return (Datum) 0;
}

/* fenced.stat_reset(): begins to count anew, in this database. */
PG_FUNCTION_INFO_V1(plfenced_stat_reset);
Datum
plfenced_stat_reset(PG_FUNCTION_ARGS)
{
	HASH_SEQ_STATUS all;
	plf_counts *c;
	struct entry *e;

	hash_seq_init(&all, mine);
	while ((c = hash_seq_search(&all)) != NULL)
		forget(&c->numbers);
	if (table) {
		LWLockAcquire(lock, LW_EXCLUSIVE);
		hash_seq_init(&all, table);
		while ((e = hash_seq_search(&all)) != NULL)
			if (e->key.database == MyDatabaseId)
				hash_search(table, &e->key, HASH_REMOVE, NULL);
		LWLockRelease(lock);
	}
	PG_RETURN_VOID();
}
