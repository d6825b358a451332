/* PNM: binary PPM and PGM of 8 bits. */
#include "codec.h"
#include <stdio.h>
#include <string.h>

static int byte(void)
{
	unsigned char c;
	if (!input_take(&c, 1))
		stop(MALFORMED, "PNM: the picture ends too early");
	return c;
}

/* A number, the spaces and comments before it, and one character behind it. */
static unsigned number(void)
{
	int c = byte();
	while (c == ' ' || (c >= '\t' && c <= '\r') || c == '#') {
		if (c == '#')
			while (byte() != '\n')
				;
		c = byte();
	}
	unsigned n = 0;
	if (c < '0' || c > '9')
		stop(MALFORMED, "PNM: a number is missing");
	for (; c >= '0' && c <= '9'; c = byte()) {
		n = 10 * n + (unsigned)(c - '0');
		if (n > 65535)
			stop(MALFORMED, "PNM: a number is too large");
	}
	return n;
}

void pnm_decode(void)
{
	byte();
	int channels = byte() == '6' ? 3 : 1;
	int width = (int)number(), height = (int)number();
	unsigned most = number();
	allow((uint64_t)width, (uint64_t)height);
	if (most != 255)
		stop(UNKNOWN, "PNM of other than 8 bits a sample");
	int to_width, to_height;
	wanted(width, height, &to_width, &to_height);
	rows_begin(width, height, channels, to_width, to_height);
	for (int y = 0; y < height; y++) {
		if (!input_take(rows_next(), (size_t)width * channels))
			stop(MALFORMED, "PNM: the picture ends too early");
		rows_done();
	}
}

void pnm_encode(const struct picture *p)
{
	char head[64];
	int channels = p->channels == 1 ? 1 : 3;
	output(head, (size_t)snprintf(head, sizeof head, "P%d\n%d %d\n255\n", channels == 1 ? 5 : 6, p->width, p->height));
	/* rows are gathered, so that a step to the host is 64 KiB or a row */
	size_t row = (size_t)p->width * channels, room = row > 1 << 16 ? row : (1 << 16) / row * row, n = 0;
	unsigned char *gathered = keep(room), *line = p->channels == 4 ? keep(row) : NULL;
	for (int y = 0; y < p->height; y++) {
		memcpy(gathered + n, opaque(p, y, line), row);
		n += row;
		if (n == room || y == p->height - 1) {
			output(gathered, n);
			n = 0;
		}
	}
}
