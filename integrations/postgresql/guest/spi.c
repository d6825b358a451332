/* SPI, under the rights of who calls the function. Results stay until SPI_finish. */
#include "guest.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_type.h"
#include "funcapi.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/rel.h"

#include <string.h>

RF_IMPORT(int, plf_spi_connect, (void))
RF_IMPORT(int, plf_spi_finish, (void))
RF_IMPORT(int, plf_spi_execute, (const struct plf_spi_query *query, struct plf_spi_result *result))
RF_IMPORT(int64, plf_spi_prepare, (const char *sql, int nargs, const Oid *types))
RF_IMPORT(int, plf_spi_execute_plan,
	(int64 plan, const NullableDatum *values, int count, bool read_only, int64 limit, struct plf_spi_result *result))
RF_IMPORT(void, plf_spi_free, (int64 plan))
RF_IMPORT(int64, plf_spi_cursor_open, (int64 plan, const NullableDatum *values, int count, bool read_only))
RF_IMPORT(int, plf_spi_cursor_fetch, (int64 cursor, bool forward, int64 count, struct plf_spi_result *result))
RF_IMPORT(void, plf_spi_cursor_close, (int64 cursor))

struct _SPI_plan {
	int64 handle;
	int nargs;
	Oid types[FLEXIBLE_ARRAY_MEMBER];
};

/* What the server's headers show of a cursor stands first. */
struct cursor {
	PortalData head;
	int64 handle;
};

uint64 SPI_processed;
SPITupleTable *SPI_tuptable;
int SPI_result;

/* How often this call has connected. The server forgets connections with the call. */
static int connections;
static uint64 connected_in;

static bool connected(void)
{
	return connections > 0 && connected_in == plf_area->transaction;
}

int SPI_connect_ext(int options)
{
	struct plf_state state;
	int code;

	plf_state_save(&state);
	code = plf_spi_connect();
	plf_state_restore(&state);
	if (code == SPI_OK_CONNECT) {
		connections = connected() ? connections + 1 : 1;
		connected_in = plf_area->transaction;
		SPI_processed = 0;
		SPI_tuptable = NULL;
		SPI_result = 0;
	}
	return code;
}

int SPI_connect(void)
{
	return SPI_connect_ext(0);
}

int SPI_finish(void)
{
	struct plf_state state;
	int code;

	plf_state_save(&state);
	code = plf_spi_finish();
	plf_state_restore(&state);
	if (connections > 0)
		connections--;
	SPI_processed = 0;
	SPI_tuptable = NULL;
	return code;
}

static int take(int code, const struct plf_spi_result *result)
{
	SPI_processed = result->processed;
	SPI_tuptable = NULL;
	if (result->tupdesc != NULL) {
		SPI_tuptable = palloc0(sizeof *SPI_tuptable);
		SPI_tuptable->tupdesc = result->tupdesc;
		SPI_tuptable->vals = result->tuples;
		SPI_tuptable->numvals = result->processed;
		SPI_tuptable->alloced = result->processed;
		SPI_tuptable->tuptabcxt = CurrentMemoryContext;
	}
	return code;
}

static NullableDatum *arguments(int count, const Datum *values, const char *nulls)
{
	NullableDatum *result = palloc((Size) count * sizeof *result);

	for (int i = 0; i < count; i++)
		result[i] = (NullableDatum){values[i], nulls != NULL && nulls[i] == 'n'};
	return result;
}

/* ------------------------------------------------------------------------------------------------------- execution */

int SPI_execute_with_args(const char *sql, int count, Oid *types, Datum *values, const char *nulls, bool read_only, long limit)
{
	struct plf_spi_query query = {
		.sql = sql, .types = types, .nargs = count, .read_only = read_only, .limit = limit};
	struct plf_spi_result result = {0};
	struct plf_state state;
	int code;

	if (sql == NULL || count < 0 || limit < 0 || (count > 0 && (types == NULL || values == NULL)))
		return SPI_ERROR_ARGUMENT;
	query.values = count > 0 ? arguments(count, values, nulls) : NULL;
	plf_state_save(&state);
	code = plf_spi_execute(&query, &result);
	plf_state_restore(&state);
	return take(code, &result);
}

int SPI_execute(const char *sql, bool read_only, long limit)
{
	return SPI_execute_with_args(sql, 0, NULL, NULL, NULL, read_only, limit);
}

int SPI_exec(const char *sql, long limit)
{
	return SPI_execute(sql, false, limit);
}

SPIPlanPtr SPI_prepare(const char *sql, int count, Oid *types)
{
	struct plf_state state;
	SPIPlanPtr plan;
	int64 handle;

	if (sql == NULL || count < 0 || (count > 0 && types == NULL)) {
		SPI_result = SPI_ERROR_ARGUMENT;
		return NULL;
	}
	plf_state_save(&state);
	handle = plf_spi_prepare(sql, count, types);
	plf_state_restore(&state);
	if (handle <= 0) {
		SPI_result = handle < 0 ? (int) handle : SPI_ERROR_ARGUMENT;
		return NULL;
	}
	plan = MemoryContextAlloc(TopMemoryContext, offsetof(struct _SPI_plan, types) + (Size) count * sizeof(Oid));
	plan->handle = handle;
	plan->nargs = count;
	if (count > 0)
		memcpy(plan->types, types, (Size) count * sizeof(Oid));
	SPI_result = 0;
	return plan;
}

SPIPlanPtr SPI_prepare_cursor(const char *sql, int count, Oid *types, int options)
{
	return SPI_prepare(sql, count, types);
}

/* Plans are kept until they are freed. */
int SPI_keepplan(SPIPlanPtr plan)
{
	return plan != NULL ? 0 : SPI_ERROR_ARGUMENT;
}

SPIPlanPtr SPI_saveplan(SPIPlanPtr plan)
{
	SPI_result = plan != NULL ? 0 : SPI_ERROR_ARGUMENT;
	return plan;
}

int SPI_freeplan(SPIPlanPtr plan)
{
	struct plf_state state;

	if (plan == NULL)
		return SPI_ERROR_ARGUMENT;
	plf_state_save(&state);
	plf_spi_free(plan->handle);
	plf_state_restore(&state);
	pfree(plan);
	return 0;
}

int SPI_execute_plan(SPIPlanPtr plan, Datum *values, const char *nulls, bool read_only, long limit)
{
	struct plf_spi_result result = {0};
	struct plf_state state;
	NullableDatum *given;
	int code;

	if (plan == NULL || limit < 0)
		return SPI_ERROR_ARGUMENT;
	if (plan->nargs > 0 && values == NULL)
		return SPI_ERROR_PARAM;
	given = plan->nargs > 0 ? arguments(plan->nargs, values, nulls) : NULL;
	plf_state_save(&state);
	code = plf_spi_execute_plan(plan->handle, given, plan->nargs, read_only, limit, &result);
	plf_state_restore(&state);
	return take(code, &result);
}

int SPI_execp(SPIPlanPtr plan, Datum *values, const char *nulls, long limit)
{
	return SPI_execute_plan(plan, values, nulls, false, limit);
}

int SPI_getargcount(SPIPlanPtr plan)
{
	if (plan == NULL) {
		SPI_result = SPI_ERROR_ARGUMENT;
		return -1;
	}
	return plan->nargs;
}

Oid SPI_getargtypeid(SPIPlanPtr plan, int index)
{
	if (plan == NULL || index < 0 || index >= plan->nargs) {
		SPI_result = SPI_ERROR_ARGUMENT;
		return InvalidOid;
	}
	return plan->types[index];
}

bool SPI_plan_is_valid(SPIPlanPtr plan)
{
	return plan != NULL;
}

/* --------------------------------------------------------------------------------------------------------- cursors */

Portal SPI_cursor_open(const char *name, SPIPlanPtr plan, Datum *values, const char *nulls, bool read_only)
{
	struct plf_state state;
	struct cursor *cursor;
	NullableDatum *given;

	if (plan == NULL)
		elog(ERROR, "invalid plan passed to SPI_cursor_open");
	cursor = palloc0(sizeof *cursor);
	cursor->head.name = name != NULL ? pstrdup(name) : "";
	given = plan->nargs > 0 ? arguments(plan->nargs, values, nulls) : NULL;
	plf_state_save(&state);
	cursor->handle = plf_spi_cursor_open(plan->handle, given, plan->nargs, read_only);
	plf_state_restore(&state);
	return &cursor->head;
}

static void fetch(Portal portal, bool forward, long count, bool keep)
{
	struct plf_spi_result result = {0};
	struct plf_state state;

	plf_state_save(&state);
	plf_spi_cursor_fetch(((struct cursor *) portal)->handle, forward, count, &result);
	plf_state_restore(&state);
	take(SPI_OK_FETCH, &result);
	if (!keep)
		SPI_tuptable = NULL;
}

void SPI_cursor_fetch(Portal portal, bool forward, long count)
{
	fetch(portal, forward, count, true);
}

void SPI_cursor_move(Portal portal, bool forward, long count)
{
	fetch(portal, forward, count, false);
}

void SPI_cursor_close(Portal portal)
{
	struct plf_state state;

	plf_state_save(&state);
	plf_spi_cursor_close(((struct cursor *) portal)->handle);
	plf_state_restore(&state);
	pfree(portal);
}

/* --------------------------------------------------------------------------------------------------------- results */

static const struct {
	const char *name;
	int16 number;
	Oid type;
} system_columns[] = {
	{"ctid", SelfItemPointerAttributeNumber, TIDOID},
	{"xmin", MinTransactionIdAttributeNumber, XIDOID},
	{"cmin", MinCommandIdAttributeNumber, CIDOID},
	{"xmax", MaxTransactionIdAttributeNumber, XIDOID},
	{"cmax", MaxCommandIdAttributeNumber, CIDOID},
	{"tableoid", TableOidAttributeNumber, OIDOID},
};

static bool is_column(TupleDesc description, int number)
{
	SPI_result = 0;
	if (number <= description->natts && number != 0 && number > FirstLowInvalidHeapAttributeNumber)
		return true;
	SPI_result = SPI_ERROR_NOATTRIBUTE;
	return false;
}

int SPI_fnumber(TupleDesc description, const char *name)
{
	for (int i = 0; i < description->natts; i++) {
		Form_pg_attribute attribute = TupleDescAttr(description, i);

		if (namestrcmp(&attribute->attname, name) == 0 && !attribute->attisdropped)
			return attribute->attnum;
	}
	for (int i = 0; i < (int) lengthof(system_columns); i++)
		if (strcmp(system_columns[i].name, name) == 0)
			return system_columns[i].number;
	return SPI_ERROR_NOATTRIBUTE;
}

char *SPI_fname(TupleDesc description, int number)
{
	if (!is_column(description, number))
		return NULL;
	if (number > 0)
		return pstrdup(NameStr(TupleDescAttr(description, number - 1)->attname));
	for (int i = 0; i < (int) lengthof(system_columns); i++)
		if (system_columns[i].number == number)
			return pstrdup(system_columns[i].name);
	SPI_result = SPI_ERROR_NOATTRIBUTE;
	return NULL;
}

Oid SPI_gettypeid(TupleDesc description, int number)
{
	if (!is_column(description, number))
		return InvalidOid;
	if (number > 0)
		return TupleDescAttr(description, number - 1)->atttypid;
	for (int i = 0; i < (int) lengthof(system_columns); i++)
		if (system_columns[i].number == number)
			return system_columns[i].type;
	SPI_result = SPI_ERROR_NOATTRIBUTE;
	return InvalidOid;
}

char *SPI_getvalue(HeapTuple tuple, TupleDesc description, int number)
{
	Oid type = SPI_gettypeid(description, number), output;
	bool null, is_varlena;
	Datum value;

	if (type == InvalidOid)
		return NULL;
	value = heap_getattr(tuple, number, description, &null);
	if (null)
		return NULL;
	getTypeOutputInfo(type, &output, &is_varlena);
	return OidOutputFunctionCall(output, value);
}

Datum SPI_getbinval(HeapTuple tuple, TupleDesc description, int number, bool *null)
{
	if (!is_column(description, number)) {
		*null = true;
		return (Datum) 0;
	}
	return heap_getattr(tuple, number, description, null);
}

/* The catalogue's own name of a column's type, which takes a query. */
char *SPI_gettype(TupleDesc description, int number)
{
	Oid type = SPI_gettypeid(description, number), oid = OIDOID;
	uint64 processed = SPI_processed;
	SPITupleTable *table = SPI_tuptable;
	Datum argument = ObjectIdGetDatum(type);
	char *name = NULL;
	bool borrowed = !connected();

	if (type == InvalidOid)
		return NULL;
	if (borrowed)
		SPI_connect();
	SPI_execute_with_args("select typname::text from pg_catalog.pg_type where oid = $1", 1, &oid, &argument, NULL, true, 1);
	if (SPI_processed == 1)
		name = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (borrowed)
		SPI_finish();
	SPI_processed = processed;
	SPI_tuptable = table;
	SPI_result = name != NULL ? 0 : SPI_ERROR_TYPUNKNOWN;
	return name;
}

char *SPI_getrelname(Relation relation)
{
	return pstrdup(RelationGetRelationName(relation));
}

HeapTuple SPI_copytuple(HeapTuple tuple)
{
	if (tuple == NULL)
		SPI_result = SPI_ERROR_ARGUMENT;
	return heap_copytuple(tuple);
}

HeapTupleHeader SPI_returntuple(HeapTuple tuple, TupleDesc description)
{
	if (tuple == NULL || description == NULL) {
		SPI_result = SPI_ERROR_ARGUMENT;
		return NULL;
	}
	BlessTupleDesc(description);
	return DatumGetHeapTupleHeader(heap_copy_tuple_as_datum(tuple, description));
}

HeapTuple SPI_modifytuple(Relation relation, HeapTuple tuple, int count, int *columns, Datum *values, const char *nulls)
{
	bool *is_null;

	if (relation == NULL || tuple == NULL || count < 0 || columns == NULL || values == NULL) {
		SPI_result = SPI_ERROR_ARGUMENT;
		return NULL;
	}
	is_null = palloc0((Size) count * sizeof *is_null);
	SPI_result = 0;
	for (int i = 0; i < count; i++) {
		is_null[i] = nulls != NULL && nulls[i] == 'n';
		if (columns[i] <= 0 || columns[i] > relation->rd_att->natts) {
			SPI_result = SPI_ERROR_NOATTRIBUTE;
			return NULL;
		}
	}
	return heap_modify_tuple_by_cols(tuple, relation->rd_att, count, columns, values, is_null);
}

Datum SPI_datumTransfer(Datum value, bool by_value, int length)
{
	return datumCopy(value, by_value, length);
}

void *SPI_palloc(Size size)
{
	return palloc(size);
}

void *SPI_repalloc(void *pointer, Size size)
{
	return repalloc(pointer, size);
}

void SPI_pfree(void *pointer)
{
	pfree(pointer);
}

void SPI_freetuple(HeapTuple tuple)
{
	heap_freetuple(tuple);
}

void SPI_freetuptable(SPITupleTable *table)
{
	if (table != NULL && table == SPI_tuptable)
		SPI_tuptable = NULL;
}

const char *SPI_result_code_string(int code)
{
	static char unknown[64];

	switch (code) {
#define NAME(code) \
	case code: \
		return #code;
		NAME(SPI_ERROR_CONNECT)
		NAME(SPI_ERROR_COPY)
		NAME(SPI_ERROR_OPUNKNOWN)
		NAME(SPI_ERROR_UNCONNECTED)
		NAME(SPI_ERROR_ARGUMENT)
		NAME(SPI_ERROR_PARAM)
		NAME(SPI_ERROR_TRANSACTION)
		NAME(SPI_ERROR_NOATTRIBUTE)
		NAME(SPI_ERROR_NOOUTFUNC)
		NAME(SPI_ERROR_TYPUNKNOWN)
		NAME(SPI_ERROR_REL_DUPLICATE)
		NAME(SPI_ERROR_REL_NOT_FOUND)
		NAME(SPI_OK_CONNECT)
		NAME(SPI_OK_FINISH)
		NAME(SPI_OK_FETCH)
		NAME(SPI_OK_UTILITY)
		NAME(SPI_OK_SELECT)
		NAME(SPI_OK_SELINTO)
		NAME(SPI_OK_INSERT)
		NAME(SPI_OK_DELETE)
		NAME(SPI_OK_UPDATE)
		NAME(SPI_OK_CURSOR)
		NAME(SPI_OK_INSERT_RETURNING)
		NAME(SPI_OK_DELETE_RETURNING)
		NAME(SPI_OK_UPDATE_RETURNING)
		NAME(SPI_OK_REWRITTEN)
		NAME(SPI_OK_REL_REGISTER)
		NAME(SPI_OK_REL_UNREGISTER)
		NAME(SPI_OK_TD_REGISTER)
		NAME(SPI_OK_MERGE)
#undef NAME
	}
	snprintf(unknown, sizeof unknown, "Unrecognized SPI code %d", code);
	return unknown;
}
