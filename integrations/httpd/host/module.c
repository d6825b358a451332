/* Module files: opened, verified, and looked at, before the server starts. */
#include "mod_fenced.h"

typedef struct {
    apr_pool_t *pool;
    int handler, program, start;
    const char *missing; /* a function that nobody gives */
} found;

static int look(void *context, const rf_symbol *symbol)
{
    found *f = context;

    if (symbol->kind != RF_SYMBOL_KIND_FUNCTION)
        return 0;
    if (symbol->imported) {
        if (!symbol->weak && !f->missing && mf_imports_missing(symbol->name))
            f->missing = apr_pstrdup(f->pool, symbol->name);
        return 0;
    }
    f->handler |= strcmp(symbol->name, "fenced_handle") == 0;
    f->program |= strcmp(symbol->name, "fenced_program") == 0;
    f->start |= strcmp(symbol->name, "fenced_start") == 0;
    return 0;
}

static apr_status_t close_module(void *handle)
{
    rf_module_destroy(handle);
    return APR_SUCCESS;
}

static int wrong(const mf_module *m, server_rec *s, const char *what, const char *advice)
{
    ap_log_error(APLOG_MARK, APLOG_EMERG, 0, s, "%s: FencedModule %s: %s: %s", m->where, m->name, what, advice);
    rf_error_clear();
    return HTTP_INTERNAL_SERVER_ERROR;
}

static const char *advice(rf_status status)
{
    switch (status) {
    case RF_ERROR_FILE: return "give the path of a file that the server may read; relative ones begin at ServerRoot";
    case RF_ERROR_FORMAT: return "make the file with fenced-cc";
    case RF_ERROR_REJECTED: return "make it again with fenced-cc; code from elsewhere is not run";
    default: return "the module cannot be used here";
    }
}

int mf_module_open(mf_module *m, apr_pool_t *pool, server_rec *s)
{
    found f = { pool, 0, 0, 0, NULL };
    rf_status status = rf_module_create(m->path, 0, &m->handle);

    if (status != RF_OK)
        return wrong(m, s, rf_error()->message, advice(status));
    apr_pool_cleanup_register(pool, m->handle, close_module, apr_pool_cleanup_null);
    if (rf_module_visit(m->handle, look, &f) != RF_OK)
        return wrong(m, s, rf_error()->message, "the module cannot be used here");
    if (f.missing)
        return wrong(m, s, apr_psprintf(pool, "%s needs the function %s, which the server does not give", m->path, f.missing),
                     "link the module with what has it");
    if (!f.handler && !f.program)
        return wrong(m, s, apr_psprintf(pool, "%s has no function fenced_handle", m->path),
                     "write one (fenced.h), or make a program that has main with fenced-cc --program");
    m->kind = f.handler ? MF_HANDLER : MF_PROGRAM;
    m->has_start = f.start;
    return OK;
}
