/* RGB to grey in place, and a sum. */
typedef unsigned char byte;
#define RED 77
#define GREEN 150
#define BLUE 29
#define WIDTH (16 * 3)
static byte picture[WIDTH * 10];
static long grey(byte *p, long n)
{
	long i, s = 0; byte *q = p + n;
	for (i = 0; i + 3 <= n; i = i + 3) { int y = (RED * p[i] + GREEN * p[i + 1] + BLUE * p[i + 2]) >> 8; if (y > 255) y = 255; *--q = y; s = s + y; }
	return s;
}
long test(long a, long b)
{
	for (int i = 0; i < (int)sizeof(picture); i++) picture[i] = (i * 31 + a) ^ (b >> (i & 7));
	long s = grey(picture, sizeof picture / 2); for (int i = 0; i < (int)sizeof picture; i++) s = s * 31 + picture[i]; return s;
}
