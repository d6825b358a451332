/* Conversions and operators of all integer types. */
static unsigned long hash;
static void add(long v) { hash = (hash ^ (unsigned long)v) * 1099511628211UL; hash ^= hash >> 29; }
static void all(signed char c, unsigned char uc, short s, unsigned short us, int i, unsigned u, long l, unsigned long ul)
{
	add(c + uc); add(s * us); add(i - u); add(l ^ ul); add(c < uc); add(i < u); add(l > ul); add(s >= us);
	add((unsigned char)i); add((signed char)u); add((short)l); add((unsigned short)ul); add((int)l); add((unsigned)ul);
	add(c >> 1); add(uc >> 1); add(i >> 3); add(u >> 3); add(l >> 5); add(ul >> 5); add(u << (uc & 31)); add(ul << (uc & 63));
	add(i >> (uc & 31)); add(l >> (us & 63)); add(-c); add(-u); add(~s); add(~ul); add(!i); add(!!l); add(+c);
	add(u / 7); add(u % 7); add(ul / 10); add(ul % 10); add((i | 1) / 3); add(i % 5); add(l / 3); add(l % 1000); add(l / 8); add(l % 8);
	add(i / 16); add(i % 16); add(u / 16); add(u % 16); add(ul / 4); add(c / 2); add(c % 4); add(i / 1); add(l % 1);
	if (uc) { add(u / uc); add(l / uc); add(ul % uc); add(i % uc); }
	c += 100; add(c); uc -= 200; add(uc); s *= 3; add(s); us <<= 3; add(us); u += l; add(u); ul *= s; add(ul); c >>= 1; add(c);
	us |= 0x8001; add(us); s ^= us; add(s); i &= 0xFFFF; add(i); uc++; add(uc); add(c--); add(--us); add(s++); add(ul++); add(u--);
	_Bool b = i; add(b); b = uc; add(b); b += 3; add(b); b = !b; add(b); add((_Bool)l + (_Bool)0.5);
	add(i == (int)l); add(u != (unsigned)l); add(i <= 5 && l >= 5); add(i || l); add(c ? uc : s); add((c, us));
	add(u > 4000000000u); add(l < -5000000000L); add(l == 0x123456789L); add(ul >= 0x8000000000000000UL); add(ul > 0xFFFFFFFFu);
	add(ul & 0xFFFFFFFF00000000UL); add(l | 0x7000000000L); add(i & 0x80000000u); add(ul * 3); add(l * 1000000007L); add(u * 10);
}
long test(long a, long b)
{
	hash = 14695981039346656037UL;
	for (int k = 0; k < 12; k++) {
		all(a + k, b * k, a >> 3, b ^ a, (int)(a * 3 & 0xFFFFFF), b - k, (a >> 20) * k, b * 77 + k);
		a = a * 6364136223846793005UL + 1442695040888963407UL; b ^= (unsigned long)a >> 13;
	}
	return hash;
}
