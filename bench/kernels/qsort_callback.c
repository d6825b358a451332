/* Sorting through a comparison callback. */
#include "kernel.h"

typedef int compare_fn(const void *, const void *);

static void swap(char *a, char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        char t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

static void sort(char *base, size_t count, size_t size, compare_fn *compare)
{
    while (count > 12) {
        swap(base, base + (count / 2) * size, size);
        size_t last = 0;
        for (size_t i = 1; i < count; i++)
            if (compare(base + i * size, base) < 0 && ++last != i)
                swap(base + last * size, base + i * size, size);
        swap(base, base + last * size, size);
        sort(base, last, size, compare);
        base += (last + 1) * size;
        count -= last + 1;
    }
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j > 0 && compare(base + j * size, base + (j - 1) * size) < 0; j--)
            swap(base + j * size, base + (j - 1) * size, size);
}

struct record {
    uint32_t key, value;
};
static struct record records[AMOUNT(1 << 17, 1 << 7)];

static int by_key(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    return x->key < y->key ? -1 : x->key > y->key;
}
static int by_value(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

WORKLOAD(qsort_callback)
{
    uint64_t state = 3, sum = 0;
    const size_t n = sizeof records / sizeof *records;
    for (int round = 0; round < (int)part(14, permille); round++) {
        for (size_t i = 0; i < n; i++) {
            uint64_t r = next_random(&state);
            records[i].key = (uint32_t)r;
            records[i].value = (uint32_t)(r >> 32);
        }
        sort((char *)records, n, sizeof *records, by_key);
        for (size_t i = 0; i < n; i += 997)
            sum = mix(sum, records[i].key);
        sort((char *)records, n, sizeof *records, by_value);
        for (size_t i = 0; i < n; i += 997)
            sum = mix(sum, records[i].value);
    }
    return sum;
}
