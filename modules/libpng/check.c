/* Every colour type and depth, interlaced or not, written and read back whole, row by row and progressively, with
 * transformations; damaged files, whose errors travel by longjmp. */
#include "rfcheck.h"
#include <png.h>
#include <setjmp.h>

typedef struct {
	unsigned char *p;
	size_t n, room, at;
} buffer;

static void write_data(png_structp png, png_bytep data, size_t n)
{
	buffer *b = png_get_io_ptr(png);
	if (b->n + n > b->room)
		b->p = realloc(b->p, b->room = (b->n + n) * 2);
	memcpy(b->p + b->n, data, n);
	b->n += n;
}
static void flush_data(png_structp png) { (void)png; }
static void read_data(png_structp png, png_bytep data, size_t n)
{
	buffer *b = png_get_io_ptr(png);
	if (b->at + n > b->n)
		png_error(png, "input ends");
	memcpy(data, b->p + b->at, n);
	b->at += n;
}

static char last_error[100];
static void on_error(png_structp png, png_const_charp message)
{
	snprintf(last_error, sizeof last_error, "%s", message);
	png_longjmp(png, 1);
}
static void on_warning(png_structp png, png_const_charp message)
{
	(void)png;
	snprintf(last_error, sizeof last_error, "%s", message);
}

static int encode(buffer *b, unsigned char *pixels, unsigned w, unsigned h, int type, int depth, int interlace, int level, int filters)
{
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
	png_infop info = png_create_info_struct(png);
	if (setjmp(png_jmpbuf(png))) {
		png_destroy_write_struct(&png, &info);
		return 0;
	}
	b->n = b->at = 0;
	png_set_write_fn(png, b, write_data, flush_data);
	png_set_IHDR(png, info, w, h, depth, type, interlace, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_set_compression_level(png, level);
	png_set_filter(png, 0, filters);
	if (type == PNG_COLOR_TYPE_PALETTE) {
		png_color palette[256];
		for (int i = 0; i < 256; i++)
			palette[i] = (png_color){(png_byte)i, (png_byte)(i * 7), (png_byte)(255 - i)};
		png_set_PLTE(png, info, palette, 1 << depth);
	}
	png_set_gAMA(png, info, 0.45455);
	png_text text = {.compression = PNG_TEXT_COMPRESSION_zTXt, .key = "Comment", .text = "fenced and native alike, fenced and native alike"};
	png_set_text(png, info, &text, 1);
	png_write_info(png, info);
	size_t row = png_get_rowbytes(png, info);
	png_bytep *rows = malloc(h * sizeof *rows);
	for (unsigned y = 0; y < h; y++)
		rows[y] = pixels + y * row;
	png_write_image(png, rows);
	png_write_end(png, info);
	free(rows);
	png_destroy_write_struct(&png, &info);
	return 1;
}

/* Returns the digest of the pixels, or 0. */
static uint64_t decode(buffer *b, int transform, size_t *bytes)
{
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, on_error, on_warning);
	png_infop info = png_create_info_struct(png);
	unsigned char *volatile pixels = NULL;
	png_bytep *volatile rows = NULL;
	if (setjmp(png_jmpbuf(png))) {
		png_destroy_read_struct(&png, &info, NULL);
		free(pixels);
		free(rows);
		return 0;
	}
	b->at = 0;
	png_set_read_fn(png, b, read_data);
	png_read_info(png, info);
	if (transform & 1)
		png_set_expand(png);
	if (transform & 2)
		png_set_scale_16(png);
	if (transform & 4)
		png_set_gray_to_rgb(png);
	if (transform & 8)
		png_set_add_alpha(png, 0xFFFF, PNG_FILLER_AFTER);
	if (transform & 16)
		png_set_gamma(png, 2.2, 0.45455);
	png_set_interlace_handling(png);
	png_read_update_info(png, info);
	size_t row = png_get_rowbytes(png, info), h = png_get_image_height(png, info);
	if (h > 5000 || row > 50000)
		png_error(png, "too large for this check");
	pixels = calloc(h, row);
	rows = malloc(h * sizeof *rows);
	for (size_t y = 0; y < h; y++)
		rows[y] = pixels + y * row;
	png_read_image(png, rows);
	png_read_end(png, info);
	uint64_t digest = bytes ? 1 : rf_digest(pixels, h * row);
	if (bytes)
		*bytes = h * row;
	png_destroy_read_struct(&png, &info, NULL);
	free(pixels);
	free(rows);
	return digest;
}

static void picture(unsigned char *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)((i * 3 / 7 + (i >> 8)) + (rf_random(&seed) & 15));
}

int main(int argc, char **argv)
{
	(void)argv;
	buffer b = {0};
	size_t bytes;
	if (argc > 1) {
		unsigned char *pixels = malloc(1024 * 1024 * 4);
		picture(pixels, 1024 * 1024 * 4, 51);
		RF_BENCH("write", 2, RF_REQUIRE(encode(&b, pixels, 1024, 1024, PNG_COLOR_TYPE_RGB_ALPHA, 8, 0, 6, PNG_ALL_FILTERS)));
		RF_BENCH("read", 8, RF_REQUIRE(decode(&b, 0, &bytes)));
		return 0;
	}
	printf("libpng %s\n", png_get_libpng_ver(NULL));
	unsigned char *pixels = malloc(400 * 300 * 8);
	picture(pixels, 400 * 300 * 8, 52);
	static const int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_PALETTE, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB_ALPHA};
	for (int t = 0; t < 5; t++)
		for (int depth = 1; depth <= 16; depth *= 2)
			for (int interlace = 0; interlace < 2; interlace++) {
				unsigned w = 197 + (unsigned)depth, h = 100 + (unsigned)t * 7;
				int ok = encode(&b, pixels, w, h, types[t], depth, interlace, 1 + depth % 9, interlace ? PNG_FILTER_PAETH : PNG_ALL_FILTERS);
				printf("type %d depth %d interlace %d: ", types[t], depth, interlace);
				if (!ok) {
					printf("%s\n", last_error);
					continue;
				}
				printf("%zu %016llx", b.n, (unsigned long long)rf_digest(b.p, b.n));
				for (int transform = 0; transform < 32; transform += 1 + transform / 3)
					printf(" %016llx", (unsigned long long)decode(&b, transform, NULL));
				printf("\n");
			}
	encode(&b, pixels, 120, 90, PNG_COLOR_TYPE_RGB, 8, 1, 9, PNG_ALL_FILTERS);
	uint64_t seed = 53;
	for (int i = 0; i < 500; i++) {
		size_t at = rf_random(&seed) % b.n, whole = b.n;
		unsigned char old = b.p[at];
		b.p[at] = (unsigned char)rf_random(&seed);
		if (i % 5 == 0)
			b.n = at;
		last_error[0] = 0;
		unsigned long long d = decode(&b, i & 31, NULL);
		printf("damage at %zu: %016llx %s\n", at, d, last_error);
		b.p[at] = old;
		b.n = whole;
	}
	return 0;
}
