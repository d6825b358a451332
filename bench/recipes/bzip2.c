/* bzip2 both ways. */
#include "kernel.h"
#include "rfcheck.h"
#include <bzlib.h>

#define SIZE AMOUNT(400u << 10, 2u << 10)
static char plain[SIZE], packed[SIZE + SIZE / 50 + 1000], again[sizeof packed], restored[SIZE];
static unsigned packed_size;

static void prepare(void)
{
    if (packed_size)
        return;
    rf_text((unsigned char *)plain, SIZE, 3);
    packed_size = sizeof packed;
    REQUIRE(BZ2_bzBuffToBuffCompress(packed, &packed_size, plain, SIZE, 9, 0, 0) == BZ_OK);
}

WORKLOAD(compress)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(9, permille); round++) {
        unsigned n = sizeof again;
        REQUIRE(BZ2_bzBuffToBuffCompress(again, &n, plain, SIZE, 9, 0, 0) == BZ_OK);
        sum = mix(mix(sum, n), (uint8_t)again[round * 997 % n]);
    }
    return sum;
}

WORKLOAD(decompress)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(18, permille); round++) {
        unsigned n = SIZE;
        REQUIRE(BZ2_bzBuffToBuffDecompress(restored, &n, packed, packed_size, 0, 0) == BZ_OK && n == SIZE);
        sum = mix(sum, (uint8_t)restored[round * 997 % SIZE]);
    }
    REQUIRE(!memcmp(plain, restored, SIZE));
    return sum;
}
