/* What fenced stock modules ask the server for. All that is in a question is the module's to choose. */
#include "stock.h"

#include "ap_expr.h"
#include "ap_mpm.h"
#include "http_ssl.h"
#include "mod_core.h"
#include "util_script.h"


/* A question. */
typedef struct {
    mf_stock *m;
    mf_stock_call *call;
    stock_unpack in;
    stock_pack out;
    const char *refused; /* the module's call ends, with this */
} ask;

/* The rest of an answer that the module had no room for, until it asks again. */
static __thread struct {
    char *bytes;
    apr_size_t length;
} rest;

static request_rec *asked_request(ask *a)
{
    request_rec *r = mf_stock_find(a->call, stock_get(&a->in));

    if (!r)
        a->refused = "it asks for a request that is not there";
    return r;
}

/* The request of the call itself. */
static request_rec *own_request(ask *a)
{
    request_rec *r = asked_request(a);

    if (r && r != a->call->r)
        a->refused = "it asks for something of a request that it was not called for";
    return a->refused ? NULL : r;
}

static void op_FETCH(ask *a)
{
    a->refused = "it fetches nothing";
}

static void op_HOOK(ask *a)
{
    if (!a->call || !a->call->hooking || !mf_stock_add_hook(a->m, &a->in, a->call->pool))
        a->refused = "it registers a hook that cannot be";
}

/* ------------------------------------------------------------------------------------------------------- start and log */

static void op_LOG(ask *a)
{
    int level = (int)stock_get(&a->in), line;
    apr_status_t status = (apr_status_t)stock_get(&a->in);
    const char *file = stock_get_text(&a->in), *text;

    line = (int)stock_get(&a->in);
    text = stock_get_text(&a->in);
    if (!text || !file) {
        a->refused = "it logs nothing";
        return;
    }
    level &= APLOG_LEVELMASK;
    if (a->call && a->call->r)
        ap_log_rerror_(file, line, a->m->host.module_index, level, status, a->call->r, "%s", text);
    else
        ap_log_error_(file, line, a->m->host.module_index, level, status, a->call && a->call->server ? a->call->server : ap_server_conf, "%s",
                      text);
}

static void op_CONTEXT(ask *a)
{
    unsigned forbidden = (unsigned)stock_get(&a->in);

    if (!a->call || !a->call->cmd)
        a->refused = "it asks for a directive outside of one";
    else
        stock_put_text(&a->out, ap_check_cmd_context(a->call->cmd, forbidden));
}

/* Expressions never read files for a module (AP_EXPR_FLAG_RESTRICTED), nor look up what modules add to the language. */
static void op_EXPRESSION(ask *a)
{
    const char *text = stock_get_text(&a->in), *error = NULL;
    unsigned flags = (unsigned)stock_get(&a->in) & (AP_EXPR_FLAG_SSL_EXPR_COMPAT | AP_EXPR_FLAG_DONT_VARY | AP_EXPR_FLAG_STRING_RESULT);
    ap_expr_info_t *expression;

    if (!a->call || !a->call->cmd || a->m->ready || !text || a->m->expressions->nelts == MF_STOCK_EXPRESSIONS) {
        a->refused = "it makes an expression outside of the configuration, or too many";
        return;
    }
    expression = ap_expr_parse_cmd_mi(a->call->cmd, text, flags | AP_EXPR_FLAG_RESTRICTED, &error, NULL, a->m->host.module_index);
    if (expression && !error)
        APR_ARRAY_PUSH(a->m->expressions, ap_expr_info_t *) = expression;
    stock_put(&a->out, expression && !error ? (apr_uint64_t)a->m->expressions->nelts : 0);
    stock_put_text(&a->out, error);
}

static void op_EVALUATE(ask *a)
{
    request_rec *r = own_request(a);
    apr_uint64_t which = stock_get(&a->in), as_text = stock_get(&a->in), groups = stock_get(&a->in);
    const char *subject = stock_get_text(&a->in), *error = NULL;
    ap_regmatch_t matches[AP_MAX_REG_MATCH];
    ap_expr_info_t *expression;

    if (!r)
        return;
    if (which == 0 || which > (apr_uint64_t)a->m->expressions->nelts || groups > AP_MAX_REG_MATCH) {
        a->refused = "it asks for an expression that it has not made";
        return;
    }
    expression = APR_ARRAY_IDX(a->m->expressions, (int)which - 1, ap_expr_info_t *);
    if (as_text) {
        stock_put_text(&a->out, ap_expr_str_exec(r, expression, &error));
        stock_put_text(&a->out, error);
        return;
    }
    memset(matches, -1, sizeof matches);
    if (groups)
        stock_put(&a->out, (apr_uint64_t)ap_expr_exec_re(r, expression, (apr_size_t)groups, matches, &subject, &error));
    else
        stock_put(&a->out, (apr_uint64_t)ap_expr_exec(r, expression, &error));
    stock_put_text(&a->out, error);
    stock_put_text(&a->out, groups ? subject : NULL);
    for (apr_uint64_t i = 0; i < groups; i++) {
        stock_put(&a->out, (apr_uint64_t)matches[i].rm_so);
        stock_put(&a->out, (apr_uint64_t)matches[i].rm_eo);
    }
}

static void op_ROOT_RELATIVE(ask *a)
{
    const char *text = stock_get_text(&a->in);

    if (!text || !a->call || !a->call->pool)
        a->refused = "it asks for a path outside of a call";
    else
        stock_put_text(&a->out, ap_server_root_relative(a->call->pool, text));
}

static void op_DEFINED(ask *a)
{
    const char *text = stock_get_text(&a->in);

    stock_put(&a->out, text && ap_exists_config_define(text));
}

static void op_LOAD(ask *a)
{
    ap_sload_t load = { 0 };
    ap_loadavg_t average = { 0 };

    ap_get_sload(&load);
    ap_get_loadavg(&average);
    stock_put_bytes(&a->out, &load, sizeof load);
    stock_put_bytes(&a->out, &average, sizeof average);
}

/* The number of a method; unknown ones are registered for a directive that says so. */
static void op_METHOD(ask *a)
{
    const char *name = stock_get_text(&a->in);
    apr_uint64_t add = stock_get(&a->in);

    if (!name || (add && (!a->call || !a->call->cmd)))
        a->refused = "it asks for no method";
    else
        stock_put(&a->out, (apr_uint64_t)(add ? ap_method_register(a->call->cmd->pool, name) : ap_method_number_of(name)));
}

static void op_REGISTER_PROVIDER(ask *a)
{
    if (!a->call || !a->call->hooking || !mf_stock_add_provider(a->m, &a->in, a->call->pool))
        a->refused = "it registers a provider that cannot be";
}

/* -------------------------------------------------------------------------------------------------------------- filters */

static void op_REGISTER_FILTER(ask *a)
{
    mf_stock *m = a->m;
    const char *name = stock_get_text(&a->in);
    apr_uint64_t type = stock_get(&a->in), function = stock_get(&a->in);

    if (!a->call || !a->call->hooking || !name || m->filter_count == MF_STOCK_FILTERS || type > AP_FTYPE_NETWORK) {
        a->refused = "it registers a filter that cannot be";
        return;
    }
    m->filter_functions[m->filter_count] = function;
    m->filters[m->filter_count++] =
        ap_register_output_filter(apr_pstrdup(a->call->pool, name), mf_stock_filter, NULL, (ap_filter_type)type);
}

/* Of the server's own, and of others: they get nothing from this module. */
static void op_ADD_FILTER(ask *a)
{
    request_rec *r = own_request(a);
    const char *name = stock_get_text(&a->in);
    ap_filter_rec_t *rec = name ? ap_get_output_filter_handle(name) : NULL;

    if (r)
        stock_put(&a->out, rec && ap_add_output_filter_handle(rec, NULL, r, r->connection));
}

static void op_ADD_INPUT_FILTER(ask *a)
{
    request_rec *r = own_request(a);
    const char *name = stock_get_text(&a->in);

    if (r)
        stock_put(&a->out, name && ap_get_input_filter_handle(name) && ap_add_input_filter(name, NULL, r, r->connection));
}

static void op_PASS_BRIGADE(ask *a)
{
    apr_bucket_brigade *brigade = a->call ? a->call->brigade : NULL;

    if (!brigade) {
        a->refused = "it passes on what it was not given, or not any more";
        return;
    }
    a->call->brigade = NULL;
    stock_put(&a->out, (apr_uint64_t)ap_pass_brigade(a->call->filter->next, brigade));
}

/* ------------------------------------------------------------------------------------------------------------- requests */

/* A request within the request. Its number, and what the module is to see of it. */
static void op_SUBREQUEST(ask *a)
{
    request_rec *r = own_request(a), *sub;
    apr_uint64_t by_file = stock_get(&a->in), filtered = stock_get(&a->in);
    const char *name = stock_get_text(&a->in);
    mf_stock_call view;

    if (!r)
        return;
    if (!name) {
        a->refused = "it looks up nothing";
        return;
    }
    sub = by_file ? ap_sub_req_lookup_file(name, r, filtered ? r->output_filters : NULL)
                  : ap_sub_req_lookup_uri(name, r, filtered ? r->output_filters : NULL);
    view = *a->call;
    view.r = sub;
    if (!mf_stock_pack_request(&view, &a->out))
        a->refused = "there is no room for another request";
}

/* One that was made for the request of the call. */
static request_rec *asked_subrequest(ask *a)
{
    request_rec *sub = asked_request(a);

    if (sub && (sub == a->call->r || sub->main != a->call->r))
        a->refused = "it names a request that is none within its own";
    return a->refused ? NULL : sub;
}

/* What it writes comes behind what its request has written. */
static void op_RUN_SUBREQUEST(ask *a)
{
    request_rec *sub = asked_subrequest(a);
    ap_filter_t *f = sub ? sub->output_filters : NULL;

    if (!sub)
        return;
    while (f && f->frec != ap_subreq_core_filter_handle)
        f = f->next;
    if (f)
        f->next = a->call->r->output_filters;
    stock_put(&a->out, (apr_uint64_t)ap_run_sub_req(sub));
}

static void op_END_SUBREQUEST(ask *a)
{
    request_rec *sub = asked_subrequest(a);

    if (sub)
        ap_destroy_sub_req(sub);
}

static void op_REDIRECT(ask *a)
{
    request_rec *r = own_request(a);
    const char *uri = stock_get_text(&a->in);

    if (r && uri)
        ap_internal_redirect(apr_pstrdup(r->pool, uri), r);
}

static void op_HANDLER_REDIRECT(ask *a)
{
    request_rec *r = own_request(a);
    const char *uri = stock_get_text(&a->in);

    if (r && uri)
        ap_internal_redirect_handler(apr_pstrdup(r->pool, uri), r);
}

static void op_FAST_REDIRECT(ask *a)
{
    request_rec *sub = asked_subrequest(a);

    if (sub)
        ap_internal_fast_redirect(sub, a->call->r);
}

static void op_CONTEXT_INFO(ask *a)
{
    request_rec *r = own_request(a);
    const char *prefix = stock_get_text(&a->in), *root = stock_get_text(&a->in);

    if (r)
        ap_set_context_info(r, apr_pstrdup(r->pool, prefix), apr_pstrdup(r->pool, root));
}

static void op_DOCUMENT_ROOT(ask *a)
{
    request_rec *r = own_request(a);
    const char *root = stock_get_text(&a->in);

    if (r && root)
        ap_set_document_root(r, apr_pstrdup(r->pool, root));
}

static void op_WRITE(ask *a)
{
    request_rec *r = own_request(a);
    apr_size_t length;
    const char *bytes = stock_get_bytes(&a->in, &length);

    if (r)
        stock_put(&a->out, (apr_uint64_t)(bytes ? ap_rwrite(bytes, (int)length, r) : 0));
}

static void op_DISCARD_BODY(ask *a)
{
    request_rec *r = own_request(a);

    if (r)
        stock_put(&a->out, (apr_uint64_t)ap_discard_request_body(r));
}

static void op_MEETS_CONDITIONS(ask *a)
{
    request_rec *r = own_request(a);

    if (r)
        stock_put(&a->out, (apr_uint64_t)ap_meets_conditions(r));
}

static void op_ASK_TEXT(ask *a)
{
    request_rec *r = asked_request(a);
    apr_uint64_t which = stock_get(&a->in), number = stock_get(&a->in);
    const char *text = stock_get_text(&a->in);

    if (!r)
        return;
    switch ((stock_text)which) {
    case STOCK_TEXT_URL: text = text ? ap_construct_url(r->pool, text, r) : NULL; break;
    case STOCK_TEXT_SERVER_NAME: text = ap_get_server_name(r); break;
    case STOCK_TEXT_REMOTE_HOST: text = ap_get_useragent_host(r, (int)number, NULL); break;
    case STOCK_TEXT_AUTH_NAME: text = ap_auth_name(r); break;
    case STOCK_TEXT_AUTH_TYPE: text = ap_auth_type(r); break;
    case STOCK_TEXT_SSL: text = text ? ap_ssl_var_lookup(r->pool, r->server, r->connection, r, (char *)(apr_uintptr_t)text) : NULL; break;
    case STOCK_TEXT_SIGNATURE: text = ap_psignature(text ? text : "", r); break;
    case STOCK_TEXT_ETAG: text = ap_make_etag(r, number != 0); break;
    case STOCK_TEXT_PORT: text = apr_itoa(r->pool, ap_get_server_port(r)); break;
    case STOCK_TEXT_OPTIONS: text = apr_itoa(r->pool, ap_allow_options(r)); break;
    default: text = NULL;
    }
    stock_put_text(&a->out, text);
}

static void op_SET_NUMBER(ask *a)
{
    request_rec *r = own_request(a);
    apr_uint64_t which = stock_get(&a->in), value = stock_get(&a->in);

    if (!r)
        return;
    switch ((stock_set)which) {
    case STOCK_SET_LENGTH: ap_set_content_length(r, (apr_off_t)value); break;
    case STOCK_SET_MTIME: ap_update_mtime(r, (apr_time_t)value); break;
    case STOCK_SET_ETAG: ap_set_etag(r); break;
    case STOCK_SET_MODIFIED: ap_set_last_modified(r); break;
    case STOCK_SET_RANGES: ap_set_accept_ranges(r); break;
    default: a->refused = "it sets what there is not";
    }
}

/* ------------------------------------------------------------------------------------------------------------- crossing */

typedef void op_function(ask *);
#define OP(name) [STOCK_ASK_##name] = op_##name,
static op_function *const ops[STOCK_OPS] = { STOCK_PLAIN_OPS(OP) STOCK_SYNCED_OPS(OP) };

/* Those that may take as long as the client likes. */
static int waits(apr_uint64_t op)
{
    return op == STOCK_ASK_PASS_BRIGADE || op == STOCK_ASK_WRITE || op == STOCK_ASK_REDIRECT || op == STOCK_ASK_HANDLER_REDIRECT ||
           op == STOCK_ASK_RUN_SUBREQUEST || op == STOCK_ASK_DISCARD_BODY;
}

/* Gives the module what it has room for, and keeps the rest. */
static void reply(rf_caller *caller, ask *a, char *to, apr_uint64_t capacity)
{
    free(rest.bytes);
    rest.bytes = NULL;
    rest.length = 0;
    if (a->out.failed) {
        rf_caller_fail(caller, "the server's answer is too long");
    } else if (a->out.length <= capacity) {
        if (a->out.length && rf_memory_write(a->m->domain, to, a->out.bytes, a->out.length) != RF_OK)
            rf_caller_fail(caller, "stock_ask: the address for the answer is not the module's");
    } else if ((rest.bytes = malloc(a->out.length))) {
        memcpy(rest.bytes, a->out.bytes, a->out.length);
        rest.length = a->out.length;
    } else {
        rf_caller_fail(caller, "the server has no memory");
    }
    rf_caller_return_int(caller, a->out.length);
}

static void fetch(rf_caller *caller, mf_stock *m)
{
    void *to = (void *)(apr_uintptr_t)rf_caller_arg_int(caller, 3);

    if (!rest.bytes || rf_caller_arg_int(caller, 4) < rest.length || rf_memory_write(m->domain, to, rest.bytes, rest.length) != RF_OK)
        rf_caller_fail(caller, "stock_ask: there is nothing to fetch, or no room for it");
    rf_caller_return_int(caller, rest.length);
    free(rest.bytes);
    rest.bytes = NULL;
    rest.length = 0;
}

/* stock_ask(op, message, length, reply, capacity) */
void mf_stock_ask(rf_caller *caller, void *module)
{
    mf_stock *m = module;
    apr_uint64_t op = rf_caller_arg_int(caller, 0), length = rf_caller_arg_int(caller, 2);
    const void *from = (const void *)(apr_uintptr_t)rf_caller_arg_int(caller, 1);
    ask a = { .m = m, .call = mf_stock_current() };
    char first[1024], *message = first;

    __atomic_fetch_add(&m->counters->out, 1, __ATOMIC_RELAXED);
    if (op == STOCK_ASK_FETCH) {
        fetch(caller, m);
        return;
    }
    if (a.call && a.call->m != m)
        a.call = NULL;
    if (op >= STOCK_OPS || !ops[op] || length > STOCK_LARGEST || (length > sizeof first && !(message = malloc(length)))) {
        rf_caller_fail(caller, "stock_ask: there is no such question");
        return;
    }
    stock_pack_begin(&a.out);
    a.in = (stock_unpack){ message, length, 0 };
    if (rf_memory_read(m->domain, from, message, length) != RF_OK)
        a.refused = "stock_ask: the address of the question is not the module's";
    else if (op > STOCK_LAST_PLAIN_ && (!a.call || !mf_stock_unpack_request(a.call, &a.in)))
        a.refused = "stock_ask: what it has changed of the request makes no sense";
    if (!a.refused) {
        int pauses = waits(op) && rf_domain_pause_time(m->domain) == RF_OK;

        ops[op](&a);
        if (pauses && rf_domain_resume_time(m->domain) != RF_OK)
            rf_error_clear();
        if (!a.refused && a.in.bad)
            a.refused = "stock_ask: the question makes no sense";
    }
    if (!a.refused && op > STOCK_LAST_PLAIN_ && !mf_stock_pack_request(a.call, &a.out))
        a.refused = "stock_ask: there is no room for the request";
    if (a.refused)
        rf_caller_fail(caller, a.refused);
    else
        reply(caller, &a, (char *)(apr_uintptr_t)rf_caller_arg_int(caller, 3), rf_caller_arg_int(caller, 4));
    stock_pack_end(&a.out);
    if (message != first)
        free(message);
}
