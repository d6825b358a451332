/* Times of the memory and string functions, for string_bench.sh: `string_bench MODULE ROUNDS` prints a line a function, size and shift:
 * nanoseconds a call natively and fenced. The module is this source as well. Medians of rounds in which both take turns place by place:
 * many machines' speed changes from one second to the next. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *a, *b;
static volatile uintptr_t sink;

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

#ifdef HOST
#define EXPORT static
#else
#define EXPORT
int string_begin(void);
void string_fill(size_t n, size_t shift);
void string_run(int which, size_t n, size_t shift, long calls);
#endif

EXPORT int string_begin(void)
{
	a = aligned_alloc(4096, (1 << 20) + 4096);
	b = aligned_alloc(4096, (1 << 20) + 4096);
	return a && b;
}

/* `n` bytes of text at both places, the second one at `shift`. */
EXPORT void string_fill(size_t n, size_t shift)
{
	memset(a, 'x', n + 64);
	memset(b, 'x', n + 64);
	a[n] = 0;
	b[n + shift] = 0;
}

#define RUN(name, expression)                                                                                 \
	static void run_##name(size_t n, size_t shift, long calls)                                             \
	{                                                                                                    \
		(void)n;                                                                                       \
		for (long i = 0; i < calls; i++)                                                               \
			expression;                                                                            \
	}
EACH(RUN)

EXPORT void string_run(int which, size_t n, size_t shift, long calls)
{
#define POINTER(name, expression) run_##name,
	static void (*const runs[])(size_t, size_t, long) = {EACH(POINTER)};
	runs[which](n, shift, calls);
}

#ifdef HOST
#include <ringfence.h>
#include <time.h>

static const size_t sizes[] = {16, 24, 32, 48, 64, 100, 128, 200, 256, 400, 512, 700, 1000, 1024, 1500, 2048, 4096, 10000, 16384, 65536, 262144, 1048576};
#define SIZES (sizeof sizes / sizeof *sizes)
#define NAME(name, expression) #name,
static const char *const names[] = {EACH(NAME)};
#define FUNCTIONS (int)(sizeof names / sizeof *names)
#define MOST 1000

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int less(const void *x, const void *y)
{
	double d = *(const double *)x - *(const double *)y;
	return (d > 0) - (d < 0);
}

static double median(double *times, int count)
{
	qsort(times, (size_t)count, sizeof *times, less);
	return times[count / 2];
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[2]) : 0;
	if (rounds < 1 || rounds > MOST) {
		fprintf(stderr, "usage: string_bench MODULE ROUNDS, 1 to %d rounds\n", MOST);
		return 2;
	}
	void *module = rf_dlopen(argv[1], 0);
	int (*begin)(void) = RF_DLSYM(module, int, string_begin, (void));
	void (*fill)(size_t, size_t) = RF_DLSYM(module, void, string_fill, (size_t, size_t));
	void (*run)(int, size_t, size_t, long) = RF_DLSYM(module, void, string_run, (int, size_t, size_t, long));
	if (!begin || !fill || !run || !begin() || !string_begin()) {
		fprintf(stderr, "string_bench: %s\n", rf_error() ? rf_error()->message : "no memory");
		return 1;
	}
	static double native[MOST], fenced[MOST];
	for (size_t shift = 0; shift <= 5; shift += 5)
		for (size_t i = 0; i < SIZES; i++)
			for (int which = 0; which < FUNCTIONS; which++) {
				size_t n = sizes[i];
				long calls = (long)(200000 / (n + 60)) + 1;
				string_fill(n, shift);
				fill(n, shift);
				for (int round = -1; round < rounds; round++) {
					int at = round < 0 ? 0 : round; /* the first one only warms up */
					double start = now();
					string_run(which, n, shift, calls);
					native[at] = (now() - start) / (double)calls;
					start = now();
					run(which, n, shift, calls);
					fenced[at] = (now() - start) / (double)calls;
				}
				if (rf_error()) {
					fprintf(stderr, "string_bench: %s\n", rf_error()->message);
					return 1;
				}
				printf("%s %zu %zu %.2f %.2f\n", names[which], n, shift, median(native, rounds), median(fenced, rounds));
			}
	return 0;
}
#endif
