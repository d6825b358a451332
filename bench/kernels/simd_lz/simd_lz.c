/* A compressor with SSE2 intrinsics: text, records and samples, packed, unpacked, and unpacked once more with damage.
 * What has no SSE2 leaves it out. */
#include "simd_lz.h"

static uint8_t plain[BLOCK + PAD], filtered[BLOCK + PAD], packed[BOUND + PAD], back[BLOCK + PAD], again[BLOCK + PAD];

static void make_text(size_t size, uint64_t *random)
{
    static const char *const words[] = {"the ", "request ", "of ", "a ", "module ", "was ", "answered ", "in ",
                                        "time, ", "and ", "no ", "other ", "waited.\n", "12 ", "elements ", "remain "};
    for (size_t at = 0; at < size;)
        for (const char *word = words[next_random(random) >> 60]; *word && at < size;)
            plain[at++] = (uint8_t)*word++;
}

static void make_records(size_t size, uint64_t *random)
{
    for (size_t i = 0; i < size; i++) {
        size_t field = i % 12;
        plain[i] = (uint8_t)(field < 4 ? i / 12 >> (8 * field) : field < 8 ? field : next_random(random) >> 61);
    }
}

static void make_samples(size_t size, uint64_t *random)
{
    int level = 0, slope = 3;
    for (size_t i = 0; i < size; i++) {
        if ((i & 63) == 0)
            slope = (int)(next_random(random) >> 61) - 3;
        plain[i] = (uint8_t)(level += slope);
    }
}

static uint64_t one_block(size_t size, uint64_t *random)
{
    static const size_t strides[] = {1, 4, 12};
    size_t best = 0;
    uint64_t least = byte_roughness(plain, size);
    for (int i = 0; i < 3; i++) {
        delta_encode(filtered, plain, size, strides[i]);
        uint64_t rough = byte_roughness(filtered, size);
        if (rough < least / 2) {
            least = rough;
            best = strides[i];
        }
    }
    if (best)
        delta_encode(filtered, plain, size, best);
    else
        copy_wide(filtered, plain, size);
    size_t length = pack(packed, filtered, size);
    REQUIRE(length <= BOUND && unpack(back, BLOCK, packed, length) == size);
    if (best)
        delta_decode(again, back, size, best);
    else
        copy_wide(again, back, size);
    REQUIRE(!memcmp(again, plain, size));
    uint64_t sum = mix(block_sum(packed, length), block_sum(again, size));
    packed[next_random(random) % length] ^= 1u << (next_random(random) >> 61);
    size_t damaged = unpack(back, BLOCK, packed, length);
    return mix(mix(mix(sum, length), damaged), damaged <= BLOCK ? block_sum(back, damaged) : best);
}

WORKLOAD(simd_lz)
{
    uint64_t random = 109, sum = 1;
    matches_found = literal_bytes = 0;
    for (uint64_t round = 0; round < part(AMOUNT(700, 9), permille); round++) {
        size_t size = AMOUNT(BLOCK - 4096, 1000) + (next_random(&random) >> 54);
        if (round % 3 == 0)
            make_text(size, &random);
        else if (round % 3 == 1)
            make_records(size, &random);
        else
            make_samples(size, &random);
        sum = mix(sum, one_block(size, &random));
    }
    return mix(mix(sum, matches_found), literal_bytes);
}
