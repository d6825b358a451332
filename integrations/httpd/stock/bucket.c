/* Brigades: APR's own source, whose buckets live in the domain. The server's buckets are of a type of their own here: numbers for them, whose
 * bytes are fetched when they are read. What is passed on unread is never copied. */
#include "inside.h"

#include <pthread.h>

#include "apr_buckets.h"

enum { PIECE = 65536 /* bytes that are fetched at once */ };

/* ------------------------------------------------------------------------------------------------------------------ memory */

/* Of buckets: the domain's. They are freed one by one, or with their brigades. */
struct apr_bucket_alloc_t {
    int unused;
};
apr_bucket_alloc_t stock_bucket_alloc;

apr_bucket_alloc_t *apr_bucket_alloc_create(apr_pool_t *pool)
{
    return &stock_bucket_alloc;
}

void apr_bucket_alloc_destroy(apr_bucket_alloc_t *list)
{
}

/* Small ones lie together: whoever changes one changes nothing that outlives its request. */
enum { CELL = 128, CELLS = 1024 };

static union cell {
    union cell *next;
    _Alignas(16) char bytes[CELL];
} cells[CELLS], *free_cells;
static unsigned used_cells;
static pthread_mutex_t cell_lock = PTHREAD_MUTEX_INITIALIZER;

int stock_is_bucket(const void *at)
{
    return (size_t)((const char *)at - (const char *)cells) < sizeof cells;
}

static void *take_cell(void)
{
    union cell *one;

    pthread_mutex_lock(&cell_lock);
    one = free_cells;
    if (one)
        free_cells = one->next;
    else if (used_cells < CELLS)
        one = &cells[used_cells++];
    pthread_mutex_unlock(&cell_lock);
    return one;
}

void *apr_bucket_alloc(apr_size_t size, apr_bucket_alloc_t *list)
{
    void *memory = size <= CELL ? take_cell() : NULL;

    if (!memory)
        memory = malloc(size);

    if (!memory)
        abort();
    return memory;
}

void apr_bucket_free(void *memory)
{
    union cell *one = memory;

    if (!stock_is_bucket(memory)) {
        free(memory);
        return;
    }
    pthread_mutex_lock(&cell_lock);
    one->next = free_cells;
    free_cells = one;
    pthread_mutex_unlock(&cell_lock);
}

/* ------------------------------------------------------------------------------------------------------- the server's buckets */

static apr_status_t server_read(apr_bucket *b, const char **bytes, apr_size_t *length, apr_read_type_e block);

static apr_status_t server_split(apr_bucket *b, apr_size_t point)
{
    return b->length == (apr_size_t)-1 ? APR_ENOTIMPL : apr_bucket_simple_split(b, point);
}

/* It outlives the call that it was given for only if it is here. */
static apr_status_t server_setaside(apr_bucket *b, apr_pool_t *pool)
{
    const char *bytes;
    apr_size_t length;

    return server_read(b, &bytes, &length, APR_BLOCK_READ);
}

/* What has no end yet is read once: the server keeps nothing of it. */
static apr_status_t server_copy(apr_bucket *b, apr_bucket **to)
{
    return b->length == (apr_size_t)-1 ? APR_ENOTIMPL : apr_bucket_simple_copy(b, to);
}

static const apr_bucket_type_t server_data = {
    "SERVER", 5, APR_BUCKET_DATA, apr_bucket_destroy_noop, server_read, server_setaside, server_split, server_copy
};
/* What neither says something that modules look for nor has bytes. */
static const apr_bucket_type_t server_sign = { "SIGN",
                                               5,
                                               APR_BUCKET_METADATA,
                                               apr_bucket_destroy_noop,
                                               server_read,
                                               apr_bucket_setaside_noop,
                                               apr_bucket_split_notimpl,
                                               apr_bucket_copy_notimpl };

static apr_bucket *make(const apr_bucket_type_t *type, uint64_t number, apr_off_t start, apr_size_t length)
{
    apr_bucket *b = apr_bucket_alloc(sizeof *b, &stock_bucket_alloc);

    APR_BUCKET_INIT(b);
    b->free = apr_bucket_free;
    b->list = &stock_bucket_alloc;
    b->type = type;
    b->data = (void *)(uintptr_t)number;
    b->start = start;
    b->length = length;
    return b;
}

/* The bucket becomes what was read of it, and the rest follows it. */
static apr_status_t server_read(apr_bucket *b, const char **bytes, apr_size_t *length, apr_read_type_e block)
{
    uint64_t number = (uintptr_t)b->data, rest, start = (uint64_t)b->start;
    apr_size_t wanted = b->length, total, after, size;
    const char *got;
    apr_bucket *next;
    apr_status_t status;
    question q;

    *bytes = "";
    *length = 0;
    if (b->type == &server_sign)
        return APR_SUCCESS;
    stock_ask_begin(&q, STOCK_ASK_READ_BUCKET);
    stock_put(&q.out, number);
    stock_put(&q.out, start);
    stock_put(&q.out, wanted < PIECE ? wanted : PIECE);
    stock_put(&q.out, block == APR_NONBLOCK_READ);
    stock_ask_send(&q, STOCK_ASK_READ_BUCKET);
    status = (apr_status_t)stock_get(&q.in);
    total = stock_get(&q.in);
    rest = stock_get(&q.in);
    after = stock_get(&q.in);
    got = stock_get_bytes(&q.in, &size);
    if (status == APR_SUCCESS) {
        apr_bucket *tail = b;

        /* In the order in which they stand: what was read, what is left of it, what came to light behind it. */
        if (size < wanted && start + size < total) {
            apr_size_t left = total - start - size;

            next = make(&server_data, number, (apr_off_t)(start + size), left < wanted - size ? left : wanted - size);
            APR_BUCKET_INSERT_AFTER(tail, next);
            tail = next;
        }
        if (rest && (wanted == (apr_size_t)-1 || start + wanted > total)) {
            next = make(&server_data, rest, 0, wanted == (apr_size_t)-1 ? after : start + wanted - total);
            APR_BUCKET_INSERT_AFTER(tail, next);
        }
        if (!apr_bucket_heap_make(b, got ? got : "", size, NULL))
            abort();
    }
    stock_ask_end(&q, STOCK_ASK_READ_BUCKET);
    return status == APR_SUCCESS ? apr_bucket_read(b, bytes, length, block) : status;
}

/* ---------------------------------------------------------------------------------------------------------------- messages */

/* Appends what the server describes. */
void stock_take_brigade(stock_unpack *u, apr_bucket_brigade *to)
{
    uint64_t first = stock_get(u), count = stock_get(u);

    for (uint64_t i = 0; i < count && !u->bad; i++) {
        uint64_t kind = stock_get(u), length = stock_get(u);
        apr_bucket *b = kind == STOCK_BUCKET_EOS   ? apr_bucket_eos_create(&stock_bucket_alloc)
                        : kind == STOCK_BUCKET_FLUSH ? apr_bucket_flush_create(&stock_bucket_alloc)
                                                     : make(kind == STOCK_BUCKET_SIGN ? &server_sign : &server_data, first + i, 0, length);

        APR_BRIGADE_INSERT_TAIL(to, b);
    }
}

/* Whether the brigade is what was given, as it was given. */
int stock_is_whole(const apr_bucket_brigade *brigade, uint64_t first, uint64_t count, const uint64_t *lengths)
{
    const apr_bucket *b = APR_BRIGADE_FIRST(brigade);

    for (uint64_t i = 0; i < count; i++, b = APR_BUCKET_NEXT(b)) {
        if (b == APR_BRIGADE_SENTINEL(brigade))
            return 0;
        if (APR_BUCKET_IS_EOS(b) ? lengths[i] != (uint64_t)-2
            : APR_BUCKET_IS_FLUSH(b) ? lengths[i] != (uint64_t)-3
                                     : ((b->type != &server_data && b->type != &server_sign) || (uintptr_t)b->data != first + i || b->start ||
                                        b->length != lengths[i]))
            return 0;
    }
    return b == APR_BRIGADE_SENTINEL(brigade);
}

/* Writes the first buckets of a brigade, as many as fit into a message, and frees them. */
apr_status_t stock_put_brigade(stock_pack *p, apr_bucket_brigade *brigade)
{
    apr_status_t status = APR_SUCCESS;

    while (!APR_BRIGADE_EMPTY(brigade) && p->length < STOCK_LARGEST / 2 && status == APR_SUCCESS) {
        apr_bucket *b = APR_BRIGADE_FIRST(brigade);
        const char *bytes;
        apr_size_t length;

        if (b->type == &server_data || b->type == &server_sign) {
            stock_put(p, b->type == &server_data ? STOCK_BUCKET_DATA : STOCK_BUCKET_SIGN);
            stock_put(p, (uintptr_t)b->data);
            stock_put(p, (uint64_t)b->start);
            stock_put(p, b->length);
        } else if (APR_BUCKET_IS_EOS(b)) {
            stock_put(p, STOCK_BUCKET_EOS);
        } else if (APR_BUCKET_IS_FLUSH(b)) {
            stock_put(p, STOCK_BUCKET_FLUSH);
        } else if (!APR_BUCKET_IS_METADATA(b)) {
            status = apr_bucket_read(b, &bytes, &length, APR_BLOCK_READ);
            if (status == APR_SUCCESS && length > STOCK_LARGEST / 4) {
                apr_bucket_split(b, STOCK_LARGEST / 4);
                length = STOCK_LARGEST / 4;
            }
            if (status == APR_SUCCESS && length) {
                stock_put(p, STOCK_BUCKET_BYTES);
                stock_put_bytes(p, bytes, length);
            }
        }
        if (status == APR_SUCCESS)
            apr_bucket_delete(b);
    }
    stock_put(p, STOCK_BUCKETS_END);
    return status;
}
