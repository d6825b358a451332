/* Sampling, qualities, progressive and arithmetic coding, scaled decoding, damaged files. */
#include "rfcheck.h"
#include <jpeglib.h>
#include <setjmp.h>

#define W 320
#define H 240

static jmp_buf failed;

static void leave(j_common_ptr info)
{
	char text[JMSG_LENGTH_MAX];
	info->err->format_message(info, text);
	printf("  error: %s\n", text);
	longjmp(failed, 1);
}
static void quiet(j_common_ptr info, int level) { info->err->num_warnings += level < 0; }

static void picture(unsigned char *p, int w, int h, uint64_t seed)
{
	for (int y = 0; y < h; y++)
		for (int x = 0; x < w; x++, p += 3) {
			unsigned noise = rf_random(&seed) & 7;
			p[0] = (unsigned char)(x + noise);
			p[1] = (unsigned char)(y * 2 + (x * y >> 6));
			p[2] = (unsigned char)((x / 16 + y / 16) % 2 ? 200 : 40 + noise);
		}
}

static size_t encode(const unsigned char *rgb, int w, int h, int quality, int kind, unsigned char **out)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr error;
	unsigned long n = 0;
	c.err = jpeg_std_error(&error);
	jpeg_create_compress(&c);
	*out = NULL;
	jpeg_mem_dest(&c, out, &n);
	c.image_width = (unsigned)w, c.image_height = (unsigned)h;
	c.input_components = 3, c.in_color_space = JCS_RGB;
#ifdef MOZJPEG
	jpeg_c_set_int_param(&c, JINT_COMPRESS_PROFILE, JCP_FASTEST);
#endif
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, quality, TRUE);
	if (kind & 1)
		jpeg_simple_progression(&c);
	c.arith_code = kind >> 1 & 1;
	c.comp_info[0].h_samp_factor = c.comp_info[0].v_samp_factor = 1 + (kind >> 2 & 1);
	jpeg_start_compress(&c, TRUE);
	while (c.next_scanline < c.image_height) {
		JSAMPROW row = (JSAMPROW)rgb + c.next_scanline * (size_t)w * 3;
		jpeg_write_scanlines(&c, &row, 1);
	}
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	return n;
}

static uint64_t decode(const unsigned char *data, size_t n, unsigned scale)
{
	struct jpeg_decompress_struct d;
	struct jpeg_error_mgr error;
	uint64_t digest = 0;
	d.err = jpeg_std_error(&error);
	error.error_exit = leave;
	error.emit_message = quiet;
	jpeg_create_decompress(&d);
	if (setjmp(failed) == 0) {
		jpeg_mem_src(&d, data, n);
		jpeg_read_header(&d, TRUE);
		d.scale_num = 1, d.scale_denom = scale;
		jpeg_start_decompress(&d);
		size_t width = (size_t)d.output_width * (size_t)d.output_components;
		JSAMPROW row = malloc(width);
		while (d.output_scanline < d.output_height) {
			jpeg_read_scanlines(&d, &row, 1);
			digest = digest * 31 + rf_digest(row, width);
		}
		free(row);
		jpeg_finish_decompress(&d);
	}
	jpeg_destroy_decompress(&d);
	return digest;
}

int main(int argc, char **argv)
{
	(void)argv;
	unsigned char *file;
	size_t n;
	if (argc > 1) {
		unsigned char *large = malloc(1024 * 768 * 3);
		picture(large, 1024, 768, 71);
		RF_BENCH("encode", 6, { n = encode(large, 1024, 768, 75, 4, &file); free(file); });
		n = encode(large, 1024, 768, 75, 4, &file);
		RF_BENCH("decode", 8, decode(file, n, 1));
		return 0;
	}
	static unsigned char rgb[W * H * 3];
	picture(rgb, W, H, 72);
	for (int kind = 0; kind < 8; kind++) {
		n = encode(rgb, W, H, 20 + kind * 10, kind, &file);
		printf("kind %d: %zu %016llx", kind, n, (unsigned long long)rf_digest(file, n));
		for (unsigned scale = 1; scale <= 8; scale *= 2)
			printf(" 1/%u %016llx", scale, (unsigned long long)decode(file, n, scale));
		printf("\n");
		uint64_t seed = 73;
		for (int i = 0; i < 20; i++) {
			size_t at = rf_random(&seed) % n;
			unsigned char old = file[at];
			file[at] ^= (unsigned char)(1 + rf_random(&seed) % 255);
			printf("  %zu: %016llx\n", at, (unsigned long long)decode(file, i % 4 ? n : at, 1));
			file[at] = old;
		}
		free(file);
	}
	return 0;
}
