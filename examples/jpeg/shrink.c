/* A JPEG file, half as wide and half as high, as a PPM picture; damaged files are an error. */
#include <jpeglib.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

struct failure {
    struct jpeg_error_mgr manager; /* first: the library knows this part only */
    jmp_buf back;
};

static void leave(j_common_ptr info) {
    struct failure *failure = (struct failure *)info->err;
    longjmp(failure->back, 1);
}

static void quiet(j_common_ptr info, int level) {
    (void)info;
    (void)level;
}

static int shrink(const unsigned char *data, unsigned long size, FILE *to) {
    struct jpeg_decompress_struct info;
    struct failure failure;
    unsigned char *volatile pixels = NULL;

    memset(&info, 0, sizeof info);
    info.err = jpeg_std_error(&failure.manager);
    failure.manager.error_exit = leave;
    failure.manager.emit_message = quiet;
    if (setjmp(failure.back)) {
        fprintf(stderr, "no JPEG, or damaged: error %d\n", failure.manager.msg_code);
        jpeg_destroy_decompress(&info);
        free(pixels);
        return 1;
    }
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, data, size);
    jpeg_read_header(&info, TRUE);
    info.scale_num = 1;
    info.scale_denom = 2;
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);

    size_t width = (size_t)info.output_width * 3;
    pixels = malloc(width);
    if (!pixels)
        return 1;
    fprintf(to, "P6\n%u %u\n255\n", info.output_width, info.output_height);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = pixels;
        jpeg_read_scanlines(&info, &row, 1);
        fwrite(pixels, 1, width, to);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    free(pixels);
    return 0;
}

int main(int argc, char **argv) {
    static unsigned char data[8 << 20];
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : stdin;
    if (!file)
        return perror(argv[1]), 1;
    size_t size = fread(data, 1, sizeof data, file);
    return shrink(data, size, stdout);
}
