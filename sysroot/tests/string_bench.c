/* Times of the memory and string functions, for string_bench.sh: one line a function and size, nanoseconds a call. The same
 * source is built natively and fenced. Processor time, the fastest of several runs. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static char *a, *b;
static volatile uintptr_t sink;

static long long now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Through pointers, so that no compiler puts its own code in their place. */
static void *(*volatile p_memcpy)(void *, const void *, size_t) = memcpy;
static void *(*volatile p_memmove)(void *, const void *, size_t) = memmove;
static void *(*volatile p_memset)(void *, int, size_t) = memset;
static int (*volatile p_memcmp)(const void *, const void *, size_t) = memcmp;
static void *(*volatile p_memchr)(const void *, int, size_t) = memchr;
static size_t (*volatile p_strlen)(const char *) = strlen;
static int (*volatile p_strcmp)(const char *, const char *) = strcmp;
static int (*volatile p_strncmp)(const char *, const char *, size_t) = strncmp;
static char *(*volatile p_strcpy)(char *, const char *) = strcpy;
static char *(*volatile p_strchr)(const char *, int) = strchr;
static char *(*volatile p_strrchr)(const char *, int) = strrchr;

#define EACH(X)                                                                                               \
	X(memcpy, sink = (uintptr_t)f(b + shift, a, n))                                                        \
	X(memmove, sink = (uintptr_t)f(a + 8 + shift, a, n)) /* overlap: backwards */                          \
	X(memset, sink = (uintptr_t)f(b + shift, 7, n))                                                        \
	X(memcmp, sink = (uintptr_t)f(b + shift, a, n))                                                        \
	X(memchr, sink = (uintptr_t)f(a + shift, 0, n))                                                        \
	X(strlen, sink = (uintptr_t)f(a + shift))                                                              \
	X(strcmp, sink = (uintptr_t)f(b + shift, a))                                                           \
	X(strncmp, sink = (uintptr_t)f(b + shift, a, n))                                                       \
	X(strcpy, sink = (uintptr_t)f(b + shift, a))                                                           \
	X(strchr, sink = (uintptr_t)f(a + shift, '#'))                                                         \
	X(strrchr, sink = (uintptr_t)f(a + shift, 'x'))

static const size_t sizes[] = {16, 24, 32, 48, 64, 100, 128, 200, 256, 400, 512, 700, 1000, 1024, 1500, 2048, 4096, 10000, 16384, 65536, 262144, 1048576};

/* `n` bytes of text at both places, the second one at `shift`. */
static void fill(size_t n, size_t shift)
{
	memset(a, 'x', n + 64);
	memset(b, 'x', n + 64);
	a[n] = 0;
	b[n + shift] = 0;
}

#define MEASURE(name, expression)                                                                             \
	static void measure_##name(size_t n, size_t shift)                                                     \
	{                                                                                                    \
		__typeof__(*p_##name) *f = p_##name;                                                           \
		long calls = (long)(2000000 / (n + 60)) + 1;                                                   \
		double best = 1e30;                                                                            \
		fill(n, shift);                                                                                \
		for (int run = 0; run < 9; run++) {                                                            \
			long long start = now();                                                               \
			for (long i = 0; i < calls; i++)                                                       \
				expression;                                                                    \
			double took = (double)(now() - start) / (double)calls;                                 \
			best = took < best ? took : best;                                                      \
		}                                                                                            \
		printf("%s %zu %zu %.2f\n", #name, n, shift, best);                                            \
	}
EACH(MEASURE)

int main(void)
{
	a = aligned_alloc(4096, (1 << 20) + 4096);
	b = aligned_alloc(4096, (1 << 20) + 4096);
	/* aligned, and not */
	for (size_t shift = 0; shift <= 5; shift += 5)
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
#define CALL(name, expression) measure_##name(sizes[i], shift);
			EACH(CALL)
		}
	return 0;
}
