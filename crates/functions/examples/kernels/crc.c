/* a checksum by a table */
static unsigned table[256];
long run(unsigned char *p, long n)
{
	unsigned crc = 0xFFFFFFFF;
	if (!table[1])
		for (unsigned i = 0; i < 256; i++) {
			unsigned c = i;
			for (int k = 0; k < 8; k++)
				c = c & 1 ? c >> 1 ^ 0xEDB88320 : c >> 1;
			table[i] = c;
		}
	for (long i = 0; i < n; i++)
		crc = table[(crc ^ p[i]) & 0xFF] ^ crc >> 8;
	return crc ^ 0xFFFFFFFF;
}
