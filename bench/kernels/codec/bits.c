/* Bits, the highest first. */
#include "codec.h"

void bits_begin(struct bits *bits, uint8_t *memory, size_t size)
{
    *bits = (struct bits){memory, memory + size, 0, 0};
}

void bits_put(struct bits *bits, uint32_t value, int count)
{
    bits->window = bits->window << count | value;
    bits->count += count;
    while (bits->count >= 8) {
        REQUIRE(bits->at < bits->end);
        bits->count -= 8;
        *bits->at++ = (uint8_t)(bits->window >> bits->count);
    }
}

void bits_flush(struct bits *bits)
{
    if (bits->count)
        bits_put(bits, 0, 8 - bits->count);
}

/* The next bits; zeros come after the end. */
uint32_t bits_peek(struct bits *bits, int count)
{
    while (bits->count < count) {
        bits->window = bits->window << 8 | (bits->at < bits->end ? *bits->at++ : 0);
        bits->count += 8;
    }
    return (uint32_t)(bits->window >> (bits->count - count)) & ((1u << count) - 1);
}

void bits_drop(struct bits *bits, int count)
{
    bits->count -= count;
}
