/* numbers, words and brackets of a text */
long run(unsigned char *p, long n)
{
	long numbers = 0, words = 0, depth = 0, i = 0;
	while (i < n) {
		int c = p[i] & 127;
		if (c >= '0' && c <= '9') {
			long value = 0;
			while (i < n && (c = p[i] & 127) >= '0' && c <= '9') {
				value = value * 10 + (c - '0');
				i++;
			}
			numbers += value;
		} else if (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			words++;
			while (i < n && (c = (p[i] & 127) | 32) >= 'a' && c <= 'z')
				i++;
		} else {
			depth += c == '(' ? 1 : c == ')' ? -1 : 0;
			i++;
		}
	}
	return numbers + words * 1000 + depth;
}
