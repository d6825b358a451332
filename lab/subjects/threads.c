/* Four parts of the request's input, compressed by the threads of zstd's pool and expanded again. */
#include "lab.h"

#include <pool.h>
#include <string.h>
#include <zlib.h>

enum { PARTS = 4, THREADS = 2, QUEUE = 1, PIECE = 4096, PLACE = 16384 };

struct part {
    const unsigned char *from;
    unsigned char *to;
    long used;
};

static void pack(void *context)
{
    struct part *p = context;
    uLongf packed = PLACE / 2, whole = PLACE / 2;

    if (compress2(p->to, &packed, p->from, PIECE, 6) == Z_OK && uncompress(p->to + packed, &whole, p->to, packed) == Z_OK)
        p->used = (long)(packed + whole);
}

long lab_work(unsigned request, const unsigned char *in, long size, unsigned char *out, long room)
{
    struct part parts[PARTS];
    long used = 0;
    POOL_ctx *pool;

    if (size < 8 * 97 + PARTS * PIECE || room < PARTS * PLACE || !(pool = POOL_create(THREADS, QUEUE)))
        return -1;
    for (int i = 0; i < PARTS; i++) {
        parts[i] = (struct part){.from = in + request % 8 * 97 + i * PIECE, .to = out + i * PLACE, .used = -1};
        POOL_add(pool, pack, &parts[i]);
    }
    POOL_joinJobs(pool);
    for (int i = 0; i < PARTS; i++) {
        if (parts[i].used < 0) {
            used = -2;
            break;
        }
        memmove(out + used, parts[i].to, (size_t)parts[i].used);
        used += parts[i].used;
    }
    POOL_free(pool);
    return used;
}
