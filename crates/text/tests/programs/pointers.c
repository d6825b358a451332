/* Pointers, arrays, functions by pointer, recursion. */
static int numbers[64]; static char text[] = "the quick brown fox"; static const char *words[] = { "one", "two" "three", "", text + 4 };
static int *middle = &numbers[32]; static long (*later)(long, long);
static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static long odd(unsigned n); static long even(unsigned n) { return n == 0 ? 1 : odd(n - 1); } static long odd(unsigned n) { return n == 0 ? 0 : even(n - 1); }
static long plus(long a, long b) { return a + b; } static long minus(long a, long b) { return a - b; }
static long (*ops[])(long, long) = { plus, minus, &plus };
static long apply(long (*f)(long, long), long a, long b) { return f(a, b) + (*f)(b, a) + (**f)(1, 2); }
static void sort(int *v, int n) { for (int i = 1; i < n; i++) { int x = v[i], j = i - 1; while (j >= 0 && v[j] > x) { v[j + 1] = v[j]; j--; } v[j + 1] = x; } }
static long len(const char *s) { const char *p = s; while (*p) p++; return p - s; }
static void swap(long *a, long *b) { long t = *a; *a = *b; *b = t; }
static long counter(void) { static long n = 5; static int seen[3] = { 1 }; seen[n % 3]++; return n++ * 10 + seen[0]; }
static long (*choose(int k))(long, long) { return k ? minus : plus; }
static int ack(int m, int n) { if (!m) return n + 1; if (!n) return ack(m - 1, 1); return ack(m - 1, ack(m, n - 1)); }
static long eight(long a, int b, char c, short d, long e, long f, unsigned char g, long h, long i) { return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9; }
static long start;
long test(long a, long b)
{
	long h = fib(15) + odd(7) + even(9) + ack(2, 3), x = a, y = b; int grid[4][5], *p, **pp = &p; unsigned char bytes[8]; int k;
	for (k = 0; k < 64; k++) numbers[k] = (k * 7919 + (int)b) % 1009; sort(numbers, 64); for (k = 0; k < 64; k++) h = h * 31 + numbers[k];
	swap(&x, &y); h += x * 3 + y; for (k = 0; k < 4; k++) h = h * 31 + len(words[k]) + *words[k]; h += middle[-1] + *middle + 3[middle] + middle[k];
	p = &grid[1][2]; for (int i = 0; i < 4; i++) for (int j = 0; j < 5; j++) grid[i][j] = i * 10 + j; h += *p++ * 3 + *p + (*pp)[2] + *(*(grid + 2) + 1) + (&grid[3][1] - p) + (p > grid[0]) + (*++p) + (*p)++ + --*p;
	for (k = 0; k < 3; k++) h = h * 5 + ops[k](x, k) + apply(ops[k], k, b); later = choose(b & 1); h += later(7, a) + (later == minus) + !later + choose(0)(1, 2) + (later ? 1 : 0);
	*(long *)bytes = a; for (k = 0; k < 8; k++) h = h * 3 + bytes[k]; ((short *)bytes)[1] = b; h += *(int *)bytes; char *s = (char *)bytes; s[3] = -1; h += s[3] + (unsigned char)s[3];
	h += eight(a, b, a, b, 5, 6, 300 - a, b, 9) + eight(1, 2, 3, 4, 5, 6, 7, 8, 9); if (!start) start = counter(); h += (counter() - counter()) % 100; void *v = &h; *(long *)v += 1; h += *&x + sizeof grid / sizeof *grid + sizeof(int[3]);
	long *q = &(long){ 5 }; *q += a; h += *q; int arr[] = { 1, 2, [5] = 9, 4 }; h += sizeof arr + arr[5] + arr[6] + arr[3]; char c4[4] = "abcd", c9[9] = "xy"; h += c4[3] + c9[2] + c9[8]; const int *e = &arr[7]; for (const int *i = arr; i != e; ++i) h = h * 3 + *i;
	unsigned u = 3; h += numbers[u - 1] + *(middle + (int)u - 4); signed char sc = -2; h += middle[sc]; unsigned short us = 2; h += middle[us]; h += middle[(long)sc];
	return h;
}
