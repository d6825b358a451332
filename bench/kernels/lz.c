/* A small LZ77 compressor and its inverse. */
#include "kernel.h"

#define SIZE AMOUNT(1u << 19, 1u << 12)
static uint8_t input[SIZE], packed[SIZE * 2], output[SIZE];
static uint32_t heads[1 << 14];

static size_t compress(const uint8_t *in, size_t n, uint8_t *out)
{
    uint8_t *o = out;
    size_t i = 0;
    memset(heads, 0, sizeof heads);
    while (i < n) {
        size_t best = 0, distance = 0;
        if (i + 4 <= n) {
            uint32_t word;
            memcpy(&word, in + i, 4);
            uint32_t *head = &heads[(word * 2654435761u) >> 18];
            size_t candidate = *head;
            *head = (uint32_t)i;
            if (candidate < i && i - candidate < 65536)
                while (best < 255 && i + best < n && in[candidate + best] == in[i + best])
                    best++;
            distance = i - candidate;
        }
        if (best >= 4) {
            *o++ = 1, *o++ = (uint8_t)best, *o++ = (uint8_t)distance, *o++ = (uint8_t)(distance >> 8);
            i += best;
        } else
            *o++ = 0, *o++ = in[i++];
    }
    return (size_t)(o - out);
}

static size_t expand(const uint8_t *in, size_t n, uint8_t *out)
{
    uint8_t *o = out;
    for (const uint8_t *end = in + n; in < end;)
        if (*in++) {
            size_t count = in[0];
            const uint8_t *from = o - (in[1] | (size_t)in[2] << 8);
            in += 3;
            while (count--)
                *o++ = *from++;
        } else
            *o++ = *in++;
    return (size_t)(o - out);
}

WORKLOAD(lz)
{
    static const char *const words[] = {"the ", "quick ", "brown ", "fox ", "jumps ", "over ", "lazy ", "dog. ", "\n"};
    uint64_t state = 47, sum = 0;
    for (size_t i = 0; i < SIZE;)
        for (const char *w = words[next_random(&state) % 9]; *w && i < SIZE; w++)
            input[i++] = (uint8_t)*w;
    for (int round = 0; round < (int)part(260, permille); round++) {
        size_t n = compress(input, SIZE, packed), m = expand(packed, n, output);
        if (m != SIZE || memcmp(input, output, SIZE) != 0)
            return 0;
        sum = mix(sum, n);
        input[round * 997 % SIZE] ^= 1;
    }
    return sum;
}
