/* The allocator, in musl's place: fast on the path that counts, and without atomic operations on it.
 *
 * Memory comes in units of 64 KiB. A unit holds blocks of one size class, or is part of a run of units for one
 * large block; a table beside the heap tells which, so blocks have no headers. Every lane has a cache of free blocks by
 * class; what is too many goes back to the blocks' units, under a lock, and comes from there again unit by unit, in order of
 * address: what a program allocates together lies together, in whatever order it has freed before. Freed runs merge with their
 * neighbours and are used again; nothing is given back to the runtime. */
#include "atomic.h"
#include "libc.h"
#include "lock.h"
#include "syscall.h"
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define UNIT 65536u
#define UNITS 32768u /* 2 GiB: isa::window::HEAP to HEAP_END */
#define HEAP_START 0x40000000u
#define SMALL_MAX 32768u
#define CLASSES 40
#define GROW_MIN 16u   /* units taken from the runtime at once: 1 MiB, ... */
#define GROW_MAX 512u  /* ... growing to 32 MiB */
#define CACHE_BYTES 65536u
#define BINS 32u

typedef struct block {
	struct block *next;
} block;

/* What a unit is. For the runs, the entries of the first unit and (if free) the last one are valid. */
enum { FOREIGN = 0, SMALL, LARGE, FREE, FREE_END };
typedef struct {
	uint8_t kind, class;
	uint16_t length;     /* LARGE, FREE, FREE_END: units; SMALL: free blocks that no cache has */
	uint16_t prev, next; /* FREE: in its bin, as unit numbers; 0 ends the list. SMALL with such blocks: the first
	                        one's offset by 16, and the next unit of its class that has some */
} unit;

typedef struct {
	block *list[CLASSES];
	char *bump[CLASSES], *end[CLASSES]; /* never used yet, still zero if the unit was */
	uint16_t count[CLASSES];
} cache;

/* Entry 0 ends lists: the unit at HEAP_START itself is not used. */
static unit units[UNITS];
static uint16_t bins[BINS];
static uint16_t partial[CLASSES]; /* SMALL units with free blocks that no cache has */
static unsigned grow = GROW_MIN;
static volatile int lock[1];

static cache only;
static __thread cache own;

static inline cache *my_cache(void) { return libc.need_locks ? &own : &only; }

/* 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, ... 32768 */
static inline unsigned class_of(size_t n)
{
	if (n <= 64)
		return (unsigned)((n + !n - 1) / 16);
	unsigned log = 63 - (unsigned)__builtin_clzl(n - 1);
	return (log - 6) * 4 + 4 + (unsigned)((n - 1) >> (log - 2) & 3);
}

static inline size_t class_size(unsigned class)
{
	if (class < 4)
		return (class + 1) * 16;
	return (size_t)(5 + class % 4) << (class / 4 + 3);
}

static inline unsigned unit_of(const void *p) { return ((uint32_t)(uintptr_t)p - HEAP_START) / UNIT; }

static char *window(void) { return *(char *const *)0x10000; } /* isa::window::HEADER_BASE */
static inline char *address(unsigned u) { return window() + HEAP_START + (size_t)u * UNIT; }

/* --- runs; the lock is held ---------------------------------------------------------------------------------- */

static unsigned bin_of(unsigned length)
{
	if (length < 16)
		return length;
	unsigned log = 31 - (unsigned)__builtin_clz(length);
	return 12 + log < BINS ? 12 + log : BINS - 1;
}

static void insert(unsigned u, unsigned length)
{
	unsigned b = bin_of(length);
	units[u] = (unit){.kind = FREE, .length = (uint16_t)length, .next = bins[b]};
	if (length > 1)
		units[u + length - 1] = (unit){.kind = FREE_END, .length = (uint16_t)length};
	if (bins[b])
		units[bins[b]].prev = (uint16_t)u;
	bins[b] = (uint16_t)u;
}

static void withdraw(unsigned u)
{
	unit *e = &units[u];
	if (e->prev)
		units[e->prev].next = e->next;
	else
		bins[bin_of(e->length)] = e->next;
	if (e->next)
		units[e->next].prev = e->prev;
}

static void release(unsigned u, unsigned length)
{
	if (u + length < UNITS && units[u + length].kind == FREE) {
		unsigned more = units[u + length].length;
		withdraw(u + length);
		length += more;
	}
	if (u > 1 && (units[u - 1].kind == FREE_END || (units[u - 1].kind == FREE && units[u - 1].length == 1))) {
		unsigned more = units[u - 1].length;
		u -= more;
		withdraw(u);
		length += more;
	}
	insert(u, length);
}

static int extend(unsigned length)
{
	unsigned want = length > grow ? length : grow;
	size_t bytes = (size_t)(want + 1) * UNIT; /* one more, to align it */
	char *p = (char *)__syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if ((unsigned long)p > -4096UL) {
		want = length;
		bytes = (size_t)(want + 1) * UNIT;
		p = (char *)__syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if ((unsigned long)p > -4096UL)
			return 0;
	}
	char *start = (char *)(((uintptr_t)p + UNIT - 1) & -(uintptr_t)UNIT);
	unsigned usable = (unsigned)((p + bytes - start) / UNIT), u = unit_of(start);
	if (u == 0) {
		u++;
		usable--;
	}
	if (usable < length || u + usable > UNITS)
		return 0;
	if (grow < GROW_MAX)
		grow *= 2;
	release(u, usable);
	return 1;
}

/* A run of at least that many units, or 0. */
static unsigned take(unsigned length)
{
	for (;;) {
		for (unsigned b = bin_of(length); b < BINS; b++)
			for (unsigned u = bins[b]; u; u = units[u].next) {
				unsigned have = units[u].length;
				if (have < length)
					continue;
				withdraw(u);
				if (have > length)
					insert(u + length, have - length);
				return u;
			}
		if (!extend(length))
			return 0;
	}
}

/* --- small blocks --------------------------------------------------------------------------------------------- */

/* A unit's blocks in order of address. */
static block *sorted(char *start, block *b)
{
	uint64_t set[UNIT / 16 / 64] = {0};
	block *first = NULL, **link = &first;
	for (; b; b = b->next) {
		unsigned at = (unsigned)((char *)b - start) / 16;
		set[at / 64] |= (uint64_t)1 << at % 64;
	}
	for (unsigned i = 0; i < UNIT / 16 / 64; i++)
		for (uint64_t rest = set[i]; rest; rest &= rest - 1) {
			*link = (block *)(start + (i * 64 + (unsigned)__builtin_ctzl(rest)) * 16);
			link = &(*link)->next;
		}
	*link = NULL;
	return first;
}

static __attribute__((noinline)) void *refill(cache *c, unsigned class)
{
	size_t size = class_size(class);
	if (c->bump[class] != c->end[class]) {
		void *p = c->bump[class];
		c->bump[class] += size;
		return p;
	}
	LOCK(lock);
	unsigned some = partial[class];
	if (some) {
		unit *e = &units[some];
		unsigned n = e->length;
		char *start = address(some);
		block *b = (block *)(start + e->prev * 16u);
		partial[class] = e->next;
		e->length = 0;
		UNLOCK(lock);
		if (n == UNIT / size) { /* as good as new */
			c->bump[class] = start + size;
			c->end[class] = start + n * size;
			return start;
		}
		if (n > 2)
			b = sorted(start, b);
		c->list[class] = b->next;
		c->count[class] = (uint16_t)(n - 1);
		return b;
	}
	unsigned u = take(1);
	if (u)
		units[u] = (unit){.kind = SMALL, .class = (uint8_t)class};
	UNLOCK(lock);
	if (!u) {
		errno = ENOMEM;
		return NULL;
	}
	char *p = address(u);
	c->bump[class] = p + size;
	c->end[class] = p + UNIT / size * size;
	return p;
}

static __attribute__((noinline)) void spill(cache *c, unsigned class)
{
	unsigned n = c->count[class] / 2;
	block *b = c->list[class];
	LOCK(lock);
	for (unsigned i = 0; i < n; i++) {
		block *next = b->next;
		unsigned u = unit_of(b), offset = (uint32_t)(uintptr_t)b & (UNIT - 1);
		unit *e = &units[u];
		if (!e->length) {
			e->next = partial[class];
			partial[class] = (uint16_t)u;
		}
		b->next = e->length ? (block *)((char *)b - offset + e->prev * 16u) : NULL;
		e->prev = (uint16_t)(offset / 16);
		e->length++;
		b = next;
	}
	UNLOCK(lock);
	c->list[class] = b;
	c->count[class] = (uint16_t)(c->count[class] - n);
}

/* --- large blocks --------------------------------------------------------------------------------------------- */

static void *large(size_t n, size_t align)
{
	if (n > (size_t)UNITS * UNIT || align > (size_t)UNITS * UNIT / 2) {
		errno = ENOMEM;
		return NULL;
	}
	unsigned length = (unsigned)((n + UNIT - 1) / UNIT), spare = align > UNIT ? (unsigned)(align / UNIT) - 1 : 0;
	LOCK(lock);
	unsigned u = take(length + spare);
	if (u) {
		unsigned skip = spare ? (unsigned)(-((uintptr_t)address(u) / UNIT) & spare) : 0, first = u;
		u += skip;
		/* Before its neighbours are released: they look at it. */
		units[u + length - 1].kind = LARGE;
		units[u] = (unit){.kind = LARGE, .length = (uint16_t)length};
		if (skip)
			release(first, skip);
		if (spare > skip)
			release(u + length, spare - skip);
	}
	UNLOCK(lock);
	if (!u) {
		errno = ENOMEM;
		return NULL;
	}
	return address(u);
}

/* Makes a run longer or shorter where it is. */
static int resize(unsigned u, size_t n)
{
	unsigned length = (unsigned)((n + UNIT - 1) / UNIT), have = units[u].length;
	if (length == have)
		return 1;
	LOCK(lock);
	if (length > have) {
		unsigned next = u + have;
		if (next < UNITS && units[next].kind == FREE && units[next].length >= length - have) {
			unsigned rest = units[next].length - (length - have);
			withdraw(next);
			if (rest)
				insert(u + length, rest);
			have = length;
		}
	} else {
		units[u + length - 1].kind = LARGE;
		release(u + length, have - length);
		have = length;
	}
	units[u + have - 1].kind = LARGE;
	units[u].length = (uint16_t)have;
	UNLOCK(lock);
	return have == length;
}

/* --- threads that the libc makes ----------------------------------------------------------------------------------- */

/* What threads that are gone had in their caches: the next ones take it over. */
typedef struct orphan {
	struct orphan *next;
	cache left;
} orphan;
static orphan *orphans;

/* The program's one thread gets company. */
__attribute__((visibility("hidden"))) void __rf_malloc_share(void)
{
	own = only;
	only = (cache){0};
}

/* A new thread, which has nothing yet. */
__attribute__((visibility("hidden"))) void __rf_malloc_enter(void)
{
	LOCK(lock);
	orphan *o = orphans;
	if (o)
		orphans = o->next;
	UNLOCK(lock);
	if (o) {
		own = o->left;
		free(o);
	}
}

__attribute__((visibility("hidden"))) void __rf_malloc_leave(void)
{
	orphan *o = malloc(sizeof *o);
	if (!o)
		return; /* then nobody has it */
	o->left = own;
	own = (cache){0};
	LOCK(lock);
	o->next = orphans;
	orphans = o;
	UNLOCK(lock);
}

/* --- the interface --------------------------------------------------------------------------------------------- */

void *__libc_malloc(size_t n)
{
	if (n > SMALL_MAX)
		return large(n, 0);
	unsigned class = class_of(n);
	cache *c = my_cache();
	block *b = c->list[class];
	if (b) {
		c->list[class] = b->next;
		c->count[class]--;
		return b;
	}
	return refill(c, class);
}

void __libc_free(void *p)
{
	if (!p)
		return;
	unsigned u = unit_of(p);
	if (u >= UNITS || (units[u].kind != SMALL && units[u].kind != LARGE))
		a_crash(); /* nothing of ours */
	if (units[u].kind == LARGE) {
		LOCK(lock);
		unsigned length = units[u].length;
		if ((uintptr_t)p & (UNIT - 1) || !length)
			a_crash();
		units[u].length = 0;
		release(u, length);
		UNLOCK(lock);
		return;
	}
	unsigned class = units[u].class;
	cache *c = my_cache();
	block *b = p;
	b->next = c->list[class];
	c->list[class] = b;
	if (++c->count[class] > 8 && c->count[class] * class_size(class) > CACHE_BYTES * 2)
		spill(c, class);
}

static size_t room(void *p)
{
	unsigned u = unit_of(p);
	return units[u].kind == SMALL ? class_size(units[u].class) : (size_t)units[u].length * UNIT;
}

void *__libc_realloc(void *p, size_t n)
{
	if (!p)
		return __libc_malloc(n);
	unsigned u = unit_of(p);
	if (u >= UNITS || (units[u].kind != SMALL && units[u].kind != LARGE))
		a_crash();
	size_t have = room(p);
	if (units[u].kind == SMALL) {
		if (n <= have && (n > have / 2 || have <= 64))
			return p;
	} else if (n > SMALL_MAX && n <= (size_t)UNITS * UNIT && resize(u, n)) {
		return p;
	}
	void *q = __libc_malloc(n);
	if (!q)
		return NULL;
	memcpy(q, p, n < have ? n : have);
	__libc_free(p);
	return q;
}

void *__libc_calloc(size_t n, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total)) {
		errno = ENOMEM;
		return NULL;
	}
	void *p = __libc_malloc(total);
	return p ? memset(p, 0, total) : NULL;
}

void *__libc_aligned_alloc(size_t align, size_t n)
{
	if (!align || align & (align - 1)) {
		errno = EINVAL;
		return NULL;
	}
	if (align <= 16)
		return __libc_malloc(n);
	size_t size = n > align ? n : align;
	if (size > SMALL_MAX)
		return large(size, align);
	/* A class that is a power of two: its blocks are aligned to their size. */
	return __libc_malloc((size_t)1 << (64 - __builtin_clzl(size - 1)));
}

size_t malloc_usable_size(void *p) { return p ? room(p) : 0; }

weak_alias(__libc_malloc, malloc);
weak_alias(__libc_free, free);
weak_alias(__libc_realloc, realloc);
weak_alias(__libc_calloc, calloc);
weak_alias(__libc_aligned_alloc, aligned_alloc);
int __malloc_replaced, __aligned_alloc_replaced;
void __malloc_donate(char *start, char *end) { (void)start, (void)end; }
void __malloc_atfork(int who) { (void)who; }
