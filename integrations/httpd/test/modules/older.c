/* A stock module that a library of another day was linked to: it describes itself, but has no word for what its messages and images mean. */
#include "httpd.h"
#include "http_config.h"

#include "stock_image.h"

#include <ringfence/module.h>

/* The module's own structure is nobody's but its own. */
RF_EXPORT uint64_t older_module[64];

RF_EXPORT uint64_t stock_run(uint64_t hook, uintptr_t function, uint64_t slot, void *record, int level)
{
    return 0;
}

RF_EXPORT uint64_t stock_enter(int kind, const void *message, uint64_t length)
{
    static stock_pack p;

    stock_pack_begin(&p);
    stock_put(&p, 0); /* the length, below */
    stock_put(&p, 0);
    if (kind == STOCK_OPEN) {
        stock_put(&p, MODULE_MAGIC_NUMBER_MAJOR);
        stock_put(&p, MODULE_MAGIC_NUMBER_MINOR);
        stock_put(&p, MODULE_MAGIC_COOKIE);
        stock_put(&p, 0);
        stock_put_text(&p, "mod_older.c");
        for (int i = 0; i < STOCK_CONFIGS; i++)
            stock_put(&p, 0);
        stock_put(&p, 0); /* directives */
    }
    length = p.length - 8;
    memcpy(p.bytes, &length, 8);
    return (uint64_t)(uintptr_t)p.bytes;
}
