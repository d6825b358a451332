/* What the host calls, and what decoders and encoders share. */
#include "codec.h"
#include <ringfence/module.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the input, at most `room`: how many; 0 at its end, less if there will be none. */
RF_IMPORT(long, transcode_read, (void *into, unsigned long room))
/* Not 0 if nobody wants more. */
RF_IMPORT(int, transcode_write, (const void *from, unsigned long n))

RF_EXPORT struct picture transcode_picture;
RF_EXPORT char transcode_message[200];
RF_EXPORT int transcode_format;

jmp_buf stopped;
struct input input;

static unsigned char arrived[1 << 16];
static int max_width, max_height;
static uint64_t max_pixels;

static void *kept[16];
static unsigned kepts;

void stop(enum status status, const char *message)
{
	snprintf(transcode_message, sizeof transcode_message, "%s", message);
	longjmp(stopped, status);
}

size_t input_more(void)
{
	if (!input.left) {
		long n = transcode_read(arrived, sizeof arrived);
		if (n < 0)
			stop(NO_INPUT, "the input failed");
		input.at = arrived;
		input.left = (size_t)n;
	}
	return input.left;
}

int input_take(void *into, size_t n)
{
	unsigned char *to = into;
	while (n) {
		size_t some = input_more();
		if (!some)
			return 0;
		if (some > n)
			some = n;
		memcpy(to, input.at, some);
		to += some, n -= some;
		input.at += some, input.left -= some;
	}
	return 1;
}

void output(const void *from, size_t n)
{
	if (n && transcode_write(from, n))
		stop(NO_OUTPUT, "the output failed");
}

void *keep(size_t n)
{
	void *p = kepts < sizeof kept / sizeof *kept ? malloc(n ? n : 1) : NULL;
	if (!p)
		stop(NO_MEMORY, "the picture needs more memory");
	return kept[kepts++] = p;
}

void allow(uint64_t width, uint64_t height)
{
	/* Neither is above 2^31 in any of the formats. */
	if (!width || !height)
		stop(MALFORMED, "the picture has no pixels");
	if (width > 65535 || height > 65535 || width * height > max_pixels) {
		snprintf(transcode_message, sizeof transcode_message, "%llu x %llu pixels", (unsigned long long)width,
			 (unsigned long long)height);
		longjmp(stopped, TOO_LARGE);
	}
}

void wanted(int width, int height, int *to_width, int *to_height)
{
	*to_width = width, *to_height = height;
	if (max_width && *to_width > max_width) {
		*to_height = (int)(((int64_t)height * max_width + width / 2) / width);
		*to_width = max_width;
	}
	if (max_height && *to_height > max_height) {
		*to_width = (int)(((int64_t)width * max_height + height / 2) / height);
		*to_height = max_height;
	}
	if (*to_width < 1)
		*to_width = 1;
	if (*to_height < 1)
		*to_height = 1;
}

const unsigned char *opaque(const struct picture *p, int y, unsigned char *room)
{
	const unsigned char *from = p->pixels + y * p->stride;
	if (p->channels != 4)
		return from;
	for (int x = 0; x < p->width; x++, from += 4)
		for (int c = 0; c < 3; c++)
			room[3 * x + c] = (unsigned char)((from[c] * from[3] + 255 * (255 - from[3]) + 127) / 255);
	return room;
}

/* Frees everything: for hosts whose domains keep what was allocated when they are reset. */
RF_EXPORT void transcode_clear(void)
{
	jpeg_clear();
	png_clear();
	webp_clear();
	while (kepts)
		free(kept[--kepts]);
	input.left = 0;
}

/* Decodes the input into `transcode_picture`, which is made smaller to fit into `width` times `height`, where these are not 0. */
RF_EXPORT int transcode_decode(int width, int height, unsigned long pixels)
{
	max_width = width, max_height = height, max_pixels = pixels;
	int status = setjmp(stopped);
	if (status)
		return status;
	if (input_more() < 12 && input.at == arrived) {
		/* the first bytes may come one by one */
		static unsigned char first[12];
		size_t n = 0;
		while (n < sizeof first && input_more()) {
			first[n++] = *input.at++;
			input.left--;
		}
		memmove(arrived + n, input.at, input.left);
		memcpy(arrived, first, n);
		input.at = arrived, input.left += n;
	}
	const unsigned char *head = input.at;
	size_t n = input.left;
	if (n >= 3 && !memcmp(head, "\xff\xd8\xff", 3)) {
		transcode_format = JPEG;
		jpeg_decode();
	} else if (n >= 8 && !memcmp(head, "\x89PNG\r\n\x1a\n", 8)) {
		transcode_format = PNG;
		png_decode();
	} else if (n >= 12 && !memcmp(head, "RIFF", 4) && !memcmp(head + 8, "WEBP", 4)) {
		transcode_format = WEBP;
		webp_decode();
	} else if (n >= 3 && head[0] == 'P' && (head[1] == '5' || head[1] == '6')) {
		transcode_format = PNM;
		pnm_decode();
	} else {
		stop(UNKNOWN, n ? "neither JPEG, PNG, WebP nor PNM" : "there is no picture");
	}
	return DONE;
}

/* Room for another picture's pixels, in the place of the last one's; NULL if there is none. */
RF_EXPORT void *transcode_room(unsigned long n)
{
	return setjmp(stopped) ? NULL : keep(n);
}

/* Encodes `transcode_picture`. */
RF_EXPORT int transcode_encode(int format, int quality)
{
	int status = setjmp(stopped);
	if (status)
		return status;
	switch (format) {
	case JPEG: jpeg_encode(&transcode_picture, quality); break;
	case PNG: png_encode(&transcode_picture); break;
	case WEBP: webp_encode(&transcode_picture, quality); break;
	case PNM: pnm_encode(&transcode_picture); break;
	default: stop(UNKNOWN, "no such format");
	}
	return DONE;
}
