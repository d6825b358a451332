/* Memory and string functions of the words mode (--isolation=words), for objects of the host's as for the module's own.
 *
 * What is local goes to the functions with vectors, which read whole vectors where a page allows it (their names get __rf_local_ in
 * front: local.syms). For what is foreign nothing is read but the words, 4 bytes each, that the function has to look at: rights
 * are those of whole words, and the next one may be nobody's. So strings are read by aligned words, and blocks, all of whose bytes
 * are wanted, by vectors that end with them. */
#include <stddef.h>
#include <stdint.h>

#define WEAK __attribute__((weak))
#define ALIAS(of) __attribute__((weak, alias(of)))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

typedef uint32_t word __attribute__((may_alias));
typedef uint16_t u16u __attribute__((aligned(1), may_alias));
typedef uint32_t u32u __attribute__((aligned(1), may_alias));
typedef uint64_t u64u __attribute__((aligned(1), may_alias));
typedef char v16 __attribute__((vector_size(16), may_alias));
typedef char v16u __attribute__((vector_size(16), aligned(1), may_alias));

/* isa::words::LOCAL. */
#define FOREIGN(p) UNLIKELY((int32_t)(uintptr_t)(p) < -0x40000000)

/* Both are the local function, and the public one that chooses. */
#define LOCAL(ret, name, params) ret __rf_local_##name params __attribute__((visibility("hidden")))

#define ONES 0x01010101u
#define TOPS 0x80808080u
/* The highest bit of the first byte that is 0, and perhaps of others behind it. */
static inline uint32_t zero(uint32_t x)
{
	return (x - ONES) & ~x & TOPS;
}
static inline size_t first(uint32_t hits)
{
	return (size_t)__builtin_ctz(hits) / 8;
}
static inline const word *floor_of(const void *p)
{
	return (const word *)((uintptr_t)p & ~(uintptr_t)3);
}
/* The bits of the bytes in front of p in its word. */
static inline uint32_t before(const void *p)
{
	return (1u << 8 * ((uintptr_t)p & 3)) - 1;
}
/* Keeps the compiler from making calls of these functions, or longer accesses, of loops. */
#define STEP __asm__ volatile("" : : : "memory")

/* In a checked heap (isa::window::HEADER_HEAP) the runtime is told what is about to be written or copied: else each new word costs a
 * fault, and what nobody has filled could not be copied along with the rest. */
static inline void tell(long number, const void *p, const void *q, size_t n)
{
	long a = (long)p, b = (long)q, c = (long)n;
	if (!*(const volatile uint32_t *)0x1001c || n <= 4)
		return;
	__asm__ volatile("call __rf_syscall"
			 : "+a"(number), "+D"(a), "+S"(b), "+d"(c)
			 :
			 : "rcx", "r8", "r9", "r10", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
			   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
}
enum { WRITTEN = 0x52460005, COPIED }; /* isa::words::heap */

/* --- blocks ------------------------------------------------------------------------------------------------ */

static void forward(unsigned char *d, const unsigned char *s, size_t n)
{
	for (; n >= 64; n -= 64, d += 64, s += 64) {
		v16 a = *(const v16u *)s, b = *(const v16u *)(s + 16), c = *(const v16u *)(s + 32), e = *(const v16u *)(s + 48);
		STEP;
		*(v16u *)d = a;
		*(v16u *)(d + 16) = b;
		*(v16u *)(d + 32) = c;
		*(v16u *)(d + 48) = e;
	}
	for (; n >= 16; n -= 16, d += 16, s += 16) {
		*(v16u *)d = *(const v16u *)s;
		STEP;
	}
	for (; n >= 4; n -= 4, d += 4, s += 4) {
		*(u32u *)d = *(const u32u *)s;
		STEP;
	}
	for (; n; n--) {
		*d++ = *s++;
		STEP;
	}
}

static void backward(unsigned char *d, const unsigned char *s, size_t n)
{
	for (; n >= 64; n -= 64) {
		const unsigned char *t = s + n - 64;
		unsigned char *u = d + n - 64;
		v16 a = *(const v16u *)t, b = *(const v16u *)(t + 16), c = *(const v16u *)(t + 32), e = *(const v16u *)(t + 48);
		STEP;
		*(v16u *)(u + 48) = e;
		*(v16u *)(u + 32) = c;
		*(v16u *)(u + 16) = b;
		*(v16u *)u = a;
	}
	for (; n >= 16; n -= 16) {
		*(v16u *)(d + n - 16) = *(const v16u *)(s + n - 16);
		STEP;
	}
	while (n--) {
		d[n] = s[n];
		STEP;
	}
}

LOCAL(void *, memmove, (void *, const void *, size_t));
WEAK void *memmove(void *d, const void *s, size_t n)
{
	if (FOREIGN(d) || FOREIGN(s)) {
		tell(COPIED, d, s, n);
		if ((uintptr_t)d - (uintptr_t)s >= n)
			forward(d, s, n);
		else
			backward(d, s, n);
		return d;
	}
	return __rf_local_memmove(d, s, n);
}
void *memcpy(void *restrict d, const void *restrict s, size_t n) ALIAS("memmove");

LOCAL(void *, memset, (void *, int, size_t));
WEAK void *memset(void *p, int c, size_t n)
{
	if (FOREIGN(p)) {
		tell(WRITTEN, p, (const void *)n, n);
		unsigned char *d = p;
		v16 v = (v16){0} + (char)c;
		uint32_t w = (unsigned char)c * ONES;

		for (; n >= 16; n -= 16, d += 16)
			*(v16u *)d = v;
		for (; n >= 4; n -= 4, d += 4) {
			*(u32u *)d = w;
			STEP;
		}
		for (; n; n--) {
			*d++ = (unsigned char)c;
			STEP;
		}
		return p;
	}
	return __rf_local_memset(p, c, n);
}

LOCAL(int, memcmp, (const void *, const void *, size_t));
WEAK int memcmp(const void *p, const void *q, size_t n)
{
	if (FOREIGN(p) || FOREIGN(q)) {
		const unsigned char *a = p, *b = q;

		for (; n >= 8 && *(const u64u *)a == *(const u64u *)b; n -= 8, a += 8, b += 8)
			;
		for (; n; n--, a++, b++)
			if (*a != *b)
				return *a - *b;
		return 0;
	}
	return __rf_local_memcmp(p, q, n);
}
int bcmp(const void *, const void *, size_t) ALIAS("memcmp");

/* The first byte like c, or the byte behind n of them: n may be larger than what is there. */
static const unsigned char *search(const unsigned char *s, int c, size_t n)
{
	const word *w = floor_of(s);
	const uint32_t k = (unsigned char)c * ONES;
	const unsigned char *const end = (uintptr_t)s + n < (uintptr_t)s ? (const unsigned char *)UINTPTR_MAX : s + n;
	uint32_t hits, skip = before(s);

	do {
		hits = zero((*w ^ k) | skip);
		if (hits) {
			const unsigned char *at = (const unsigned char *)w + first(hits);
			return at < end ? at : end;
		}
		skip = 0;
		w++;
	} while ((const unsigned char *)w < end);
	return end;
}

LOCAL(void *, memchr, (const void *, int, size_t));
WEAK void *memchr(const void *p, int c, size_t n)
{
	if (FOREIGN(p)) {
		const unsigned char *end = (uintptr_t)p + n < (uintptr_t)p ? (const unsigned char *)UINTPTR_MAX : (const unsigned char *)p + n;
		const unsigned char *at = n ? search(p, c, n) : end;
		return at == end ? NULL : (void *)at;
	}
	return __rf_local_memchr(p, c, n);
}

LOCAL(void *, memrchr, (const void *, int, size_t));
WEAK void *memrchr(const void *p, int c, size_t n)
{
	if (FOREIGN(p)) {
		const unsigned char *s = p;
		while (n--) {
			if (s[n] == (unsigned char)c)
				return (void *)(s + n);
			STEP;
		}
		return NULL;
	}
	return __rf_local_memrchr(p, c, n);
}
void *__memrchr(const void *, int, size_t) ALIAS("memrchr");

LOCAL(void *, rawmemchr, (const void *, int));
WEAK void *rawmemchr(const void *p, int c)
{
	if (FOREIGN(p))
		return (void *)search(p, c, SIZE_MAX);
	return __rf_local_rawmemchr(p, c);
}

/* --- strings ----------------------------------------------------------------------------------------------- */

LOCAL(size_t, strlen, (const char *));
WEAK size_t strlen(const char *s)
{
	if (FOREIGN(s))
		return (size_t)((const char *)search((const unsigned char *)s, 0, SIZE_MAX) - s);
	return __rf_local_strlen(s);
}

LOCAL(char *, strchrnul, (const char *, int));
WEAK char *strchrnul(const char *s, int c)
{
	if (FOREIGN(s)) {
		const word *w = floor_of(s);
		const uint32_t k = (unsigned char)c * ONES;
		uint32_t skip = before(s);

		for (;; w++) {
			uint32_t x = *w | skip, y = (*w ^ k) | skip, hits = zero(x) | zero(y);
			if (hits)
				return (char *)w + first(hits);
			skip = 0;
		}
	}
	return __rf_local_strchrnul(s, c);
}
char *__strchrnul(const char *, int) ALIAS("strchrnul");

LOCAL(char *, strchr, (const char *, int));
WEAK char *strchr(const char *s, int c)
{
	if (FOREIGN(s)) {
		char *at = strchrnul(s, c);
		return *at == (char)c ? at : NULL;
	}
	return __rf_local_strchr(s, c);
}
char *index(const char *, int) ALIAS("strchr");

LOCAL(char *, strrchr, (const char *, int));
WEAK char *strrchr(const char *s, int c)
{
	if (FOREIGN(s))
		return memrchr(s, c, strlen(s) + 1);
	return __rf_local_strrchr(s, c);
}
char *rindex(const char *, int) ALIAS("strrchr");

static int compare(const char *a, const char *b, size_t n)
{
	for (; n; n--, a++, b++) {
		unsigned char x = (unsigned char)*a, y = (unsigned char)*b;
		if (x != y || !x)
			return x - y;
		STEP;
	}
	return 0;
}

LOCAL(int, strcmp, (const char *, const char *));
WEAK int strcmp(const char *a, const char *b)
{
	return FOREIGN(a) || FOREIGN(b) ? compare(a, b, SIZE_MAX) : __rf_local_strcmp(a, b);
}

LOCAL(int, strncmp, (const char *, const char *, size_t));
WEAK int strncmp(const char *a, const char *b, size_t n)
{
	return FOREIGN(a) || FOREIGN(b) ? compare(a, b, n) : __rf_local_strncmp(a, b, n);
}

LOCAL(char *, stpcpy, (char *restrict, const char *restrict));
WEAK char *stpcpy(char *restrict d, const char *restrict s)
{
	if (FOREIGN(d) || FOREIGN(s)) {
		size_t n = strlen(s);
		forward((unsigned char *)d, (const unsigned char *)s, n + 1);
		return d + n;
	}
	return __rf_local_stpcpy(d, s);
}
char *__stpcpy(char *restrict, const char *restrict) ALIAS("stpcpy");

LOCAL(char *, strcpy, (char *restrict, const char *restrict));
WEAK char *strcpy(char *restrict d, const char *restrict s)
{
	if (FOREIGN(d) || FOREIGN(s)) {
		stpcpy(d, s);
		return d;
	}
	return __rf_local_strcpy(d, s);
}

/* --- of the libc: what reads by 8 bytes there -------------------------------------------------------------- */

WEAK void *memccpy(void *restrict dst, const void *restrict src, int c, size_t n)
{
	const unsigned char *at = memchr(src, c, n);
	size_t count = at ? (size_t)(at - (const unsigned char *)src) + 1 : n;
	memmove(dst, src, count);
	return at ? (unsigned char *)dst + count : NULL;
}

WEAK size_t strlcpy(char *restrict d, const char *restrict s, size_t n)
{
	size_t length = strlen(s);
	if (n) {
		size_t count = length < n ? length : n - 1;
		memmove(d, s, count);
		d[count] = 0;
	}
	return length;
}
