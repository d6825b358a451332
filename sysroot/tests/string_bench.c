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

/* Called by name, as programs do: natively through the PLT, fenced directly. Built with -fno-builtin, so that no compiler puts
 * its own code in their place. */
#define EACH(X)                                                                                               \
	X(memcpy, sink = (uintptr_t)memcpy(b + shift, a, n))                                                        \
	X(memmove, sink = (uintptr_t)memmove(a + 8 + shift, a, n)) /* overlap: backwards */                          \
	X(memset, sink = (uintptr_t)memset(b + shift, 7, n))                                                        \
	X(memcmp, sink = (uintptr_t)memcmp(b + shift, a, n))                                                        \
	X(memchr, sink = (uintptr_t)memchr(a + shift, 0, n))                                                        \
	X(strlen, sink = (uintptr_t)strlen(a + shift))                                                              \
	X(strcmp, sink = (uintptr_t)strcmp(b + shift, a))                                                           \
	X(strncmp, sink = (uintptr_t)strncmp(b + shift, a, n))                                                       \
	X(strcpy, sink = (uintptr_t)strcpy(b + shift, a))                                                           \
	X(strchr, sink = (uintptr_t)strchr(a + shift, '#'))                                                         \
	X(strrchr, sink = (uintptr_t)strrchr(a + shift, 'x'))

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
