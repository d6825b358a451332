/* Packing: literals and matches as in LZ4, a byte with both lengths before each. */
#include "simd_lz.h"

uint64_t matches_found, literal_bytes;

static uint16_t heads[1 << 12];

static uint32_t load32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint8_t *put_length(uint8_t *to, size_t length)
{
    for (; length >= 255; length -= 255)
        *to++ = 255;
    *to++ = (uint8_t)length;
    return to;
}

/* A match of length 0 ends the block. */
static uint8_t *put(uint8_t *to, const uint8_t *literals, size_t count, size_t distance, size_t length)
{
    size_t extra = length ? length - 3 : 0;
    *to++ = (uint8_t)((count < 15 ? count : 15) << 4 | (extra < 15 ? extra : 15));
    if (count >= 15)
        to = put_length(to, count - 15);
    copy_wide(to, literals, count);
    to += count;
    literal_bytes += count;
    if (!length)
        return to;
    matches_found++;
    *to++ = (uint8_t)distance;
    *to++ = (uint8_t)(distance >> 8);
    return extra >= 15 ? put_length(to, extra - 15) : to;
}

/* Both buffers have PAD bytes after them; gives how many bytes it wrote, BOUND at most. */
size_t pack(uint8_t *to, const uint8_t *from, size_t size)
{
    const uint8_t *at = from, *literals = from, *end = from + size;
    uint8_t *start = to;
    REQUIRE(size <= BLOCK);
    memset(heads, 0, sizeof heads);
    while (at + 4 <= end) {
        uint32_t here = load32(at), slot = here * 2654435761u >> 20;
        const uint8_t *candidate = from + heads[slot];
        heads[slot] = (uint16_t)(at - from);
        if (candidate >= at || load32(candidate) != here) {
            at += 1 + ((size_t)(at - literals) >> 6);
            continue;
        }
        size_t length = match_length(candidate, at, end);
        to = put(to, literals, (size_t)(at - literals), (size_t)(at - candidate), length);
        at += length;
        literals = at;
    }
    to = put(to, literals, (size_t)(end - literals), 0, 0);
    return (size_t)(to - start);
}
