/* Allocation in the words mode. Where the domain has a checked heap (isa::window::HEADER_HEAP), blocks are objects of its arena: the
 * word behind each is nobody's, what was freed has no rights, and what was never written is not read. The runtime keeps them. What
 * is too long for that, or has to be aligned, or does not fit, is local as ever, and so is all without such a heap. Which of both a
 * block is, its address tells. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "syscall.h"

/* isa::words::heap */
enum { ALLOCATE = 0x52460001, FREE, RESIZE, LENGTH, WRITTEN };

#define CHECKED (*(const volatile uint32_t *)0x1001c) /* isa::window::HEADER_HEAP */
#define FOREIGN(p) ((int32_t)(uintptr_t)(p) < -0x40000000) /* isa::words::LOCAL */

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_aligned_alloc(size_t, size_t);
void __libc_free(void *);
size_t __rf_local_malloc_usable_size(void *);

static void *object(size_t n, int zeroed)
{
	long p = __syscall(ALLOCATE, n, zeroed);
	return p < 0 && p > -4096 ? NULL : (void *)p;
}

void *malloc(size_t n)
{
	void *p = CHECKED ? object(n, 0) : NULL;
	return p ? p : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	size_t total;
	void *p = CHECKED && !__builtin_mul_overflow(n, size, &total) ? object(total, 1) : NULL;
	return p ? p : __libc_calloc(n, size);
}

void free(void *p)
{
	if (FOREIGN(p))
		__syscall(FREE, p);
	else
		__libc_free(p);
}

size_t malloc_usable_size(void *p)
{
	return FOREIGN(p) ? (size_t)__syscall(LENGTH, p) : __rf_local_malloc_usable_size(p);
}

void *realloc(void *p, size_t n)
{
	if (!p)
		return malloc(n);
	if (!FOREIGN(p))
		return __libc_realloc(p, n);
	long q = __syscall(RESIZE, p, n);
	if (q >= 0 || q <= -4096)
		return (void *)q;
	/* Too long for an object. Local memory has no words that were never written, so here they count as written. */
	size_t have = (size_t)__syscall(LENGTH, p);
	void *local = __libc_malloc(n);
	if (!local)
		return NULL;
	__syscall(WRITTEN, p, have);
	memcpy(local, p, n < have ? n : have);
	__syscall(FREE, p);
	return local;
}

void *aligned_alloc(size_t align, size_t n)
{
	if (align <= 16 && align && !(align & (align - 1)))
		return malloc(n);
	return __libc_aligned_alloc(align, n);
}
