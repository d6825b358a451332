/* zlib at work: deflate, inflate and crc over text that compresses as prose does. Memory comes from an arena, so that
 * both builds use the same allocator. */
#include "kernel.h"
#include "zlib.h"

#define SIZE (3u << 20)
static Bytef plain[SIZE], packed[SIZE + SIZE / 2], restored[SIZE];
static _Alignas(64) Bytef arena[1 << 20];
static size_t used;

static voidpf allocate(voidpf opaque, uInt items, uInt size)
{
    size_t n = ((size_t)items * size + 63) & ~(size_t)63;
    (void)opaque;
    if (n > sizeof arena - used)
        return Z_NULL;
    used += n;
    return arena + used - n;
}

static void release(voidpf opaque, voidpf address)
{
    (void)opaque;
    (void)address;
}

static void fill(void)
{
    static const char *const words[] = {"window", "gate", "lane", "region", "policy", "verifier", "the", "of", "a", "and",
                                        "is", "not", "every", "call", "return", "address", "inside", "outside", "\n", "."};
    uint64_t state = 61;
    for (size_t i = 0; i < SIZE;) {
        uint64_t r = next_random(&state);
        for (const char *w = words[(r >> 32) % 20 * (r >> 16) % 20]; *w && i < SIZE; w++)
            plain[i++] = (Bytef)*w;
        if (i < SIZE)
            plain[i++] = ' ';
        if (r % 7 == 0)
            for (int k = 0; k < 6 && i < SIZE; k++)
                plain[i++] = (Bytef)('0' + (r >> (8 * k)) % 10);
    }
}

uint64_t run(void)
{
    z_stream s;
    uint64_t sum = 0;
    fill();
    used = 0;
    memset(&s, 0, sizeof s);
    s.zalloc = allocate;
    s.zfree = release;
    if (deflateInit(&s, 6) != Z_OK)
        return 1;
    s.next_in = plain;
    s.avail_in = SIZE;
    s.next_out = packed;
    s.avail_out = sizeof packed;
    if (deflate(&s, Z_FINISH) != Z_STREAM_END)
        return 2;
    uLong length = s.total_out;
    deflateEnd(&s);
    sum = mix(sum, length);
    for (int round = 0; round < 18; round++) {
        used = 0;
        memset(&s, 0, sizeof s);
        s.zalloc = allocate;
        s.zfree = release;
        if (inflateInit(&s) != Z_OK)
            return 3;
        s.next_in = packed;
        s.avail_in = (uInt)length;
        s.next_out = restored;
        s.avail_out = SIZE;
        if (inflate(&s, Z_FINISH) != Z_STREAM_END || s.total_out != SIZE)
            return 4;
        inflateEnd(&s);
        sum = mix(sum, crc32(crc32(0, Z_NULL, 0), restored, SIZE));
    }
    if (memcmp(plain, restored, SIZE) != 0)
        return 5;
    return sum;
}
