/* All statements. */
static long sw(long n)
{
	long r = 0;
	switch (n) { case 0: r = 1; case 1: r += 10; break; case -5: return 77; case 100: case 101: case 102: r = 3; goto out; case 5000000000: r = 8; break; default: r = -1; case 7: r--; { case 8: r *= 2; } }
	r += 1000;
out:	switch ((unsigned char)n) { case 200: r++; break; case 3: { long x = r; r = x * 2; } break; }
	return r;
}
long test(long a, long b)
{
	long h = 0; int i, j;
	for (i = -10; i < 120; i++) h = h * 3 + sw(i) + sw(i + 4999999990);
	for (i = 0; ; i++) { if (i % 3 == 1) continue; if (i > 50) break; for (j = i; j--; ) { if (j == 5) goto next; if (j & 1) continue; h += j ^ i; } next: h *= 3; }
	i = 0; while (i < 30) { i++; if (i == (b & 15)) continue; if (i == 25) break; h += i; } do { h ^= i; if (h & 64) continue; h += 3; } while (--i > 0);
	do h++; while (0); for (;;) { do { if (h++ & 1) break; } while (1); break; }
	i = a & 31; again: h = h * 5 + i; if (i-- > 0 && h) goto again; { int h2 = 0; { long h = 5; h2 += h; } h += h2; }
	if (a < b) if (b > 3) h++; else h += 2; else h += 4; h += a ? b ? 1 : 2 : b ? 3 : 4; h += (a > 0 && b > 0) * 2 + (a < 0 || b < 0) + (a && !b) + (!(a || b) ? 100 : 200);
	switch (b & 3) case 2: h += 9; switch (i) { int z; case 0: z = 4; h += z; default: ; } switch (h & 7) { }
	int n = 0; switch ((int)(b & 7)) { case 0: do { n++; case 7: n++; case 6: n++; case 5: n++; case 4: n++; case 3: n++; case 2: n++; case 1: n++; } while (n < 20); } h += n;
	return h;
}
