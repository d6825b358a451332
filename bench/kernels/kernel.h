/* What every workload shares. WORKLOAD(name) defines the function that the benchmark calls: 1000 thousandths are the
 * whole work (0.3 s or more natively); it returns a checksum that must be the same however it was built. */
#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#define WORKLOAD_LINKAGE extern "C"
#else
#define WORKLOAD_LINKAGE
#endif

/* A size of the work: the second where instructions are counted, which takes microseconds for each. */
#ifdef COUNTED
#define AMOUNT(measured, counted) (counted)
#else
#define AMOUNT(measured, counted) (measured)
#endif

#define WORKLOAD(name)                                           \
    WORKLOAD_LINKAGE uint64_t run_##name(uint64_t permille); \
    WORKLOAD_LINKAGE uint64_t run_##name(uint64_t permille)

/* What must hold, or the run ends with a fault. */
#define REQUIRE(x)              \
    do {                        \
        if (!(x))               \
            __builtin_trap();   \
    } while (0)

/* How many rounds of `all` these thousandths are: one at least. */
static inline uint64_t part(uint64_t all, uint64_t permille)
{
    uint64_t n = all * permille / 1000;
    return n ? n : 1;
}

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
