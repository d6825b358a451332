/* LZ4: the fast way, the thorough way, and back. */
#include "kernel.h"
#include "rfcheck.h"
#include <lz4.h>
#include <lz4hc.h>

#define SIZE AMOUNT(1 << 20, 1 << 13)
static char plain[SIZE], packed[LZ4_COMPRESSBOUND(SIZE)], again[sizeof packed], restored[SIZE];
static int packed_size;

static void prepare(void)
{
    if (packed_size)
        return;
    rf_text((unsigned char *)plain, SIZE, 11);
    packed_size = LZ4_compress_default(plain, packed, SIZE, sizeof packed);
    REQUIRE(packed_size > 0);
}

WORKLOAD(compress)
{
    uint64_t sum = 1;
    prepare();
    int n = 0;
    for (uint64_t round = 0; round < part(110, permille); round++) {
        n = LZ4_compress_default(plain, again, SIZE, sizeof again);
        REQUIRE(n > 0);
    }
    /* The bytes depend on the width of a pointer (LZ4 hashes five bytes or four), so what they stand for is compared. */
    REQUIRE(LZ4_decompress_safe(again, restored, n, SIZE) == SIZE && !memcmp(plain, restored, SIZE));
    return mix(sum, rf_digest(restored, SIZE));
}

WORKLOAD(decompress)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(420, permille); round++) {
        REQUIRE(LZ4_decompress_safe(packed, restored, packed_size, SIZE) == SIZE);
        sum = mix(sum, (uint8_t)restored[round * 997 % SIZE]);
    }
    REQUIRE(!memcmp(plain, restored, SIZE));
    return sum;
}

WORKLOAD(compress_hc)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(9, permille); round++) {
        int n = LZ4_compress_HC(plain, again, SIZE, sizeof again, 9);
        REQUIRE(n > 0);
        sum = mix(mix(sum, (uint64_t)n), (uint8_t)again[round * 997 % (uint64_t)n]);
    }
    return sum;
}
