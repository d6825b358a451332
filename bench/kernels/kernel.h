/* What every kernel shares. A kernel exports run(), which does a fixed amount of work (a second or less
 * natively, 0.3 s at least) and returns a checksum that must be the same however it was built. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

uint64_t run(void);

/* xorshift64*, so that inputs are the same everywhere and no compiler knows them */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545F4914F6CDD1DULL;
}

/* folds a value into a checksum */
static inline uint64_t mix(uint64_t sum, uint64_t value)
{
    return (sum ^ value) * 0x100000001B3ULL;
}

static inline uint64_t mix_double(uint64_t sum, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return mix(sum, bits);
}

#endif
