/* What the checks of the recipes share: data that is the same everywhere, digests, and a clock. */
#ifndef RFCHECK_H
#define RFCHECK_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline uint64_t rf_random(uint64_t *state)
{
	uint64_t z = *state += 0x9E3779B97F4A7C15u;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
	z = (z ^ z >> 27) * 0x94D049BB133111EBu;
	return z ^ z >> 31;
}

/* Text of made-up words, some of them frequent, with lines and numbers. */
static inline void rf_text(unsigned char *p, size_t n, uint64_t seed)
{
	static const char syllables[][4] = {"ta", "ri", "no", "ke", "shi", "mu", "lo", "an", "en", "is", "or", "ath", "ul", "vi", "sa", "de"};
	size_t at = 0;
	while (at < n) {
		uint64_t r = rf_random(&seed);
		unsigned common = r & 3, word = common ? (r >> 8) % 64 : (r >> 8) % 65536;
		char text[24];
		int k = 0;
		if ((r >> 40) % 23 == 0) {
			k = snprintf(text, sizeof text, "%u", (unsigned)(r >> 44));
		} else {
			do {
				const char *s = syllables[word & 15];
				while (*s)
					text[k++] = *s++;
				word >>= 4;
			} while (word);
		}
		text[k++] = (r >> 50) % 11 ? ' ' : '\n';
		for (int i = 0; i < k && at < n; i++)
			p[at++] = (unsigned char)text[i];
	}
}

static inline void rf_noise(unsigned char *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)rf_random(&seed);
}

static inline uint64_t rf_digest(const void *data, size_t n)
{
	const unsigned char *p = (const unsigned char *)data;
	uint64_t h = 0xCBF29CE484222325u;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001B3u;
	return h;
}

/* Processor time: what else the machine does is not to count. */
static inline long long rf_now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The fastest of `times` runs, printed as the benchmark wants it. */
#define RF_BENCH(what, times, ...)                                                                            \
	do {                                                                                                 \
		long long best = 0;                                                                          \
		for (int rf_i = 0; rf_i < (times); rf_i++) {                                                 \
			long long start = rf_now();                                                          \
			__VA_ARGS__;                                                                         \
			long long took = rf_now() - start;                                                   \
			if (!rf_i || took < best)                                                            \
				best = took;                                                                 \
		}                                                                                            \
		printf("%s %lld\n", what, best);                                                             \
	} while (0)

#define RF_REQUIRE(x)                                                                                         \
	do {                                                                                                 \
		if (!(x)) {                                                                                  \
			printf("%s:%d: %s does not hold\n", __func__, __LINE__, #x);                                 \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

#endif
