/* a picture to half its size, quantised */
long run(unsigned char *p, long n)
{
	int width = 256, height = (int)(n / 2) / width, x, y;
	unsigned char *out = p + n / 2;
	long sum = 0;
	for (y = 0; y + 1 < height; y += 2) {
		unsigned char *a = p + y * width, *b = a + width;
		for (x = 0; x + 1 < width; x += 2) {
			int mean = (a[x] + a[x + 1] + b[x] + b[x + 1] + 2) >> 2;
			mean = mean & 0xF0 | mean >> 4;
			*out++ = mean;
			sum += mean;
		}
	}
	return sum;
}
