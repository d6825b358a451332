/* The memory and string functions' public names. Short blocks are done here; longer ones go to the
 * processor's best variant. */
#include "vec.h"

#define AVX2 LIKELY(RF_FEATURES & RF_FEATURE_AVX2)
#define CHOOSE(name, ...) (AVX2 ? __rf_##name##_avx2(__VA_ARGS__) : __rf_##name##_sse2(__VA_ARGS__))
#define WEAK __attribute__((weak))

void *memmove(void *dst, const void *src, size_t n)
{
	unsigned char *d = dst;
	const unsigned char *s = src;

	if (n > 32)
		return CHOOSE(memmove_large, dst, src, n);
	if (n >= 16) {
		v16 a = *(const v16u *)s, b = *(const v16u *)(s + n - 16);
		*(v16u *)d = a;
		*(v16u *)(d + n - 16) = b;
	} else if (n >= 8) {
		uint64_t a = *(const u64u *)s, b = *(const u64u *)(s + n - 8);
		*(u64u *)d = a;
		*(u64u *)(d + n - 8) = b;
	} else if (n >= 4) {
		uint32_t a = *(const u32u *)s, b = *(const u32u *)(s + n - 4);
		*(u32u *)d = a;
		*(u32u *)(d + n - 4) = b;
	} else if (n >= 2) {
		uint16_t a = *(const u16u *)s, b = *(const u16u *)(s + n - 2);
		*(u16u *)d = a;
		*(u16u *)(d + n - 2) = b;
	} else if (n) {
		*d = *s;
	}
	return dst;
}

/* One function for both: calls that overlap by mistake then work, too. */
void *memcpy(void *restrict dst, const void *restrict src, size_t n) __attribute__((alias("memmove")));

void *mempcpy(void *restrict dst, const void *restrict src, size_t n)
{
	return (char *)memmove(dst, src, n) + n;
}

void *memset(void *dst, int c, size_t n)
{
	unsigned char *d = dst;

	if (n > 32)
		return CHOOSE(memset_large, dst, c, n);
	if (n >= 16) {
		v16 v = (v16){0} + (char)c;
		*(v16u *)d = v;
		*(v16u *)(d + n - 16) = v;
		return dst;
	}
	uint64_t v = (unsigned char)c * 0x0101010101010101u;
	if (n >= 8) {
		*(u64u *)d = v;
		*(u64u *)(d + n - 8) = v;
	} else if (n >= 4) {
		*(u32u *)d = (uint32_t)v;
		*(u32u *)(d + n - 4) = (uint32_t)v;
	} else if (n >= 2) {
		*(u16u *)d = (uint16_t)v;
		*(u16u *)(d + n - 2) = (uint16_t)v;
	} else if (n) {
		*d = (unsigned char)c;
	}
	return dst;
}

int memcmp(const void *a, const void *b, size_t n) { return CHOOSE(memcmp, a, b, n); }
int bcmp(const void *a, const void *b, size_t n) __attribute__((alias("memcmp")));
void *memchr(const void *s, int c, size_t n) { return CHOOSE(memchr, s, c, n); }
void *memrchr(const void *s, int c, size_t n) { return CHOOSE(memrchr, s, c, n); }
void *__memrchr(const void *s, int c, size_t n) __attribute__((alias("memrchr")));
void *rawmemchr(const void *s, int c) { return CHOOSE(rawmemchr, s, c); }

size_t strlen(const char *s) { return CHOOSE(strlen, s); }
size_t strnlen(const char *s, size_t n)
{
	const char *end = memchr(s, 0, n);
	return end ? (size_t)(end - s) : n;
}

char *strchrnul(const char *s, int c) { return CHOOSE(strchrnul, s, c); }
char *__strchrnul(const char *s, int c) __attribute__((alias("strchrnul")));
char *strchr(const char *s, int c)
{
	char *p = strchrnul(s, c);
	return *p == (char)c ? p : NULL;
}
char *index(const char *s, int c) __attribute__((alias("strchr")));
char *strrchr(const char *s, int c) { return CHOOSE(strrchr, s, c); }
char *rindex(const char *s, int c) __attribute__((alias("strrchr")));

int strcmp(const char *a, const char *b) { return CHOOSE(strcmp, a, b); }
int strncmp(const char *a, const char *b, size_t n) { return CHOOSE(strncmp, a, b, n); }

char *stpcpy(char *restrict d, const char *restrict s) { return CHOOSE(stpcpy, d, s); }
char *__stpcpy(char *restrict d, const char *restrict s) __attribute__((alias("stpcpy")));
char *strcpy(char *restrict d, const char *restrict s)
{
	stpcpy(d, s);
	return d;
}
char *stpncpy(char *restrict d, const char *restrict s, size_t n)
{
	size_t k = strnlen(s, n);
	memmove(d, s, k);
	memset(d + k, 0, n - k);
	return d + k;
}
char *__stpncpy(char *restrict d, const char *restrict s, size_t n) __attribute__((alias("stpncpy")));
char *strncpy(char *restrict d, const char *restrict s, size_t n)
{
	stpncpy(d, s, n);
	return d;
}
char *strcat(char *restrict d, const char *restrict s)
{
	strcpy(d + strlen(d), s);
	return d;
}
char *strncat(char *restrict d, const char *restrict s, size_t n)
{
	char *e = d + strlen(d);
	size_t k = strnlen(s, n);
	memmove(e, s, k);
	e[k] = 0;
	return d;
}
