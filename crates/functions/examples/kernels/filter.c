/* which of the packets of 64 bytes are for a web server */
long run(unsigned char *p, long n)
{
	long wanted = 0;
	for (long i = 0; i + 64 <= n; i += 64) {
		unsigned char *q = p + i;
		unsigned kind = q[12] << 8 | q[13];
		if (kind == 0x0806)
			continue;
		if ((q[14] & 0x40) == 0 || q[23] > 200)
			continue;
		unsigned port = q[36] << 8 | q[37];
		if (port < 1024 || port == 8080 || port == 8443)
			wanted++;
		if ((q[26] ^ q[30]) < 16)
			wanted += 2;
	}
	return wanted;
}
