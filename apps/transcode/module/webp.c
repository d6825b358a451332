/* WebP, by libwebp. */
#include "codec.h"
#include <stdlib.h>
#include <string.h>
#include <src/webp/decode.h>
#include <src/webp/encode.h>

static WebPDecoderConfig in;
static WebPPicture out;
static unsigned char *all;

static const char *const reasons[] = {
	[VP8_STATUS_INVALID_PARAM] = "libwebp: invalid parameter",
	[VP8_STATUS_BITSTREAM_ERROR] = "libwebp: bitstream error",
	[VP8_STATUS_UNSUPPORTED_FEATURE] = "libwebp: unsupported feature",
	[VP8_STATUS_SUSPENDED] = "libwebp: suspended",
	[VP8_STATUS_USER_ABORT] = "libwebp: aborted",
	[VP8_STATUS_NOT_ENOUGH_DATA] = "libwebp: not enough data",
};

static void check(VP8StatusCode code)
{
	if (code == VP8_STATUS_OK)
		return;
	if (code == VP8_STATUS_OUT_OF_MEMORY)
		stop(NO_MEMORY, "libwebp: out of memory");
	stop(code == VP8_STATUS_UNSUPPORTED_FEATURE ? UNKNOWN : MALFORMED, reasons[code]);
}

void webp_decode(void)
{
	size_t n = 0, room = 0;
	while (input_more()) {
		if (room - n < input.left) {
			room = 2 * room + input.left;
			unsigned char *larger = realloc(all, room);
			if (!larger)
				stop(NO_MEMORY, "the picture needs more memory");
			all = larger;
		}
		memcpy(all + n, input.at, input.left);
		n += input.left;
		input.left = 0;
	}
	if (!WebPInitDecoderConfig(&in))
		stop(UNKNOWN, "another libwebp");
	check(WebPGetFeatures(all, n, &in.input));
	allow((uint64_t)in.input.width, (uint64_t)in.input.height);
	if (in.input.has_animation)
		stop(UNKNOWN, "WebP with animation");
	in.output.colorspace = in.input.has_alpha ? MODE_RGBA : MODE_RGB;
	check(WebPDecode(all, n, &in));
	int channels = in.input.has_alpha ? 4 : 3, width, height;
	wanted(in.output.width, in.output.height, &width, &height);
	rows_begin(in.output.width, in.output.height, channels, width, height);
	for (int y = 0; y < in.output.height; y++) {
		memcpy(rows_next(), in.output.u.RGBA.rgba + (size_t)y * in.output.u.RGBA.stride, (size_t)in.output.width * channels);
		rows_done();
	}
	webp_clear();
}

static int give(const uint8_t *from, size_t n, const WebPPicture *picture)
{
	(void)picture;
	output(from, n);
	return 1;
}

void webp_encode(const struct picture *p, int quality)
{
	WebPConfig config;
	if (!WebPConfigInit(&config) || !WebPPictureInit(&out))
		stop(UNKNOWN, "another libwebp");
	config.quality = (float)quality;
	if (p->width > WEBP_MAX_DIMENSION || p->height > WEBP_MAX_DIMENSION)
		stop(TOO_LARGE, "WebP has 16383 pixels a side at most");
	out.width = p->width, out.height = p->height;
	out.writer = give;
	int ok;
	if (p->channels == 4) {
		ok = WebPPictureImportRGBA(&out, p->pixels, (int)p->stride);
	} else if (p->channels == 3) {
		ok = WebPPictureImportRGB(&out, p->pixels, (int)p->stride);
	} else {
		unsigned char *colours = keep((size_t)p->width * p->height * 3), *at = colours;
		for (int y = 0; y < p->height; y++)
			for (int x = 0; x < p->width; x++, at += 3)
				at[0] = at[1] = at[2] = p->pixels[y * p->stride + x];
		ok = WebPPictureImportRGB(&out, colours, p->width * 3);
	}
	if (!ok || !WebPEncode(&config, &out))
		stop(out.error_code == VP8_ENC_ERROR_OUT_OF_MEMORY || out.error_code == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY ? NO_MEMORY
													      : MALFORMED,
		     "libwebp: the picture cannot be encoded");
	webp_clear();
}

void webp_clear(void)
{
	WebPFreeDecBuffer(&in.output);
	memset(&in.output, 0, sizeof in.output);
	WebPPictureFree(&out);
	free(all);
	all = NULL;
}
