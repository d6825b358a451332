/* Packet filters, with short circuits. */
enum proto { ICMP = 1, TCP = 6, UDP = 17 }; struct state { unsigned long seen; int ports[4]; enum proto last; };
static struct state st;
static int filter(unsigned char *p, long n)
{
	long ihl; if (n < 34) return 0; if (p[12] != 0x08 || p[13] != 0x00) return 0; ihl = (p[14] & 15) * 4; if (p[23] != TCP && p[23] != UDP) return 0; st.last = p[23];
	if (p[26] != 10) return 0; if (((p[16] << 8) | p[17]) <= 40) return 0; if (n < 14 + ihl + 4) return 0; int port = (p[14 + ihl + 2] << 8) | p[14 + ihl + 3]; st.seen++; st.ports[port & 3] += port;
	return port == 80 || (port > 8000 && port < 8100 && st.last == UDP) || !port;
}
long test(long a, long b)
{
	unsigned char p[64]; long c = 0; st = (struct state){ 0 };
	for (int k = 0; k < 500; k++) { for (int i = 0; i < 64; i++) p[i] = (k * i + a) >> 2; p[12] = 8; p[13] = k % 17 == 0; p[14] = 0x45; p[23] = k & 1 ? 6 : 17; p[26] = k % 5 ? 10 : b; p[16] = k & 1; p[36] = k % 3 ? 0 : 31; p[37] = k % 3 ? 80 + (k & 1) : k; c = c * 3 + filter(p, k % 11 ? 64 : 30); }
	return c ^ st.seen ^ st.ports[0] * 3 ^ st.ports[1] * 5 ^ st.ports[3] * 7 ^ st.last;
}
