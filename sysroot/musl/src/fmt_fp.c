/* printf's conversions of floating-point numbers, exact and rounded to nearest (there is no other mode here), in integers only. */
#include <limits.h>
#include <string.h>

#include "floatscan.h"
#include "stdio_impl.h"

typedef unsigned __int128 u128;

enum { BILLION = 1000000000, BIAS = 16383 };

/* vfprintf's flags. */
static int flag(int fl, char c) { return fl & 1 << (c - ' '); }

static void out(FILE *f, const char *s, long l)
{
	if (!ferror(f))
		__fwritex((const void *)s, (size_t)l, f);
}

static void repeat(FILE *f, char c, long times)
{
	char block[64];
	if (times <= 0)
		return;
	memset(block, c, times < (long)sizeof block ? (size_t)times : sizeof block);
	for (; times > (long)sizeof block; times -= sizeof block)
		out(f, block, sizeof block);
	out(f, block, times);
}

/* A text of `length` characters, in a field of `width`: a sign and 0x before the zeros that fill it. */
static void begin(FILE *f, const char *prefix, int length, int width, int fl)
{
	if (!flag(fl, '-') && !flag(fl, '0'))
		repeat(f, ' ', width - length);
	out(f, prefix, (long)strlen(prefix));
	if (!flag(fl, '-') && flag(fl, '0'))
		repeat(f, '0', width - length);
}

static int end(FILE *f, int length, int width, int fl)
{
	if (flag(fl, '-'))
		repeat(f, ' ', width - length);
	return width > length ? width : length;
}

/* A number's digits, before `s`. */
static char *digits(uint32_t x, char *s)
{
	for (; x; x /= 10)
		*--s = (char)('0' + x % 10);
	return s;
}

static char *exponent(int e, int least, char letter, char *s)
{
	char *from = digits((uint32_t)(e < 0 ? -e : e), s);
	while (s - from < least)
		*--from = '0';
	*--from = e < 0 ? '-' : '+';
	*--from = letter;
	return from;
}

struct rf_number __rf_widen(double x)
{
	uint64_t bits;
	memcpy(&bits, &x, sizeof bits);
	uint64_t sign = bits >> 63 << 15, fraction = bits << 12 >> 1;
	unsigned biased = bits >> 52 & 0x7FF;
	if (biased == 0x7FF)
		return (struct rf_number){1ULL << 63 | fraction, sign | 0x7FFF};
	if (biased)
		return (struct rf_number){1ULL << 63 | fraction, sign | (biased - 1023 + BIAS)};
	if (!fraction)
		return (struct rf_number){0, sign};
	int zeros = __builtin_clzll(fraction);
	return (struct rf_number){fraction << zeros, sign | (uint64_t)(1 - 1023 + BIAS - zeros)};
}

/* m times 2 to the power of e - 63; m's first bit is set, or m and e are 0. */
static int hexadecimal(FILE *f, uint64_t m, int e, char *prefix, int w, int p, int fl, int t)
{
	static const char figures[] = "0123456789ABCDEF";
	int lower = t & 32;
	strcat(prefix, lower ? "0x" : "0X");
	int drop = p < 0 || p > 15 ? 0 : 63 - 4 * p;
	if (drop) {
		uint64_t half = 1ULL << (drop - 1), cut = m & (2 * half - 1);
		m = (m >> drop) + (cut > half || (cut == half && (m >> drop & 1)));
	}
	char text[20], *s = text, power[16], *ending = power + sizeof power;
	uint64_t rest = drop == 63 ? 0 : m << (drop + 1);
	*s++ = (char)('0' + (m >> (63 - drop)));
	if (rest || p > 0 || flag(fl, '#'))
		*s++ = '.';
	for (; rest; rest <<= 4)
		*s++ = (char)(figures[rest >> 60] | lower);
	char *from = exponent(e, 1, (char)('P' | lower), ending);
	int signs = (int)strlen(prefix), zeros = p > 0 && s - text - 2 < p ? p - (int)(s - text - 2) : 0;
	int own = signs + (int)(s - text) + (int)(ending - from);
	if (zeros > INT_MAX - own)
		return -1;
	begin(f, prefix, own + zeros, w, fl);
	out(f, text, s - text);
	repeat(f, '0', zeros);
	out(f, from, ending - from);
	return end(f, own + zeros, w, fl);
}

/* Decimal digits, nine in a word, from `first` up to before `end`; `one` is the word before the point. Words between `one` and
 * `first` are 0. */
struct decimal {
	uint32_t *first, *end, *one;
	uint32_t word[2 + 4 + (16384 + 64 + 28 + 8) / 9 + 2];
};

/* m times 2 to the power of e, exactly, but for a power of 2 that is returned: the exponent of what it has to be multiplied by. */
static int expand(struct decimal *x, uint64_t m, int e)
{
	uint32_t *const last = x->word + sizeof x->word / sizeof *x->word;
	uint64_t whole;
	u128 rest = 0;
	int bits = 0; /* of `rest` */
	int scale = 0;
	if (m) {
		int zeros = __builtin_ctzll(m);
		m >>= zeros;
		e += zeros;
	}
	if (e >= 0 && e <= (m ? __builtin_clzll(m) : 63)) {
		whole = m << e;
	} else if (e < 0 && e >= -98) {
		bits = -e;
		whole = bits < 64 ? m >> bits : 0;
		rest = bits < 64 ? m & ((1ULL << bits) - 1) : m;
	} else {
		/* 29 bits before the point, and scaled from there. */
		int zeros = __builtin_clzll(m);
		m <<= zeros;
		scale = e - zeros + 35;
		bits = 35;
		whole = m >> bits;
		rest = m & ((1ULL << bits) - 1);
	}

	x->one = x->first = x->end = scale > 0 ? last - 64 - 1 : x->word + 2;
	*x->end++ = (uint32_t)(whole % BILLION);
	for (whole /= BILLION; whole; whole /= BILLION)
		*--x->first = (uint32_t)(whole % BILLION);
	for (; rest; rest &= ((u128)1 << bits) - 1) {
		rest *= BILLION;
		*x->end++ = (uint32_t)(rest >> bits);
	}
	while (x->first + 1 < x->end && !*x->first)
		x->first++;
	while (x->first + 1 < x->end && !x->end[-1])
		x->end--;
	return scale;
}

/* Times 2 to the power of `by`. */
static void multiply(struct decimal *x, int by)
{
	while (by > 0) {
		int now = by < 29 ? by : 29;
		uint32_t carry = 0;
		for (uint32_t *d = x->end - 1; d >= x->first; d--) {
			uint64_t product = ((uint64_t)*d << now) + carry;
			*d = (uint32_t)(product % BILLION);
			carry = (uint32_t)(product / BILLION);
		}
		if (carry)
			*--x->first = carry;
		while (x->end > x->first && !x->end[-1])
			x->end--;
		by -= now;
	}
}

/* Through 2 to the power of `by`. Of words behind the first `words` (from the point if `fixed`) no more is kept than that there
 * is something, in an odd last word. */
static void divide(struct decimal *x, int by, long words, int fixed)
{
	while (by > 0) {
		int now = by < 9 ? by : 9;
		uint32_t carry = 0;
		for (uint32_t *d = x->first; d < x->end; d++) {
			uint32_t low = *d & ((1U << now) - 1);
			*d = (*d >> now) + carry;
			carry = (uint32_t)(BILLION >> now) * low;
		}
		if (!*x->first)
			x->first++;
		if (carry)
			*x->end++ = carry;
		uint32_t *from = fixed ? x->one : x->first;
		if (x->end - from > words) {
			x->end = from + words;
			if (x->first >= x->end) {
				x->first = x->end - 1;
				*x->first = 1;
				return;
			}
			x->end[-1] |= 1;
		}
		by -= now;
	}
}

/* The exponent of the first digit. */
static int magnitude(const struct decimal *x)
{
	if (x->first >= x->end || !*x->first)
		return 0;
	int e = 9 * (int)(x->one - x->first);
	for (uint32_t i = 10; i < BILLION && i <= *x->first; i *= 10)
		e++;
	return e;
}

/* To `places` digits behind the point, which may be negative: to nearest, a tie to even. */
static void round_to(struct decimal *x, int places)
{
	if (places >= 9 * (x->end - x->one - 1))
		return;
	int word = places >= 0 ? places / 9 : -((8 - places) / 9), kept = places - 9 * word;
	uint32_t *d = x->one + 1 + word, unit = 10;
	for (int i = kept + 1; i < 9; i++)
		unit *= 10;
	uint32_t cut = *d % unit, half = unit / 2;
	if (cut || d + 1 != x->end) {
		int exact = d + 1 == x->end;
		int odd = unit == BILLION ? d > x->first && (d[-1] & 1) : *d / unit & 1;
		*d -= cut;
		if (cut > half || (cut == half && (!exact || odd))) {
			*d += unit;
			while (*d >= BILLION) {
				*d-- = 0;
				if (d < x->first)
					*--x->first = 0;
				++*d;
			}
		}
	}
	if (x->end > d + 1)
		x->end = d + 1;
}

/* The zeros at the end of a word that is not 0. */
static int zeros_of(uint32_t x)
{
	int zeros = 0;
	for (; x % 10 == 0; x /= 10)
		zeros++;
	return zeros;
}

/* A word's digits, nine of them unless it is the first. */
static char *word_text(uint32_t x, char *s, int least)
{
	char *from = digits(x, s);
	while (s - from < least)
		*--from = '0';
	return from;
}

static void fixed_text(FILE *f, struct decimal *x, int p, int fl)
{
	char block[9], *const stop = block + sizeof block;
	uint32_t *d = x->first < x->one ? x->first : x->one;
	for (int least = 1; d <= x->one; d++, least = 9) {
		char *from = word_text(d < x->end ? *d : 0, stop, least);
		out(f, from, stop - from);
	}
	if (p > 0 || flag(fl, '#'))
		out(f, ".", 1);
	for (; d < x->end && p > 0; d++, p -= 9)
		out(f, word_text(*d, stop, 9), p < 9 ? p : 9);
	repeat(f, '0', p);
}

static void scientific_text(FILE *f, const struct decimal *x, int p, int fl)
{
	char block[9], *const stop = block + sizeof block;
	const uint32_t *d = x->first;
	char *from = word_text(d < x->end ? *d : 0, stop, 1);
	out(f, from++, 1);
	if (p > 0 || flag(fl, '#'))
		out(f, ".", 1);
	for (;;) {
		long own = stop - from < p ? stop - from : p;
		out(f, from, own);
		p -= (int)own;
		if (++d >= x->end || p <= 0)
			break;
		from = word_text(*d, stop, 9);
	}
	repeat(f, '0', p);
}

int __rf_fmt_fp(FILE *f, struct rf_number y, int w, int p, int fl, int t)
{
	int biased = (int)(y.high & 0x7FFF), lower = t & 32;
	char sign = y.high >> 15 & 1 ? '-' : flag(fl, '+') ? '+' : flag(fl, ' ') ? ' ' : 0;
	char prefix[4] = {sign};
	int signs = sign != 0;

	if (biased == 0x7FFF) {
		const char *text = y.low << 1 ? (lower ? "nan" : "NAN") : lower ? "inf" : "INF";
		begin(f, prefix, signs + 3, w, fl & ~(1 << ('0' - ' ')));
		out(f, text, 3);
		return end(f, signs + 3, w, fl);
	}
	uint64_t m = y.low;
	int e = m ? (biased ? biased : 1) - BIAS : 0;
	if (m) {
		int zeros = __builtin_clzll(m);
		m <<= zeros;
		e -= zeros;
	}
	if ((t | 32) == 'a')
		return hexadecimal(f, m, e, prefix, w, p, fl, t);

	if (p < 0)
		p = 6;
	int kind = t | 32;
	struct decimal x;
	int scale = expand(&x, m, m ? e - 63 : 0);
	multiply(&x, scale);
	divide(&x, -scale, 1 + (p + 29L) / 9, kind == 'f');
	e = magnitude(&x);
	round_to(&x, p - (kind != 'f' ? e : 0) - (kind == 'g' && p));
	e = magnitude(&x);
	while (x.end > x.first && !x.end[-1])
		x.end--;

	if (kind == 'g') {
		p += !p;
		if (p > e && e >= -4) {
			kind = 'f';
			p -= e + 1;
		} else {
			kind = 'e';
			p--;
		}
		if (!flag(fl, '#')) {
			int last = x.end > x.first ? 9 * (int)(x.end - x.one - 1) - zeros_of(x.end[-1]) : 0;
			int needed = kind == 'f' ? last : last + e;
			needed = needed > 0 ? needed : 0;
			p = p < needed ? p : needed;
		}
	}
	int point = p || flag(fl, '#');
	if (p > INT_MAX - 1 - point)
		return -1;
	int length = 1 + p + point;
	char power[16], *ending = power + sizeof power, *from = ending;
	if (kind == 'f') {
		if (e > 0 && e > INT_MAX - length)
			return -1;
		length += e > 0 ? e : 0;
	} else {
		from = exponent(e, 2, (char)('E' | lower), ending);
		if (ending - from > INT_MAX - length)
			return -1;
		length += (int)(ending - from);
	}
	if (length > INT_MAX - signs)
		return -1;
	length += signs;

	begin(f, prefix, length, w, fl);
	if (kind == 'f')
		fixed_text(f, &x, p, fl);
	else
		scientific_text(f, &x, p, fl);
	out(f, from, ending - from);
	return end(f, length, w, fl);
}
