/* Rows become a smaller picture as they come: each of its pixels is the mean of the area that it covers. */
#include "codec.h"
#include <string.h>

/* Weights of the old pixels in one new pixel add up to this. */
#define ONE 65536u

struct span {
	int from, count;
};

static int width, height, channels, to_width, to_height;
static int y, to_y;
static unsigned char *row;
/* for each new column: which old ones, and how much of each */
static struct span *spans;
static uint32_t *weights;
/* a row that is narrow already, in sixteenths; and the sum of such rows */
static uint16_t *narrow;
static uint32_t *sum;

/* How much of the new pixel `to` the old pixel `from` is. Differences of rounded sums, so that all of a pixel's add up to ONE. */
static uint32_t weight(int64_t from, int64_t to, int64_t old, int64_t new)
{
	/* in units in which an old pixel is `new` long, and a new one `old` */
	int64_t start = from * new > to * old ? from * new : to * old;
	int64_t end = (from + 1) * new < (to + 1) * old ? (from + 1) * new : (to + 1) * old;
	return end <= start ? 0 : (uint32_t)((end - to * old) * ONE / old - (start - to * old) * ONE / old);
}

void rows_begin(int w, int h, int n, int tw, int th)
{
	width = w, height = h, channels = n, to_width = tw, to_height = th;
	y = to_y = 0;
	row = NULL;
	transcode_picture = (struct picture){
		.pixels = keep((size_t)tw * th * n), .stride = (long)tw * n, .width = tw, .height = th, .channels = n};
	if (w == tw && h == th)
		return;
	row = keep((size_t)w * n);
	narrow = keep((size_t)tw * n * sizeof *narrow);
	sum = keep((size_t)tw * n * sizeof *sum);
	memset(sum, 0, (size_t)tw * n * sizeof *sum);
	spans = keep((size_t)tw * sizeof *spans);
	weights = keep(((size_t)w + 2 * (size_t)tw) * sizeof *weights);
	uint32_t *at = weights;
	for (int x = 0; x < tw; x++) {
		int from = (int)((int64_t)x * w / tw), to = (int)(((int64_t)(x + 1) * w + tw - 1) / tw);
		spans[x] = (struct span){from, to - from};
		for (int i = from; i < to; i++)
			*at++ = weight(i, x, w, tw);
	}
}

unsigned char *rows_next(void)
{
	return row ? row : transcode_picture.pixels + y * transcode_picture.stride;
}

/* With the number of channels known, the compiler unrolls what is inside. */
static inline __attribute__((always_inline)) void narrow_row(const int n)
{
	const uint32_t *weight = weights;
	for (int x = 0; x < to_width; x++) {
		const unsigned char *from = row + (size_t)spans[x].from * n;
		uint32_t total[4] = {0};
		for (int i = spans[x].count; i > 0; i--, from += n, weight++)
			for (int c = 0; c < n; c++)
				total[c] += from[c] * *weight;
		for (int c = 0; c < n; c++)
			narrow[x * n + c] = (uint16_t)((total[c] + 2048) >> 12);
	}
}

void rows_done(void)
{
	int now = y++;
	if (!row)
		return;
	switch (channels) {
	case 1: narrow_row(1); break;
	case 3: narrow_row(3); break;
	default: narrow_row(4); break;
	}
	/* an old row lies in one new row or more, which has all its parts when the old row reaches its end */
	int n = to_width * channels;
	while (to_y < to_height) {
		uint32_t part = weight(now, to_y, height, to_height);
		for (int i = 0; i < n; i++)
			sum[i] += narrow[i] * part;
		if ((int64_t)(to_y + 1) * height > (int64_t)(now + 1) * to_height)
			return;
		unsigned char *into = transcode_picture.pixels + to_y * transcode_picture.stride;
		for (int i = 0; i < n; i++)
			into[i] = (unsigned char)((sum[i] + (1u << 19)) >> 20);
		memset(sum, 0, (size_t)n * sizeof *sum);
		to_y++;
		if ((int64_t)to_y * height >= (int64_t)(now + 1) * to_height)
			return;
	}
}
