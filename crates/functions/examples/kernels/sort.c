/* shell sort */
static int numbers[4096];
long run(unsigned char *p, long n)
{
	int count = sizeof numbers / sizeof *numbers;
	for (int i = 0; i < count; i++)
		numbers[i] = p[i] << 8 | p[i + 4096];
	for (int gap = count / 2; gap > 0; gap /= 2)
		for (int i = gap; i < count; i++) {
			int key = numbers[i], at = i;
			while (at >= gap && numbers[at - gap] > key) {
				numbers[at] = numbers[at - gap];
				at -= gap;
			}
			numbers[at] = key;
		}
	long sum = 0;
	for (int i = 0; i < count; i++)
		sum += (long)i * numbers[i];
	return sum;
}
