/* String functions. Loads are aligned, or are checked not to cross into another page: a string's last
 * page may be followed by one that is not there. */
#include "vec.h"

static inline const char *align_down(const char *p) { return (const char *)((uintptr_t)p & ~(uintptr_t)(V - 1)); }

static inline const char *next_four(const char *p) { return (const char *)(((uintptr_t)p & ~(4 * V - 1)) + 4 * V); }

BODY size_t strlen_body(const char *s)
{
	const char *a = s;
	uint32_t m;

	if (LIKELY(WITHIN_PAGE(s, RF_VEC))) {
		m = MASK(LOADU(s) == ZERO);
		if (m)
			return __builtin_ctz(m);
		a = align_down(s);
	} else {
		a = align_down(s);
		m = MASK(LOAD(a) == ZERO) >> (s - a);
		if (m)
			return __builtin_ctz(m);
	}
	/* Four single vectors, then four at a time from a boundary of four. */
#define STEP(i)                                                                                              \
	m = MASK(LOAD(a + (i)) == ZERO);                                                                     \
	if (m)                                                                                               \
		return (size_t)(a - s) + (i) + __builtin_ctz(m);
	a += V;
	STEP(0)
	STEP(V)
	STEP(2 * V)
	STEP(3 * V)
	for (a = next_four(a);; a += 4 * V) {
		vec x = LOAD(a), y = LOAD(a + V), z = LOAD(a + 2 * V), w = LOAD(a + 3 * V);
		if (MASK(MIN(MIN(x, y), MIN(z, w)) == ZERO))
			break;
	}
	for (;; a += V) {
		STEP(0)
	}
#undef STEP
}

BODY char *strchrnul_body(const char *s, int c)
{
	const vec k = splat(c);
	const char *a;
	uint32_t m;
	vec x;

	if (LIKELY(WITHIN_PAGE(s, RF_VEC))) {
		x = keep(LOADU(s));
		m = MASK((x == k) | (x == ZERO));
		if (m)
			return (char *)s + __builtin_ctz(m);
		a = align_down(s);
	} else {
		a = align_down(s);
		x = keep(LOAD(a));
		m = MASK((x == k) | (x == ZERO)) >> (s - a);
		if (m)
			return (char *)s + __builtin_ctz(m);
	}
#define STEP(i)                                                                                              \
	x = keep(LOAD(a + (i)));                                                                             \
	m = MASK((x == k) | (x == ZERO));                                                                    \
	if (m)                                                                                               \
		return (char *)a + (i) + __builtin_ctz(m);
	a += V;
	STEP(0)
	STEP(V)
	STEP(2 * V)
	STEP(3 * V)
	/* x ^ k is 0 where the character is, so a minimum with x finds both at once. */
	for (a = next_four(a);; a += 4 * V) {
		vec p = keep(LOAD(a)), q = keep(LOAD(a + V)), r = keep(LOAD(a + 2 * V)), t = keep(LOAD(a + 3 * V));
		vec u = MIN(MIN(p, p ^ k), MIN(q, q ^ k)), v = MIN(MIN(r, r ^ k), MIN(t, t ^ k));
		if (MASK(MIN(u, v) == ZERO))
			break;
	}
	for (;; a += V) {
		STEP(0)
	}
#undef STEP
}

BODY char *strchr_body(const char *s, int c)
{
	char *p = strchrnul_body(s, c);
	return *p == (char)c ? p : NULL;
}

static inline char *last(const char *a, uint32_t hit) { return (char *)a + (31 - __builtin_clz(hit)); }

BODY char *strrchr_body(const char *s, int c)
{
	const vec k = splat(c);
	const char *a = align_down(s), *block = NULL;
	uint32_t end, hit;
	vec x;

	/* Most strings are short. */
	if (LIKELY(WITHIN_PAGE(s, RF_VEC))) {
		x = keep(LOADU(s));
		end = MASK(x == ZERO), hit = MASK(x == k);
	} else {
		x = keep(LOAD(a));
		end = MASK(x == ZERO) >> (s - a), hit = MASK(x == k) >> (s - a);
	}
	if (end) {
		hit &= end ^ (end - 1); /* up to the end, the end itself included */
		return hit ? last(s, hit) : NULL;
	}
	/* The last hit so far: where its vector is, and which bytes of it. Where it was is computed once. */
	const char *found = s;
	uint32_t found_hit = hit;
	a += V;
	do {
		x = keep(LOAD(a));
		end = MASK(x == ZERO), hit = MASK(x == k);
		if (end)
			goto done;
		if (hit)
			found = a, found_hit = hit;
		a += V;
	} while ((uintptr_t)a & (4 * V - 1));
	/* Of four at a time only which ones were the last with a hit. */
	for (;; a += 4 * V) {
		vec p = keep(LOAD(a)), q = keep(LOAD(a + V)), r = keep(LOAD(a + 2 * V)), t = keep(LOAD(a + 3 * V));
		if (MASK(MIN(MIN(p, q), MIN(r, t)) == ZERO))
			break;
		if (MASK((p == k) | (q == k) | (r == k) | (t == k)))
			block = a;
	}
	for (;; a += V) {
		x = keep(LOAD(a));
		end = MASK(x == ZERO), hit = MASK(x == k);
		if (end)
			break;
		if (hit)
			found = a, found_hit = hit, block = NULL;
	}
done:
	hit &= end ^ (end - 1);
	if (hit)
		return last(a, hit);
	if (block) {
		for (a = block + 3 * V;; a -= V) {
			hit = MASK(LOAD(a) == k);
			if (hit)
				return last(a, hit);
		}
	}
	return found_hit ? last(found, found_hit) : NULL;
}

static inline int difference(const char *a, const char *b)
{
	return *(const unsigned char *)a - *(const unsigned char *)b;
}

/* 0 where the two differ, or both end. */
static inline vec stops(const char *a, const char *b)
{
	vec x = keep(LOADU(a));
	return MIN(x, (vec)(x == LOADU(b)));
}

/* Bytes until either of the two pointers reaches its next page. */
static inline size_t page_room(const char *a, const char *b)
{
	size_t x = 4096 - ((uintptr_t)a & 4095), y = 4096 - ((uintptr_t)b & 4095);
	return x < y ? x : y;
}

/* strcmp, and strncmp where n counts. */
BODY int compare(const char *a, const char *b, size_t n, const int bounded)
{
	const char *start = a, *end;
	uint32_t m;

#define STEP(i)                                                                                              \
	m = MASK(stops(a + (i), b + (i)) == ZERO);                                                           \
	if (m) {                                                                                             \
		size_t at = __builtin_ctz(m) + (i);                                                          \
		return bounded && at >= n ? 0 : difference(a + at, b + at);                                  \
	}                                                                                                    \
	if (bounded && n <= (i) + V)                                                                         \
		return 0;

	if (bounded && !n)
		return 0;
	if (LIKELY((((uintptr_t)a | (uintptr_t)b) & 4095) <= 4096 - 4 * V)) {
		STEP(0)
		STEP(V)
		STEP(2 * V)
		STEP(3 * V)
		size_t skip = 4 * V - ((uintptr_t)a & (V - 1));
		a += skip;
		b += skip;
	}
	end = bounded && n < (size_t)-1 >> 1 ? start + n : (const char *)-1;
	for (;;) {
		size_t room = page_room(a, b);
		if (bounded && room >= (size_t)(end - a)) {
			room = (size_t)(end - a);
			if (!room)
				return 0;
		}
		for (; room >= 4 * V; room -= 4 * V, a += 4 * V, b += 4 * V) {
			vec p = stops(a, b), q = stops(a + V, b + V), r = stops(a + 2 * V, b + 2 * V),
			    t = stops(a + 3 * V, b + 3 * V);
			if (MASK(MIN(MIN(p, q), MIN(r, t)) == ZERO))
				break;
		}
		for (; room >= V; room -= V, a += V, b += V)
			if ((m = MASK(stops(a, b) == ZERO)))
				return difference(a + __builtin_ctz(m), b + __builtin_ctz(m));
		if (!room)
			continue;
		/* The rest before the page's end, again with bytes that are known to be equal. */
		if (LIKELY((size_t)(a - start) >= V - room)) {
			a -= V - room;
			b -= V - room;
			if ((m = MASK(stops(a, b) == ZERO)))
				return difference(a + __builtin_ctz(m), b + __builtin_ctz(m));
			a += V;
			b += V;
			continue;
		}
		for (; room; room--, a++, b++)
			if (*a != *b || !*a)
				return difference(a, b);
	}
#undef STEP
}

BODY int strcmp_body(const char *a, const char *b) { return compare(a, b, 0, 0); }
BODY int strncmp_body(const char *a, const char *b, size_t n) { return compare(a, b, n, 1); }

/* n bytes, 1 to one vector, as two overlapping pieces. */
static inline void copy_tail(char *d, const char *s, unsigned n)
{
#if RF_VEC == 32
	if (n >= 16) {
		v16 p = *(const v16u *)s, q = *(const v16u *)(s + n - 16);
		*(v16u *)d = p;
		*(v16u *)(d + n - 16) = q;
		return;
	}
#endif
	if (n >= 8) {
		uint64_t p = *(const u64u *)s, q = *(const u64u *)(s + n - 8);
		*(u64u *)d = p;
		*(u64u *)(d + n - 8) = q;
	} else if (n >= 4) {
		uint32_t p = *(const u32u *)s, q = *(const u32u *)(s + n - 4);
		*(u32u *)d = p;
		*(u32u *)(d + n - 4) = q;
	} else {
		for (unsigned i = 0; i < n; i++)
			d[i] = s[i];
	}
}

/* Copies up to and with the terminating NUL; returns where it was put. */
BODY char *stpcpy_body(char *d, const char *s)
{
	char *start = d;
	uint32_t m;

	if (LIKELY(WITHIN_PAGE(s, 4 * V))) {
		vec x = keep(LOADU(s));
		m = MASK(x == ZERO);
		if (m) {
			unsigned at = __builtin_ctz(m);
			copy_tail(d, s, at + 1);
			return d + at;
		}
		/* What is left over at the end goes by a vector that overlaps the one before. */
#define STEP(i)                                                                                              \
	STOREU(d + (i) - V, x);                                                                              \
	x = keep(LOADU(s + (i)));                                                                            \
	m = MASK(x == ZERO);                                                                                 \
	if (m) {                                                                                             \
		size_t at = (i) + __builtin_ctz(m);                                                          \
		STOREU(d + at + 1 - V, LOADU(s + at + 1 - V));                                               \
		return d + at;                                                                               \
	}
		STEP(V)
		STEP(2 * V)
		STEP(3 * V)
#undef STEP
		STOREU(d + 3 * V, x);
		size_t skip = 4 * V - ((uintptr_t)s & (V - 1));
		d += skip;
		s += skip;
	}
	for (;;) {
		size_t room = 4096 - ((uintptr_t)s & 4095);
		for (; room >= 4 * V; room -= 4 * V, d += 4 * V, s += 4 * V) {
			vec p = keep(LOADU(s)), q = keep(LOADU(s + V)), r = keep(LOADU(s + 2 * V)),
			    t = keep(LOADU(s + 3 * V));
			if (MASK(MIN(MIN(p, q), MIN(r, t)) == ZERO))
				break;
			STOREU(d, p);
			STOREU(d + V, q);
			STOREU(d + 2 * V, r);
			STOREU(d + 3 * V, t);
		}
		for (; room >= V; room -= V, d += V, s += V) {
			vec x = keep(LOADU(s));
			m = MASK(x == ZERO);
			if (m) {
				size_t at = __builtin_ctz(m);
				if (LIKELY((size_t)(d - start) >= V - 1))
					STOREU(d + at + 1 - V, LOADU(s + at + 1 - V));
				else
					copy_tail(d, s, (unsigned)at + 1);
				return d + at;
			}
			STOREU(d, x);
		}
		for (; room; room--, s++, d++)
			if (!(*d = *s))
				return d;
	}
}

BODY char *strcpy_body(char *d, const char *s)
{
	stpcpy_body(d, s);
	return d;
}

ENTRY(size_t, strlen, (const char *s), (s))
ENTRY(char *, strchrnul, (const char *s, int c), (s, c))
ENTRY(char *, strchr, (const char *s, int c), (s, c))
ENTRY(char *, strrchr, (const char *s, int c), (s, c))
ENTRY(int, strcmp, (const char *a, const char *b), (a, b))
ENTRY(int, strncmp, (const char *a, const char *b, size_t n), (a, b, n))
ENTRY(char *, stpcpy, (char *restrict d, const char *restrict s), (d, s))
ENTRY(char *, strcpy, (char *restrict d, const char *restrict s), (d, s))

#if RF_VEC == 32
char *__strchrnul(const char *s, int c) __attribute__((weak, alias("strchrnul")));
char *index(const char *s, int c) __attribute__((weak, alias("strchr")));
char *rindex(const char *s, int c) __attribute__((weak, alias("strrchr")));
char *__stpcpy(char *restrict d, const char *restrict s) __attribute__((weak, alias("stpcpy")));
#endif
