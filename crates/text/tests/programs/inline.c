/* Small functions in the place of their calls. */
static int min(int a, int b) { return a < b ? a : b; } static int clamp(int v, int lo, int hi) { if (v < lo) return lo; if (v > hi) return hi; return v; }
static void bump(int *p, int by) { *p += by; } static int twice(int x) { x = x + x; return x; } static int loop(int n) { int s = 0; for (int i = 0; i < n; i++) { if (i == 3) continue; if (i > 7) break; s += i; } return s; }
static int down(int n) { return n <= 0 ? 0 : 1 + down(n - 1); } static double scale(float f, int n) { return f * n; } static unsigned char wrap(int v) { return v; } static _Bool is(long v) { return v; } static short narrow(long v) { return v; }
struct pair { int a, b; }; static struct pair pair(int a, int b) { struct pair p; p.a = a; p.b = b; return p; } static int total(struct pair p) { p.a++; return p.a + p.b; } static void nothing(void) {} static int early(int v) { if (v & 1) { if (v & 2) return 1; else return 2; } while (v > 100) { v -= 50; if (v == 110) return 7; } return v; }
long test(long a, long b)
{
	int x = (int)(a & 0xFFFF), y = (int)(b & 0xFFF); long h = min(x, y) + min(min(x, 5), min(y, 9)) * 3 + clamp(x, 10, 2000) + twice(twice(x)) + twice(x + 1) * twice(x + 1); bump(&x, 7); bump(&x, min(x, y)); h = h * 31 + x + loop(y) + loop(5) + down(9);
	h += (long)scale(1.5f, y) + wrap(x) + wrap(-1) + is(b) + is(x * 0L) + narrow(a * 5) + narrow(70000); struct pair p = pair(x, y); h = h * 31 + total(p) + total(pair(y, 3)) + p.a; nothing(); h += early(x & 127) * 100 + early(y) + early(310);
	int u, v; h += (x * 3 ^ twice(x * 3)) + (x * 5 - (u = x * 5) * 2) + u; h = h * 31 + (y + 9) * clamp(y + 9, y + 9, y + 9) + ((x ^ y) < (v = x ^ y)) + v;
	for (int i = 0; i < 5; i++) h = h * 3 + min(i, clamp(y, i, i * 2)); int z = min(y, 3) ? early(2) : twice(4); if (min(x, 1) && clamp(y, 0, 1)) z++; return h + z;
}
