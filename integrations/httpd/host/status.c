/* SetHandler fenced-status: what the modules have done, as a page, and for programs (?auto). And a part of mod_status's page. */
#include "stock.h"

#include "apr_optional_hooks.h"
#include "mod_status.h"

static void print_stock_auto(request_rec *r)
{
    const apr_array_header_t *stocks = mf_stocks();

    for (int i = 0; stocks && i < stocks->nelts; i++) {
        const mf_stock *m = APR_ARRAY_IDX(stocks, i, mf_stock *);

        ap_rprintf(r,
                   "fenced.%s.calls: %" APR_UINT64_T_FMT "\nfenced.%s.questions: %" APR_UINT64_T_FMT
                   "\nfenced.%s.faults: %" APR_UINT64_T_FMT "\nfenced.%s.spared: %" APR_UINT64_T_FMT "\n",
                   m->name, m->counters->in, m->name, m->counters->out, m->name, m->counters->faults, m->name, m->counters->spared);
    }
}

/* Crossings of stock modules: into them, and out of them to the server. */
static void print_stock_table(request_rec *r)
{
    const apr_array_header_t *stocks = mf_stocks();

    if (!stocks)
        return;
    ap_rputs("<table border=\"1\">\n<tr><th>stock module</th><th>calls of it</th><th>its questions</th><th>faults</th><th>calls spared</th><th>file</th></tr>\n",
             r);
    for (int i = 0; i < stocks->nelts; i++) {
        const mf_stock *m = APR_ARRAY_IDX(stocks, i, mf_stock *);

        ap_rprintf(r,
                   "<tr><td>%s</td><td>%" APR_UINT64_T_FMT "</td><td>%" APR_UINT64_T_FMT "</td><td>%" APR_UINT64_T_FMT
                   "</td><td>%" APR_UINT64_T_FMT "</td><td>%s</td></tr>\n",
                   m->name, m->counters->in, m->counters->out, m->counters->faults, m->counters->spared, ap_escape_html(r->pool, m->path));
    }
    ap_rputs("</table>\n", r);
}

static void print_auto(request_rec *r)
{
    const apr_array_header_t *modules = mf_modules();

    for (int i = 0; modules && i < modules->nelts; i++) {
        const mf_module *m = APR_ARRAY_IDX(modules, i, mf_module *);
        const mf_counters *c = m->counters;

        ap_rprintf(r,
                   "fenced.%s.requests: %" APR_UINT64_T_FMT "\nfenced.%s.faults: %" APR_UINT64_T_FMT
                   "\nfenced.%s.time_faults: %" APR_UINT64_T_FMT "\nfenced.%s.memory_faults: %" APR_UINT64_T_FMT "\n",
                   m->name, c->requests, m->name, c->faults, m->name, c->time_faults, m->name, c->memory_faults);
        ap_rprintf(r,
                   "fenced.%s.nanoseconds: %" APR_UINT64_T_FMT "\nfenced.%s.most_nanoseconds: %" APR_UINT64_T_FMT
                   "\nfenced.%s.received: %" APR_UINT64_T_FMT "\nfenced.%s.sent: %" APR_UINT64_T_FMT "\n",
                   m->name, c->nanoseconds, m->name, c->most_nanoseconds, m->name, c->received, m->name, c->sent);
        ap_rprintf(r,
                   "fenced.%s.domains: %" APR_INT64_T_FMT "\nfenced.%s.most_memory: %" APR_UINT64_T_FMT
                   "\nfenced.%s.log_left_out: %" APR_UINT64_T_FMT "\nfenced.%s.started: %" APR_UINT64_T_FMT "\n",
                   m->name, c->domains, m->name, c->most_memory, m->name, c->log_left_out,
                   m->name, c->started);
    }
    print_stock_auto(r);
}

static void print_table(request_rec *r)
{
    const apr_array_header_t *modules = mf_modules();

    ap_rputs("<table border=\"1\">\n<tr><th>module</th><th>requests</th><th>faults</th><th>of time</th><th>of memory</th>"
             "<th>mean &micro;s</th><th>most &micro;s</th><th>received</th><th>sent</th><th>domains</th>"
             "<th>KiB of the largest</th><th>file</th></tr>\n",
             r);
    for (int i = 0; modules && i < modules->nelts; i++) {
        const mf_module *m = APR_ARRAY_IDX(modules, i, mf_module *);
        const mf_counters *c = m->counters;

        ap_rprintf(r,
                   "<tr><td>%s</td><td>%" APR_UINT64_T_FMT "</td><td>%" APR_UINT64_T_FMT "</td><td>%" APR_UINT64_T_FMT
                   "</td><td>%" APR_UINT64_T_FMT "</td>",
                   m->name, c->requests, c->faults, c->time_faults, c->memory_faults);
        ap_rprintf(r,
                   "<td>%.1f</td><td>%.1f</td><td>%" APR_UINT64_T_FMT "</td><td>%" APR_UINT64_T_FMT
                   "</td><td>%" APR_INT64_T_FMT "</td><td>%" APR_UINT64_T_FMT "</td><td>%s</td></tr>\n",
                   c->requests ? (double)c->nanoseconds / (double)c->requests / 1e3 : 0.0, (double)c->most_nanoseconds / 1e3,
                   c->received, c->sent, c->domains, c->most_memory >> 10, ap_escape_html(r->pool, m->path));
    }
    ap_rputs("</table>\n", r);
    print_stock_table(r);
}

int mf_status_handler(request_rec *r)
{
    if (!r->handler || strcmp(r->handler, "fenced-status") != 0)
        return DECLINED;
    r->allowed = AP_METHOD_BIT << M_GET;
    if (r->method_number != M_GET)
        return DECLINED;
    apr_table_setn(r->headers_out, "Cache-Control", "no-store");
    if (r->args && strcmp(r->args, "auto") == 0) {
        ap_set_content_type(r, "text/plain; charset=utf-8");
        print_auto(r);
        return OK;
    }
    ap_set_content_type(r, "text/html; charset=utf-8");
    ap_rputs("<!DOCTYPE html>\n<html><head><title>Fenced modules</title></head><body>\n<h1>Fenced modules</h1>\n", r);
    print_table(r);
    ap_rputs("</body></html>\n", r);
    return OK;
}

static int mod_status_part(request_rec *r, int flags)
{
    if (flags & AP_STATUS_SHORT) {
        print_auto(r);
        return OK;
    }
    ap_rputs("<hr>\n<h2>Fenced modules</h2>\n", r);
    print_table(r);
    return OK;
}

void mf_status_register(apr_pool_t *pool)
{
    (void)pool;
    APR_OPTIONAL_HOOK(ap, status_hook, mod_status_part, NULL, NULL, APR_HOOK_MIDDLE);
}
