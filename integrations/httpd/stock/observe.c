/* What hooks look at. Modules, and the functions here that look at requests for them, are compiled so that their loads and stores tell of
 * themselves first (gcc's -fsanitize=thread, with these functions in place of its library). From it the server learns which hooks decline
 * whatever the request is, and spares itself these calls (host/stock_skip.c). */
#include "inside.h"

#include <errno.h>

/* Something of this module outlives a request and has been changed by one: the next hook may see it. */
int stock_remembers;

enum { STACK = 1 << 20 };

/* How many calls are watched now: most of the time none, and loads cost a look at this (watched.awk). */
int stock_watched;

void stock_watch(int change)
{
    __atomic_fetch_add(&stock_watched, change, __ATOMIC_RELAXED);
}

/* More than fields of the request: its tables, its connection, what the module has for it, files, the time, a question. */
void stock_looks_further(void)
{
    if (stock_entry)
        stock_entry->further = 1;
}

static void looks(const void *at, size_t size)
{
    entry *e;
    size_t from;

    if (!__atomic_load_n(&stock_watched, __ATOMIC_RELAXED))
        return;
    e = stock_entry;
    if (!e || !e->observed || e->further || !stock_in_twins(at))
        return;
    from = (size_t)((const char *)at - (const char *)&e->t->r);
    if (from < sizeof e->t->r) {
        for (size_t i = from / 4; i <= (from + size - 1) / 4; i++)
            e->looked[i / 64] |= (uint64_t)1 << i % 64;
        return;
    }
    /* The directory's record and the level are the server's to compare; these texts are those that fields point to. */
    from = (size_t)((const char *)at - (const char *)e->t);
    if (from - offsetof(twin, dir_config) < sizeof e->t->dir_config || from - offsetof(twin, log) < sizeof e->t->log ||
        (from >= offsetof(twin, first) && from < sizeof *e->t))
        return;
    e->further = 1;
}

/* Whether that goes with the requests of the call. */
static int passes(const entry *e, const void *at)
{
    if (stock_pool_has(e->t->pool, at) || stock_is_bucket(at))
        return 1;
    for (int i = 0; i < e->seen_count; i++)
        if (stock_pool_has(e->seen[i]->pool, at))
            return 1;
    return 0;
}

static void changes(const void *at)
{
    char here;
    entry *e;

    /* The stack grows down: what is above is of those that called. */
    if ((uintptr_t)at - (uintptr_t)&here < STACK)
        return;
    e = stock_entry;
    if (!e || !e->t || stock_remembers)
        return;
    if (stock_in_twins(at)) {
        if ((size_t)((const char *)at - (const char *)&e->t->r) >= sizeof e->t->r)
            e->further = 1;
        return;
    }
    if (!passes(e, at)) {
        if (at == (const void *)&errno)
            return;
        stock_remembers = 1;
    }
    e->further = 1;
}

#define TELLS(size)                                                                                                                         \
    void __tsan_read##size(const void *at)                                                                                                  \
    {                                                                                                                                       \
        looks(at, size);                                                                                                                    \
    }                                                                                                                                       \
    void __tsan_write##size(const void *at)                                                                                                 \
    {                                                                                                                                       \
        changes(at);                                                                                                                        \
    }                                                                                                                                       \
    void __tsan_unaligned_read##size(const void *at)                                                                                        \
    {                                                                                                                                       \
        looks(at, size);                                                                                                                    \
    }                                                                                                                                       \
    void __tsan_unaligned_write##size(const void *at)                                                                                       \
    {                                                                                                                                       \
        changes(at);                                                                                                                        \
    }                                                                                                                                       \
    void __tsan_volatile_read##size(const void *at)                                                                                         \
    {                                                                                                                                       \
        looks(at, size);                                                                                                                    \
    }                                                                                                                                       \
    void __tsan_volatile_write##size(const void *at)                                                                                        \
    {                                                                                                                                       \
        changes(at);                                                                                                                        \
    }
TELLS(1)
TELLS(2)
TELLS(4)
TELLS(8)
TELLS(16)

void __tsan_read_range(const void *at, size_t size)
{
    if (size)
        looks(at, size);
}

void __tsan_write_range(const void *at, size_t size)
{
    if (size)
        changes(at);
}

void __tsan_init(void)
{
}

/* System calls of the domain's libc (ld's --wrap): files, the time, random numbers. */
extern long __real___rf_syscall5(long a, long b, long c, long d, long e, long number);
extern long __real___rf_syscall6(long a, long b, long c, long d, long e, long f, long number);

long __wrap___rf_syscall5(long a, long b, long c, long d, long e, long number)
{
    stock_looks_further();
    return __real___rf_syscall5(a, b, c, d, e, number);
}

long __wrap___rf_syscall6(long a, long b, long c, long d, long e, long f, long number)
{
    stock_looks_further();
    return __real___rf_syscall6(a, b, c, d, e, f, number);
}
