/* 24-bit colour to 8-bit grey, as the first kernel plug-ins had it: one function of 66 lines */
struct image {
	unsigned char *pixels;
	int width;
	int height;
	int stride;
};
struct totals {
	long sum;
	int least;
	int most;
	int dark;
	int bright;
};
static int levels[256];
static int pictures;

long run(unsigned char *p, long n)
{
	struct image in;
	struct totals t;
	int x, y;
	unsigned char *out;
	in.pixels = p;
	in.width = 256;
	in.stride = in.width * 3;
	in.height = (int)(n / 2) / in.stride;
	out = p + n / 2;
	t.sum = 0;
	t.least = 255;
	t.most = 0;
	t.dark = 0;
	t.bright = 0;
	for (x = 0; x < 256; x = x + 1)
		levels[x] = 0;
	for (y = 0; y < in.height; y = y + 1) {
		unsigned char *row = in.pixels + y * in.stride;
		for (x = 0; x < in.width; x = x + 1) {
			int red = row[0];
			int green = row[1];
			int blue = row[2];
			int grey = (77 * red + 150 * green + 29 * blue) >> 8;
			if (grey > 255)
				grey = 255;
			if (grey < t.least)
				t.least = grey;
			if (grey > t.most)
				t.most = grey;
			if (grey < 64) {
				t.dark = t.dark + 1;
			} else if (grey >= 192) {
				t.bright = t.bright + 1;
			}
			levels[grey] = levels[grey] + 1;
			*out = (unsigned char)grey;
			out = out + 1;
			row = row + 3;
			t.sum = t.sum + grey;
		}
	}
	pictures = pictures + 1;
	if (t.most < t.least)
		return -1;
	if (t.dark > t.bright)
		return t.sum - t.dark;
	return t.sum + t.bright + levels[128];
}
