/* an interpreter of eight instructions */
long run(unsigned char *p, long n)
{
	long a = 1, b = 2, steps = 0;
	for (long at = 0; at < n; at++) {
		int code = p[at];
		switch (code & 7) {
		case 0: a += b; break;
		case 1: b ^= a; break;
		case 2: a = a * 3 + code; break;
		case 3: b -= code; break;
		case 4: a &= 0xFFFFFF; break;
		case 5: b = b >> 1 | 1; break;
		case 6: if (a > b) at++; break;
		default: steps++; break;
		}
	}
	return a ^ b ^ steps;
}
