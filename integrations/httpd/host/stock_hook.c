/* Hooks of fenced stock modules. */
#include "stock.h"

#include "ap_mpm.h"
#include "http_connection.h"
#include "http_request.h"
#include "scoreboard.h"

enum { NAMES = 16 /* of modules that a hook comes before or after */ };

static mf_stock *stock(unsigned number)
{
    return APR_ARRAY_IDX(mf_stocks(), (int)number, mf_stock *);
}

/* ------------------------------------------------------------------------------------------------------------ registration */

void mf_stock_register_hooks(unsigned number, apr_pool_t *pool)
{
    mf_stock_call call = { .m = stock(number), .pool = pool, .hooking = 1 };
    mf_stock_answer answer;
    stock_pack message;

    call.m->hook_count = call.m->server_hook_count = 0;
    if (mf_stock_begin(&call, &message) && mf_stock_enter(&call, STOCK_HOOKS, &message, &answer))
        mf_stock_answer_end(&answer);
}

/* A list of modules' names, NULL at its end. */
static const char *const *names(stock_unpack *u, apr_pool_t *pool)
{
    apr_uint64_t count = stock_get(u);
    const char **list;

    if (count == 0 || count > NAMES)
        return NULL;
    list = apr_pcalloc(pool, (count + 1) * sizeof *list);
    for (apr_uint64_t i = 0; i < count; i++) {
        list[i] = apr_pstrdup(pool, stock_get_text(u));
        if (!list[i])
            break;
    }
    return list;
}

/* Registers with the server what the module asks for. 0: that cannot be. */
int mf_stock_add_hook(mf_stock *m, stock_unpack *u, apr_pool_t *pool)
{
    const mf_stock_trampoline *own = &mf_stock_trampolines[m->number];
    apr_uint64_t kind = stock_get(u), function = stock_get(u);
    int order = (int)stock_get(u), type = (int)stock_get(u);
    const char *const *pre = names(u, pool), *const *succ = names(u, pool);
    unsigned k = m->hook_count;

    if (u->bad || kind >= STOCK_HOOK_COUNT)
        return 0;
    if (kind >= STOCK_HOOK_pre_config) {
        if (m->server_hook_count == MF_STOCK_HOOKS)
            return 0;
        m->server_hooks[m->server_hook_count++] = (mf_stock_hook){ (stock_hook)kind, function, order, 0, NULL };
        return 1;
    }
    if (k == MF_STOCK_HOOKS)
        return 0;
    m->hooks[m->hook_count++] = (mf_stock_hook){ (stock_hook)kind, function, order, 0, mf_stock_make_known(pool) };
#define PLAIN(name, changes)                                                                                                                \
    case STOCK_HOOK_##name: ap_hook_##name(own->hooks[k], pre, succ, order); break;
#define TYPED(name, changes)                                                                                                                \
    case STOCK_HOOK_##name: ap_hook_##name(own->hooks[k], pre, succ, order, type); break;
#define NOTHING(name, changes)                                                                                                              \
    case STOCK_HOOK_##name: ap_hook_##name(own->void_hooks[k], pre, succ, order); break;
#define TEXT(name, changes)                                                                                                                 \
    case STOCK_HOOK_##name: ap_hook_##name(own->text_hooks[k], pre, succ, order); break;
    switch ((stock_hook)kind) {
        STOCK_REQUEST_HOOKS(PLAIN)
        STOCK_ACCESS_HOOKS(TYPED)
        STOCK_VOID_HOOKS(NOTHING)
        STOCK_TEXT_HOOKS(TEXT)
    default: return 0;
    }
    return 1;
}

typedef void (*any)(void);

static any function_of(const mf_stock *m, unsigned k)
{
    const mf_stock_trampoline *own = &mf_stock_trampolines[m->number];

    switch (m->hooks[k].hook) {
#define NOTHING_OF(name, changes) case STOCK_HOOK_##name: return (any)own->void_hooks[k];
#define TEXT_OF(name, changes) case STOCK_HOOK_##name: return (any)own->text_hooks[k];
        STOCK_VOID_HOOKS(NOTHING_OF)
        STOCK_TEXT_HOOKS(TEXT_OF)
    default: return (any)own->hooks[k];
    }
}

static int is_fenced(any function)
{
    for (int i = 0; i < mf_stocks()->nelts; i++)
        for (unsigned k = 0; k < stock((unsigned)i)->hook_count; k++)
            if (function_of(stock((unsigned)i), k) == function)
                return 1;
    return 0;
}

/* Looks at the order in which the server calls hooks, which is settled by now. */
void mf_stock_order_hooks(void)
{
#define ORDER(name, of)                                                                                                                     \
    case STOCK_HOOK_##name:                                                                                                                 \
        for (int n = 1, count = ap_hook_get_##of() ? ap_hook_get_##of()->nelts : 0; n < count; n++)                                         \
            if ((any)APR_ARRAY_IDX(ap_hook_get_##of(), n, ap_LINK_##of##_t).pFunc == own)                                                   \
                hook->follows = is_fenced((any)APR_ARRAY_IDX(ap_hook_get_##of(), n - 1, ap_LINK_##of##_t).pFunc);                           \
        break;
#define ORDER_OF(name, changes) ORDER(name, name)
    for (int i = 0; i < mf_stocks()->nelts; i++)
        for (unsigned k = 0; k < stock((unsigned)i)->hook_count; k++) {
            mf_stock_hook *hook = &stock((unsigned)i)->hooks[k];
            any own = function_of(stock((unsigned)i), k);

            switch (hook->hook) {
                STOCK_REQUEST_HOOKS(ORDER_OF)
                STOCK_VOID_HOOKS(ORDER_OF)
                STOCK_TEXT_HOOKS(ORDER_OF)
                ORDER(check_access, access_checker)
                ORDER(check_access_ex, access_checker_ex)
                ORDER(check_authn, check_user_id)
                ORDER(check_authz, auth_checker)
            default: break;
            }
        }
}

/* ------------------------------------------------------------------------------------------------------------------- calls */

static int changes_of(stock_hook hook)
{
#define CHANGES(name, changes) [STOCK_HOOK_##name] = changes,
    static const int all[STOCK_HOOK_COUNT] = { STOCK_REQUEST_HOOKS(CHANGES) STOCK_ACCESS_HOOKS(CHANGES) STOCK_VOID_HOOKS(CHANGES)
                                               STOCK_TEXT_HOOKS(CHANGES) };

    return all[hook];
}

/* A request of which a module could not say that it had failed: nothing else answers it. */
void mf_stock_fail(request_rec *r)
{
    mf_stock_request_of(r)->failed = 1;
    for (; r->main; r = r->main)
        mf_stock_request_of(r->main)->failed = 1;
}

int mf_stock_failed(request_rec *r)
{
    mf_stock_request *q = ap_get_module_config(r->request_config, &fenced_module);

    return q && q->r == r && q->failed;
}

/* The call by a message, for a request that names others, and for hooks that get a text. */
static int enter(mf_stock_call *call, const mf_stock_hook *hook, const char *text, mf_stock_answer *answer, int *result)
{
    stock_pack message;

    if (!mf_stock_begin(call, &message))
        return 0;
    if (!mf_stock_pack_request(call, &message)) {
        stock_pack_end(&message);
        return 0;
    }
    stock_put(&message, hook->hook);
    stock_put(&message, hook->function);
    stock_put_text(&message, text);
    if (!mf_stock_enter(call, STOCK_REQUEST_HOOK, &message, answer))
        return 0;
    *result = (int)stock_get(&answer->u);
    return 1;
}

int mf_stock_run_hook(unsigned number, unsigned which, request_rec *r, const char *text)
{
    mf_stock *m = stock(number);
    const mf_stock_hook *hook = &m->hooks[which];
    mf_stock_call call = { .m = m, .r = r, .pool = r->pool, .changes = changes_of(hook->hook) };
    mf_stock_request *q = mf_stock_request_of(r);
    mf_stock_answer answer;
    int alone = !r->main && !r->prev && !r->next && !m->down && !text, watch = 0, result, good;

    /* Others have run since the last fenced hook; between two fenced ones only the server's loop has. */
    if (!hook->follows)
        q->stale = MF_STOCK_ALL;
    if (mf_stock_failed(r) && hook->hook != STOCK_HOOK_log_transaction)
        return HTTP_INTERNAL_SERVER_ERROR;
    if (alone && mf_stock_is_known(m, hook, r, &result)) {
        __atomic_fetch_add(&m->counters->spared, 1, __ATOMIC_RELAXED);
        return result;
    }
    watch = alone && mf_stock_watches(m, hook, r);
    if (!alone)
        good = enter(&call, hook, text, &answer, &result);
    else
        good = mf_stock_image_update_stale(q) && mf_stock_run(&call, hook, watch, &answer, &result);
    if (!good) {
        q->stale = MF_STOCK_ALL;
        if (rf_domain_state(m->domain) != RF_OK)
            ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "fenced %s: it has failed before, and is not back yet", m->name);
        else if (q->full)
            ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "fenced %s: there is no room for this request", m->name);
        mf_stock_fail(r);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (answer.u.left)
        good = mf_stock_unpack_request(&call, &answer.u, 1);
    if (good && watch)
        mf_stock_learn(m, hook, r, &answer.u, result);
    mf_stock_answer_end(&answer);
    if (!good || !(result == OK || result == DECLINED || result == DONE || (result >= 100 && result <= 599))) {
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, r, "fenced %s: %s", m->name,
                      mf_stock_hoards(&call) ? MF_STOCK_HOARDS : "its answer makes no sense");
        q->stale = MF_STOCK_ALL;
        mf_stock_fail(r);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    return result;
}

/* How a hook of the start has ended, if not by OK: the module does not run, or it has answered that the server shall not start. */
enum { STOPPED = -1000, REFUSED };

static int call_server_hook(mf_stock *m, const mf_stock_hook *hook, apr_pool_t *pool, server_rec *first)
{
    mf_stock_call call = { .m = m, .pool = pool, .server = first };
    mf_stock_answer answer;
    stock_pack message;
    apr_uint64_t count = 0;
    int result;

    if (!mf_stock_begin(&call, &message))
        return STOPPED;
    stock_put(&message, hook->hook);
    stock_put(&message, hook->function);
    stock_put(&message, (apr_uint64_t)ap_state_query(AP_SQ_MAIN_STATE));
    stock_put(&message, (apr_uint64_t)ap_extended_status);
    for (server_rec *s = first; s; s = s->next)
        count++;
    stock_put(&message, count);
    for (server_rec *s = first; s; s = s->next)
        mf_stock_pack_server(m, &message, s);
    if (!mf_stock_enter(&call, STOCK_SERVER_HOOK, &message, &answer))
        return STOPPED;
    result = (int)stock_get(&answer.u);
    /* mod_status sets it before the configuration is read. */
    if (stock_get(&answer.u) && hook->hook == STOCK_HOOK_pre_config)
        ap_extended_status = 1;
    mf_stock_answer_end(&answer);
    return result == OK || result == DECLINED ? OK : REFUSED;
}

/* A server that does not start says why. */
static int run_server_hook(mf_stock *m, const mf_stock_hook *hook, apr_pool_t *pool, server_rec *first)
{
    int result = call_server_hook(m, hook, pool, first);

    if (result == OK)
        return OK;
    ap_log_error(APLOG_MARK, APLOG_ERR, 0, first, "fenced %s: a hook of the server's start has failed: %s", m->name,
                 result == REFUSED ? "that is the module's own answer" : "the module does not run");
    return HTTP_INTERNAL_SERVER_ERROR;
}

/* Of each module, in the order in which they were loaded. Each is told of the servers then, hook or none. */
int mf_stock_run_server_hooks(stock_hook hook, apr_pool_t *pool, server_rec *s)
{
    const apr_array_header_t *all = mf_stocks();
    int result = OK;

    for (int i = 0; all && i < all->nelts && result == OK; i++) {
        mf_stock *m = APR_ARRAY_IDX(all, i, mf_stock *);
        mf_stock_hook none = { hook, 0, 0, 0, NULL };

        if (hook == STOCK_HOOK_post_config)
            result = run_server_hook(m, &none, pool, s);
        for (unsigned k = 0; k < m->server_hook_count && result == OK; k++)
            if (m->server_hooks[k].hook == hook)
                result = run_server_hook(m, &m->server_hooks[k], pool, s);
    }
    return result;
}
