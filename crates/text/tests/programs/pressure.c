/* More values than registers, across calls and divisions. */
static long noise(long v) { static long s; s = s * 3 + v; long r = s; s = 0; for (int i = 0; i < 3; i++) r ^= v << i; return r; }
static double fnoise(double v) { double s = 0; for (int i = 0; i < 3; i++) s += v * i; return s; }
long test(long a, long b)
{
	long v0 = a, v1 = b, v2 = a ^ b, v3 = a - b, v4 = a * 3, v5 = b * 5, v6 = a | b, v7 = a & b, v8 = a + 1, v9 = b + 2, va = a >> 2, vb = b >> 3, vc = a << 1, vd = ~a, ve = ~b, vf = -b;
	double d0 = v0, d1 = v1, d2 = 2, d3 = 3, d4 = 4, d5 = 5, d6 = 6, d7 = 7, d8 = 8, d9 = 9, da = 10, db = 11, dc = 12, dd = 13, de = 14, df = 15, dg = 16;
	for (int i = 0; i < 20; i++) {
		v0 += v1 * v2; v1 ^= v3 + v4; v2 -= v5 | v6; v3 += v7 ^ v8; v4 = v4 * 3 + v9; v5 += va / (vb | 1); v6 ^= vc % (vd | 1); v7 += ve >> (vf & 63); v8 ^= v0 << (i & 31);
		v9 += v1 / 7; va ^= v2 % 1000; vb += noise(v3); vc -= v4; vd ^= noise(v5) + noise(v6); ve += v7 < v8; vf ^= v9 == va ? vb : vc;
		d0 += d1 / d2; d1 = d1 * 0.5 + d3; d2 += 1; d3 -= d4 * 0.1; d4 = fnoise(d5) * 0.01; d5 += d6; d6 = d6 * 0.9 + d7; d7 -= d8 * 0.2; d8 = d9; d9 = da * 0.5 + d0 * 1e-19; da = db; db = dc - dd; dc = dd * 0.3; dd = de; de = df + 1; df = dg; dg = dg * 0.7 + i;
	}
	long h = v0 ^ v1 * 3 ^ v2 * 5 ^ v3 * 7 ^ v4 * 11 ^ v5 * 13 ^ v6 * 17 ^ v7 * 19 ^ v8 * 23 ^ v9 * 29 ^ va * 31 ^ vb * 37 ^ vc * 41 ^ vd * 43 ^ ve * 47 ^ vf * 53;
	return h + (long)((d2 + d3 + d4 + d5 + d6 + d7 + d8 + da + db + dc + dd + de + df + dg) * 1e6);
}
