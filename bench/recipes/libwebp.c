/* WebP files, lossy and lossless, both ways. */
#include "kernel.h"
#include "rfcheck.h"
#include <src/webp/decode.h>
#include <src/webp/encode.h>

#define W AMOUNT(512, 32)
#define H AMOUNT(384, 16)
static unsigned char rgba[W * H * 4];
static uint8_t *files[2];
static size_t sizes[2];

static size_t encode(int lossless, uint8_t **out)
{
    WebPConfig config;
    WebPPicture pic;
    WebPMemoryWriter writer;
    REQUIRE(WebPConfigInit(&config) && WebPPictureInit(&pic));
    config.lossless = lossless;
    config.quality = lossless ? 50 : 75;
    config.method = lossless ? 2 : 4;
    pic.width = W;
    pic.height = H;
    pic.use_argb = lossless;
    REQUIRE(WebPPictureImportRGBA(&pic, rgba, W * 4));
    WebPMemoryWriterInit(&writer);
    pic.writer = WebPMemoryWrite;
    pic.custom_ptr = &writer;
    REQUIRE(WebPEncode(&config, &pic));
    WebPPictureFree(&pic);
    *out = writer.mem;
    return writer.size;
}

static void prepare(void)
{
    if (sizes[0])
        return;
    uint64_t seed = 61;
    unsigned char *p = rgba;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++, p += 4) {
            unsigned noise = rf_random(&seed) & 7;
            p[0] = (unsigned char)(x + (int)noise);
            p[1] = (unsigned char)(y * 2 + (x * y >> 6));
            p[2] = (unsigned char)((x / 16 + y / 16) % 2 ? 200 : 40 + noise);
            p[3] = (unsigned char)(x > W / 2 ? 255 : y);
        }
    for (int lossless = 0; lossless < 2; lossless++)
        sizes[lossless] = encode(lossless, &files[lossless]);
}

static uint64_t write(int lossless, uint64_t rounds)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < rounds; round++) {
        uint8_t *file;
        size_t n = encode(lossless, &file);
        sum = mix(mix(sum, n), file[round * 997 % n]);
        WebPFree(file);
    }
    return sum;
}

static uint64_t read(int lossless, uint64_t rounds)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < rounds; round++) {
        int w, h;
        uint8_t *pixels = WebPDecodeRGBA(files[lossless], sizes[lossless], &w, &h);
        REQUIRE(pixels && w == W && h == H);
        sum = mix(sum, pixels[round * 997 % (W * H * 4)]);
        WebPFree(pixels);
    }
    return sum;
}

WORKLOAD(encode_lossy) { return write(0, part(9, permille)); }

WORKLOAD(decode_lossy) { return read(0, part(70, permille)); }

WORKLOAD(encode_lossless) { return write(1, part(4, permille)); }

WORKLOAD(decode_lossless) { return read(1, part(60, permille)); }
