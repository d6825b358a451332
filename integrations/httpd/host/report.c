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

/* Whether a module may have another line (FencedLogLimit). The first one of the next time tells how many were left out. */
static int may_log(mf_request *q)
{
    mf_counters *c = q->module->counters;
    int limit = q->settings->log_lines < 0 ? MF_LOG_LINES : q->settings->log_lines;
    apr_uint64_t time = q->settings->log_lines < 0 ? APR_UINT64_C(60000000000) : q->settings->log_time;
    apr_uint64_t now = mf_now(), since = __atomic_load_n(&c->log_since, __ATOMIC_RELAXED);

    if (!limit)
        return 1;
    if ((!since || now - since >= time) && __atomic_compare_exchange_n(&c->log_since, &since, now, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        apr_uint64_t lines = __atomic_exchange_n(&c->log_lines, 0, __ATOMIC_RELAXED);

        if (lines > (apr_uint64_t)limit)
            ap_log_rerror(APLOG_MARK, APLOG_WARNING, 0, q->r, "fenced:%s: %" APR_UINT64_T_FMT " lines were left out (FencedLogLimit)",
                          q->module->name, lines - (apr_uint64_t)limit);
    }
    if (__atomic_add_fetch(&c->log_lines, 1, __ATOMIC_RELAXED) <= (apr_uint64_t)limit)
        return 1;
    __atomic_fetch_add(&c->log_left_out, 1, __ATOMIC_RELAXED);
    return 0;
}

void mf_report(mf_request *q, const rf_error_info *error)
{
    if (may_log(q))
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, q->r, "fenced:%s: %s%s", q->module->name, error->message,
                      mf_callers(q->r->pool, error));
}

/* A line that the module writes itself. */
void mf_log_text(mf_domain *d, const char *text)
{
    mf_request *q = d->request;

    if (q && !may_log(q))
        return;
    if (!q)
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, ap_server_conf, "fenced:%s says: %s", d->module->name, text);
    else if (q->lines++ < LINES)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, q->r, "fenced:%s says: %s", d->module->name, text);
    else if (q->lines == LINES + 1)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, q->r, "fenced:%s says more, which is left out", d->module->name);
}
