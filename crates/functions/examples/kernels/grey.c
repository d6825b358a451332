/* 24-bit colour to 8-bit grey */
long run(unsigned char *p, long n)
{
	long i, sum = 0;
	unsigned char *out = p + n / 2;
	for (i = 0; i + 3 <= n / 2; i += 3) {
		int red = p[i];
		int green = p[i + 1];
		int blue = p[i + 2];
		int grey = (77 * red + 150 * green + 29 * blue) >> 8;
		if (grey > 255)
			grey = 255;
		*out++ = grey;
		sum += grey;
	}
	return sum;
}
