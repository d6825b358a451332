/* Zstandard: a fast level, a slow level, and back. */
#include "kernel.h"
#include "rfcheck.h"
#include <zstd.h>

#define SIZE AMOUNT(512u << 10, 4u << 10)
static unsigned char plain[SIZE], packed[SIZE * 2], again[SIZE * 2], restored[SIZE];
static size_t packed_size;

static void prepare(void)
{
    if (packed_size)
        return;
    rf_text(plain, SIZE, 21);
    packed_size = ZSTD_compress(packed, sizeof packed, plain, SIZE, 3);
    REQUIRE(!ZSTD_isError(packed_size));
}

static uint64_t compress(uint64_t rounds, int level)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < rounds; round++) {
        size_t n = ZSTD_compress(again, sizeof again, plain, SIZE, level);
        REQUIRE(!ZSTD_isError(n));
        sum = mix(mix(sum, n), again[round * 997 % n]);
    }
    return sum;
}

WORKLOAD(compress_3) { return compress(part(70, permille), 3); }

WORKLOAD(compress_15) { return compress(part(2, permille), 15); }

WORKLOAD(decompress)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(360, permille); round++) {
        REQUIRE(ZSTD_decompress(restored, SIZE, packed, packed_size) == SIZE);
        sum = mix(sum, restored[round * 997 % SIZE]);
    }
    REQUIRE(!memcmp(plain, restored, SIZE));
    return sum;
}
