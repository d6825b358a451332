/* Constants that look like an identifier's prefix, large frames, constant expressions, labels of all sorts. */
static unsigned tab[] = { 0x629A629A, 0x9A62, 1 ? 2 : 3, sizeof(long) * 8 - 1, -1 >> 1, ~0u >> 28, 'a' + '\n' + '\x41' + '\101', (int)3.9, (char)300, 5 > 3, !7, 1 << 4 | 1 };
static double half = 1 / 2.0 + 1; static const long far = 0x629A629A629A629A; static long *at = (long *)&far, there = (long)0x1234; static char *end = (char *)tab + sizeof tab; enum { A, B = 10, C, D = -3, E }; typedef int T; _Static_assert(C == 11 && E == -2, "enum");
static long many(long x) { x ^= 0x629A629A629A629A; x += 0x629A; x ^= 0x9A62629A; x -= 0x629A0000; x *= 0x629A629A; x ^= 0x62009A; x += 0x629A629A62; x = x ^ 0x629A629A ^ (x >> 9); return x + 0x629Bl; }
static int large(int n) { volatile int room[20000]; room[0] = n; room[19999] = n * 2; int s = 0; for (int i = 0; i < 20000; i += 19999) s += room[i]; return n > 0 ? s + large(n - 1) : s; }
static const char *own(int twice) { return twice ? __func__ : &__func__[1]; }
long test(long a, long b)
{
	long h = many(a) ^ many(b) * 3; for (unsigned i = 0; i < sizeof tab / sizeof *tab; i++) h = h * 31 + tab[i]; h += (long)(half * 100) + *at + there + (end - (char *)tab) + A + B + C + D + E;
	T T = 5; h += T; { typedef char T; T x = 300; h += x + sizeof(T); } h += large(3); volatile long v = a; v += v; h += v; unsigned char uc = 0x9A; h += uc << 8 | 0x62; if (b == 0x629A629A) h++; h += "abc"[1] + sizeof "abcd" + *"x"; a = 0x629A629AL * b; for (const char *s = own(0), *t = own(1); *s; s++) h = h * 31 + *s + *t; return h ^ a ^ sizeof __func__ ^ __func__[2];
}
