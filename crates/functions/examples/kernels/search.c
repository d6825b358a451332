/* how often a word stands in a text, by skips (Horspool) */
long run(unsigned char *p, long n)
{
	static const unsigned char word[8] = { 1, 5, 2, 7, 1, 3, 2, 4 };
	int skip[256];
	long found = 0, at = 0;
	for (int i = 0; i < 256; i++)
		skip[i] = 8;
	for (int i = 0; i < 7; i++)
		skip[word[i]] = 7 - i;
	while (at + 8 <= n) {
		int k = 7;
		while (k >= 0 && (p[at + k] & 7) == word[k])
			k--;
		if (k < 0)
			found++;
		at += skip[p[at + 7] & 7];
	}
	return found;
}
