/* PNG, by libpng. */
#include "codec.h"
#include <png.h>
#include <string.h>

static png_structp reader, writer;
static png_infop reader_info, writer_info;

static void leave(png_structp png, png_const_charp message)
{
	(void)png;
	/* libpng has a text for it, no number */
	stop(strstr(message, "memory") ? NO_MEMORY : MALFORMED, message);
}

static void quiet(png_structp png, png_const_charp message)
{
	(void)png, (void)message;
}

static void take(png_structp png, png_bytep into, size_t n)
{
	if (!input_take(into, n))
		png_error(png, "the picture ends too early");
}

void png_decode(void)
{
	reader = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, leave, quiet);
	reader_info = reader ? png_create_info_struct(reader) : NULL;
	if (!reader_info)
		stop(NO_MEMORY, "the picture needs more memory");
	png_set_read_fn(reader, NULL, take);
	png_set_user_limits(reader, 65535, 65535);
	png_read_info(reader, reader_info);
	int width = (int)png_get_image_width(reader, reader_info), height = (int)png_get_image_height(reader, reader_info);
	allow((uint64_t)width, (uint64_t)height);
	int type = png_get_color_type(reader, reader_info);
	png_set_expand(reader);
	png_set_scale_16(reader);
	if (type == PNG_COLOR_TYPE_GRAY_ALPHA || (type == PNG_COLOR_TYPE_GRAY && png_get_valid(reader, reader_info, PNG_INFO_tRNS)))
		png_set_gray_to_rgb(reader);
	int passes = png_set_interlace_handling(reader);
	png_read_update_info(reader, reader_info);
	int channels = png_get_channels(reader, reader_info);
	int to_width, to_height;
	wanted(width, height, &to_width, &to_height);
	rows_begin(width, height, channels, to_width, to_height);
	if (passes == 1) {
		for (int y = 0; y < height; y++) {
			png_read_row(reader, rows_next(), NULL);
			rows_done();
		}
	} else {
		/* All passes go over all rows. */
		size_t stride = (size_t)width * channels;
		unsigned char *all = keep(stride * height);
		for (int pass = 0; pass < passes; pass++)
			for (int y = 0; y < height; y++)
				png_read_row(reader, all + y * stride, NULL);
		for (int y = 0; y < height; y++) {
			memcpy(rows_next(), all + y * stride, stride);
			rows_done();
		}
	}
	png_read_end(reader, NULL);
	png_destroy_read_struct(&reader, &reader_info, NULL);
}

static void give(png_structp png, png_bytep from, size_t n)
{
	(void)png;
	output(from, n);
}

static void flush(png_structp png) { (void)png; }

void png_encode(const struct picture *p)
{
	writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, leave, quiet);
	writer_info = writer ? png_create_info_struct(writer) : NULL;
	if (!writer_info)
		stop(NO_MEMORY, "the picture needs more memory");
	png_set_write_fn(writer, NULL, give, flush);
	/* one chunk, and so one step to the host, for each 64 KiB */
	png_set_compression_buffer_size(writer, 1 << 16);
	static const int types[] = {[1] = PNG_COLOR_TYPE_GRAY, [3] = PNG_COLOR_TYPE_RGB, [4] = PNG_COLOR_TYPE_RGB_ALPHA};
	png_set_IHDR(writer, writer_info, (png_uint_32)p->width, (png_uint_32)p->height, 8, types[p->channels], PNG_INTERLACE_NONE,
		     PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(writer, writer_info);
	for (int y = 0; y < p->height; y++)
		png_write_row(writer, p->pixels + y * p->stride);
	png_write_end(writer, NULL);
	png_destroy_write_struct(&writer, &writer_info);
}

void png_clear(void)
{
	if (reader)
		png_destroy_read_struct(&reader, &reader_info, NULL);
	if (writer)
		png_destroy_write_struct(&writer, &writer_info);
}
