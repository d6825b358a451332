/* floating-point numbers in a loop whose end they decide */
long run(unsigned char *p, long n)
{
	long inside = 0;
	for (int y = 0; y < 40; y++)
		for (int x = 0; x < 60; x++) {
			double cr = x / 20.0 - 2, ci = y / 20.0 - 1, zr = 0, zi = 0;
			int i;
			for (i = 0; i < 50; i++) {
				double r = zr * zr, m = zi * zi;
				if (r + m > 4)
					break;
				zi = 2 * zr * zi + ci;
				zr = r - m + cr;
			}
			inside += i;
			p[(y * 60 + x) & 0xFFF] = i;
		}
	return inside;
}
