/* a hash table with open addresses */
static unsigned keys[4096];
static int counts[4096];
long run(unsigned char *p, long n)
{
	for (int i = 0; i < 4096; i++)
		keys[i] = 0, counts[i] = 0;
	long distinct = 0, most = 0;
	for (long i = 0; i + 2 < 24000; i += 2) {
		unsigned key = (p[i] << 8 | p[i + 1] & 0x0F) + 1;
		unsigned at = key * 2654435761u >> 20;
		while (keys[at] && keys[at] != key)
			at = at + 1 & 4095;
		if (!keys[at]) {
			keys[at] = key;
			distinct++;
		}
		if (++counts[at] > most)
			most = counts[at];
		if (distinct > 3000)
			break;
	}
	return distinct * 1000 + most;
}
