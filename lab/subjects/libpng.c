/* Writes a picture of the input's bytes as a PNG file into memory, and reads it again. */
#include "lab.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 64 };

struct place {
    unsigned char *at;
    long used, room;
};

static void put(png_structp png, png_bytep from, size_t size)
{
    struct place *p = png_get_io_ptr(png);

    if ((long)size > p->room - p->used)
        png_error(png, "no room");
    memcpy(p->at + p->used, from, size);
    p->used += (long)size;
}

static void flush(png_structp png)
{
    (void)png;
}

static void take(png_structp png, png_bytep to, size_t size)
{
    struct place *p = png_get_io_ptr(png);

    if ((long)size > p->room - p->used)
        png_error(png, "too short");
    memcpy(to, p->at + p->used, size);
    p->used += (long)size;
}

static long encode(unsigned request, const unsigned char *in, struct place *to)
{
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;

    if (!info || setjmp(png_jmpbuf(png))) {
        png_destroy_write_struct(&png, &info);
        return -1;
    }
    png_set_write_fn(png, to, put, flush);
    png_set_IHDR(png, info, SIDE, SIDE, 8, PNG_COLOR_TYPE_RGB, (int)(request & 1), PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_filter(png, 0, PNG_ALL_FILTERS);
    png_write_info(png, info);
    for (int pass = (request & 1) ? 7 : 1; pass > 0; pass--)
        for (long y = 0; y < SIDE; y++)
            png_write_row(png, in + y * SIDE * 3);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    return to->used;
}

static long decode(struct place *from, unsigned char *to, long room)
{
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    long row, rows;

    if (!info || setjmp(png_jmpbuf(png))) {
        png_destroy_read_struct(&png, &info, NULL);
        return -2;
    }
    png_set_read_fn(png, from, take);
    png_read_info(png, info);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    row = (long)png_get_rowbytes(png, info);
    rows = (long)png_get_image_height(png, info);
    if (row <= 0 || rows <= 0 || rows > room / row)
        png_error(png, "another size");
    for (; passes > 0; passes--)
        for (long y = 0; y < rows; y++)
            png_read_row(png, to + y * row, NULL);
    png_read_end(png, NULL);
    png_destroy_read_struct(&png, &info, NULL);
    return row * rows;
}

long lab_work(unsigned request, const unsigned char *in, long size, unsigned char *out, long room)
{
    long step = (long)(request % 8) * 64;
    struct place to = {.at = out, .room = room / 2}, from = {.at = out};

    if (size < step + (long)SIDE * SIDE * 3)
        return -3;
    from.room = encode(request, in + step, &to);
    if (from.room < 0)
        return from.room;
    long n = decode(&from, out + from.room, room - from.room);
    return n < 0 ? n : n + from.room;
}
