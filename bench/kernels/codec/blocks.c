/* Blocks as symbols: how many zeros come before a value, and how many bits it has. */
#include "codec.h"

const uint8_t zigzag[AREA] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

enum { END_OF_BLOCK = 0x00, SIXTEEN_ZEROS = 0xf0 };

static void emit(int zeros, int value, symbol_sink *sink, void *context)
{
    uint32_t size = (uint32_t)(value < 0 ? -value : value);
    int count = size ? 32 - __builtin_clz(size) : 0;
    /* A negative value is told by its complement, whose highest bit is 0. */
    sink(context, zeros << 4 | count, value < 0 ? (1u << count) - 1 - size : size, count);
}

void block_symbols(const int16_t block[AREA], int *last, symbol_sink *sink, void *context)
{
    int zeros = 0;
    emit(0, block[0] - *last, sink, context);
    *last = block[0];
    for (int i = 1; i < AREA; i++) {
        int value = block[zigzag[i]];
        if (!value) {
            zeros++;
            continue;
        }
        for (; zeros > 15; zeros -= 16)
            sink(context, SIXTEEN_ZEROS, 0, 0);
        emit(zeros, value, sink, context);
        zeros = 0;
    }
    if (zeros)
        sink(context, END_OF_BLOCK, 0, 0);
}

static int get_symbol(const struct codes *codes, struct bits *bits, int *value)
{
    unsigned entry = codes->lookup[bits_peek(bits, LONGEST)];
    int symbol = (int)(entry >> 4), count = symbol & 15;
    bits_drop(bits, (int)(entry & 15));
    *value = 0;
    if (count) {
        int raw = (int)bits_peek(bits, count);
        bits_drop(bits, count);
        *value = raw >> (count - 1) ? raw : raw - (1 << count) + 1;
    }
    return symbol;
}

void block_read(int16_t block[AREA], int *last, const struct codes *codes, struct bits *bits)
{
    int value;
    memset(block, 0, AREA * sizeof *block);
    get_symbol(codes, bits, &value);
    *last += value;
    block[0] = (int16_t)*last;
    for (int i = 1; i < AREA; i++) {
        int symbol = get_symbol(codes, bits, &value);
        if (symbol == END_OF_BLOCK)
            break;
        i += symbol >> 4;
        REQUIRE(i < AREA);
        block[zigzag[i]] = (int16_t)value;
    }
}
