/* scale(width, height): that size, larger or smaller, each pixel from the four nearest. */
/* memory that goes with the picture */
void *room(unsigned long);

static int between(int at, int from, int to)
{
	return at < from ? from : at > to ? to : at;
}

int scale(struct picture *p, int width, int height)
{
	if (width < 1 || height < 1 || width > 16384 || height > 16384)
		return 1;
	int n = p->channels;
	unsigned char *into = room((unsigned long)width * height * n);
	if (!into)
		return 2;
	unsigned char *at = into;
	for (int y = 0; y < height; y++) {
		/* the pixel's middle, in 256ths of the old ones */
		int row = (int)(((2L * y + 1) * p->height * 128) / height) - 128;
		row = between(row, 0, (p->height - 1) * 256);
		const unsigned char *above = p->pixels + (row >> 8) * p->stride;
		const unsigned char *below = p->pixels + between((row >> 8) + 1, 0, p->height - 1) * p->stride;
		int down = row & 255;
		for (int x = 0; x < width; x++) {
			int column = (int)(((2L * x + 1) * p->width * 128) / width) - 128;
			column = between(column, 0, (p->width - 1) * 256);
			int left = (column >> 8) * n, right = between((column >> 8) + 1, 0, p->width - 1) * n;
			int over = column & 255;
			for (int c = 0; c < n; c++) {
				int high = above[left + c] * (256 - over) + above[right + c] * over;
				int low = below[left + c] * (256 - over) + below[right + c] * over;
				*at++ = (unsigned char)((high * (256 - down) + low * down + 32768) >> 16);
			}
		}
	}
	p->pixels = into;
	p->stride = (long)width * n;
	p->width = width;
	p->height = height;
	return 0;
}
