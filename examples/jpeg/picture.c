/* Writes a small JPEG file for the example: no picture lies in this repository. */
#include <stddef.h>
#include <stdio.h>
#include <jpeglib.h>

int main(void) {
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr error;
    unsigned char row[3 * 160], *pixels = row;
    info.err = jpeg_std_error(&error);
    jpeg_create_compress(&info);
    jpeg_stdio_dest(&info, stdout);
    info.image_width = 160, info.image_height = 120;
    info.input_components = 3, info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < info.image_height) {
        for (unsigned x = 0; x < 160; x++) {
            row[3 * x] = (unsigned char)x;
            row[3 * x + 1] = (unsigned char)(2 * info.next_scanline);
            row[3 * x + 2] = (unsigned char)((x / 16 + info.next_scanline / 16) % 2 * 200);
        }
        jpeg_write_scanlines(&info, &pixels, 1);
    }
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return 0;
}
