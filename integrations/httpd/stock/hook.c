/* Hooks: how the module registers them, and how they are called. */
#include "inside.h"

#include "ap_mpm.h"
#include "http_connection.h"
#include "mpm_common.h"
#include "scoreboard.h"

static void put_names(stock_pack *p, const char *const *names)
{
    uint64_t count = 0;

    while (names && names[count])
        count++;
    stock_put(p, count);
    for (uint64_t i = 0; i < count; i++)
        stock_put_text(p, names[i]);
}

static void add(stock_hook hook, uintptr_t function, const char *const *pre, const char *const *succ, int order, int type)
{
    question q;

    stock_ask_begin(&q, STOCK_ASK_HOOK);
    stock_put(&q.out, hook);
    stock_put(&q.out, function);
    stock_put(&q.out, (uint64_t)order);
    stock_put(&q.out, (uint64_t)type);
    put_names(&q.out, pre);
    put_names(&q.out, succ);
    stock_ask_send(&q, STOCK_ASK_HOOK);
    stock_ask_end(&q, STOCK_ASK_HOOK);
}

/* The types of the functions are those of the server's headers. */
#define PLAIN(name, changes)                                                                                                                \
    void ap_hook_##name(ap_HOOK_##name##_t *f, const char *const *pre, const char *const *succ, int order)                                  \
    {                                                                                                                                       \
        add(STOCK_HOOK_##name, (uintptr_t)f, pre, succ, order, 0);                                                                          \
    }
#define TYPED(name, of)                                                                                                                     \
    void ap_hook_##name(ap_HOOK_##of##_t *f, const char *const *pre, const char *const *succ, int order, int type)                          \
    {                                                                                                                                       \
        add(STOCK_HOOK_##name, (uintptr_t)f, pre, succ, order, type);                                                                       \
    }
STOCK_REQUEST_HOOKS(PLAIN)
STOCK_VOID_HOOKS(PLAIN)
STOCK_TEXT_HOOKS(PLAIN)
STOCK_SERVER_HOOKS(PLAIN)
TYPED(check_access, access_checker)
TYPED(check_access_ex, access_checker_ex)
TYPED(check_authn, check_user_id)
TYPED(check_authz, auth_checker)

OFTEN int stock_call_hook(stock_hook hook, uintptr_t function, request_rec *r)
{
    if (hook == STOCK_HOOK_insert_filter || hook == STOCK_HOOK_insert_error_filter) {
        ((void (*)(request_rec *))function)(r);
        return OK;
    }
    return ((int (*)(request_rec *))function)(r);
}

void stock_request_hook(stock_unpack *u, stock_pack *p)
{
    twin *t = stock_take_requests(u);
    stock_hook hook = (stock_hook)stock_get(u);
    uintptr_t function = stock_get(u);
    int result;

    if (!t)
        abort();
    stock_entry->t = t;
    stock_entry->pool = t->pool;
    if (hook == STOCK_HOOK_note_auth_failure)
        result = ((ap_HOOK_note_auth_failure_t *)function)(&t->r, apr_pstrdup(t->pool, stock_get_text(u)));
    else
        result = stock_call_hook(hook, function, &t->r);
    stock_put(p, (uint64_t)(int64_t)result);
    stock_tell_changes(p);
}

static int call(stock_hook hook, uintptr_t function, apr_pool_t *pool, server_rec *s)
{
    switch (hook) {
    case STOCK_HOOK_pre_config: return ((ap_HOOK_pre_config_t *)function)(pool, pool, pool);
    case STOCK_HOOK_check_config: return ((ap_HOOK_check_config_t *)function)(pool, pool, pool, s);
    case STOCK_HOOK_open_logs: return ((ap_HOOK_open_logs_t *)function)(pool, pool, pool, s);
    case STOCK_HOOK_post_config: return ((ap_HOOK_post_config_t *)function)(pool, pool, pool, s);
    case STOCK_HOOK_child_init: ((ap_HOOK_child_init_t *)function)(pool, s); return OK;
    case STOCK_HOOK_optional_fn_retrieve: ((ap_HOOK_optional_fn_retrieve_t *)function)(); return OK;
    default: abort();
    }
}

static int main_state;

int ap_state_query(int query)
{
    return query == AP_SQ_MAIN_STATE ? main_state : 0;
}

void stock_server_hook(stock_unpack *u, stock_pack *p, apr_pool_t *pool)
{
    stock_hook hook = (stock_hook)stock_get(u);
    uintptr_t function = stock_get(u);
    server_rec *first = NULL, *last = NULL;
    uint64_t count;

    main_state = (int)stock_get(u);
    ap_extended_status = (int)stock_get(u);
    for (count = stock_get(u); count && !u->bad; count--) {
        server_rec *s = stock_take_server(u);

        if (last)
            last->next = s;
        else
            first = s;
        last = s;
    }
    if (last)
        last->next = NULL;
    stock_put(p, (uint64_t)(int64_t)(function ? call(hook, function, pool, first) : OK));
    stock_put(p, (uint64_t)ap_extended_status);
}
