/* Writes random numbers in random formats, reads them and other texts back in every way, and prints a sum over all bits and lengths:
 * the same with every libc that rounds as it should. What libcs may do differently is left out: %a of numbers that are not normal,
 * a NaN's sign, and half a number before scanf. An argument says how many rounds, a second one that all is printed. */
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static uint64_t state = 88172645463325252u;
static uint64_t next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static uint64_t sum = 14695981039346656037u;
static int verbose;
static void note(const char *s)
{
	if (verbose)
		puts(s);
	do
		sum = (sum ^ (unsigned char)*s) * 1099511628211u;
	while (*s++);
}

static char text[12000];

static double of_bits(uint64_t bits)
{
	double x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static double some(void)
{
	uint64_t r = next();
	switch (next() % 6) {
	case 0: return isnan(of_bits(r)) ? 0.5 : of_bits(r);
	case 1: return (double)(int64_t)(r >> (r & 63));
	case 2: return (double)(int64_t)(r % 2000001) / 1000 - 1000;
	case 3: return (double)(r % 1000) * 0.5;
	case 4: return of_bits(r & 0x800FFFFFFFFFFFFF);
	default: return (double)(r & 0xFFFFF) / 1048576;
	}
}

static long double some_long(void)
{
	long double x = some();
	uint64_t fraction = next() | 1ULL << 63;
	uint16_t exponent = (uint16_t)next();
	switch (next() % 8) {
	case 0: return x;
	case 1: return x / 3;
	case 2: /* not normal */
		exponent &= 0x8000;
		fraction = next() >> (next() % 63 + 1);
		break;
	default:
		if ((exponent & 0x7FFF) == 0x7FFF || !(exponent & 0x7FFF))
			exponent ^= 1;
	}
	memcpy(&x, &fraction, 8);
	memcpy((char *)&x + 8, &exponent, 2);
	return x;
}

static void read_as(const void *number, int bytes, long length)
{
	char line[64];
	int n = 0;
	for (int i = bytes - 1; i >= 0; i--)
		n += sprintf(line + n, "%02x", ((const unsigned char *)number)[i]);
	sprintf(line + n, " %ld %d", length, errno == ERANGE);
	note(line);
	errno = 0;
}

static void read_back(const char *s)
{
	char *end;
	errno = 0;
	float f = strtof(s, &end);
	read_as(&f, 4, end - s);
	double d = strtod(s, &end);
	read_as(&d, 8, end - s);
	long double l = strtold(s, &end);
	read_as(&l, 10, end - s);
	if (strlen(s) >= 64)
		return;
	wchar_t wide[64], *stop;
	swprintf(wide, 64, L"%s", s);
	f = wcstof(wide, &stop);
	read_as(&f, 4, stop - wide);
	d = wcstod(wide, &stop);
	read_as(&d, 8, stop - wide);
	l = wcstold(wide, &stop);
	read_as(&l, 10, stop - wide);
	int n = 0, found = sscanf(s, "%lf%n", &d, &n);
	read_as(&d, 8, found * 100 + n);
	found = sscanf(s, "%Lf%n", &l, &n);
	read_as(&l, 10, found * 100 + n);
	found = sscanf(s, "%f%n", &f, &n);
	read_as(&f, 4, found * 100 + n);
}

static void formatted(void)
{
	static const char flags[] = "+-# 0", letters[] = "eEfFgG";
	char format[40] = "%";
	int n = 1;
	for (int k = 0; k < 5; k++)
		if (next() % 6 == 0)
			format[n++] = flags[k];
	if (next() % 3 == 0)
		n += sprintf(format + n, "%d", (int)(next() % 39) + 1);
	switch (next() % 4) {
	case 0: break;
	case 1: n += sprintf(format + n, ".%d", (int)(next() % 25)); break;
	case 2: n += sprintf(format + n, ".%d", (int)(next() % 4)); break;
	default: n += sprintf(format + n, ".%d", next() % 50 ? 17 : (int)(next() % 1200));
	}
	int is_long = next() % 3 == 0;
	if (is_long)
		format[n++] = 'L';
	format[n++] = letters[next() % 6];
	format[n] = 0;
	if (is_long)
		sprintf(text, format, some_long());
	else
		sprintf(text, format, some());
	note(text);
	if (strlen(text) < 3000)
		read_back(text);
}

static void digits(int count, int point, const char *figures, int bases)
{
	int n = (int)strlen(text);
	for (int k = 0; k < count; k++) {
		if (k == point)
			text[n++] = '.';
		text[n++] = figures[next() % 3 ? next() % (unsigned)bases : 0];
	}
	text[n] = 0;
}

static void texts(void)
{
	strcpy(text, next() % 4 ? "" : "-");
	digits(next() % 40 ? (int)(next() % 25) + 1 : (int)(next() % 900) + 1, (int)(next() % 30), "0123456789", 10);
	sprintf(text + strlen(text), "e%d", next() % 2 ? (int)(next() % 700) - 350 : (int)(next() % 60) - 30);
	if (next() % 9 == 0)
		sprintf(text + strlen(text), "%d", (int)(next() % 10));
	note(text);
	read_back(text);
	strcpy(text, "0x");
	digits((int)(next() % 22) + 1, (int)(next() % 24), "0123456789abcdef", 16);
	if (next() % 4)
		sprintf(text + strlen(text), "p%d", (int)(next() % 2400) - 1200);
	note(text);
	read_back(text);

	double x = some();
	uint64_t after;
	memcpy(&after, &x, sizeof after);
	after++;
	if (isfinite(x) && isfinite(of_bits(after))) {
		/* halfway between neighbours */
		snprintf(text, sizeof text, "%.1100Lf", ((long double)x + of_bits(after)) / 2);
		note(text);
		read_back(text);
	}
	if (isnormal(x)) {
		snprintf(text, sizeof text, "%.*a", (int)(next() % 16) - 1, x);
		note(text);
		read_back(text);
		wchar_t wide[64];
		swprintf(wide, 64, L"%+.5f %012Lg", fmod(x, 1e9), (long double)x);
		snprintf(text, sizeof text, "%ls", wide);
		note(text);
	}
}

int main(int count, char **arguments)
{
	static const char *const odd[] = {"inf", "-infinity", "infinit", "nan", "+", "", ".", "e5", "1.e3", ".5e-2", "\t 1.5x", "00000.000001",
		"1e400", "-1e-400", "1e5000", "1e-5000", "0e99999999999", "1e99999999999999999999", "1e-99999999999999999999",
		"2.2250738585072011e-308", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1.7976931348623159e308",
		"1.7976931348623158e308", "9007199254740993", "0x1.fffffffffffff8p1023", "0x1.fffffffffffff7p1023",
		"0x0.0000000000001p-1022", "0x.8p-1074", "0x.80001p-1074", "1.5.5", "infx", "naN", "i", "n", "na", "1_000",
		"3.14159265358979323846264338327950288"};
	long rounds = count > 1 ? atol(arguments[1]) : 1000;
	verbose = count > 2;
	for (unsigned i = 0; i < sizeof odd / sizeof *odd; i++) {
		note(odd[i]);
		read_back(odd[i]);
	}
	for (long i = 0; i < rounds; i++) {
		formatted();
		texts();
	}
	printf("%2$.3f %1$Lg\n", 1.5L, 2.25);
	printf("%016llx\n", (unsigned long long)sum);
	return 0;
}
