/* Arithmetic, conversions, comparisons and calls of long double. */
typedef long double ld;
struct s { char a; ld x; short b; }; struct pair { ld a[2]; int n; };
union u { ld x; unsigned long m[2]; unsigned char c[16]; };
static long bits(ld x) { union u u = { .m = { 0, 0 } }; u.x = x; return u.m[0] * 31 + (u.m[1] & 0xffff) * 0x9e3779b97f4a7c15; }
static long dbits(double d) { union { double d; long l; } u; u.d = d; return u.l; }
static int fbits(float f) { union { float f; int i; } u = { f }; return u.i; }
static ld table[4] = { 1, -2.5L, 0x1.8p-3L, 3e4000L }, zero, *at = &table[1];
static const struct s first = { 1, 0.1L, 3 };
static struct pair pairs[2] = { { { 1.5L, -1 }, 7 }, { { [1] = 2 }, 8 } };
static int calls;
static ld third(ld x) { calls++; return x / 3; }
static ld none(void) { return 0.1L; }
static ld last(int a, ld x, double d, ld y, float f, long b, long c, long e, ld z, long g, long h, int i)
{ return a + x * d - y / (f + 100.5L) + b + c * 3 + e + z + g + h * 2 + i; }
static ld sum(ld *p, int n) { ld s = 0; while (n-- > 0) s += *p++; return s; }
static ld power(ld x, int n) { return n <= 0 ? 1 : x * power(x, n - 1); }
static ld deep(ld x, int n) { if (n <= 0) return x; return deep(x * 1.5L + n, n - 1); }
static struct s make(ld x, int n) { struct s s = { n, x, n + 1 }; return s; }
static ld member(struct s s) { return s.x + s.a * s.b; }
static ld (*const choose[3])(ld, int) = { power, deep, &power };
static void twice(ld *p) { *p *= 2; }
static ld newton(ld x) { ld y = x; for (int i = 0; i < 40; i++) y = (y + x / y) / 2; return y; }
static long whole(ld x) { return x > -9e18L && x < 9e18L ? (long)x : 77; }
static unsigned long positive(ld x) { return x > -1 && x < 18e18L ? (unsigned long)x : 78; }
static int little(ld x) { return x > -2e9L && x < 2e9L ? (int)x : 79; }
static unsigned middle(ld x) { return x > -1 && x < 4e9L ? (unsigned)x : 80; }
static int small(ld x) { return x > -128 && x < 127 ? (signed char)x + (short)(x * 100) : 81; }
static int tiny(ld x) { return x > -1 && x < 255 ? (unsigned char)x + (unsigned short)(x * 200) : 82; }
static int order(ld x, ld y)
{
	int n = (x < y) + 2 * (x > y) + 4 * (x == y) + 8 * (x != y) + 16 * (x <= y) + 32 * (x >= y);
	if (x < y) n += 64; if (!(x > y)) n += 128; if (x == y || x != x) n += 256; if (x && !y) n += 512;
	return n + (x <= y ? 1024 : 2048) + (!x) * 4096 + (_Bool)y * 8192;
}
long test(long a, long b)
{
	ld x = a, y = (int)b, z; double d = a / 3.0; float f = b; long h = 0; int n = b & 7;
	volatile ld v = d; struct s s = make(x / 7, 5), t = s; struct pair p = pairs[b & 1];
	ld nan = zero / zero, inf = 1 / zero, least = 0x1p-16445L, big = 0x1.fffffffffffffffep16383L;
	h ^= bits(x); h = h * 31 + bits(y / 7); h = h * 31 + bits(d) + bits(f) + bits((unsigned long)b) + bits((unsigned)b);
	h = h * 31 + bits((unsigned char)b) + bits((short)a) + bits((_Bool)a) + bits(-x) + bits(+y) + bits(-zero);
	h = h * 31 + bits(x + y) + bits(x - y * 3) + bits(x * x) + bits(y / (x + 0.5L)) + bits(x * 1e-4940L) + bits(y * big);
	h = h * 31 + bits(least * (y + 1.5L)) + bits(least / 2) + bits(big + big) + bits(inf - 1) + bits(1 / -inf);
	h = h * 31 + order(x, y) + order(nan, x) + order(y, nan) + order(zero, -zero) + order(inf, big) + order(nan, nan) + order(-inf, x);
	h = h * 31 + whole(y * 1.75L) + whole(x / 3) + whole(-y / 1000) + whole(0.99L) + whole(-0.99L) + whole(least) + whole(nan);
	h = h * 31 + positive(y * y) + positive(x) + positive(17e18L + n) + positive(0.5L) + little(y / 7) + little(x) + middle(y + 0.7L) + middle(3.9e9L);
	h = h * 31 + small(y / 11) + tiny(x / 100) + small(-100.9L) + tiny(99.9L) + (char)(y == y) + (int)(float)(y / 3) + n * (short)12.9L;
	h = h * 31 + dbits(x / 3) + fbits(y / 3) + dbits(x * big) + fbits(y * 1e40L) + dbits(least) + dbits(0x1.00000000000008p0L) + dbits(0x1.000000000000080001p0L);
	z = x; z += y; h += bits(z); z -= d; z *= 1.25L; z /= 3; h += bits(z); z++; --z; z--; h += bits(z++) - bits(++z); n *= 1.5L; h += n;
	n += y / 1e9L; h += n; d *= third(y); f -= third(x) + f; h += dbits(d) + fbits(f); d += 1; z *= third(z); h += bits(z);
	h = h * 31 + bits(last(a, x, d, y, f, a, b, n, z, 9, 10, 11)) + bits(sum(table, 3)) + bits(power(1.1L, 30)) + bits(deep(x, 9)) + bits(none());
	h = h * 31 + bits(member(make(y, 3))) + bits(member(s)) + bits(s.x) + bits(first.x) + bits(choose[b & 1](1.01L, 12)) + sizeof(ld) + _Alignof(ld) + sizeof(struct s);
	s.x += t.x; t.x = s.x++; p.a[1] -= p.a[0]; pairs[1] = p; h += bits(s.x) + bits(t.x) + bits(p.a[1]) + bits(pairs[1].a[1] * p.n);
	twice(&z); twice(&s.x); twice(at); at = &table[(b & 1) + 1]; h += bits(z) + bits(s.x) + bits(*at) + bits(at[-1]) + bits((&table[3])[0]);
	h += bits(a > b ? x : n) + bits(x ? y : 2.5) + bits((calls++, third(y))) + (x && y) + (x || y) * 2 + !x * 4; if (z) h++; while (z > 1e3L) { z /= 10; h++; }
	do h += 3; while ((z *= 2) < 100 && z > 0); for (ld i = 0.5L; i < 4; i += 0.75L) h = h * 3 + bits(i); switch ((int)z) { case 1: h++; default: h += 2; }
	v += 1; v = v * v; h += bits(v) + bits(newton(2)) + bits(newton(a < 0 ? -x : x)) + bits((x = y) + (z = x + 1)) + bits(((struct s){ 1, y, 2 }).x + (ld){ 0.3L });
	h += bits(third(third(x) + third(y)) * (third(1) - x)) + calls + (long)(x == y) + bits(0.1L) + bits(1e100L) + bits(0x.8p1L) + bits(1.18973149535723176502e4932L);
	h += bits((1 + (2 + (3 + (4 + (5 + (6 + (7 + (8 + (9 + (10 + x * (11 + y)))))))))))) + 'ab' + '\377a' + 'abcd' + 'a\0b' * 3;
	return h;
}
