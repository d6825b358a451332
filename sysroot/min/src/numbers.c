#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

int abs(int x) { return x < 0 ? -x : x; }
long labs(long x) { return x < 0 ? -x : x; }
long long llabs(long long x) { return x < 0 ? -x : x; }
div_t div(int a, int b) { return (div_t){a / b, a % b}; }
ldiv_t ldiv(long a, long b) { return (ldiv_t){a / b, a % b}; }

static unsigned digit_of(int c)
{
	if (isdigit(c))
		return (unsigned)(c - '0');
	return isalpha(c) ? (unsigned)(c | 32) - 'a' + 10 : 99;
}

/* The magnitude, with `limit` where it is exceeded. */
static unsigned long parse(const char *s, char **end, int base, int *negative, unsigned long limit_pos,
			   unsigned long limit_neg)
{
	const char *p = s;
	while (isspace((unsigned char)*p))
		p++;
	*negative = *p == '-';
	p += *p == '-' || *p == '+';
	if ((base == 0 || base == 16) && p[0] == '0' && (p[1] | 32) == 'x' && digit_of((unsigned char)p[2]) < 16) {
		p += 2;
		base = 16;
	} else if (base == 0) {
		base = *p == '0' ? 8 : 10;
	}
	unsigned long limit = *negative ? limit_neg : limit_pos, value = 0;
	int over = 0, any = 0;
	for (unsigned d; (d = digit_of((unsigned char)*p)) < (unsigned)base; p++, any = 1)
		over |= __builtin_mul_overflow(value, (unsigned long)base, &value) |
			__builtin_add_overflow(value, (unsigned long)d, &value);
	if (end)
		*end = (char *)(any ? p : s);
	if (over || value > limit) {
		errno = ERANGE;
		return limit;
	}
	return value;
}

long strtol(const char *s, char **end, int base)
{
	int negative;
	unsigned long v = parse(s, end, base, &negative, LONG_MAX, (unsigned long)LONG_MAX + 1);
	return (long)(negative ? -v : v);
}

unsigned long strtoul(const char *s, char **end, int base)
{
	int negative;
	unsigned long v = parse(s, end, base, &negative, ULONG_MAX, ULONG_MAX);
	return negative ? -v : v;
}

long long strtoll(const char *s, char **end, int base) { return strtol(s, end, base); }
unsigned long long strtoull(const char *s, char **end, int base) { return strtoul(s, end, base); }
int atoi(const char *s) { return (int)strtol(s, NULL, 10); }
long atol(const char *s) { return strtol(s, NULL, 10); }

static unsigned long seed = 1;
void srand(unsigned s) { seed = s; }
int rand(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (int)(seed >> 33);
}

char *getenv(const char *name)
{
	(void)name;
	return NULL;
}
