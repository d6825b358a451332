#include <stddef.h>
#include <stdlib.h>

typedef int compare(const void *, const void *);

static void swap(char *a, char *b, size_t size)
{
	for (; size >= 8; size -= 8, a += 8, b += 8) {
		unsigned long x, y;
		__builtin_memcpy(&x, a, 8);
		__builtin_memcpy(&y, b, 8);
		__builtin_memcpy(a, &y, 8);
		__builtin_memcpy(b, &x, 8);
	}
	for (; size; size--, a++, b++) {
		char c = *a;
		*a = *b;
		*b = c;
	}
}

static void sift(char *base, size_t root, size_t n, size_t size, compare *cmp)
{
	for (size_t child; (child = 2 * root + 1) < n; root = child) {
		if (child + 1 < n && cmp(base + child * size, base + (child + 1) * size) < 0)
			child++;
		if (cmp(base + root * size, base + child * size) >= 0)
			return;
		swap(base + root * size, base + child * size, size);
	}
}

static void heap_sort(char *base, size_t n, size_t size, compare *cmp)
{
	for (size_t i = n / 2; i--;)
		sift(base, i, n, size, cmp);
	while (n-- > 1) {
		swap(base, base + n * size, size);
		sift(base, 0, n, size, cmp);
	}
}

/* Quicksort with the median of three, insertion sort below 12, heap sort when the split goes wrong. */
static void sort(char *base, size_t n, size_t size, compare *cmp, unsigned depth)
{
	while (n > 12) {
		if (!depth--) {
			heap_sort(base, n, size, cmp);
			return;
		}
		char *mid = base + n / 2 * size, *last = base + (n - 1) * size;
		if (cmp(mid, base) < 0)
			swap(mid, base, size);
		if (cmp(last, mid) < 0) {
			swap(last, mid, size);
			if (cmp(mid, base) < 0)
				swap(mid, base, size);
		}
		swap(base, mid, size); /* the pivot to the front */
		size_t i = 0, j = n;
		for (;;) {
			do
				i++;
			while (i < n && cmp(base + i * size, base) < 0);
			do
				j--;
			while (cmp(base, base + j * size) < 0);
			if (i >= j)
				break;
			swap(base + i * size, base + j * size, size);
		}
		swap(base, base + j * size, size);
		size_t right = n - j - 1;
		if (j < right) {
			sort(base, j, size, cmp, depth);
			base += (j + 1) * size;
			n = right;
		} else {
			sort(base + (j + 1) * size, right, size, cmp, depth);
			n = j;
		}
	}
	for (size_t i = 1; i < n; i++)
		for (size_t j = i; j && cmp(base + (j - 1) * size, base + j * size) > 0; j--)
			swap(base + (j - 1) * size, base + j * size, size);
}

void qsort(void *base, size_t n, size_t size, compare *cmp)
{
	if (n > 1 && size)
		sort(base, n, size, cmp, 2 * (64 - (unsigned)__builtin_clzl(n)));
}

void *bsearch(const void *key, const void *base, size_t n, size_t size, compare *cmp)
{
	const char *p = base;
	while (n) {
		const char *mid = p + n / 2 * size;
		int c = cmp(key, mid);
		if (!c)
			return (void *)mid;
		if (c > 0) {
			p = mid + size;
			n -= n / 2 + 1;
		} else {
			n /= 2;
		}
	}
	return NULL;
}
