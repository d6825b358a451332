/* Loops that count by one: little ones, and those that write zeroes, of all sizes, several arrays at once, with and without a rest, and those that only look like it. */
static unsigned char bytes[300]; static short halves[100]; static unsigned words[100]; static long longs[40]; static float floats[40]; static _Bool truths[64]; static volatile char loud[64];
static unsigned char *to = bytes;
static void full(int v) { for (int i = 0; i < 300; i++) bytes[i] = v + i; for (int i = 0; i < 100; i++) { halves[i] = v * i; words[i] = v - i; } for (int i = 0; i < 40; i++) { longs[i] = v; floats[i] = v * 0.5f; } for (int i = 0; i < 64; i++) { truths[i] = v + i; loud[i] = 3; } }
static long sum(void) { long h = 0; for (int i = 0; i < 300; i++) h = h * 31 + bytes[i]; for (int i = 0; i < 100; i++) h = h * 31 + halves[i] + words[i] * 3L; for (int i = 0; i < 40; i++) h = h * 31 + longs[i] + (long)floats[i]; for (int i = 0; i < 64; i++) h = h * 31 + truths[i] + loud[i]; return h; }
long test(long a, long b)
{
	long h = 0; int i; unsigned n; long l; unsigned char local[128]; unsigned char *p = bytes + 3;
	int v = (int)a | 1;
	full(v); for (i = 0; i < 256; i++) bytes[i] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 1; i <= 16; i++) bytes[i] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 3; i < 40; i++) bytes[i] = 0; h = h * 31 + sum() + i;
	full(v); for (n = 2; n != 66; ++n) halves[n] = 0; h = h * 31 + sum() + n;
	full(v); for (l = 4; l < 84; l += 1) words[l] = 0, halves[l] = 0; h = h * 31 + sum() + l;
	full(v); for (l = 4; l < 84; l++) { words[l] = 0; floats[l - 4 & 31] = 0; } h = h * 31 + sum() + l;
	full(v); for (l = 0; l < 32; l++) { words[l] = 0; words[l + 1] = 0; } h = h * 31 + sum() + l;
	full(v); for (i = 0; i < 40; i++) { words[i] = 0; floats[i] = 0; } h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 40; i++) longs[i] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 64; i++) truths[i] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 64; i++) loud[i] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 64; i++) p[i] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 64; i++) to[i] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 64; i++) bytes[i] = 1; h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 64; i += 2) bytes[i] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 64; i++) bytes[i + 1] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 64; i > 0; i--) bytes[i] = 0; h = h * 31 + sum() + i;
	full(v); for (unsigned char c = 0; c < 64; c++) bytes[c] = 0; h = h * 31 + sum();
	full(v); for (i = 0; i < (b & 63); i++) bytes[i] = 0; h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 32; i++) { words[i] = 0; bytes[i] = 0; } h = h * 31 + sum() + i;
	full(v); for (i = 5; i < 293; i++) bytes[(unsigned char)i] = 0; h = h * 31 + sum() + i;
	full(v); for (l = 0; l < 80; l++) words[(int)l] = 0; h = h * 31 + sum() + l;
	full(v); for (i = 0; i < 32; i++) words[i] = 0, i += 0; h = h * 31 + sum() + i;
	full(v); for (i = 0; i < 2; i++) { for (int k = 0; k < 24; k++) bytes[k] = 0; bytes[i] = 9; } h = h * 31 + sum();
	for (i = 0; i < 128; i++) local[i] = 0;
	local[b & 127] = 5;
	for (i = 0; i < 128; i++) h = h * 3 + local[i];
	double d = 0; static double m[16][16]; static long q[16];
	for (i = 0; i < 16; i++) for (int k = 0; k < 16; k++) m[i][k] = i * 3 - k + v;
	for (i = 0; i < 16; i++) d += m[i][15 - i] * m[3][i]; h = h * 31 + (long)d + i;
	for (i = 0; i < 16; i++) q[i] = i * a + (i << 3) - (long)m[i][2] + bytes[i + 1]; for (n = 0; n <= 15; n++) h = h * 31 + q[n] + (n ^ b); h += n;
	for (l = 4; l < 24; l++) h = h * 31 + words[l - 4] + l; h += l;
	for (i = 0; i < 16; i++) q[i & 3] += q[q[i] & 15] + i; for (i = 0; i < 16; i++) h ^= q[i] * i;
	for (i = 0; i < 17; i++) h = h * 31 + i; for (i = 0; i < 16; i++) i += h & 1; h += i; for (i = 0; i < 16; i++) *p++ = i, h += *p; for (i = 0; i < 16; i++) *--p += i * 2; h += sum();
	for (i = 3; i < 35; i++) h += (unsigned char)(i * 9) + (float)i; for (i = 0; i < 20; i++) h -= -i + ~i; for (i = 1; i <= 16; i++) h = h / i + h % (i + 1);
	words[3] = 8; for (i = 0; i < 16; i++) words[i] = 0; h += words[3]; words[3] = 9; h += words[3];
	return h;
}
