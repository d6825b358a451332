/* JPEG, by libjpeg-turbo. */
#include <stdio.h>
#include "codec.h"
#include <jpeglib.h>
#include <jerror.h>
#include <string.h>

static struct jpeg_error_mgr errors;
static struct jpeg_decompress_struct in;
static struct jpeg_compress_struct out;
static struct jpeg_source_mgr source;
static struct jpeg_destination_mgr destination;
static unsigned char made[1 << 16];

static void leave(j_common_ptr info)
{
	char text[JMSG_LENGTH_MAX];
	info->err->format_message(info, text);
	stop(info->err->msg_code == JERR_OUT_OF_MEMORY ? NO_MEMORY : MALFORMED, text);
}

/* Damage is a warning to libjpeg, which goes on with grey blocks; here it is an error. Bytes between segments do no harm. */
static void warn(j_common_ptr info, int level)
{
	if (level < 0 && info->err->msg_code != JWRN_EXTRANEOUS_DATA)
		leave(info);
}

static void quiet(j_common_ptr info) { (void)info; }

static struct jpeg_error_mgr *error_manager(void)
{
	jpeg_std_error(&errors);
	errors.error_exit = leave;
	errors.emit_message = warn;
	errors.output_message = quiet;
	return &errors;
}

static boolean fill(j_decompress_ptr d)
{
	input.left = 0;
	if (!input_more())
		ERREXIT(d, JERR_INPUT_EOF);
	source.next_input_byte = input.at;
	source.bytes_in_buffer = input.left;
	return TRUE;
}

static void skip(j_decompress_ptr d, long n)
{
	while (n > 0 && (size_t)n > source.bytes_in_buffer) {
		n -= (long)source.bytes_in_buffer;
		fill(d);
	}
	if (n > 0) {
		source.next_input_byte += n;
		source.bytes_in_buffer -= (size_t)n;
	}
}

static void nothing(j_decompress_ptr d) { (void)d; }

/* Inverted CMYK, as Adobe writes it, on white paper. */
static void from_cmyk(unsigned char *into, const unsigned char *from, int n, int inverted)
{
	for (; n > 0; n--, from += 4, into += 3)
		for (int c = 0; c < 3; c++) {
			int ink = inverted ? from[c] : 255 - from[c], black = inverted ? from[3] : 255 - from[3];
			into[c] = (unsigned char)((ink * black + 127) / 255);
		}
}

void jpeg_decode(void)
{
	in.err = error_manager();
	jpeg_create_decompress(&in);
	source = (struct jpeg_source_mgr){
		.next_input_byte = input.at,
		.bytes_in_buffer = input.left,
		.init_source = nothing,
		.fill_input_buffer = fill,
		.skip_input_data = skip,
		.resync_to_restart = jpeg_resync_to_restart,
		.term_source = nothing,
	};
	in.src = &source;
	jpeg_read_header(&in, TRUE);
	allow(in.image_width, in.image_height);
	if (in.data_precision != 8)
		stop(UNKNOWN, "JPEG of more than 8 bits a sample");
	int width, height;
	wanted((int)in.image_width, (int)in.image_height, &width, &height);
	/* The decoder makes pictures smaller by powers of two for little; a factor of two at least is left to the rows, whose mean is better. */
	unsigned part = 8;
	while (part > 1 && ((in.image_width * part + 7) / 8) / 2 >= (unsigned)width * 2 &&
	       ((in.image_height * part + 7) / 8) / 2 >= (unsigned)height * 2)
		part /= 2;
	in.scale_num = part, in.scale_denom = 8;
	int cmyk = in.num_components == 4;
	in.out_color_space = cmyk ? JCS_CMYK : in.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_start_decompress(&in);
	if (width > (int)in.output_width)
		width = (int)in.output_width;
	if (height > (int)in.output_height)
		height = (int)in.output_height;
	rows_begin((int)in.output_width, (int)in.output_height, cmyk ? 3 : in.out_color_components, width, height);
	unsigned char *inks = cmyk ? keep(in.output_width * 4) : NULL;
	while (in.output_scanline < in.output_height) {
		JSAMPROW row = cmyk ? inks : rows_next();
		jpeg_read_scanlines(&in, &row, 1);
		if (cmyk)
			from_cmyk(rows_next(), inks, (int)in.output_width, in.saw_Adobe_marker);
		rows_done();
	}
	jpeg_finish_decompress(&in);
	jpeg_destroy_decompress(&in);
}

static void begin_output(j_compress_ptr c)
{
	(void)c;
	destination.next_output_byte = made;
	destination.free_in_buffer = sizeof made;
}

static boolean empty(j_compress_ptr c)
{
	output(made, sizeof made);
	begin_output(c);
	return TRUE;
}

static void end_output(j_compress_ptr c)
{
	(void)c;
	output(made, sizeof made - destination.free_in_buffer);
}

void jpeg_encode(const struct picture *p, int quality)
{
	out.err = error_manager();
	jpeg_create_compress(&out);
	destination = (struct jpeg_destination_mgr){
		.init_destination = begin_output, .empty_output_buffer = empty, .term_destination = end_output};
	out.dest = &destination;
	out.image_width = (JDIMENSION)p->width, out.image_height = (JDIMENSION)p->height;
	out.input_components = p->channels == 1 ? 1 : 3;
	out.in_color_space = p->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_set_defaults(&out);
	jpeg_set_quality(&out, quality, TRUE);
	jpeg_start_compress(&out, TRUE);
	unsigned char *room = p->channels == 4 ? keep((size_t)p->width * 3) : NULL;
	for (int y = 0; y < p->height; y++) {
		JSAMPROW row = (JSAMPROW)opaque(p, y, room);
		jpeg_write_scanlines(&out, &row, 1);
	}
	jpeg_finish_compress(&out);
	jpeg_destroy_compress(&out);
}

void jpeg_clear(void)
{
	if (in.mem)
		jpeg_destroy_decompress(&in);
	if (out.mem)
		jpeg_destroy_compress(&out);
}
