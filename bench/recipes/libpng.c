/* PNG files written with all filters, and read. Errors are not expected: they end the run. */
#include "kernel.h"
#include "rfcheck.h"
#include <png.h>

#define W AMOUNT(512, 32)
#define H AMOUNT(384, 8)
static unsigned char pixels[W * H * 4], restored[W * H * 4], file[W * H * 8];
static png_bytep rows[H];
static size_t length, at;

static void write_data(png_structp png, png_bytep data, size_t n)
{
    (void)png;
    REQUIRE(length + n <= sizeof file);
    memcpy(file + length, data, n);
    length += n;
}
static void flush_data(png_structp png) { (void)png; }
static void read_data(png_structp png, png_bytep data, size_t n)
{
    (void)png;
    REQUIRE(at + n <= length);
    memcpy(data, file + at, n);
    at += n;
}
static void on_error(png_structp png, png_const_charp message)
{
    (void)png, (void)message;
    __builtin_trap();
}

static void encode(void)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_error);
    png_infop info = png_create_info_struct(png);
    length = 0;
    png_set_write_fn(png, NULL, write_data, flush_data);
    png_set_IHDR(png, info, W, H, 8, PNG_COLOR_TYPE_RGB_ALPHA, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, 6);
    png_set_filter(png, 0, PNG_ALL_FILTERS);
    png_write_info(png, info);
    for (int y = 0; y < H; y++)
        rows[y] = pixels + y * W * 4;
    png_write_image(png, rows);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

static void decode(void)
{
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_error);
    png_infop info = png_create_info_struct(png);
    at = 0;
    png_set_read_fn(png, NULL, read_data);
    png_read_info(png, info);
    REQUIRE(png_get_rowbytes(png, info) == W * 4 && png_get_image_height(png, info) == H);
    for (int y = 0; y < H; y++)
        rows[y] = restored + y * W * 4;
    png_read_image(png, rows);
    png_read_end(png, info);
    png_destroy_read_struct(&png, &info, NULL);
}

static void prepare(void)
{
    if (length)
        return;
    uint64_t seed = 51;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)((i * 3 / 7 + (i >> 8)) + (rf_random(&seed) & 7));
    encode();
}

WORKLOAD(write)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(8, permille); round++) {
        encode();
        sum = mix(sum, length);
    }
    return mix(sum, rf_digest(file, length));
}

WORKLOAD(read)
{
    uint64_t sum = 1;
    prepare();
    for (uint64_t round = 0; round < part(48, permille); round++) {
        decode();
        sum = mix(sum, restored[round * 997 % sizeof restored]);
    }
    REQUIRE(!memcmp(pixels, restored, sizeof pixels));
    return sum;
}
