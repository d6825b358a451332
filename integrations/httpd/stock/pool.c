/* Pools: APR's own, whose source this file includes, to know of each use of a pool, and to look into one. */
#include "apr.h"

#define apr_palloc own_palloc
#define apr_pvsprintf own_pvsprintf
#define apr_pool_create_ex own_pool_create_ex
#define apr_pool_destroy own_pool_destroy
#define apr_pool_cleanup_register own_pool_cleanup_register
#define apr_pool_pre_cleanup_register own_pool_pre_cleanup_register
#include "memory/unix/apr_pools.c"
#undef apr_palloc
#undef apr_pvsprintf
#undef apr_pool_create_ex
#undef apr_pool_destroy
#undef apr_pool_cleanup_register
#undef apr_pool_pre_cleanup_register

#include "inside.h"

const char stock_request_tag[] = "request";

/* (apr_pcalloc is apr_palloc by a macro.) Calls that use no pool leave those of their requests as they are: nothing is there to be cleared, or to be asked for. */
static inline void use(const apr_pool_t *p)
{
    entry *e = stock_entry;

    if (!e)
        return;
    e->allocates = 1;
    if (!e->t || stock_remembers || p == e->t->pool)
        return;
    while (p && p->parent)
        p = p->parent;
    if (!p || p->tag != stock_request_tag)
        stock_remembers = 1;
}

void *apr_palloc(apr_pool_t *p, apr_size_t size)
{
    use(p);
    return own_palloc(p, size);
}

char *apr_pvsprintf(apr_pool_t *p, const char *format, va_list list)
{
    use(p);
    return own_pvsprintf(p, format, list);
}

apr_status_t apr_pool_create_ex(apr_pool_t **p, apr_pool_t *parent, apr_abortfunc_t failed, apr_allocator_t *allocator)
{
    use(parent);
    return own_pool_create_ex(p, parent, failed, allocator);
}

void apr_pool_cleanup_register(apr_pool_t *p, const void *data, apr_status_t (*plain)(void *), apr_status_t (*child)(void *))
{
    use(p);
    own_pool_cleanup_register(p, data, plain, child);
}

void apr_pool_pre_cleanup_register(apr_pool_t *p, const void *data, apr_status_t (*plain)(void *))
{
    use(p);
    own_pool_pre_cleanup_register(p, data, plain);
}

void apr_pool_destroy(apr_pool_t *p)
{
    if (stock_entry && p == stock_entry->pool)
        abort(); /* it is not the module's to end */
    own_pool_destroy(p);
}

/* Whether that lies in the pool, or in one of its own. */
int stock_pool_has(const apr_pool_t *pool, const void *at)
{
    const apr_memnode_t *n = pool->active;

    do {
        if ((const char *)at >= (const char *)n && (const char *)at < n->endp)
            return 1;
    } while ((n = n->next) != pool->active);
    for (const apr_pool_t *p = pool->child; p; p = p->sibling)
        if (stock_pool_has(p, at))
            return 1;
    return 0;
}

/* Whether its end does anything but free a little memory: somebody waits for it, or it has several nodes. */
int stock_pool_matters(const apr_pool_t *pool)
{
    return pool->cleanups || pool->pre_cleanups || pool->child || pool->subprocesses || pool->active->next != pool->active;
}
