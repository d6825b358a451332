/* Arithmetic and conversions of float and double. */
static long bits(double d) { union { double d; long l; } u; u.d = d; return u.l; }
static long fbits(float f) { union { float f; int i; } u = { f }; return u.i; }
static double poly(double x) { return ((1.5 * x - 0.25) * x + 3) * x - 1e-3; }
static float mix(float a, double b, int c, float d) { return a * b + c / d; }
static double many(double a, double b, double c, double d, double e, double f, double g, double h, double i, float j, long k)
{ return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + k; }
long test(long a, long b)
{
	double x = a / 3.0, y = (int)b + 0.125; float f = a, g = b * 0.5f; long h = 0; double nan = 0.0 / 0.0;
	h ^= bits(poly(y)); h += fbits(mix(f, y, (int)b, g + 100)); h ^= bits(x * y - x / (y + 1e10));
	h = h * 31 + (x < y) + 2 * (x > y) + 4 * (x == y) + 8 * (x != y) + 16 * (f <= g) + 32 * (f >= g);
	h = h * 31 + (nan < y) + 2 * (nan > y) + 4 * (nan == nan) + 8 * (nan != nan) + 16 * (nan <= y) + 32 * !(nan >= y);
	if (nan < y || nan > y || nan == nan) h += 1000; if (!(nan != nan)) h += 2000; while (nan >= 0) h++;
	h = h * 31 + (long)y + (int)g % 7 + (unsigned char)(int)y + (short)(y * 2);
	h = h * 31 + bits((unsigned)b) + bits((unsigned long)a) + fbits((unsigned long)b) + fbits((unsigned)a) + bits((unsigned char)a);
	h = h * 31 + (long)(unsigned long)(y * y * 1e12 + 1e19 * (b == 5)) + (unsigned)(y * y);
	h ^= bits(-x) ^ fbits(-f) ^ bits(-0.0) ^ bits(+x); x += 1; x *= f; x -= g; x /= 3; h ^= bits(x); f++; --g; h += fbits(f) - fbits(g); int n = 7; n *= 1.5; h += n; n += y / 1e9; h += n;
	h ^= bits(many(x, y, 1, 2, f, g, 5, 6.5, 7, f, h)); h += y ? 1 : 2; h += !g; h += (f && g) + (x || y); h += (_Bool)y + (_Bool)0.0f;
	h ^= bits(a > b ? x : f); h ^= bits(0x1.8p3) + bits(1e300 * 1e10) + fbits(3.4e38f) + bits(.5) + bits(5.) + bits(1e-5) + fbits(0.1f);
	return h;
}
