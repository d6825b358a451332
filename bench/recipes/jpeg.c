/* Pictures to JPEG files and back, by MozJPEG without its assembly. Errors are not expected: they end the run. */
#include "kernel.h"
#include "rfcheck.h"
#include <jpeglib.h>

#define W AMOUNT(1024, 32)
#define H AMOUNT(768, 16)
static unsigned char pixels[W * H * 3];

static void on_error(j_common_ptr info)
{
    (void)info;
    __builtin_trap();
}

static void picture(void)
{
    uint64_t seed = 74;
    unsigned char *p = pixels;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++, p += 3) {
            unsigned noise = rf_random(&seed) & 7;
            p[0] = (unsigned char)(x + noise);
            p[1] = (unsigned char)(y * 2 + (x * y >> 6));
            p[2] = (unsigned char)((x / 16 + y / 16) % 2 ? 200 : 40 + noise);
        }
}

static unsigned long encode(unsigned char **file)
{
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr error;
    unsigned long length = 0;
    c.err = jpeg_std_error(&error);
    error.error_exit = on_error;
    jpeg_create_compress(&c);
    *file = NULL;
    jpeg_mem_dest(&c, file, &length);
    c.image_width = W, c.image_height = H;
    c.input_components = 3, c.in_color_space = JCS_RGB;
    jpeg_c_set_int_param(&c, JINT_COMPRESS_PROFILE, JCP_FASTEST);
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, 75, TRUE);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < H) {
        JSAMPROW row = pixels + c.next_scanline * (size_t)W * 3;
        jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
    jpeg_destroy_compress(&c);
    return length;
}

static uint64_t decode(const unsigned char *file, unsigned long length)
{
    static unsigned char line[W * 3];
    struct jpeg_decompress_struct d;
    struct jpeg_error_mgr error;
    uint64_t sum = 1;
    d.err = jpeg_std_error(&error);
    error.error_exit = on_error;
    jpeg_create_decompress(&d);
    jpeg_mem_src(&d, file, length);
    jpeg_read_header(&d, TRUE);
    jpeg_start_decompress(&d);
    JSAMPROW row = line;
    while (d.output_scanline < d.output_height) {
        jpeg_read_scanlines(&d, &row, 1);
        sum = mix(sum, line[d.output_scanline * 7 % sizeof line]);
    }
    jpeg_finish_decompress(&d);
    jpeg_destroy_decompress(&d);
    return sum;
}

WORKLOAD(encode)
{
    uint64_t sum = 1;
    picture();
    for (uint64_t round = 0; round < part(24, permille); round++) {
        unsigned char *file;
        unsigned long length = encode(&file);
        sum = mix(sum, rf_digest(file, length));
        free(file);
    }
    return sum;
}

WORKLOAD(decode)
{
    uint64_t sum = 1;
    unsigned char *file;
    picture();
    unsigned long length = encode(&file);
    for (uint64_t round = 0; round < part(36, permille); round++)
        sum = mix(sum, decode(file, length));
    free(file);
    return sum;
}
