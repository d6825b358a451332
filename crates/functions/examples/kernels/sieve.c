/* prime numbers */
long run(unsigned char *p, long n)
{
	static unsigned char composite[32768];
	long primes = 0;
	for (int i = 0; i < 32768; i++)
		composite[i] = 0;
	for (int i = 2; i < 32768; i++) {
		if (composite[i])
			continue;
		primes++;
		for (int k = 2 * i; k < 32768; k += i)
			composite[k] = 1;
	}
	return primes;
}
