/* zlib at work: text deflated at the usual level, and inflated. */
#include "kernel.h"
#include "rfcheck.h"
#include <zlib.h>

#define SIZE AMOUNT(512u << 10, 4u << 10)
static Bytef plain[SIZE], packed[SIZE * 2], restored[SIZE];
static uLong packed_size;

static void prepare(void)
{
    if (packed_size)
        return;
    rf_text(plain, SIZE, 1);
    rf_noise(plain + AMOUNT(100000, 800), AMOUNT(30000, 240), 2);
    packed_size = sizeof packed;
    REQUIRE(compress2(packed, &packed_size, plain, SIZE, 6) == Z_OK);
}

WORKLOAD(deflate)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(8, permille); round++) {
        static Bytef again[SIZE * 2];
        uLong n = sizeof again;
        REQUIRE(compress2(again, &n, plain, SIZE, 6) == Z_OK);
        sum = mix(mix(sum, n), again[round * 997 % n]);
    }
    return sum;
}

WORKLOAD(inflate)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(170, permille); round++) {
        uLong n = SIZE;
        REQUIRE(uncompress(restored, &n, packed, packed_size) == Z_OK && n == SIZE);
        sum = mix(sum, restored[round * 997 % SIZE]);
    }
    REQUIRE(!memcmp(plain, restored, SIZE));
    return sum;
}

WORKLOAD(crc)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(900, permille); round++)
        sum = mix(sum, crc32((uLong)round, plain, SIZE) ^ adler32((uLong)round, plain, SIZE));
    return sum;
}
