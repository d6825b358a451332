/* What optimisers move, join and leave out: loops in loops, records as values, calls of itself at the end, memory as an operand. */
struct totals { long sum; int least, most; unsigned char last; double mean; }; struct inner { int x; struct { short y; long z; } in; };
static int grid[6][7], counts[16]; static unsigned char bytes[16]; static long wide[8];
static long fib(long n) { return n < 2 ? 1 : fib(n - 1) + fib(n - 2); } static long odd(long n); static long even(long n) { return n == 0 ? 1 : odd(n - 1); } static long odd(long n) { return n == 0 ? 0 : even(n - 1); }
static long sum_to(int n) { if (n <= 0) return 5; return n + sum_to(n - 1); } static unsigned mixed(unsigned a, unsigned b, int n) { if (n == 0) return a * 31 + b; if (n & 1) return mixed(b, a + n, n - 1); return 3 + mixed(a ^ n, b, n - 1); }
static long gcd(long a, long b) { return b ? gcd(b, a % b) : a; } static short narrow(short n, short by) { return n > 30000 ? n : narrow(n * 2 + by, by); } static double power(double x, int n) { return n == 0 ? 1 : x * power(x, n - 1); }
static int *deepest(int *best, int n) { int here = n; if (n == 0) return best; if (here > *best) *best = here; return deepest(best, n - 1); } static int own(int n, int *of) { int here = n; if (n == 0) return *of; return own(n - 1, &here) + n; }
static int tree(int n) { if (n <= 0) return 1; int l = tree(n - 1), r = tree(n - 3); return l > r ? l * 2 - r : r - l; } static long spin(long n, long a) { again: if (n > 0) { a = a * 3 + n; n--; goto again; } return a; }
long test(long a, long b)
{
	long h = 0; int n = (int)(a & 15), k = (int)(b & 7), x, y; struct totals t = { 0, 1000, .mean = 0.5 }; t.most = -1000; t.last = 250;
	for (y = 0; y < 6; y++) for (x = 0; x < 7; x++) { grid[y][x] = y * n + x * k; int v = grid[y][x] ^ n * k; if (v < t.least) t.least = v; if (v > t.most) t.most = v; t.sum += v; t.last += v; t.mean = t.mean * 0.75 + v; if (v & 1) counts[v & 15]++; else counts[v & 15] -= k; bytes[v & 15] ^= v; wide[v & 7] |= (long)v << 3; wide[x] += a; }
	h = t.sum * 31 + t.least * 7 + t.most * 3 + t.last + (long)(t.mean * 100); struct inner i = { n, { 2, 3 } }, j; j = i; i.in.z += k; i.x++; j.in.y -= 1; h = h * 31 + i.x + i.in.y + i.in.z + j.x + j.in.y;
	for (x = 0; x < 16; x++) { h = h * 3 + counts[x] + bytes[x]; if (bytes[x] > 200) h++; if (bytes[x] == 0) h += 2; if (bytes[x] & 4) h ^= 5; if (counts[x] & n) h += 7; if (wide[x & 7] & h) h -= 11; if (counts[x] < n) continue; if (counts[x] == k || (counts[x] & 6) == 0) break; h -= wide[x & 7] > h ? 1 : wide[x & 7] & 3; counts[x] = 0; }
	h += fib(n) + even(n * 9) * 2 + odd(k) + sum_to(n * 5) + mixed(n, k, n + k) + gcd(a & 0xFFFF, (b & 0xFFF) + 1) + narrow(k + 1, n + 1) + (long)power(1.5, n) + tree(n); int best = k; h += *deepest(&best, n) + best + own(n, &n) + spin(n, k);
	for (int c = (int)(a & 127), r = 0; r < 200; c = c * 5 + r & 127, r++) { if (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') h += 3; else if (c < '0' || c > '9') h ^= c; int d; while ((d = c + r & 63) >= 10 && d < 20) { h += d; r++; } h += c == '(' ? 1 : c == ')' ? -1 : 0; }
	for (x = 0; x < 4; x++) { long p = a * b; if (x == 2) { lab: p += n; h += p * x; } if (x == 3 && y++ < 8) goto lab; h ^= a * b + (x ? n * k : n + k) + n * k; } switch (k) { case 0: h += n * k; if (n > 3) { case 1: h -= n * n; } h ^= n * k; case 2: h += n * n; default: h += n * k; }
	unsigned u = (unsigned)b; int s = (int)a; for (x = 0; x < 9; x++) { u = x & 1 ? u >> 1 ^ 0xEDB88320 : u >> 1; s = s > (int)u ? s - (int)u : -s; if (s < x) s = x; if (u > 1u << 31) u -= 7; if (s == (int)u) u++; } return h ^ u ^ (long)s << 20 ^ best;
}
