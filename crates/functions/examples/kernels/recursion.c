/* functions that call each other and themselves */
static long count(long n) { return n < 2 ? 1 : count(n - 1) + count(n - 2); }
static long odd(long n);
static long even(long n) { return n == 0 ? 1 : odd(n - 1); }
static long odd(long n) { return n == 0 ? 0 : even(n - 1); }
long run(unsigned char *p, long n)
{
	long sum = count(18);
	for (int i = 0; i < 64; i++)
		sum += even(p[i] & 63);
	return sum;
}
