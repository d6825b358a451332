/* pg_qsort and qsort_arg. What equal items become depends on the algorithm, so this is a merge sort that keeps their order:
 * results do not depend on the sizes of items. */
#include "guest.h"

#include <stdlib.h>
#include <string.h>

typedef int (*comparison)(const void *, const void *, void *);

static void insertion_sort(char *base, size_t count, size_t size, comparison compare, void *argument, char *spare)
{
	for (size_t i = 1; i < count; i++) {
		char *item = base + i * size;
		size_t at = i;

		while (at > 0 && compare(base + (at - 1) * size, item, argument) > 0)
			at--;
		if (at == i)
			continue;
		memcpy(spare, item, size);
		memmove(base + (at + 1) * size, base + at * size, (i - at) * size);
		memcpy(base + at * size, spare, size);
	}
}

static void merge_sort(char *base, size_t count, size_t size, comparison compare, void *argument, char *spare)
{
	size_t half = count / 2, left = 0, right = half, at = 0;

	if (count <= 8) {
		insertion_sort(base, count, size, compare, argument, spare);
		return;
	}
	merge_sort(base, half, size, compare, argument, spare);
	merge_sort(base + half * size, count - half, size, compare, argument, spare);
	if (compare(base + (half - 1) * size, base + half * size, argument) <= 0)
		return;
	memcpy(spare, base, half * size);
	while (left < half) {
		if (right < count && compare(spare + left * size, base + right * size, argument) > 0)
			memcpy(base + at++ * size, base + right++ * size, size);
		else
			memcpy(base + at++ * size, spare + left++ * size, size);
	}
}

void qsort_arg(void *base, size_t count, size_t size, comparison compare, void *argument)
{
	char small[512], *spare = small;
	size_t needed;

	if (count < 2 || size == 0)
		return;
	needed = count <= 8 ? size : count / 2 * size;
	if (needed > sizeof small)
		spare = palloc_extended(needed, MCXT_ALLOC_HUGE);
	merge_sort(base, count, size, compare, argument, spare);
	if (spare != small)
		pfree(spare);
}

void qsort_interruptible(void *base, size_t count, size_t size, comparison compare, void *argument)
{
	qsort_arg(base, count, size, compare, argument);
}

static int without_argument(const void *a, const void *b, void *compare)
{
	return ((int (*)(const void *, const void *)) compare)(a, b);
}

void pg_qsort(void *base, size_t count, size_t size, int (*compare)(const void *, const void *))
{
	qsort_arg(base, count, size, without_argument, (void *) compare);
}
