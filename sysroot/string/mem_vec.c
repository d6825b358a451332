/* The functions on blocks of memory. */
#include "vec.h"

/* From here on a string instruction is faster than a loop, where the processor says so (ERMS). It is sooner than in unfenced
 * code: stores through a segment whose base is not 0 go at one a cycle on processors that otherwise do two
 * (docs/performance.md), and string instructions take plain addresses. So the loops below also store nothing twice
 * that they need not. */
#define REP_MOVE 1536
#define REP_SET 1536

/* AMD's string instructions take twenty times as long where the target is 1 to 15 bytes behind the source
 * within their pages. */
#define REP_SLOW(d, s) ((((uintptr_t)(d) - (uintptr_t)(s)-1) & 4095) < 15)

/* Keeps stores in order, so that those to one line leave together. */
#define IN_ORDER __asm__ volatile("" : : : "memory")

static inline void rep_movsb(void *d, const void *s, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
}

static inline void rep_stosb(void *d, int c, size_t n)
{
	__asm__ volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
}

#if RF_VEC == 16
/* n > 32: what is less is done in mem_avx2.S, which has the public names. Up to 8 vectors everything is loaded before the first
 * store, so overlap does not matter. */
VARIANT(void *, memmove, (void *dst, const void *src, size_t n))
{
	unsigned char *d = dst;
	const unsigned char *s = src;

	if (UP_TO_4V(n)) {
		vec a = LOADU(s), b = LOADU(s + V), e = LOADU(s + n - 2 * V), f = LOADU(s + n - V);
		STOREU(d, a);
		STOREU(d + V, b);
		STOREU(d + n - 2 * V, e);
		STOREU(d + n - V, f);
		return dst;
	}
	if (UP_TO_8V(n)) {
		const unsigned char *t = s + n - 4 * V;
		vec a = LOADU(s), b = LOADU(s + V), c = LOADU(s + 2 * V), e = LOADU(s + 3 * V);
		vec w = LOADU(t), x = LOADU(t + V), y = LOADU(t + 2 * V), z = LOADU(t + 3 * V);
		unsigned char *f = d + n - 4 * V;
		STOREU(d, a);
		STOREU(d + V, b);
		STOREU(d + 2 * V, c);
		STOREU(d + 3 * V, e);
		STOREU(f, w);
		STOREU(f + V, x);
		STOREU(f + 2 * V, y);
		STOREU(f + 3 * V, z);
		return dst;
	}
	if ((uintptr_t)d - (uintptr_t)s >= n) {
		/* Forward. The ends are loaded first and stored last, the middle goes to aligned addresses. */
		if (n >= REP_MOVE && (RF_FEATURES & RF_FEATURE_ERMS) && (uintptr_t)s - (uintptr_t)d >= n &&
		    !REP_SLOW(d, s)) {
			size_t skip = -(uintptr_t)d & 63;
			v16 h0 = *(const v16u *)s, h1 = *(const v16u *)(s + 16), h2 = *(const v16u *)(s + 32),
			    h3 = *(const v16u *)(s + 48);
			*(v16u *)d = h0;
			*(v16u *)(d + 16) = h1;
			*(v16u *)(d + 32) = h2;
			*(v16u *)(d + 48) = h3;
			rep_movsb(d + skip, s + skip, n - skip);
			return dst;
		}
		vec head = keep(LOADU(s)), t0 = keep(LOADU(s + n - 2 * V)), t1 = keep(LOADU(s + n - V));
		unsigned char *end = d + n - 2 * V;
		size_t skip = V - ((uintptr_t)d & (V - 1));
		unsigned char *p = d + skip;
		s += skip;
		do {
			vec a = LOADU(s), b = LOADU(s + V);
			s += 2 * V;
			IN_ORDER;
			STORE(p, a);
			IN_ORDER;
			STORE(p + V, b);
			p += 2 * V;
		} while (p < end);
		STOREU(end, t0);
		STOREU(end + V, t1);
		STOREU(d, head);
		return dst;
	}
	/* Backward. */
	vec tail = keep(LOADU(s + n - V));
	vec h0 = keep(LOADU(s)), h1 = keep(LOADU(s + V)), h2 = keep(LOADU(s + 2 * V)), h3 = keep(LOADU(s + 3 * V));
	unsigned char *p = (unsigned char *)((uintptr_t)(d + n - 1) & ~(uintptr_t)(V - 1));
	const unsigned char *q = s + (p - d);
	unsigned char *stop = d + 4 * V;
	do {
		q -= 4 * V;
		vec a = keep(LOADU(q)), b = keep(LOADU(q + V)), c = keep(LOADU(q + 2 * V)), e = keep(LOADU(q + 3 * V));
		p -= 4 * V;
		IN_ORDER;
		STORE(p + 3 * V, e);
		STORE(p + 2 * V, c);
		STORE(p + V, b);
		STORE(p, a);
	} while (p > stop);
	STOREU(d, h0);
	STOREU(d + V, h1);
	STOREU(d + 2 * V, h2);
	STOREU(d + 3 * V, h3);
	STOREU(d + n - V, tail);
	return dst;
}

/* n > 32 */
VARIANT(void *, memset, (void *dst, int c, size_t n))
{
	unsigned char *d = dst;

	if (UP_TO_4V(n)) {
		vec v = splat(c);
		STOREU(d, v);
		STOREU(d + V, v);
		STOREU(d + n - 2 * V, v);
		STOREU(d + n - V, v);
		return dst;
	}
	if (n >= REP_SET && (RF_FEATURES & RF_FEATURE_ERMS)) {
		vec v = splat(c);
		size_t skip = -(uintptr_t)d & 63;
		for (size_t i = 0; i < 64; i += V)
			STOREU(d + i, v);
		rep_stosb(d + skip, c, n - skip);
		return dst;
	}
	vec v = splat(c);
	unsigned char *end = d + n - 2 * V;
	unsigned char *p = (unsigned char *)(((uintptr_t)d + 2 * V) & ~(uintptr_t)(V - 1));
	STOREU(d, v);
	STOREU(d + V, v);
	STOREU(end, v);
	STOREU(end + V, v);
	do {
		STORE(p, v);
		STORE(p + V, v);
		p += 2 * V;
	} while (p < end);
	return dst;
}

static inline int byte_difference(const unsigned char *a, const unsigned char *b, size_t at)
{
	return a[at] - b[at];
}

/* All bits where a vector of the one is like that of the other. */
#define LIKE(i) (keep(LOADU(a + (i))) == LOADU(b + (i)))

/* n > 32 */
VARIANT(int, memcmp, (const void *pa, const void *pb, size_t n))
{
	const unsigned char *a = pa, *b = pb;
	uint32_t m;
	size_t at;

	/* From both ends, which overlap, up to 8 vectors. */
#define STEP(where)                                                                                          \
	if (UNLIKELY((m = MASK(LIKE(where))) != ALL)) {                                                      \
		at = (where);                                                                                \
		goto found;                                                                                  \
	}
	if (UP_TO_4V(n)) {
		STEP(0)
		STEP(V)
		STEP(n - 2 * V)
		STEP(n - V)
		return 0;
	}
	STEP(0)
	STEP(V)
	STEP(2 * V)
	STEP(3 * V)
	/* The place of the last four vectors. */
	const unsigned char *last = a + n - 4 * V;
	if (n > 8 * V) {
		size_t skip = 4 * V - ((uintptr_t)a & (V - 1));
		a += skip;
		b += skip;
		do {
			if (UNLIKELY(MASK(LIKE(0) & LIKE(V) & LIKE(2 * V) & LIKE(3 * V)) != ALL))
				goto four;
			a += 4 * V;
			b += 4 * V;
		} while (a < last);
	}
	b += last - a;
	a = last;
	if (LIKELY(MASK(LIKE(0) & LIKE(V) & LIKE(2 * V) & LIKE(3 * V)) == ALL))
		return 0;
four:
	STEP(0)
	STEP(V)
	STEP(2 * V)
	at = 3 * V;
	m = MASK(LIKE(3 * V));
found:
	return byte_difference(a, b, at + __builtin_ctz(~m));
#undef STEP
}

#endif

VARIANT(void *, memchr, (const void *p, int c, size_t n))
{
	const unsigned char *s = p;
	const unsigned char *a;
	uint32_t m;
	vec k;

	if (UNLIKELY(!n))
		return NULL;
	/* n may be larger than what is there, so nothing is loaded beyond the page of the match. */
	if (FITS(s)) {
		k = splat(c);
		m = MASK(LOADU(s) == k);
		if (m) {
			size_t at = __builtin_ctz(m);
			return at < n ? (void *)(s + at) : NULL;
		}
		if (n <= V)
			return NULL;
		a = (const unsigned char *)((uintptr_t)s & ~(uintptr_t)(V - 1));
	} else {
		OTHERWISE(memchr, (p, c, n))
		k = splat(c);
		a = (const unsigned char *)((uintptr_t)s & ~(uintptr_t)(V - 1));
		m = MASK(LOAD(a) == k) >> (s - a);
		if (m) {
			size_t at = __builtin_ctz(m);
			return at < n ? (void *)(s + at) : NULL;
		}
		/* Only what is on this page has been looked at. */
		if (n <= V - (size_t)(s - a))
			return NULL;
	}
	/* From here on aligned: n counts from a. */
	a += V;
	n -= (size_t)(a - s);
#define STEP(i)                                                                                              \
	m = MASK(LOAD(a + (i)) == k);                                                                        \
	if (m) {                                                                                             \
		size_t at = __builtin_ctz(m) + (i);                                                          \
		return at < n ? (void *)(a + at) : NULL;                                                     \
	}                                                                                                    \
	if (n <= (i) + V)                                                                                    \
		return NULL;
	if (n > 4 * V) {
		/* What is found in the next four is within n. */
#define SURE(i)                                                                                              \
	m = MASK(LOAD(a + (i)) == k);                                                                        \
	if (m)                                                                                               \
		return (void *)(a + (i) + __builtin_ctz(m));
		SURE(0)
		SURE(V)
		SURE(2 * V)
		SURE(3 * V)
#undef SURE
		size_t done = 4 * V - ((uintptr_t)a & (4 * V - 1));
		a += done;
		n -= done;
		if (n >= 4 * V) {
			/* Few instructions a turn: it takes two cycles. n counts from behind the four. */
			n -= 4 * V;
			for (;;) {
				vec x = LOAD(a) == k, y = LOAD(a + V) == k;
				vec z = LOAD(a + 2 * V) == k, w = LOAD(a + 3 * V) == k;
				if (MASK((x | y) | (z | w)))
					break;
				a += 4 * V;
				if (__builtin_sub_overflow(n, 4 * V, &n))
					break;
			}
			n += 4 * V;
			if (!n)
				return NULL;
			/* Nothing of the last turn is worth keeping in the loop. */
			__asm__("" : "+r"(a));
		}
	}
	STEP(0)
	STEP(V)
	STEP(2 * V)
	STEP(3 * V)
	return NULL;
#undef STEP
}

VARIANT(void *, memrchr, (const void *p, int c, size_t n))
{
	const unsigned char *s = p;

	OTHERWISE(memrchr, (p, c, n))
	const vec k = splat(c);

	while (n >= V) {
		uint32_t m = MASK(LOADU(s + n - V) == k);
		if (m)
			return (void *)(s + n - V + (31 - __builtin_clz(m)));
		n -= V;
	}
	while (n--)
		if (s[n] == (unsigned char)c)
			return (void *)(s + n);
	return NULL;
}

VARIANT(void *, rawmemchr, (const void *p, int c))
{
	const unsigned char *s = p;

	OTHERWISE(rawmemchr, (p, c))
	const vec k = splat(c);
	const unsigned char *a = (const unsigned char *)((uintptr_t)s & ~(uintptr_t)(V - 1));
	uint32_t m = MASK(LOAD(a) == k) >> (s - a);

	if (m)
		return (void *)(s + __builtin_ctz(m));
	do {
		a += V;
		m = MASK(LOAD(a) == k);
	} while (!m);
	return (void *)(a + __builtin_ctz(m));
}

#if RF_VEC == 32
void *__memrchr(const void *s, int c, size_t n) __attribute__((weak, alias("memrchr")));
#endif
