/* Comparing, copying and adding up, 16 bytes at a time. */
#include "simd_lz.h"
#include <emmintrin.h>

/* How many bytes agree; `b` is the later one, which ends at `end`. */
size_t match_length(const uint8_t *a, const uint8_t *b, const uint8_t *end)
{
    const uint8_t *start = b;
    for (; b + 16 <= end; a += 16, b += 16) {
        __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)a), _mm_loadu_si128((const __m128i *)b));
        unsigned mask = (unsigned)_mm_movemask_epi8(same) ^ 0xffff;
        if (mask)
            return (size_t)(b - start) + (size_t)__builtin_ctz(mask);
    }
    while (b < end && *a == *b)
        a++, b++;
    return (size_t)(b - start);
}

/* Copies in whole vectors: up to 15 bytes more than asked for. */
void copy_wide(uint8_t *to, const uint8_t *from, size_t size)
{
    for (size_t i = 0; i < size; i += 16)
        _mm_storeu_si128((__m128i *)(to + i), _mm_loadu_si128((const __m128i *)(from + i)));
}

void copy_match(uint8_t *to, size_t distance, size_t size)
{
    const uint8_t *from = to - distance;
    if (distance >= 16) {
        copy_wide(to, from, size);
    } else if (distance == 1) {
        __m128i fill = _mm_set1_epi8((char)*from);
        for (size_t i = 0; i < size; i += 16)
            _mm_storeu_si128((__m128i *)(to + i), fill);
    } else {
        for (size_t i = 0; i < size; i++)
            to[i] = from[i];
    }
}

/* A sum that tells changed and moved bytes. */
uint32_t block_sum(const uint8_t *data, size_t size)
{
    const __m128i zero = _mm_setzero_si128(), factor = _mm_set_epi16(15, 13, 11, 9, 7, 5, 3, 1);
    __m128i low = zero, high = zero;
    uint32_t lanes[4], sum = (uint32_t)size;
    size_t i = 0;
    for (; i + 16 <= size; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(data + i));
        low = _mm_add_epi32(low, _mm_madd_epi16(_mm_unpacklo_epi8(x, zero), factor));
        high = _mm_add_epi32(_mm_slli_epi32(high, 1), _mm_add_epi32(low, _mm_unpackhi_epi16(x, zero)));
    }
    _mm_storeu_si128((__m128i *)lanes, _mm_xor_si128(low, high));
    for (int lane = 0; lane < 4; lane++)
        sum = sum * 31 + lanes[lane];
    for (; i < size; i++)
        sum = sum * 31 + data[i];
    return sum;
}
