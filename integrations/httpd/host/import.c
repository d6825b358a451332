/* The functions that the server gives to handlers. Each argument is the module's to choose. */
#include "mod_fenced.h"

#include "apr_lib.h"

/* The request of the domain that calls; NULL while it prepares itself. */
static mf_request *request(rf_caller *caller, void *context)
{
    mf_request *q = ((mf_domain *)context)->request;

    if (!q)
        rf_caller_return_int(caller, (apr_uint64_t)-1);
    return q;
}

static const void *address(rf_caller *caller, unsigned n)
{
    return (const void *)(apr_uintptr_t)rf_caller_arg_int(caller, n);
}

static void import_read(rf_caller *caller, void *context)
{
    mf_request *q = request(caller, context);
    const char *bytes;
    long n;

    if (!q)
        return;
    n = mf_read(q, &bytes, rf_caller_arg_int(caller, 1));
    if (n > 0 && rf_memory_write(q->domain->rf, (void *)(apr_uintptr_t)rf_caller_arg_int(caller, 0), bytes, (size_t)n) != RF_OK)
        rf_caller_fail(caller, "fenced_read: the address is not the module's");
    rf_caller_return_int(caller, (apr_uint64_t)n);
}

static void import_write(rf_caller *caller, void *context)
{
    mf_request *q = request(caller, context);
    int result;

    if (!q)
        return;
    result = mf_write(q, address(caller, 0), rf_caller_arg_int(caller, 1));
    if (result < -1)
        rf_caller_fail(caller, "fenced_write: the address is not the module's");
    rf_caller_return_int(caller, (apr_uint64_t)(result < 0 ? -1 : 0));
}

static void import_take_buffer(rf_caller *caller, void *context)
{
    mf_request *q = ((mf_domain *)context)->request;

    rf_caller_return_int(caller, q ? (apr_uint64_t)(apr_uintptr_t)mf_buffer_take(q, rf_caller_arg_int(caller, 0)) : 0);
}

static void import_send_buffer(rf_caller *caller, void *context)
{
    mf_request *q = request(caller, context);

    if (q)
        rf_caller_return_int(caller, (apr_uint64_t)mf_buffer_send(q, rf_caller_arg_int(caller, 0)));
}

static void import_flush(rf_caller *caller, void *context)
{
    mf_request *q = request(caller, context);

    if (q)
        rf_caller_return_int(caller, (apr_uint64_t)mf_flush(q));
}

static void import_set_status(rf_caller *caller, void *context)
{
    mf_request *q = request(caller, context);
    int status = (int)rf_caller_arg_int(caller, 0);

    if (!q)
        return;
    if (status < 200 || status > 599 || q->begun) {
        rf_caller_return_int(caller, (apr_uint64_t)-1);
        return;
    }
    q->r->status = status;
    q->r->status_line = NULL;
}

static int is_token(const char *name)
{
    if (!*name)
        return 0;
    for (; *name; name++)
        if (!apr_isalnum(*name) && !strchr("!#$%&'*+-.^_`|~", *name))
            return 0;
    return 1;
}

static int is_value(const char *value)
{
    for (; *value; value++)
        if (apr_iscntrl(*value) && *value != '\t')
            return 0;
    return 1;
}

/* Headers of the connection, which the server sets. */
static int is_servers(const char *name)
{
    static const char *const servers[] = { "Connection", "Keep-Alive", "Proxy-Connection", "TE", "Trailer",
                                           "Transfer-Encoding", "Upgrade", "Date", "Server" };

    for (unsigned i = 0; i < sizeof servers / sizeof *servers; i++)
        if (strcasecmp(name, servers[i]) == 0)
            return 1;
    return 0;
}

enum { SET, ADD, TRAILER };

/* The request's pool keeps each text to its end, also of a header that another has replaced: all together have a limit. */
static int may_keep(mf_request *q, const char *name, const char *value)
{
    apr_size_t length = strlen(name) + strlen(value) + 2;

    if (length > MF_HEAD - q->kept)
        return 0;
    q->kept += length;
    return 1;
}

static int header(mf_request *q, const char *name, const char *value, int add)
{
    request_rec *r = q->r;

    if ((q->begun && add != TRAILER) || !is_token(name) || !is_value(value) || is_servers(name))
        return -1;
    if (add != TRAILER && strcasecmp(name, "Content-Length") == 0)
        return mf_declare(q, value);
    if (!may_keep(q, name, value))
        return -1;
    if (add == TRAILER)
        return mf_trailer(q, name, value);
    if (strcasecmp(name, "Content-Type") == 0)
        ap_set_content_type(r, apr_pstrdup(r->pool, value));
    else if (add)
        apr_table_add(r->headers_out, name, value);
    else
        apr_table_set(r->headers_out, name, value);
    return 0;
}

static void import_header(rf_caller *caller, void *context, int add)
{
    mf_request *q = request(caller, context);
    char name[MF_NAME], value[MF_VALUE];
    rf_status status;

    if (!q)
        return;
    status = rf_memory_read_string(q->domain->rf, address(caller, 0), name, sizeof name, NULL);
    if (status == RF_OK)
        status = rf_memory_read_string(q->domain->rf, address(caller, 1), value, sizeof value, NULL);
    if (status == RF_ERROR_RANGE || status == RF_ERROR_ACCESS)
        rf_caller_fail(caller, "fenced_set_header: the address is not the module's");
    rf_caller_return_int(caller, (apr_uint64_t)(status != RF_OK ? -1 : header(q, name, value, add)));
}

static void import_set_header(rf_caller *caller, void *context)
{
    import_header(caller, context, SET);
}

static void import_add_header(rf_caller *caller, void *context)
{
    import_header(caller, context, ADD);
}

static void import_set_trailer(rf_caller *caller, void *context)
{
    import_header(caller, context, TRAILER);
}

static void import_send_file(rf_caller *caller, void *context)
{
    mf_request *q = request(caller, context);
    char path[MF_VALUE];
    rf_status status;

    if (!q)
        return;
    status = rf_memory_read_string(q->domain->rf, address(caller, 0), path, sizeof path, NULL);
    if (status == RF_ERROR_RANGE || status == RF_ERROR_ACCESS)
        rf_caller_fail(caller, "fenced_send_file: the address is not the module's");
    else
        rf_caller_return_int(caller, (apr_uint64_t)(status != RF_OK ? -1
                                                    : mf_write_file(q, path, rf_caller_arg_int(caller, 1), rf_caller_arg_int(caller, 2))));
}

static void import_log(rf_caller *caller, void *context)
{
    char line[1024];
    rf_status status = rf_memory_read_string(((mf_domain *)context)->rf, address(caller, 0), line, sizeof line, NULL);

    if (status == RF_OK)
        mf_log_text(context, line);
}

const rf_import mf_imports[] = { RF_IMPORT_INIT_CALLBACK("fenced_read", import_read, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_write", import_write, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_take_buffer", import_take_buffer, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_send_buffer", import_send_buffer, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_flush", import_flush, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_set_status", import_set_status, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_set_header", import_set_header, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_add_header", import_add_header, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_set_trailer", import_set_trailer, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_send_file", import_send_file, NULL),
                                 RF_IMPORT_INIT_CALLBACK("fenced_log", import_log, NULL) };
const unsigned mf_import_count = sizeof mf_imports / sizeof *mf_imports;

const char *mf_imports_missing(const char *name)
{
    /* The library's own, which each domain has. */
    if (strncmp(name, "__rf_", 5) == 0)
        return NULL;
    for (unsigned i = 0; i < mf_import_count; i++)
        if (strcmp(mf_imports[i].name, name) == 0)
            return NULL;
    return name;
}
