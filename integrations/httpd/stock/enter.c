/* Where the server comes in. */
#include "inside.h"

#include "apr_general.h"

#include <ringfence/module.h>

module *stock_module;
apr_pool_t *stock_pool;
__thread entry *stock_entry;

/* What this thread has answered last: the server reads it before it calls again. */
static __thread stock_pack *answer;

static void start(void)
{
    if (stock_pool)
        return;
    if (apr_pool_initialize() != APR_SUCCESS || apr_pool_create_unmanaged_ex(&stock_pool, NULL, NULL) != APR_SUCCESS)
        abort();
}

static apr_pool_t *make_pool(void)
{
    apr_pool_t *pool;

    if (apr_pool_create_unmanaged_ex(&pool, NULL, NULL) != APR_SUCCESS)
        abort();
    return pool;
}

/* Ends a call, whose answer is its length, and then its bytes. */
static uint64_t leave(entry *e, stock_pack *p)
{
    uint64_t length = p->length - 8;

    if (p->failed)
        abort();
    if (!answer && !(answer = calloc(1, sizeof *answer)))
        abort();
    memcpy(p->bytes, &length, 8);
    /* What the server wants to know with each answer: the pool that it is for, or how the request stands. */
    length = e->t ? stock_flags(e) : (uint64_t)(uintptr_t)e->pool;
    memcpy(p->bytes + 8, &length, 8);
    stock_entry = e->up;
    stock_pack_end(answer);
    if (p->bytes == p->first)
        memcpy(answer->first, p->first, p->length);
    else
        answer->bytes = p->bytes;
    return (uint64_t)(uintptr_t)answer->bytes;
}

/* The rest of a call that has something to say. */
static uint64_t tell(entry *e, int result)
{
    /* Before that is taken for told. */
    int same = !e->further && !e->allocates && !stock_remembers && !stock_has_changed(e->t);
    stock_pack p;

    stock_pack_begin(&p);
    stock_put(&p, 0);
    stock_put(&p, 0);
    stock_put(&p, (uint64_t)(int64_t)result);
    stock_tell_changes(&p);
    if (e->observed) {
        stock_put(&p, (uint64_t)same);
        for (int i = 0; i < STOCK_LOOKED; i++)
            stock_put(&p, e->looked[i]);
    }
    return leave(e, &p);
}

OFTEN RF_EXPORT uint64_t stock_run(uint64_t hook, uintptr_t function, uint64_t slot, void *record, int level)
{
    entry e = { .up = stock_entry, .observed = level & STOCK_WATCHED };
    int result;

    e.t = stock_take_request(slot, record, level & (STOCK_WATCHED - 1));
    e.pool = e.t->pool;
    stock_entry = &e;
    if (e.observed)
        stock_watch(1);
    result = stock_call_hook((stock_hook)hook, function, &e.t->r);
    if (e.observed)
        stock_watch(-1);
    if (e.observed || stock_has_changed(e.t) || result != (int16_t)result)
        return tell(&e, result);
    stock_entry = e.up;
    return (uint16_t)result | stock_flags(&e);
}

RF_EXPORT uint64_t stock_enter(int kind, const void *message, uint64_t length)
{
    stock_unpack u = { message, length, 0 };
    entry e = { .up = stock_entry };
    stock_pack p; /* this thread may be called again meanwhile */
    uint64_t known = stock_get(&u), wanted = stock_get(&u);

    start();
    if (kind == STOCK_END_POOL)
        apr_pool_destroy((apr_pool_t *)(uintptr_t)stock_get(&u));
    e.pool = known ? (apr_pool_t *)(uintptr_t)known : wanted ? make_pool() : stock_pool;
    stock_entry = &e;
    stock_pack_begin(&p);
    stock_put(&p, 0);
    stock_put(&p, 0);
    switch (kind) {
    case STOCK_END_POOL: break;
    case STOCK_IMAGES: stock_images = (const char *)(uintptr_t)stock_get(&u); break;
    case STOCK_END_REQUEST: stock_end_request(stock_get(&u)); break;
    case STOCK_OPEN:
        stock_module = (module *)(uintptr_t)stock_get(&u);
        stock_describe(stock_module, &p);
        break;
    case STOCK_HOOKS:
        if (stock_module->register_hooks)
            stock_module->register_hooks(e.pool);
        break;
    case STOCK_CONFIG: stock_configure(&u, &p, e.pool); break;
    case STOCK_COMMAND: stock_command(&u, &p, e.pool); break;
    case STOCK_SERVER_HOOK: stock_server_hook(&u, &p, e.pool); break;
    case STOCK_REQUEST_HOOK: stock_request_hook(&u, &p); break;
    case STOCK_PROVIDER: stock_provider(&u, &p, e.pool); break;
    case STOCK_FILTER: stock_filter(&u, &p); break;
    case STOCK_INPUT_FILTER: stock_input_filter(&u, &p); break;
    case STOCK_FILTER_BEGIN: stock_filter_begin(&u, &p); break;
    default: abort();
    }
    if (u.bad)
        abort();
    return leave(&e, &p);
}
