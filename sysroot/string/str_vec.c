/* String functions. Loads are aligned, or are checked not to cross into another page: a string's last
 * page may be followed by one that is not there. */
#include "vec.h"

#if RF_VEC == 32
char *__rf_strchrnul_sse2(const char *, int) HIDDEN;
int __rf_strcmp_sse2(const char *, const char *) HIDDEN;
int __rf_strncmp_sse2(const char *, const char *, size_t) HIDDEN;
char *__rf_stpcpy_sse2(char *restrict, const char *restrict) HIDDEN;
char *__rf_strcpy_sse2(char *restrict, const char *restrict) HIDDEN;
#endif

static inline const char *align_down(const char *p) { return (const char *)((uintptr_t)p & ~(uintptr_t)(V - 1)); }

static inline const char *next_four(const char *p) { return (const char *)(((uintptr_t)p & ~(4 * V - 1)) + 4 * V); }

VARIANT(size_t, strlen, (const char *s))
{
	const char *a = s;
	uint32_t m;

	if (FITS(s)) {
		m = MASK(LOADU(s) == ZERO);
		if (m)
			return __builtin_ctz(m);
		a = align_down(s);
	} else {
		OTHERWISE(strlen, (s))
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

BODY char *find(const char *s, int c)
{
	const char *a;
	uint32_t m;
	vec x, k;

	if (FITS(s)) {
		k = splat(c);
		x = keep(LOADU(s));
		m = MASK((x == k) | (x == ZERO));
		if (m)
			return (char *)s + __builtin_ctz(m);
		a = align_down(s);
	} else {
		OTHERWISE(strchrnul, (s, c))
		k = splat(c);
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

VARIANT(char *, strchrnul, (const char *s, int c)) { return find(s, c); }

VARIANT(char *, strchr, (const char *s, int c))
{
	char *p = find(s, c);
	return *p == (char)c ? p : NULL;
}

static inline char *last(const char *a, uint32_t hit) { return (char *)a + (31 - __builtin_clz(hit)); }

VARIANT(char *, strrchr, (const char *s, int c))
{
	const char *a = align_down(s), *block = NULL;
	uint32_t end, hit;
	vec x, k;

	/* Most strings are short. */
	if (FITS(s)) {
		k = splat(c);
		x = keep(LOADU(s));
		end = MASK(x == ZERO), hit = MASK(x == k);
	} else {
		OTHERWISE(strrchr, (s, c))
		k = splat(c);
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
	return x & (vec)(x == LOADU(b));
}

/* The same for four vectors at once. */
static inline vec stops4(const char *a, const char *b)
{
	return MIN(MIN(stops(a, b), stops(a + V, b + V)), MIN(stops(a + 2 * V, b + 2 * V), stops(a + 3 * V, b + 3 * V)));
}

/* strcmp, and strncmp where n counts. */
BODY int compare(const char *a, const char *b, size_t n, const int bounded)
{
	const char *const start = a;
	uint32_t m;
	size_t at;
	vec zero;

#define STEP(i)                                                                                              \
	m = MASK(stops(a + (i), b + (i)) == zero);                                                           \
	if (m) {                                                                                             \
		at = __builtin_ctz(m) + (i);                                                                 \
		return bounded && at >= n ? 0 : difference(a + at, b + at);                                  \
	}                                                                                                    \
	if (bounded && n <= (i) + V)                                                                         \
		return 0;

	if (bounded && UNLIKELY(!n))
		return 0;
	if (FITS4_BOTH(a, b)) {
		zero = zeroes();
		STEP(0)
		STEP(V)
		STEP(2 * V)
		STEP(3 * V)
	} else {
		if (bounded) {
			OTHERWISE(strncmp, (a, b, n))
		} else {
			OTHERWISE(strcmp, (a, b))
		}
		zero = zeroes();
		/* Vectors while both are in their pages, then a byte, until four vectors have been compared. */
		for (size_t i = 0; i < 4 * V;) {
			if (((uintptr_t)(a + i) & 4095) <= 4096 - V && ((uintptr_t)(b + i) & 4095) <= 4096 - V) {
				STEP(i)
				i += V;
				continue;
			}
			if (a[i] != b[i] || !a[i])
				return difference(a + i, b + i);
			if (bounded && n == i + 1)
				return 0;
			i++;
		}
	}
	/* From here on four vectors of a are in one page. */
	size_t skip = 4 * V - ((uintptr_t)a & (4 * V - 1));
	a += skip;
	b += skip;
	if (bounded)
		n -= skip;
	for (;;) {
		/* Where b leaves its page, all that is before the page's end has to be equal, and no end, before more is loaded.
		 * It is known to be, if it belongs to the first four vectors. */
		size_t over = (uintptr_t)b & 4095;
		if (UNLIKELY(over > 4096 - 4 * V)) {
			over -= 4096 - 4 * V;
			if (over <= (size_t)(a - start) && MASK(stops4(a - over, b - over) == zero)) {
				a -= over;
				b -= over;
				if (bounded)
					n += over;
				break;
			}
			if (bounded && n <= 4 * V - over)
				return 0;
		}
		if (MASK(stops4(a, b) == zero))
			break;
		if (bounded && n <= 4 * V)
			return 0;
		a += 4 * V;
		b += 4 * V;
		if (bounded)
			n -= 4 * V;
	}
	STEP(0)
	STEP(V)
	STEP(2 * V)
	STEP(3 * V)
	return 0;
#undef STEP
}

VARIANT(int, strcmp, (const char *a, const char *b)) { return compare(a, b, 0, 0); }
VARIANT(int, strncmp, (const char *a, const char *b, size_t n)) { return compare(a, b, n, 1); }

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
BODY char *copy(char *d, const char *s, const int ends)
{
	char *const start = d;
	uint32_t m;
	vec x;

#define DONE(at) return ends ? d + (at) : start;
	/* What is left over at the end goes by a vector that overlaps the one before. */
#define STEP(i)                                                                                              \
	STOREU(d + (i) - V, x);                                                                              \
	x = keep(LOADU(s + (i)));                                                                            \
	m = MASK(x == ZERO);                                                                                 \
	if (m) {                                                                                             \
		size_t at = (i) + __builtin_ctz(m);                                                          \
		STOREU(d + at + 1 - V, LOADU(s + at + 1 - V));                                               \
		DONE(at)                                                                                     \
	}
	if (FITS4(s)) {
		x = keep(LOADU(s));
		m = MASK(x == ZERO);
		if (m) {
			unsigned at = __builtin_ctz(m);
			copy_tail(d, s, at + 1);
			DONE(at)
		}
		STEP(V)
		STEP(2 * V)
		STEP(3 * V)
		STOREU(d + 3 * V, x);
	} else {
		if (ends) {
			OTHERWISE(stpcpy, (d, s))
		} else {
			OTHERWISE(strcpy, (d, s))
		}
		/* Aligned vectors do not leave a page; what comes before the first goes by bytes. */
		size_t i = 0, edge = -(uintptr_t)s & (V - 1);
		for (; i < edge; i++)
			if (!(d[i] = s[i])) {
				DONE(i)
			}
		for (; i < 4 * V; i += V) {
			x = keep(LOAD(s + i));
			m = MASK(x == ZERO);
			if (m) {
				size_t at = i + __builtin_ctz(m);
				if (at + 1 >= V)
					STOREU(d + at + 1 - V, LOADU(s + at + 1 - V));
				else
					copy_tail(d, s, (unsigned)at + 1);
				DONE(at)
			}
			STOREU(d + i, x);
		}
	}
	/* Four vectors from a boundary of four do not leave a page either. */
	size_t skip = 4 * V - ((uintptr_t)s & (4 * V - 1));
	d += skip;
	s += skip;
	for (;;) {
		vec p = keep(LOAD(s)), q = keep(LOAD(s + V)), r = keep(LOAD(s + 2 * V)), t = keep(LOAD(s + 3 * V));
		if (MASK(MIN(MIN(p, q), MIN(r, t)) == ZERO)) {
			x = p;
			break;
		}
		STOREU(d, p);
		STOREU(d + V, q);
		STOREU(d + 2 * V, r);
		STOREU(d + 3 * V, t);
		d += 4 * V;
		s += 4 * V;
	}
	m = MASK(x == ZERO);
	if (m) {
		size_t at = __builtin_ctz(m);
		STOREU(d + at + 1 - V, LOADU(s + at + 1 - V));
		DONE(at)
	}
	STEP(V)
	STEP(2 * V)
	STEP(3 * V)
	__builtin_unreachable();
#undef STEP
#undef DONE
}

VARIANT(char *, stpcpy, (char *restrict d, const char *restrict s)) { return copy(d, s, 1); }
VARIANT(char *, strcpy, (char *restrict d, const char *restrict s)) { return copy(d, s, 0); }

#if RF_VEC == 32
char *__strchrnul(const char *s, int c) __attribute__((weak, alias("strchrnul")));
char *index(const char *s, int c) __attribute__((weak, alias("strchr")));
char *rindex(const char *s, int c) __attribute__((weak, alias("strrchr")));
char *__stpcpy(char *restrict d, const char *restrict s) __attribute__((weak, alias("stpcpy")));
#endif
