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

/* The answer: its length, then its bytes. */
RF_EXPORT uint64_t stock_enter(int kind, const void *message, uint64_t length)
{
    stock_unpack u = { message, length, 0 };
    entry e = { .up = stock_entry };
    uint64_t known = stock_get(&u), wanted = stock_get(&u);

    start();
    if (!answer && !(answer = calloc(1, sizeof *answer)))
        abort();
    if (kind == STOCK_END_POOL) {
        apr_pool_destroy((apr_pool_t *)(uintptr_t)stock_get(&u));
        stock_pack_begin(answer);
        stock_put(answer, 8);
        stock_put(answer, 0);
        return (uint64_t)(uintptr_t)answer->bytes;
    }
    {
        stock_pack p; /* this thread may be called again meanwhile */

        e.pool = known ? (apr_pool_t *)(uintptr_t)known : wanted ? make_pool() : stock_pool;
        stock_entry = &e;
        stock_pack_begin(&p);
        stock_put(&p, 0);
        stock_put(&p, (uint64_t)(uintptr_t)e.pool);
        switch (kind) {
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
        case STOCK_REQUEST_HOOK: stock_request_hook(&u, &p, e.pool); break;
        case STOCK_PROVIDER: stock_provider(&u, &p, e.pool); break;
        case STOCK_FILTER: stock_filter(&u, &p, e.pool); break;
        default: abort();
        }
        if (u.bad || p.failed)
            abort();
        stock_entry = e.up;
        stock_pack_end(answer);
        *answer = p;
        if (p.bytes == p.first)
            answer->bytes = answer->first;
    }
    length = answer->length - 8;
    memcpy(answer->bytes, &length, 8);
    return (uint64_t)(uintptr_t)answer->bytes;
}
