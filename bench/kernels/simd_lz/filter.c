/* Differences between bytes a stride apart, and back. */
#include "simd_lz.h"
#include <emmintrin.h>

void delta_encode(uint8_t *to, const uint8_t *from, size_t size, size_t stride)
{
    size_t i = stride < size ? stride : size;
    memcpy(to, from, i);
    for (; i + 16 <= size; i += 16) {
        __m128i here = _mm_loadu_si128((const __m128i *)(from + i));
        __m128i before = _mm_loadu_si128((const __m128i *)(from + i - stride));
        _mm_storeu_si128((__m128i *)(to + i), _mm_sub_epi8(here, before));
    }
    for (; i < size; i++)
        to[i] = (uint8_t)(from[i] - from[i - stride]);
}

/* Sums of all that came before, by shifts and additions within a vector. */
static void sum_bytes(uint8_t *to, const uint8_t *from, size_t size)
{
    __m128i carry = _mm_setzero_si128();
    size_t i = 0;
    for (; i + 16 <= size; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(from + i));
        x = _mm_add_epi8(x, _mm_slli_si128(x, 1));
        x = _mm_add_epi8(x, _mm_slli_si128(x, 2));
        x = _mm_add_epi8(x, _mm_slli_si128(x, 4));
        x = _mm_add_epi8(_mm_add_epi8(x, _mm_slli_si128(x, 8)), carry);
        _mm_storeu_si128((__m128i *)(to + i), x);
        carry = _mm_set1_epi8((char)(_mm_extract_epi16(x, 7) >> 8));
    }
    for (uint8_t last = i ? to[i - 1] : 0; i < size; i++)
        to[i] = last = (uint8_t)(last + from[i]);
}

void delta_decode(uint8_t *to, const uint8_t *from, size_t size, size_t stride)
{
    if (stride == 1) {
        sum_bytes(to, from, size);
        return;
    }
    size_t i = stride < size ? stride : size;
    memcpy(to, from, i);
    for (; i < size; i++)
        to[i] = (uint8_t)(from[i] + to[i - stride]);
}

/* How far bytes are from 0, as signed numbers: what tells which filter helps. */
uint64_t byte_roughness(const uint8_t *data, size_t size)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i total = zero;
    uint64_t lanes[2];
    for (size_t i = 0; i + 16 <= size; i += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(data + i));
        __m128i size_of = _mm_min_epu8(x, _mm_sub_epi8(zero, x));
        total = _mm_add_epi64(total, _mm_sad_epu8(size_of, zero));
    }
    _mm_storeu_si128((__m128i *)lanes, total);
    return lanes[0] + lanes[1];
}
