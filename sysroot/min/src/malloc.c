/* A small allocator: free lists by size class, four classes to a doubling, nothing given back. Memory comes from a
 * static arena and, when that is used up, from the policy's memory call. */
#include "rf.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARENA (1u << 20)
#define CHUNK (4u << 20)
#define CLASSES 112

typedef struct block {
	size_t class; /* below ALIGNED_MARK; otherwise the distance to the true block, plus the mark */
	struct block *next;
} block;

#define HEADER sizeof(block)
#define ALIGNED_MARK ((size_t)1 << 32)

static char arena[ARENA] __attribute__((aligned(16)));
static char *at = arena, *end = arena + ARENA;
static block *lists[CLASSES];
static int lock;

static void acquire(void)
{
	while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&lock, __ATOMIC_RELAXED))
			__builtin_ia32_pause();
}

static void release(void) { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }

/* Sizes 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, ... */
static size_t class_of(size_t n)
{
	if (n <= 64)
		return n ? (n - 1) / 16 : 0;
	unsigned log = 63 - (unsigned)__builtin_clzl(n - 1);
	return (log - 6) * 4 + 4 + (((n - 1) >> (log - 2)) & 3);
}

static size_t class_size(size_t class)
{
	if (class < 4)
		return (class + 1) * 16;
	unsigned log = (unsigned)(class / 4) + 5;
	return (5 + class % 4) << (log - 2);
}

static void *take(size_t n)
{
	if ((size_t)(end - at) < n) {
		size_t chunk = n > CHUNK ? (n + 4095) & ~(size_t)4095 : CHUNK;
		enum { READ_WRITE = 3, PRIVATE_ANONYMOUS = 0x22 };
		long p = __rf_syscall_c(RF_SYS_mmap, 0, (long)chunk, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0);
		if (p < 0 && p > -4096)
			return NULL;
		if (n > CHUNK) /* on its own; what is left of the present chunk stays in use */
			return (void *)p;
		at = (char *)p;
		end = at + chunk;
	}
	char *p = at;
	at += n;
	return p;
}

static block *true_block(void *p)
{
	block *b = (block *)p - 1;
	if (b->class >= ALIGNED_MARK)
		b = (block *)((char *)p - (b->class - ALIGNED_MARK)) - 1;
	return b;
}

void *malloc(size_t n)
{
	if (n > (size_t)1 << 31)
		return NULL;
	size_t class = class_of(n);
	acquire();
	block *b = lists[class];
	if (b)
		lists[class] = b->next;
	else
		b = take(HEADER + class_size(class));
	release();
	if (!b)
		return NULL;
	b->class = class;
	return b + 1;
}

void free(void *p)
{
	if (!p)
		return;
	block *b = true_block(p);
	acquire();
	b->next = lists[b->class];
	lists[b->class] = b;
	release();
}

void *calloc(size_t n, size_t size)
{
	size_t total;
	if (__builtin_mul_overflow(n, size, &total))
		return NULL;
	void *p = malloc(total);
	return p ? memset(p, 0, total) : NULL;
}

void *realloc(void *p, size_t n)
{
	if (!p)
		return malloc(n);
	block *b = true_block(p);
	size_t room = class_size(b->class) - (size_t)((char *)p - (char *)(b + 1));
	if (n <= room && class_of(n) + 4 > b->class)
		return p;
	void *q = malloc(n);
	if (!q)
		return NULL;
	memcpy(q, p, n < room ? n : room);
	free(p);
	return q;
}

void *aligned_alloc(size_t align, size_t n)
{
	if (!align || align & (align - 1))
		return NULL;
	if (align <= 16)
		return malloc(n);
	char *p = malloc(n + align);
	if (!p)
		return NULL;
	char *q = (char *)(((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1));
	if (q != p)
		((block *)q - 1)->class = ALIGNED_MARK + (size_t)(q - p);
	return q;
}
