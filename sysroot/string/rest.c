/* The functions that are made of others. */
#include <stddef.h>
#include <stdint.h>

/* A program may define any of these functions itself. */
#define WEAK __attribute__((weak))

void *memchr(const void *, int, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
size_t strlen(const char *);
char *strcpy(char *restrict, const char *restrict);

WEAK void *mempcpy(void *restrict dst, const void *restrict src, size_t n) { return (char *)memmove(dst, src, n) + n; }

WEAK size_t strnlen(const char *s, size_t n)
{
	const char *end = memchr(s, 0, n);
	return end ? (size_t)(end - s) : n;
}

WEAK char *stpncpy(char *restrict d, const char *restrict s, size_t n)
{
	size_t k = strnlen(s, n);
	memmove(d, s, k);
	memset(d + k, 0, n - k);
	return d + k;
}
char *__stpncpy(char *restrict d, const char *restrict s, size_t n) __attribute__((weak, alias("stpncpy")));

WEAK char *strncpy(char *restrict d, const char *restrict s, size_t n)
{
	stpncpy(d, s, n);
	return d;
}

WEAK char *strcat(char *restrict d, const char *restrict s)
{
	strcpy(d + strlen(d), s);
	return d;
}

WEAK char *strncat(char *restrict d, const char *restrict s, size_t n)
{
	char *e = d + strlen(d);
	size_t k = strnlen(s, n);
	memmove(e, s, k);
	e[k] = 0;
	return d;
}
