/* The libc's allocator, unfenced, in several threads: blocks keep their contents, are aligned, go back to
 * any thread, and do not overlap. A window is imitated: its header page, and a heap at its place. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct {
	int need_locks;
} libc;

void *t_malloc(size_t), *t_calloc(size_t, size_t), *t_realloc(void *, size_t), *t_aligned(size_t, size_t);
void t_free(void *);
size_t t_usable(void *);

static char *window;
static char *heap;

/* Gaps between, as a window has them. */
long rf_test_mmap(unsigned long bytes)
{
	char *p = __atomic_fetch_add(&heap, bytes + 3 * 4096, __ATOMIC_RELAXED);
	if (p + bytes > window + 0x90000000)
		return -12;
	return mprotect(p, bytes, PROT_READ | PROT_WRITE) ? -12 : (long)p;
}

typedef struct {
	unsigned char *p;
	size_t n;
	unsigned char fill;
} slot;

#define SLOTS 800
static slot shared[SLOTS];
static pthread_mutex_t hand_over = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what)
{
	fprintf(stderr, "malloc_test: %s\n", what);
	exit(1);
}

static uint64_t next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	return *s ^= *s << 17;
}

static void look(const slot *s, size_t n)
{
	for (size_t i = 0; i < n; i += 1 + n / 9)
		if (s->p[i] != s->fill)
			fail("a block has lost its contents");
	if (n && s->p[n - 1] != s->fill)
		fail("a block has lost its end");
}

static size_t some_size(uint64_t r)
{
	return r % 100 < 70 ? (r >> 8) % 300 : r % 100 < 97 ? (r >> 8) % 30000 : (r >> 8) % 700000;
}

static void *work(void *argument)
{
	uint64_t seed = 12345 + (uintptr_t)argument * 7919;
	slot *mine = calloc(SLOTS, sizeof *mine);
	for (int round = 0; round < 60000; round++) {
		uint64_t r = next(&seed);
		slot *s = &mine[r % SLOTS];
		r >>= 16;
		if (!s->p) {
			s->n = some_size(next(&seed));
			if (r % 8 == 0) {
				size_t align = (size_t)16 << (r >> 8) % 14;
				s->p = t_aligned(align, s->n);
				if ((uintptr_t)s->p % align)
					fail("a block is not aligned");
			} else if (r % 8 < 3) {
				s->p = t_calloc(1, s->n);
				for (size_t i = 0; s->p && i < s->n; i++)
					if (s->p[i])
						fail("calloc gave a used block");
			} else {
				s->p = t_malloc(s->n);
			}
			if (!s->p || (uintptr_t)s->p % 16 || t_usable(s->p) < s->n)
				fail("no block, or a bad one");
			s->fill = (unsigned char)r;
			memset(s->p, s->fill, s->n);
			continue;
		}
		look(s, s->n);
		if (r % 4 == 0) {
			size_t n = some_size(next(&seed));
			unsigned char *p = t_realloc(s->p, n);
			if (!p)
				fail("realloc failed");
			s->p = p;
			look(s, n < s->n ? n : s->n);
			s->n = n;
			memset(p, s->fill, n);
		} else if (r % 4 == 1) { /* another thread frees it */
			pthread_mutex_lock(&hand_over);
			slot *other = &shared[(r >> 8) % SLOTS], old = *other;
			*other = *s;
			*s = old;
			pthread_mutex_unlock(&hand_over);
		} else {
			t_free(s->p);
			s->p = NULL;
		}
	}
	for (int i = 0; i < SLOTS; i++)
		t_free(mine[i].p);
	free(mine);
	return NULL;
}

/* What is allocated in a row lies in a row, though what was there before was freed in any order. */
static void in_a_row(void)
{
	enum { BLOCKS = 100000, SIZE = 48 };
	static char *block[BLOCKS];
	uint64_t random = 7;
	int near = 0;
	for (int i = 0; i < BLOCKS; i++)
		block[i] = t_malloc(SIZE);
	for (int i = BLOCKS; i > 0; i--) {
		random = random * 6364136223846793005 + 1442695040888963407;
		int at = (int)((random >> 33) % (uint64_t)i);
		t_free(block[at]);
		block[at] = block[i - 1];
	}
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = t_malloc(SIZE);
		*(int *)block[i] = i;
		near += i && (uintptr_t)block[i] - (uintptr_t)block[i - 1] < 256;
	}
	for (int i = 0; i < BLOCKS; i++) {
		if (*(int *)block[i] != i)
			fail("a block was given twice");
		t_free(block[i]);
	}
	if (near < BLOCKS / 10 * 9)
		fail("blocks lie apart");
}

int main(void)
{
	char *p = mmap(NULL, 2ul << 32, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED ||
	    mmap((void *)0x10000, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) !=
		    (void *)0x10000)
		fail("no address space");
	window = (char *)(((uintptr_t)p + 0xFFFFFFFF) & -(uintptr_t)0x100000000);
	*(char **)0x10000 = window;
	heap = window + 0x40000000;
	in_a_row();
	for (int round = 0; round < 2; round++) {
		libc.need_locks = round;
		pthread_t threads[4];
		int n = round ? 4 : 1;
		for (intptr_t i = 0; i < n; i++)
			pthread_create(&threads[i], NULL, work, (void *)(i + round));
		for (int i = 0; i < n; i++)
			pthread_join(threads[i], NULL);
	}
	if (t_malloc((size_t)1 << 40) || t_calloc((size_t)1 << 33, (size_t)1 << 33) || t_malloc(0x90000000u))
		fail("more memory than there is");
	return 0;
}
