/* A request: given to a domain as one block, and called. */
#include "mod_fenced.h"

#include "util_script.h"

typedef struct {
    char *host;          /* what is written */
    apr_uint64_t domain; /* where it will be */
    apr_size_t at;
} block;

static apr_size_t text_size(const char *text)
{
    return text ? strlen(text) + 1 : 1;
}

/* Adds a string. Its address in the domain. */
static const char *put(block *b, const char *text)
{
    apr_size_t size = text_size(text);
    apr_uint64_t at = b->domain + b->at;

    memcpy(b->host + b->at, text ? text : "", size);
    b->at += size;
    return (const char *)(apr_uintptr_t)at;
}

static const char *put_variable(block *b, const char *name, const char *value)
{
    apr_uint64_t at = b->domain + b->at;
    apr_size_t length = strlen(name);

    memcpy(b->host + b->at, name, length);
    b->host[b->at + length] = '=';
    b->at += length + 1;
    put(b, value);
    return (const char *)(apr_uintptr_t)at;
}

static apr_size_t table_size(const apr_array_header_t *table)
{
    apr_size_t size = 0;

    for (int i = 0; table && i < table->nelts; i++) {
        const apr_table_entry_t *e = &APR_ARRAY_IDX(table, i, apr_table_entry_t);

        size += strlen(e->key) + 1 + text_size(e->val);
    }
    return size;
}

/* The bytes of the body, -1 if the client has not said. */
static apr_int64_t content_length(request_rec *r)
{
    const char *text = apr_table_get(r->headers_in, "Content-Length");
    apr_off_t length;
    char *end;

    if (apr_table_get(r->headers_in, "Transfer-Encoding"))
        return -1;
    return text && apr_strtoff(&length, text, &end, 10) == APR_SUCCESS && !*end ? length : 0;
}

/* Writes the request into the domain. Its address there, 0 with rf_error. `*own`: memory to be freed. */
static apr_uint64_t give(mf_request *q, void **own)
{
    request_rec *r = q->r;
    int program = q->module->kind == MF_PROGRAM;
    const apr_array_header_t *headers = apr_table_elts(r->headers_in);
    const apr_array_header_t *cgi = program ? apr_table_elts(r->subprocess_env) : NULL;
    const apr_array_header_t *given = q->settings->environment ? apr_table_elts(q->settings->environment) : NULL;
    const apr_array_header_t *tables[] = { cgi, given };
    apr_size_t variables = (apr_size_t)((cgi ? cgi->nelts : 0) + (given ? given->nelts : 0));
    apr_size_t pointers = sizeof(fenced_request) + (apr_size_t)headers->nelts * sizeof(fenced_header) +
                          (variables + 1) * sizeof(char *);
    apr_size_t size = pointers + text_size(r->method) + text_size(r->uri) + text_size(r->args) + text_size(r->path_info) +
                      text_size(r->protocol) + text_size(r->useragent_ip) + text_size(r->user) + table_size(headers) +
                      table_size(cgi) + table_size(given);
    block b = { apr_palloc(r->pool, size), (apr_uint64_t)(apr_uintptr_t)q->domain->block, pointers };
    fenced_request *into = (fenced_request *)b.host;
    fenced_header *header = (fenced_header *)(into + 1);
    const char **variable = (const char **)(header + headers->nelts);

    *own = NULL;
    if (!b.domain || size > MF_BLOCK) {
        *own = rf_memory_alloc(q->domain->rf, size);
        if (!*own)
            return 0;
        b.domain = (apr_uint64_t)(apr_uintptr_t)*own;
    }
    into->method = put(&b, r->method);
    into->uri = put(&b, r->uri);
    into->query = put(&b, r->args);
    into->path_info = put(&b, r->path_info);
    into->protocol = put(&b, r->protocol);
    into->remote = put(&b, r->useragent_ip);
    into->user = put(&b, r->user);
    into->content_length = content_length(r);
    into->header_count = (apr_uint64_t)headers->nelts;
    into->headers = (const fenced_header *)(apr_uintptr_t)(b.domain + sizeof *into);
    into->environment = (char *const *)(apr_uintptr_t)(b.domain + (apr_uint64_t)((char *)variable - b.host));
    for (int i = 0; i < headers->nelts; i++) {
        const apr_table_entry_t *e = &APR_ARRAY_IDX(headers, i, apr_table_entry_t);

        header[i].name = put(&b, e->key);
        header[i].value = put(&b, e->val);
    }
    for (unsigned k = 0; k < 2; k++)
        for (int i = 0; tables[k] && i < tables[k]->nelts; i++) {
            const apr_table_entry_t *e = &APR_ARRAY_IDX(tables[k], i, apr_table_entry_t);

            *variable++ = put_variable(&b, e->key, e->val);
        }
    *variable = NULL;
    if (rf_memory_write(q->domain->rf, (void *)(apr_uintptr_t)b.domain, b.host, size) != RF_OK)
        return 0;
    return b.domain;
}

static void count(mf_request *q, apr_uint64_t begun, rf_status status)
{
    mf_counters *c = q->module->counters;
    apr_uint64_t spent = mf_now() - begun - q->waited;

    __atomic_fetch_add(&c->requests, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->nanoseconds, spent, __ATOMIC_RELAXED);
    __atomic_fetch_add(&c->sent, (apr_uint64_t)q->written, __ATOMIC_RELAXED);
    if (spent > c->most_nanoseconds)
        __atomic_store_n(&c->most_nanoseconds, spent, __ATOMIC_RELAXED);
    if (status != RF_OK)
        __atomic_fetch_add(&c->faults, 1, __ATOMIC_RELAXED);
    if (status == RF_FAULT_TIME)
        __atomic_fetch_add(&c->time_faults, 1, __ATOMIC_RELAXED);
    if (status == RF_FAULT_MEMORY)
        __atomic_fetch_add(&c->memory_faults, 1, __ATOMIC_RELAXED);
}

/* The module has returned. What the handler returns. */
static int answered(mf_request *q, int result)
{
    if (q->module->kind == MF_PROGRAM) {
        result = mf_program_end(q);
    } else if (result == 0) {
        result = mf_finish(q);
    } else {
        int known = result >= 300 && result <= 599;

        mf_refuse(q, known ? result : HTTP_INTERNAL_SERVER_ERROR, known ? NULL : "fenced_handle returned no status");
        q->refused_status = known ? result : HTTP_INTERNAL_SERVER_ERROR;
        if (!q->refused)
            q->refused = "it returned a status after a part of the answer";
        if (known && !q->begun) {
            mf_discard(q);
            return result;
        }
        result = mf_finish(q);
    }
    if (q->refused && q->refused_status >= 500)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, q->r, "fenced:%s: %s%s", q->module->name, q->refused,
                      q->begun ? ": the connection ends" : "");
    return result;
}

/* Calls the module. What the handler returns; `*status`: how the call ended. */
static int run(mf_request *q, rf_status *status)
{
    apr_uint64_t begun = mf_now(), at;
    void *own;
    int result = 0;

    if (q->module->kind == MF_PROGRAM) {
        ap_add_common_vars(q->r);
        ap_add_cgi_vars(q->r);
    }
    at = give(q, &own);
    *status = at ? RF_OK : rf_error()->status;
    if (at) {
        __atomic_fetch_add(&q->module->counters->started, 1, __ATOMIC_RELAXED);
        q->domain->request = q;
        result = q->domain->serve((const void *)(apr_uintptr_t)at);
        *status = rf_call_status();
        q->domain->request = NULL;
    }
    /* exit is an ordinary end of a program. */
    if (*status == RF_FAULT_EXIT && q->module->kind == MF_PROGRAM) {
        rf_error_clear();
        count(q, begun, RF_OK);
        return answered(q, 0);
    }
    count(q, begun, *status);
    if (*status == RF_OK) {
        if (own && q->domain->reset != MF_RESET_REQUEST)
            rf_memory_free(q->domain->rf, own);
        return answered(q, result);
    }
    mf_report(q, rf_error());
    rf_error_clear();
    mf_refuse(q, HTTP_INTERNAL_SERVER_ERROR, "it failed");
    q->refused_status = HTTP_INTERNAL_SERVER_ERROR;
    return mf_finish(q);
}

int mf_handler(request_rec *r)
{
    mf_request q = { .r = r, .declared = -1 };
    mf_module *m;
    rf_status status;
    int result;

    if (!r->handler || strncmp(r->handler, "fenced:", 7) != 0)
        return DECLINED;
    m = mf_module_find(r->handler + 7);
    if (!m) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "SetHandler %s: there is no FencedModule of that name", r->handler);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    q.module = m;
    q.settings = ap_get_module_config(r->per_dir_config, &fenced_module);
    q.domain = mf_domain_take(m, q.settings, r);
    if (!q.domain)
        return HTTP_INTERNAL_SERVER_ERROR;
    if (q.domain->down) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "fenced:%s: it has failed before (FencedReset never)", m->name);
        q.domain->busy = 0;
        return HTTP_SERVICE_UNAVAILABLE;
    }
    q.out = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    result = run(&q, &status);
    if (result != OK)
        r->status = HTTP_OK;
    mf_domain_give(q.domain, status != RF_OK, r);
    if (q.redirect && !q.refused) {
        /* Another page of this server answers, as if it had been asked for. */
        r->method = "GET";
        r->method_number = M_GET;
        apr_table_unset(r->headers_in, "Content-Length");
        ap_internal_redirect_handler(q.redirect, r);
        return OK;
    }
    return result;
}
