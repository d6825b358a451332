/* Ways out at the beginning of functions and out of loops, conditions of loops that hold at first, sums with constants, variables without registers. */
struct t { struct t *l, *r; long v; };
static struct t nodes[31];
static long walk(struct t *t) { if (!t) return 3; return t->v + walk(t->l) * 2 + walk(t->r); }
static int depth(struct t *t, int n) { if (n == 7) return -1; if (t == 0) return n; int a = depth(t->l, n + 1), b = depth(t->r, n + 1); return a > b ? a : b; }
static unsigned same(unsigned n, unsigned m) { if (n < 2) return m; if (m >= 0x80000000) return n; return same(n - 2, m + 1) ^ same(n / 2, m * 3); }
static void fill(struct t *t, long n, long *calls) { if (n <= 0) return; ++*calls; t->v = n; fill(t, n - 1, calls); fill(t, n - 3, calls); }
static signed char narrow(signed char n) { if (n < 1) return 100; return narrow(n - 1) + narrow(n - 3); }
static long count(long n) { return n < 2 ? 1 : count(n - 1) + count(n - 2); }
static int less(int n) { return n < 2 ? -1 : less(n - 1) + less(n - 2) + 5; }
static long large(long n) { return n < 2 ? 0x123456789AL : large(n - 1) + large(n - 2); }
static unsigned zero(unsigned n) { return n < 3 ? 0 : n == 3 ? 0xFFFFFFFF : zero(n - 1) + zero(n - 3); }
static double half(int n) { if (n < 1) return 0.5; return half(n - 1) + half(n - 2); }
static int nine(int a, int b, int c, int d, int e, int f, int g, int h) { if (h < 2) return g; return nine(b, c, d, e, f, g, a, h - 1) + h; }
static long find(const unsigned char *p, long n, int what)
{
	long at = -1;
	for (long i = 0; i < n; i++) {
		if (p[i] == what) {
			at = i;
			break;
		}
		if (p[i] > 250) return -2;
		while (1) { if (i % 3 != 1) { at--; break; } i++; }
	}
	return at;
}
static long pressure(long n)
{
	long a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8, i = 9, j = 10, k = 11, l = 12, m = 13; int o = -1; unsigned q = 14;
	for (; n > 0; n--) {
		a += b; b ^= c; c -= 5; d |= a; e &= 0xFFFF; f += 0x12345678; g -= d; h ^= n; i += e; j -= f; k ^= g; l += h; m -= i; o += 3; q -= 7; o ^= (int)a; q += (unsigned)b;
		if (m < l) m += 100;
		if (o == 12) { a = 7; continue; }
		if (q < 5) break;
		if (k > a) { e = k; goto out; }
	}
out:
	return a + b * 3 + c * 5 + d * 7 + e * 11 + f * 13 + g * 17 + h * 19 + i * 23 + j * 29 + k * 31 + l * 37 + m * 41 + o * 43L + q;
}
static long loops(long a)
{
	long r = 0; int i; unsigned char u; signed char s; unsigned n;
	for (i = 0; i < 5; i++) r += i * a;
	for (i = 5; i < 5; i++) r += 1000;
	for (i = 9; i > 3; i -= 2) r ^= i;
	for (u = 250; u >= 3; u++) r += u;
	for (u = 0; u < 200; u += 50) r += 7;
	for (s = 100; s != 103; s++) r -= s;
	for (n = 4; n <= 4; n++) r *= 3;
	for (n = 7; n >= 8; n++) r *= 100;
	for (_Bool b = 1; b > 0; b = 0) r++;
	for (long x = 3; x < 0x100000000L; x *= 700) r += x;
	for (i = 0; i < 3; i++) { for (int j = 0; j < 3; j++) { if (j == a) { r += 5; break; } r -= j; } }
	return r;
}
long test(long a, long b)
{
	unsigned char text[40]; long calls = 0;
	for (int i = 0; i < 40; i++) text[i] = i * 7 + a;
	for (int i = 0; i < 15; i++) { nodes[i].l = &nodes[2 * i + 1]; nodes[i].r = i & 4 ? 0 : &nodes[2 * i + 2]; nodes[i].v = i + b; }
	long r = walk(nodes) + depth(nodes, a & 7) + same(a & 63, b) + count(a & 15) + less(b & 15) + large(a & 7) + zero(b & 15) + narrow(a & 7) + (long)(half(a & 7) * 4);
	fill(&nodes[3], a & 15, &calls);
	r = r * 31 + nodes[3].v + calls + nine(1, 2, 3, 4, 5, 6, a, b & 15);
	for (int w = 0; w < 256; w += 13) r = r * 31 + find(text, 40, w);
	return r * 31 + pressure(a & 63) + loops(b & 3);
}
