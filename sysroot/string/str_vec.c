/* String functions. Loads are aligned, or are checked not to cross into another page: a string's last
 * page may be followed by one that is not there. */
#include "vec.h"

static inline const char *align_down(const char *p) { return (const char *)((uintptr_t)p & ~(uintptr_t)(V - 1)); }

size_t VFN(strlen)(const char *s)
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

char *VFN(strchrnul)(const char *s, int c)
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

char *VFN(strrchr)(const char *s, int c)
{
	const vec k = splat(c);
	const char *a = align_down(s), *found = NULL;
	uint32_t drop = ALL << (s - a);

	for (;; a += V, drop = ALL) {
		vec x = LOAD(a);
		uint32_t end = MASK(x == ZERO) & drop, hit = MASK(x == k) & drop;
		if (end) {
			hit &= end ^ (end - 1); /* up to the end, the end itself included */
			return hit ? (char *)a + (31 - __builtin_clz(hit)) : (char *)found;
		}
		if (hit)
			found = a + (31 - __builtin_clz(hit));
	}
}

static inline int difference(const char *a, const char *b)
{
	return *(const unsigned char *)a - *(const unsigned char *)b;
}

/* Where a and b differ, or both end. */
static inline uint32_t stop_mask(vec x, vec y) { return MASK(MIN(x, (vec)(x == y)) == ZERO); }

/* Bytes until either of the two pointers reaches its next page. */
static inline size_t page_room(const char *a, const char *b)
{
	size_t x = 4096 - ((uintptr_t)a & 4095), y = 4096 - ((uintptr_t)b & 4095);
	return x < y ? x : y;
}

int VFN(strcmp)(const char *a, const char *b)
{
	for (;;) {
		size_t room = page_room(a, b);
		uint32_t m;
		while (room >= 4 * V) {
			for (int i = 0; i < 4; i++) {
				m = stop_mask(LOADU(a), LOADU(b));
				if (m)
					return difference(a + __builtin_ctz(m), b + __builtin_ctz(m));
				a += V;
				b += V;
			}
			room -= 4 * V;
		}
		while (room >= V) {
			m = stop_mask(LOADU(a), LOADU(b));
			if (m)
				return difference(a + __builtin_ctz(m), b + __builtin_ctz(m));
			a += V;
			b += V;
			room -= V;
		}
		for (; room; room--, a++, b++)
			if (*a != *b || !*a)
				return difference(a, b);
	}
}

int VFN(strncmp)(const char *a, const char *b, size_t n)
{
	while (n) {
		size_t room = page_room(a, b);
		if (room > n)
			room = n;
		n -= room;
		while (room >= V) {
			uint32_t m = stop_mask(LOADU(a), LOADU(b));
			if (m)
				return difference(a + __builtin_ctz(m), b + __builtin_ctz(m));
			a += V;
			b += V;
			room -= V;
		}
		if (room && !n && WITHIN_PAGE(a, RF_VEC) && WITHIN_PAGE(b, RF_VEC)) {
			uint32_t m = stop_mask(LOADU(a), LOADU(b));
			if (!m || (size_t)__builtin_ctz(m) >= room)
				return 0;
			return difference(a + __builtin_ctz(m), b + __builtin_ctz(m));
		}
		for (; room; room--, a++, b++)
			if (*a != *b || !*a)
				return difference(a, b);
	}
	return 0;
}

/* Copies up to and with the terminating NUL; returns where it was put. */
char *VFN(stpcpy)(char *d, const char *s)
{
	for (;;) {
		size_t room = 4096 - ((uintptr_t)s & 4095);
		while (room >= V) {
			vec x = LOADU(s);
			uint32_t m = MASK(x == ZERO);
			if (m) {
				unsigned at = __builtin_ctz(m), n = at + 1;
				/* n bytes, as two overlapping halves */
#if RF_VEC == 32
				if (n >= 16) {
					v16 p = *(const v16u *)s, q = *(const v16u *)(s + n - 16);
					*(v16u *)d = p;
					*(v16u *)(d + n - 16) = q;
				} else
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
				return d + at;
			}
			STOREU(d, x);
			d += V;
			s += V;
			room -= V;
		}
		for (; room; room--, s++, d++)
			if (!(*d = *s))
				return d;
	}
}
