/* Modules: rows of fenced.module, verified once in a session, or before the server's first session (plfenced.preload). */
#include "plfenced.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "common/cryptohash.h"
#include "common/sha2.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include <sys/stat.h>

#define SCHEMA "fenced"
#define TABLE "module"
/* Its columns, in the order of the extension's script. */
enum { Anum_module_name = 1, Anum_module_owner, Anum_module_hash, Anum_module_bytes };
#define NAME_MOST 63

static dlist_head modules = DLIST_STATIC_INIT(modules);
static dlist_head preloaded = DLIST_STATIC_INIT(preloaded);
/* Whether what `modules` says of being current may be wrong by now. */
static bool stale = true;
static Oid known; /* the table, once it was looked up */
uint32 plf_module_epoch;
char *plf_preload;

static void
hash_of(const void *bytes, Size length, uint8 *hash)
{
	pg_cryptohash_ctx *c = pg_cryptohash_create(PG_SHA256);

	if (!c || pg_cryptohash_init(c) < 0 || pg_cryptohash_update(c, bytes, length) < 0 ||
		pg_cryptohash_final(c, hash, PG_SHA256_DIGEST_LENGTH) < 0)
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not compute a hash")));
	pg_cryptohash_free(c);
}

/* The table that has the modules. */
static Oid
table(void)
{
	Oid schema = get_namespace_oid(SCHEMA, true);
	Oid relation = OidIsValid(schema) ? get_relname_relid(TABLE, schema) : InvalidOid;

	if (!OidIsValid(relation))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("there is no table %s.%s in this database", SCHEMA, TABLE),
			errhint("CREATE EXTENSION plfenced makes it.")));
	known = relation;
	return relation;
}

/* What is done in between, is done as the owner of the table; whoever called has been checked. An error puts the role back. */
struct as_owner {
	Oid role;
	int context;
};

static void
as_owner_begin(struct as_owner *as)
{
	HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table()));
	Oid owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for %s.%s", SCHEMA, TABLE);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	GetUserIdAndSecContext(&as->role, &as->context);
	SetUserIdAndSecContext(owner, as->context | SECURITY_LOCAL_USERID_CHANGE);
	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
}

static void
as_owner_end(struct as_owner *as)
{
	SPI_finish();
	SetUserIdAndSecContext(as->role, as->context);
}

static void
run(const char *sql, int nargs, Oid *types, Datum *values, int expected)
{
	int code = SPI_execute_with_args(sql, nargs, types, values, NULL, expected == SPI_OK_SELECT, 0);

	if (code != expected)
		elog(ERROR, "%s: %s", sql, SPI_result_code_string(code));
}

/* A column of a module's row, as a copy. */
static Datum
column(HeapTuple tuple, Relation rel, int number, bool by_value)
{
	bool isnull;
	Datum value = heap_getattr(tuple, number, RelationGetDescr(rel), &isnull);

	if (isnull)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("a row of %s.%s is damaged", SCHEMA, TABLE)));
	return by_value ? value : PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
}

/* The owner of a module, InvalidOid if there is none of that name; its hash; and its bytes, where they are wanted. Read straight from
 * the table, under nobody's rights: whoever called has been checked. A query instead would be most of what a session's first call takes. */
static Oid
look_up(const char *name, uint8 *hash, bytea **bytes)
{
	Relation rel = table_open(table(), AccessShareLock);
	Oid index = RelationGetPrimaryKeyIndex(rel), owner = InvalidOid;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple tuple;
	bool pushed = !ActiveSnapshotSet();

	if (pushed)
		PushActiveSnapshot(GetTransactionSnapshot());
	ScanKeyEntryInitialize(&key, 0, Anum_module_name, BTEqualStrategyNumber, TEXTOID, DEFAULT_COLLATION_OID, F_TEXTEQ,
		CStringGetTextDatum(name));
	scan = systable_beginscan(rel, index, OidIsValid(index), GetActiveSnapshot(), 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple)) {
		bytea *noted = DatumGetByteaP(column(tuple, rel, Anum_module_hash, false));

		if (VARSIZE_ANY_EXHDR(noted) != PG_SHA256_DIGEST_LENGTH)
			ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("module \"%s\" has a damaged hash", name)));
		memcpy(hash, VARDATA_ANY(noted), PG_SHA256_DIGEST_LENGTH);
		owner = DatumGetObjectId(column(tuple, rel, Anum_module_owner, true));
		if (bytes)
			*bytes = DatumGetByteaP(column(tuple, rel, Anum_module_bytes, false));
	}
	systable_endscan(scan);
	if (pushed)
		PopActiveSnapshot();
	table_close(rel, AccessShareLock);
	return owner;
}

static void
undefined(const char *name)
{
	ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("there is no module \"%s\"", name),
		errhint("Install it: SELECT fenced.install('%s', pg_read_binary_file('...')); fenced.modules lists what there is.",
			name)));
}

void
plf_module_check_usage(const char *name)
{
	uint8 hash[PG_SHA256_DIGEST_LENGTH];
	Oid owner = look_up(name, hash, NULL);

	if (!OidIsValid(owner))
		undefined(name);
	if (!has_privs_of_role(GetUserId(), owner))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("permission denied for module \"%s\"", name),
			errdetail("Functions of a module are made by members of the role that owns it.")));
}

static plf_module *
keep(dlist_head *list, const char *name, const uint8 *hash, rf_module *handle)
{
	plf_module *m = MemoryContextAllocZero(TopMemoryContext, sizeof *m);

	m->name = MemoryContextStrdup(TopMemoryContext, name);
	memcpy(m->hash, hash, sizeof m->hash);
	m->handle = handle;
	m->current = true;
	dlist_push_head(list, &m->link);
	return m;
}

/* The verified module of that hash, from before the session or from the table. */
static plf_module *
load(const char *name, const uint8 *hash)
{
	dlist_iter i;
	bytea *bytes;
	uint8 noted[PG_SHA256_DIGEST_LENGTH], found[PG_SHA256_DIGEST_LENGTH];
	rf_module *handle;

	dlist_foreach(i, &preloaded) {
		plf_module *p = dlist_container(plf_module, link, i.cur);

		if (memcmp(p->hash, hash, sizeof p->hash) == 0)
			return keep(&modules, name, hash, p->handle);
	}
	if (!OidIsValid(look_up(name, noted, &bytes)))
		undefined(name);
	hash_of(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), found);
	if (memcmp(found, hash, sizeof found) != 0)
		ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED), errmsg("module \"%s\" is damaged", name),
			errdetail("Its bytes do not have the hash that was noted when it was installed."),
			errhint("Install it again.")));
	if (rf_module_create_from_bytes(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), name, 0, &handle) != RF_OK)
		plf_throw_library(psprintf("module \"%s\"", name));
	return keep(&modules, name, hash, handle);
}

plf_module *
plf_module_get(const char *name)
{
	uint8 hash[PG_SHA256_DIGEST_LENGTH];
	plf_module *found = NULL;
	dlist_iter i;

	if (stale) {
		/* Whatever is looked up first finds out whether it still holds. */
		dlist_foreach(i, &modules) {
			plf_module *m = dlist_container(plf_module, link, i.cur);

			m->current = m->current && m->text;
		}
		stale = false;
	}
	dlist_foreach(i, &modules) {
		plf_module *m = dlist_container(plf_module, link, i.cur);

		if (m->current && !m->text && strcmp(m->name, name) == 0)
			return m;
	}
	if (!OidIsValid(look_up(name, hash, NULL)))
		undefined(name);
	dlist_foreach(i, &modules) {
		plf_module *m = dlist_container(plf_module, link, i.cur);

		if (!m->text && strcmp(m->name, name) == 0 && memcmp(m->hash, hash, sizeof hash) == 0)
			found = m;
	}
	if (!found)
		found = load(name, hash);
	found->current = true;
	return found;
}

/* ----------------------------------------------------------------------------------------------------- texts */

plf_module *
plf_module_of_text(Oid oid, const char *name, const char *text)
{
	static const uint8 none[PG_SHA256_DIGEST_LENGTH];
	plf_module *found = NULL;
	dlist_iter i;

	dlist_foreach(i, &modules) {
		plf_module *m = dlist_container(plf_module, link, i.cur);

		if (!m->text || !m->current)
			continue;
		if (m->oid == oid && strcmp(m->text, text) == 0 && strcmp(m->name, name) == 0)
			found = m;
		else if (m->oid == oid || (m->changed && !SearchSysCacheExists1(PROCOID, ObjectIdGetDatum(m->oid))))
			m->current = false;
		m->changed = false;
	}
	if (!found) {
		found = keep(&modules, name, none, NULL);
		found->oid = oid;
		found->text = MemoryContextStrdup(TopMemoryContext, text);
	}
	return found;
}

void
plf_module_sweep(void)
{
	dlist_mutable_iter i;

	dlist_foreach_modify(i, &modules) {
		plf_module *m = dlist_container(plf_module, link, i.cur);

		if (!m->text || m->domains > 0)
			continue;
		dlist_delete(&m->link);
		pfree(m->text);
		pfree(m->name);
		pfree(m);
	}
}

/* A function is another one, or gone. */
static void
function_changed(Datum unused, int cache, uint32 hash)
{
	dlist_iter i;

	dlist_foreach(i, &modules) {
		plf_module *m = dlist_container(plf_module, link, i.cur);

		if (m->text && (hash == 0 || hash == GetSysCacheHashValue1(PROCOID, ObjectIdGetDatum(m->oid)))) {
			m->changed = true;
			plf_module_epoch++;
		}
	}
}

/* ---------------------------------------------------------------------------------- fenced.install and the like */

static char *
checked_name(text *given)
{
	char *name = text_to_cstring(given);

	if (*name == 0 || strlen(name) > NAME_MOST || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") != strlen(name))
		ereport(ERROR, (errcode(ERRCODE_INVALID_NAME), errmsg("\"%s\" cannot be the name of a module", name),
			errdetail("Names have 1 to %d characters of a-z, 0-9, _, . and -.", NAME_MOST)));
	return name;
}

/* Other sessions look again; so does this one, at once. */
static void
changed(void)
{
	CacheInvalidateRelcacheByRelid(table());
	CommandCounterIncrement();
}

PG_FUNCTION_INFO_V1(plfenced_install);
Datum
plfenced_install(PG_FUNCTION_ARGS)
{
	char *name = checked_name(PG_GETARG_TEXT_PP(0));
	bytea *bytes = PG_GETARG_BYTEA_PP(1);
	uint8 hash[PG_SHA256_DIGEST_LENGTH], old[PG_SHA256_DIGEST_LENGTH];
	Oid owner, role = GetUserId();
	rf_module *handle;
	struct as_owner as;
	bytea *h = palloc(VARHDRSZ + sizeof hash);

	/* Nothing is kept that could not be run. */
	if (rf_module_create_from_bytes(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), name, 0, &handle) != RF_OK)
		plf_throw_library(psprintf("module \"%s\" is refused", name));
	rf_module_destroy(handle);
	hash_of(VARDATA_ANY(bytes), VARSIZE_ANY_EXHDR(bytes), hash);
	SET_VARSIZE(h, VARHDRSZ + sizeof hash);
	memcpy(VARDATA(h), hash, sizeof hash);

	owner = look_up(name, old, NULL);
	if (OidIsValid(owner) && !has_privs_of_role(role, owner))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("must be owner of module \"%s\"", name)));
	as_owner_begin(&as);
	{
		Oid types[] = { TEXTOID, OIDOID, BYTEAOID, BYTEAOID };
		Datum values[] = { CStringGetTextDatum(name), ObjectIdGetDatum(role), PointerGetDatum(h), PointerGetDatum(bytes) };

		run("INSERT INTO " SCHEMA "." TABLE " (name, owner, hash, bytes) VALUES ($1, $2, $3, $4) "
		    "ON CONFLICT (name) DO UPDATE SET hash = $3, bytes = $4, installed = pg_catalog.now()",
			4, types, values, SPI_OK_INSERT);
	}
	as_owner_end(&as);
	changed();
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(plfenced_remove);
Datum
plfenced_remove(PG_FUNCTION_ARGS)
{
	char *name = checked_name(PG_GETARG_TEXT_PP(0)), *dependent = NULL;
	uint8 hash[PG_SHA256_DIGEST_LENGTH];
	Oid owner = look_up(name, hash, NULL), type = TEXTOID;
	Datum value = CStringGetTextDatum(name);
	struct as_owner as;
	uint64 count;

	if (!OidIsValid(owner))
		undefined(name);
	if (!has_privs_of_role(GetUserId(), owner))
		ereport(ERROR, (errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("must be owner of module \"%s\"", name)));
	as_owner_begin(&as);
	run("SELECT p.oid::pg_catalog.regprocedure::pg_catalog.text FROM pg_catalog.pg_proc p "
	    "JOIN pg_catalog.pg_language l ON l.oid = p.prolang "
	    "WHERE l.lanname = 'plfenced' AND pg_catalog.split_part(p.prosrc, ':', 1) = $1 ORDER BY 1",
		1, &type, &value, SPI_OK_SELECT);
	count = SPI_processed;
	if (count > 0)
		dependent = MemoryContextStrdup(TopTransactionContext,
			SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
	else
		run("DELETE FROM " SCHEMA "." TABLE " WHERE name = $1", 1, &type, &value, SPI_OK_DELETE);
	as_owner_end(&as);
	if (count > 0)
		ereport(ERROR, (errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
			errmsg("cannot remove module \"%s\" because functions depend on it", name),
			count == 1 ? errdetail("function %s", dependent)
				   : errdetail("function %s and " UINT64_FORMAT " more", dependent, count - 1),
			errhint("Drop the functions first.")));
	changed();
	PG_RETURN_VOID();
}

/* ------------------------------------------------------------------------------------------- before sessions */

/* Opens the files of a directory, whatever their names: sessions find them by their hash. */
static void
preload(void)
{
	DIR *dir = AllocateDir(plf_preload);
	struct dirent *entry;
	/* While the server starts there is none, and computing hashes needs one. */
	ResourceOwner before = CurrentResourceOwner, owner = ResourceOwnerCreate(before, "plfenced.preload");

	CurrentResourceOwner = owner;
	while ((entry = ReadDirExtended(dir, plf_preload, LOG)) != NULL) {
		char path[MAXPGPATH];
		struct stat status;
		FILE *file;
		void *bytes;
		uint8 hash[PG_SHA256_DIGEST_LENGTH];
		rf_module *handle;

		snprintf(path, sizeof path, "%s/%s", plf_preload, entry->d_name);
		if (stat(path, &status) != 0 || !S_ISREG(status.st_mode) || (Size) status.st_size > MaxAllocSize)
			continue;
		file = AllocateFile(path, PG_BINARY_R);
		bytes = palloc(status.st_size + 1);
		if (file && fread(bytes, 1, status.st_size, file) == (Size) status.st_size &&
			rf_module_create_from_bytes(bytes, status.st_size, entry->d_name, 0, &handle) == RF_OK) {
			hash_of(bytes, status.st_size, hash);
			keep(&preloaded, entry->d_name, hash, handle);
		} else {
			const rf_error_info *e = rf_error();

			ereport(WARNING, (errmsg("plfenced.preload: \"%s\" is left out: %s", path, e ? e->message : "it cannot be read")));
			rf_error_clear();
		}
		if (file)
			FreeFile(file);
		pfree(bytes);
	}
	FreeDir(dir);
	CurrentResourceOwner = before;
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, false, true);
	ResourceOwnerDelete(owner);
}

static void
relation_changed(Datum unused, Oid relation)
{
	if (OidIsValid(relation) && relation != known)
		return;
	stale = true;
	plf_module_epoch++;
}

void
plf_module_init(void)
{
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(PROCOID, function_changed, (Datum) 0);
	if (process_shared_preload_libraries_in_progress && plf_preload && *plf_preload)
		preload();
}
