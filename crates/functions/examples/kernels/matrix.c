/* a product of matrices of doubles */
static double a[48][48], b[48][48], c[48][48];
long run(unsigned char *p, long n)
{
	for (int i = 0; i < 48; i++)
		for (int j = 0; j < 48; j++) {
			a[i][j] = p[i * 48 + j];
			b[i][j] = p[2304 + i * 48 + j] - 128;
		}
	for (int i = 0; i < 48; i++)
		for (int j = 0; j < 48; j++) {
			double sum = 0;
			for (int k = 0; k < 48; k++)
				sum += a[i][k] * b[k][j];
			c[i][j] = sum;
		}
	double trace = 0;
	for (int i = 0; i < 48; i++)
		trace += c[i][i];
	return (long)trace;
}
