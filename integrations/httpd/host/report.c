/* What the error log is told. */
#include "mod_fenced.h"

enum { FRAMES = 8 /* of a backtrace */, LINES = 100 /* of a module's, for a request */ };

/* "f (page.c:12)". */
static const char *frame(apr_pool_t *pool, const rf_frame *f)
{
    const char *name = f->function ? f->function : "?";

    return f->file ? apr_psprintf(pool, "%s (%s:%u)", name, f->file, f->line) : name;
}

/* ", called by f (page.c:12)" for each caller. The error's message has the innermost function. */
const char *mf_callers(apr_pool_t *pool, const rf_error_info *error)
{
    const char *calls = "";

    for (unsigned i = 1; i < error->frame_count && i < FRAMES; i++)
        calls = apr_pstrcat(pool, calls, ", called by ", frame(pool, &error->frames[i]), NULL);
    return calls;
}

void mf_report(mf_request *q, const rf_error_info *error)
{
    ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, q->r, "fenced:%s: %s%s", q->module->name, error->message,
                  mf_callers(q->r->pool, error));
}

/* A line that the module writes itself. */
void mf_log_text(mf_domain *d, const char *text)
{
    mf_request *q = d->request;

    if (!q)
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, ap_server_conf, "fenced:%s says: %s", d->module->name, text);
    else if (q->lines++ < LINES)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, q->r, "fenced:%s says: %s", d->module->name, text);
    else if (q->lines == LINES + 1)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, q->r, "fenced:%s says more, which is left out", d->module->name);
}
