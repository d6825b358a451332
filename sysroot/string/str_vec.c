/* String functions. Loads are aligned, or are checked not to cross into another page: a string's last
 * page may be followed by one that is not there. */
#include "vec.h"

static inline const char *align_down(const char *p) { return (const char *)((uintptr_t)p & ~(uintptr_t)(V - 1)); }

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
	/* Single vectors up to a boundary of four, then four at a time. */
	for (;;) {
		a += V;
		if (!((uintptr_t)a & (4 * V - 1)))
			break;
		m = MASK(LOAD(a) == ZERO);
		if (m)
			return (size_t)(a - s) + __builtin_ctz(m);
	}
	for (;; a += 4 * V) {
		vec x = LOAD(a), y = LOAD(a + V), z = LOAD(a + 2 * V), w = LOAD(a + 3 * V);
		if (MASK(MIN(MIN(x, y), MIN(z, w)) == ZERO))
			break;
	}
	for (;; a += V) {
		m = MASK(LOAD(a) == ZERO);
		if (m)
			return (size_t)(a - s) + __builtin_ctz(m);
	}
}

BODY char *strchrnul_body(const char *s, int c)
{
	const vec k = splat(c);
	const char *a;
	uint32_t m;
	vec x;

	if (LIKELY(WITHIN_PAGE(s, RF_VEC))) {
		x = LOADU(s);
		m = MASK((x == k) | (x == ZERO));
		if (m)
			return (char *)s + __builtin_ctz(m);
		a = align_down(s);
	} else {
		a = align_down(s);
		x = LOAD(a);
		m = MASK((x == k) | (x == ZERO)) >> (s - a);
		if (m)
			return (char *)s + __builtin_ctz(m);
	}
	for (;;) {
		a += V;
		if (!((uintptr_t)a & (4 * V - 1)))
			break;
		x = LOAD(a);
		m = MASK((x == k) | (x == ZERO));
		if (m)
			return (char *)a + __builtin_ctz(m);
	}
	/* x ^ k is 0 where the character is, so a minimum with x finds both at once. */
	for (;; a += 4 * V) {
		vec p = LOAD(a), q = LOAD(a + V), r = LOAD(a + 2 * V), t = LOAD(a + 3 * V);
		vec u = MIN(MIN(p, p ^ k), MIN(q, q ^ k)), v = MIN(MIN(r, r ^ k), MIN(t, t ^ k));
		if (MASK(MIN(u, v) == ZERO))
			break;
	}
	for (;; a += V) {
		x = LOAD(a);
		m = MASK((x == k) | (x == ZERO));
		if (m)
			return (char *)a + __builtin_ctz(m);
	}
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
	const char *a = align_down(s), *found = NULL, *block = NULL;
	uint32_t drop = ALL << (s - a), end, hit;

	/* Single vectors up to a boundary of four. */
	do {
		vec x = LOAD(a);
		end = MASK(x == ZERO) & drop, hit = MASK(x == k) & drop;
		if (end) {
			hit &= end ^ (end - 1); /* up to the end, the end itself included */
			return hit ? last(a, hit) : (char *)found;
		}
		if (hit)
			found = last(a, hit);
		drop = ALL;
		a += V;
	} while ((uintptr_t)a & (4 * V - 1));
	/* Of four at a time only which ones were the last with a hit; where it was is looked for once. */
	for (;; a += 4 * V) {
		vec p = LOAD(a), q = LOAD(a + V), r = LOAD(a + 2 * V), t = LOAD(a + 3 * V);
		if (MASK(MIN(MIN(p, q), MIN(r, t)) == ZERO))
			break;
		if (MASK((p == k) | (q == k) | (r == k) | (t == k)))
			block = a;
	}
	for (;; a += V) {
		vec x = LOAD(a);
		end = MASK(x == ZERO), hit = MASK(x == k);
		if (end)
			hit &= end ^ (end - 1);
		if (hit)
			found = last(a, hit), block = NULL;
		if (end)
			break;
	}
	if (!block)
		return (char *)found;
	for (a = block + 3 * V;; a -= V) {
		hit = MASK(LOAD(a) == k);
		if (hit)
			return last(a, hit);
	}
}

static inline int difference(const char *a, const char *b)
{
	return *(const unsigned char *)a - *(const unsigned char *)b;
}

/* 0 where x and y differ, or both end. */
static inline vec stops(vec x, vec y) { return MIN(x, (vec)(x == y)); }

/* Bytes until either of the two pointers reaches its next page. */
static inline size_t page_room(const char *a, const char *b)
{
	size_t x = 4096 - ((uintptr_t)a & 4095), y = 4096 - ((uintptr_t)b & 4095);
	return x < y ? x : y;
}

/* Compares `room` bytes at the most, which lie within a page of both; whether it is decided then. */
static inline int compare(const char **pa, const char **pb, size_t room, int *result)
{
	const char *a = *pa, *b = *pb;
	uint32_t m;

	while (room >= 4 * V) {
		vec p = stops(LOADU(a), LOADU(b)), q = stops(LOADU(a + V), LOADU(b + V)),
		    r = stops(LOADU(a + 2 * V), LOADU(b + 2 * V)), t = stops(LOADU(a + 3 * V), LOADU(b + 3 * V));
		if (MASK(MIN(MIN(p, q), MIN(r, t)) == ZERO))
			break;
		a += 4 * V;
		b += 4 * V;
		room -= 4 * V;
	}
	while (room >= V) {
		m = MASK(stops(LOADU(a), LOADU(b)) == ZERO);
		if (m) {
			*result = difference(a + __builtin_ctz(m), b + __builtin_ctz(m));
			return 1;
		}
		a += V;
		b += V;
		room -= V;
	}
	for (; room; room--, a++, b++)
		if (*a != *b || !*a) {
			*result = difference(a, b);
			return 1;
		}
	*pa = a;
	*pb = b;
	return 0;
}

BODY int strcmp_body(const char *a, const char *b)
{
	int result;

	if (LIKELY(WITHIN_PAGE(a, 4 * RF_VEC) && WITHIN_PAGE(b, 4 * RF_VEC))) {
		/* Most strings are short. */
		uint32_t m;
		for (int i = 0; i < 4; i++) {
			m = MASK(stops(LOADU(a), LOADU(b)) == ZERO);
			if (m)
				return difference(a + __builtin_ctz(m), b + __builtin_ctz(m));
			a += V;
			b += V;
		}
	}
	while (!compare(&a, &b, page_room(a, b), &result))
		;
	return result;
}

BODY int strncmp_body(const char *a, const char *b, size_t n)
{
	int result;

	while (n) {
		size_t room = page_room(a, b);
		if (n < V && room >= V) {
			uint32_t m = MASK(stops(LOADU(a), LOADU(b)) == ZERO);
			if (!m || (size_t)__builtin_ctz(m) >= n)
				return 0;
			return difference(a + __builtin_ctz(m), b + __builtin_ctz(m));
		}
		if (room > n)
			room = n;
		if (room > V && n - room < V) /* the rest by the vector above */
			room -= room % V;
		if (compare(&a, &b, room, &result))
			return result;
		n -= room;
	}
	return 0;
}

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
	for (;;) {
		size_t room = 4096 - ((uintptr_t)s & 4095);
		while (room >= V) {
			vec x = LOADU(s);
			uint32_t m = MASK(x == ZERO);
			if (m) {
				unsigned at = __builtin_ctz(m);
				copy_tail(d, s, at + 1);
				return d + at;
			}
			STOREU(d, x);
			d += V;
			s += V;
			room -= V;
			while (room >= 4 * V) {
				vec p = LOADU(s), q = LOADU(s + V), r = LOADU(s + 2 * V), t = LOADU(s + 3 * V);
				if (MASK(MIN(MIN(p, q), MIN(r, t)) == ZERO))
					break;
				STOREU(d, p);
				STOREU(d + V, q);
				STOREU(d + 2 * V, r);
				STOREU(d + 3 * V, t);
				d += 4 * V;
				s += 4 * V;
				room -= 4 * V;
			}
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
char *__strchrnul(const char *s, int c) __attribute__((alias("strchrnul")));
char *index(const char *s, int c) __attribute__((alias("strchr")));
char *rindex(const char *s, int c) __attribute__((alias("strrchr")));
char *__stpcpy(char *restrict d, const char *restrict s) __attribute__((alias("stpcpy")));
#endif
