/* What fenced stock modules ask the server for. All that is in a question is the module's to choose. */
#include "stock_ask.h"

#include "ap_mpm.h"
#include "http_ssl.h"
#include "http_vhost.h"
#include "mod_core.h"
#include "util_script.h"

enum { SUBREQUEST = 16 << 10 /* bytes that the server has for one, and for each run of it */ };

/* The rest of an answer that the module had no room for, until it asks again. */
static __thread struct {
    char *bytes;
    apr_size_t length;
} rest;

request_rec *mf_stock_asked_request(mf_stock_question *a)
{
    request_rec *r = mf_stock_find(a->call, stock_get(&a->in));

    if (!r)
        a->refused = "it asks for a request that is not there";
    return r;
}

/* The request of the call itself. */
request_rec *mf_stock_own_request(mf_stock_question *a)
{
    request_rec *r = mf_stock_asked_request(a);

    if (r && r != a->call->r)
        a->refused = "it asks for something of a request that it was not called for";
    return a->refused ? NULL : r;
}

void mf_stock_op_FETCH(mf_stock_question *a)
{
    a->refused = "it fetches nothing";
}

void mf_stock_op_HOOK(mf_stock_question *a)
{
    if (!a->call || !a->call->hooking || !mf_stock_add_hook(a->m, &a->in, a->call->pool))
        a->refused = "it registers a hook that cannot be";
}

/* ------------------------------------------------------------------------------------------------------- start and log */

void mf_stock_op_LOG(mf_stock_question *a)
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

void mf_stock_op_CONTEXT(mf_stock_question *a)
{
    unsigned forbidden = (unsigned)stock_get(&a->in);

    if (!a->call || !a->call->cmd)
        a->refused = "it asks for a directive outside of one";
    else
        stock_put_text(&a->out, ap_check_cmd_context(a->call->cmd, forbidden));
}

void mf_stock_op_ROOT_RELATIVE(mf_stock_question *a)
{
    const char *text = stock_get_text(&a->in);

    if (!text || !a->call || !a->call->pool)
        a->refused = "it asks for a path outside of a call";
    else
        stock_put_text(&a->out, ap_server_root_relative(a->call->pool, text));
}

void mf_stock_op_DEFINED(mf_stock_question *a)
{
    const char *text = stock_get_text(&a->in);

    stock_put(&a->out, text && ap_exists_config_define(text));
}

/* The number of a method; unknown ones are registered for a directive that says so. */
void mf_stock_op_METHOD(mf_stock_question *a)
{
    const char *name = stock_get_text(&a->in);
    apr_uint64_t add = stock_get(&a->in);

    if (!name || (add && (!a->call || !a->call->cmd)))
        a->refused = "it asks for no method";
    else
        stock_put(&a->out, (apr_uint64_t)(add ? ap_method_register(a->call->cmd->pool, name) : ap_method_number_of(name)));
}

/* ------------------------------------------------------------------------------------------------------------- requests */

/* A request within the request. Its number, and what the module is to see of it. */
void mf_stock_op_SUBREQUEST(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a), *sub;
    apr_uint64_t by_file = stock_get(&a->in), filtered = stock_get(&a->in);
    const char *name = stock_get_text(&a->in);
    ap_filter_t *next;
    mf_stock_call view;

    if (!r)
        return;
    if (!name) {
        a->refused = "it looks up nothing";
        return;
    }
    next = !filtered ? NULL : a->call->filter ? a->call->filter->next : r->output_filters;
    sub = by_file ? ap_sub_req_lookup_file(name, r, next) : ap_sub_req_lookup_uri(name, r, next);
    mf_stock_request_of(sub)->idle = a->m;
    if (!mf_stock_charge(sub, SUBREQUEST + strlen(name)))
        a->refused = MF_STOCK_HOARDS;
    view = *a->call;
    view.r = sub;
    if (!mf_stock_pack_request(&view, &a->out))
        a->refused = "there is no room for another request";
}

/* One that the module has made for the request of the call. Not while the server looks it up or runs it, which may lead to a filter of the request
 * itself, nor once that has taken its place and lives of its memory. */
static request_rec *asked_subrequest(mf_stock_question *a)
{
    request_rec *sub = mf_stock_asked_request(a);

    if (sub && (sub == a->call->r || sub->main != a->call->r || mf_stock_request_of(sub)->idle != a->m))
        a->refused = "it names a request that is none within its own";
    return a->refused ? NULL : sub;
}

/* What it writes comes behind what its request has written. */
void mf_stock_op_RUN_SUBREQUEST(mf_stock_question *a)
{
    request_rec *sub = asked_subrequest(a);
    ap_filter_t *f = sub ? sub->output_filters : NULL;

    if (!sub)
        return;
    if (!mf_stock_charge(sub, SUBREQUEST)) {
        a->refused = MF_STOCK_HOARDS;
        return;
    }
    /* Those of requests around it stay as they are. */
    while (f && f->r == sub && f->frec != ap_subreq_core_filter_handle)
        f = f->next;
    if (f && f->r == sub && !a->call->filter)
        f->next = a->call->r->output_filters;
    mf_stock_request_of(sub)->idle = NULL;
    stock_put(&a->out, (apr_uint64_t)ap_run_sub_req(sub));
    mf_stock_request_of(sub)->idle = a->m;
}

void mf_stock_op_END_SUBREQUEST(mf_stock_question *a)
{
    request_rec *sub = asked_subrequest(a);

    if (sub)
        ap_destroy_sub_req(sub);
}

void mf_stock_op_REDIRECT(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    const char *uri = stock_get_text(&a->in);

    if (r && uri)
        ap_internal_redirect(apr_pstrdup(r->pool, uri), r);
}

void mf_stock_op_HANDLER_REDIRECT(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    const char *uri = stock_get_text(&a->in);

    if (r && uri)
        ap_internal_redirect_handler(apr_pstrdup(r->pool, uri), r);
}

void mf_stock_op_DIE(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    apr_uint64_t status = stock_get(&a->in);

    if (r && status >= 300 && status <= 599)
        ap_die((int)status, r);
    else if (r)
        a->refused = "it ends a request by what is no status";
}

void mf_stock_op_FAST_REDIRECT(mf_stock_question *a)
{
    request_rec *sub = asked_subrequest(a), *r = a->call ? a->call->r : NULL;
    const char *args = stock_get_text(&a->in);

    if (!sub)
        return;
    /* mod_negotiation hands the query on; another one would be of a request that nobody has decided on. */
    if (!sub->args && args && r->args && strcmp(args, r->args) == 0)
        sub->args = r->args;
    mf_stock_request_of(sub)->idle = NULL;
    ap_internal_fast_redirect(sub, r);
}

void mf_stock_op_CONTEXT_INFO(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    const char *prefix = stock_get_text(&a->in), *root = stock_get_text(&a->in);

    if (r)
        ap_set_context_info(r, apr_pstrdup(r->pool, prefix), apr_pstrdup(r->pool, root));
}

void mf_stock_op_DOCUMENT_ROOT(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    const char *root = stock_get_text(&a->in);

    if (r && root)
        ap_set_document_root(r, apr_pstrdup(r->pool, root));
}

void mf_stock_op_WRITE(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    apr_size_t length;
    const char *bytes = stock_get_bytes(&a->in, &length);

    if (r)
        stock_put(&a->out, (apr_uint64_t)(bytes ? ap_rwrite(bytes, (int)length, r) : 0));
}

void mf_stock_op_CORE_TRANSLATE(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);

    if (!r)
        return;
    if (a->call->changes & STOCK_CHANGES_NAME)
        stock_put(&a->out, (apr_uint64_t)ap_core_translate(r));
    else
        a->refused = "it translates a name that is settled";
}

void mf_stock_op_NOTE_AUTH_FAILURE(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);

    if (r)
        ap_note_auth_failure(r);
}

void mf_stock_op_DISCARD_BODY(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);

    if (r)
        stock_put(&a->out, (apr_uint64_t)ap_discard_request_body(r));
}

void mf_stock_op_MEETS_CONDITIONS(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);

    if (r)
        stock_put(&a->out, (apr_uint64_t)ap_meets_conditions(r));
}

void mf_stock_op_ASK_TEXT(mf_stock_question *a)
{
    request_rec *r = mf_stock_asked_request(a);
    apr_uint64_t which = stock_get(&a->in), number = stock_get(&a->in);
    const char *text = stock_get_text(&a->in);

    if (!r)
        return;
    mf_stock_image_asked((stock_text)which);
    switch ((stock_text)which) {
    case STOCK_TEXT_URL: text = text ? ap_construct_url(r->pool, text, r) : NULL; break;
    case STOCK_TEXT_SERVER_NAME: text = ap_get_server_name(r); break;
    /* with a text: of the connection */
    case STOCK_TEXT_REMOTE_HOST:
        text = text ? ap_get_remote_host(r->connection, r->per_dir_config, (int)number, NULL) : ap_get_useragent_host(r, (int)number, NULL);
        break;
    case STOCK_TEXT_AUTH_NAME: text = ap_auth_name(r); break;
    case STOCK_TEXT_AUTH_TYPE: text = ap_auth_type(r); break;
    case STOCK_TEXT_SSL: text = text ? ap_ssl_var_lookup(r->pool, r->server, r->connection, r, (char *)(apr_uintptr_t)text) : NULL; break;
    case STOCK_TEXT_SIGNATURE: text = ap_psignature(text ? text : "", r); break;
    case STOCK_TEXT_ETAG: text = ap_make_etag(r, number != 0); break;
    case STOCK_TEXT_PORT: text = apr_itoa(r->pool, ap_get_server_port(r)); break;
    case STOCK_TEXT_OPTIONS: text = apr_itoa(r->pool, ap_allow_options(r)); break;
    case STOCK_TEXT_URL_NAME: text = ap_get_server_name_for_url(r); break;
    case STOCK_TEXT_DOCUMENT_ROOT: text = ap_document_root(r); break;
    case STOCK_TEXT_CONTEXT_PREFIX: text = ap_context_prefix(r); break;
    case STOCK_TEXT_CONTEXT_ROOT: text = ap_context_document_root(r); break;
    case STOCK_TEXT_LOGNAME: text = ap_get_remote_logname(r); break;
    case STOCK_TEXT_SCHEME: text = ap_run_http_scheme(r); break;
    case STOCK_TEXT_DEFAULT_PORT: text = apr_itoa(r->pool, ap_run_default_port(r)); break;
    case STOCK_TEXT_IS_SSL: text = apr_itoa(r->pool, ap_ssl_conn_is_ssl(r->connection)); break;
    case STOCK_TEXT_BODY_LIMIT: text = apr_off_t_toa(r->pool, ap_get_limit_req_body(r)); break;
    case STOCK_TEXT_MATCHES_HOST: text = apr_itoa(r->pool, text && ap_matches_request_vhost(r, text, (apr_port_t)number)); break;
    default: text = NULL;
    }
    stock_put_text(&a->out, text);
}

void mf_stock_op_SET_NUMBER(mf_stock_question *a)
{
    request_rec *r = mf_stock_asked_request(a);
    apr_uint64_t which = stock_get(&a->in), value = stock_get(&a->in);

    /* The time is also set of a request within its own: mod_negotiation does so for a map among variants. */
    if (r && r != a->call->r && (which != STOCK_SET_MTIME || r->main != a->call->r))
        a->refused = "it sets something of a request that it was not called for";
    if (!r || a->refused)
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

typedef void op_function(mf_stock_question *);
#define OP(name) [STOCK_ASK_##name] = mf_stock_op_##name,
static op_function *const ops[STOCK_OPS] = { STOCK_PLAIN_OPS(OP) STOCK_SYNCED_OPS(OP) };

/* Those that may take as long as the client likes. */
static int waits(apr_uint64_t op)
{
    return op == STOCK_ASK_PASS_BRIGADE || op == STOCK_ASK_WRITE || op == STOCK_ASK_REDIRECT || op == STOCK_ASK_HANDLER_REDIRECT ||
           op == STOCK_ASK_RUN_SUBREQUEST || op == STOCK_ASK_DIE || op == STOCK_ASK_DISCARD_BODY || op == STOCK_ASK_CALL_FILTER || op == STOCK_ASK_READ_BUCKET ||
           op == STOCK_ASK_GET_BRIGADE;
}

/* What a question makes the server keep besides what it says and gets, in bytes, until the request ends: what that took when it was looked at,
 * and more. -1: nothing at all. Bodies pass through, and what belongs to a request within the request goes with that. */
static long keeps(apr_uint64_t op)
{
    switch (op) {
    case STOCK_ASK_LOG:
    case STOCK_ASK_WRITE:
    case STOCK_ASK_PASS_BRIGADE:
    case STOCK_ASK_READ_BUCKET:
    case STOCK_ASK_GET_BRIGADE:
    case STOCK_ASK_CALL_FILTER:
    case STOCK_ASK_SUBREQUEST:
    case STOCK_ASK_RUN_SUBREQUEST:
    case STOCK_ASK_END_SUBREQUEST: return -1;
    case STOCK_ASK_DIE:
    case STOCK_ASK_REDIRECT:
    case STOCK_ASK_HANDLER_REDIRECT: return 128 << 10;
    case STOCK_ASK_FAST_REDIRECT:
    case STOCK_ASK_STATUS_HOOK: return 64 << 10;
    case STOCK_ASK_BEGIN_FILTER: return 8 << 10;
    case STOCK_ASK_CORE_TRANSLATE:
    case STOCK_ASK_CALL_PROVIDER: return 4 << 10;
    case STOCK_ASK_ADD_FILTER:
    case STOCK_ASK_ADD_INPUT_FILTER: return 1 << 10;
    default: return 256;
    }
}

static int charge(mf_stock_call *call, long kept, apr_size_t bytes)
{
    if (!call || kept < 0)
        return 1;
    if (call->r)
        return mf_stock_charge(call->r, (apr_size_t)kept + bytes);
    call->kept += (apr_size_t)kept + bytes;
    return !mf_stock_hoards(call);
}

/* Gives the module what it has room for, and keeps the rest. */
static void reply(rf_caller *caller, mf_stock_question *a, char *to, apr_uint64_t capacity)
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
    mf_stock_question a = { .m = m, .call = mf_stock_current() };
    char first[1024], *message = first;

    __atomic_fetch_add(&m->counters->out, 1, __ATOMIC_RELAXED);
    if (op == STOCK_ASK_FETCH) {
        fetch(caller, m);
        return;
    }
    if (a.call && a.call->m != m)
        a.call = NULL;
    /* The server may do anything to the request then. */
    if (a.call && a.call->r)
        mf_stock_request_of(a.call->r)->stale = MF_STOCK_ALL;
    if (op >= STOCK_OPS || !ops[op] || length > STOCK_LARGEST || (length > sizeof first && !(message = malloc(length)))) {
        rf_caller_fail(caller, "stock_ask: there is no such question");
        return;
    }
    stock_pack_begin(&a.out);
    a.in = (stock_unpack){ message, length, 0 };
    if (rf_memory_read(m->domain, from, message, length) != RF_OK)
        a.refused = "stock_ask: the address of the question is not the module's";
    else if (op > STOCK_LAST_PLAIN_ && (!a.call || !mf_stock_unpack_request(a.call, &a.in, 0)))
        a.refused = mf_stock_hoards(a.call) ? MF_STOCK_HOARDS : "stock_ask: what it has changed of the request makes no sense";
    else if (!charge(a.call, keeps(op), a.in.left))
        a.refused = MF_STOCK_HOARDS;
    if (!a.refused) {
        int pauses = waits(op) && rf_domain_pause_time(m->domain) == RF_OK;

        ops[op](&a);
        if (pauses && rf_domain_resume_time(m->domain) != RF_OK)
            rf_error_clear();
        if (!a.refused && a.in.bad)
            a.refused = "stock_ask: the question makes no sense";
        else if (!a.refused && keeps(op) >= 0 && !charge(a.call, 0, a.out.length))
            a.refused = MF_STOCK_HOARDS;
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
