/* The elements: numbers, short texts, points. */
#include "generic.h"

static int compare_numbers(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static uint64_t hash_number(const void *element)
{
    return *(const uint64_t *)element;
}

static void copy_number(void *to, const void *from)
{
    *(uint64_t *)to = *(const uint64_t *)from;
}

static int compare_texts(const void *a, const void *b)
{
    const char *x = a, *y = b;
    while (*x && *x == *y)
        x++, y++;
    return (*x > *y) - (*x < *y);
}

static uint64_t hash_text(const void *element)
{
    uint64_t hash = 5381;
    for (const char *c = element; *c; c++)
        hash = hash * 33 + (uint8_t)*c;
    return hash;
}

static void copy_text(void *to, const void *from)
{
    memcpy(to, from, 16);
}

static int compare_points(const void *a, const void *b)
{
    const int32_t *p = a, *q = b;
    int64_t near = (int64_t)p[0] * p[0] + (int64_t)p[1] * p[1], far = (int64_t)q[0] * q[0] + (int64_t)q[1] * q[1];
    if (near != far)
        return near < far ? -1 : 1;
    return p[0] != q[0] ? (p[0] > q[0]) - (p[0] < q[0]) : (p[1] > q[1]) - (p[1] < q[1]);
}

static uint64_t hash_point(const void *element)
{
    const int32_t *p = element;
    return (uint64_t)(uint32_t)p[0] << 32 | (uint32_t)p[1];
}

static void copy_point(void *to, const void *from)
{
    memcpy(to, from, 8);
}

const struct element_type number_type = {8, compare_numbers, hash_number, copy_number};
const struct element_type text_type = {16, compare_texts, hash_text, copy_text};
const struct element_type point_type = {8, compare_points, hash_point, copy_point};
