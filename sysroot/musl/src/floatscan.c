/* Reads floating-point numbers in text, rounded to nearest (there is no other mode here), in integers only. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "floatscan.h"
#include "shgetc.h"

typedef unsigned __int128 u128;

struct format {
	int bits;     /* of the significand, the first one included */
	int lowest;   /* exponent of the last bit of a number that is not normal */
	int greatest; /* exponent of an infinity, biased */
	int sign;     /* number of the sign's bit */
};
static const struct format formats[] = {
	{24, -149, 0xFF, 31},
	{53, -1074, 0x7FF, 63},
	{64, -16445, 0x7FFF, 15},
};

/* What lies below an integer's last bit, in units of it. */
enum rest { NOTHING, BELOW_HALF, HALF, ABOVE_HALF };

static struct rf_number special(const struct format *t, int negative, uint64_t quiet)
{
	uint64_t sign = (uint64_t)negative << t->sign;
	if (t->bits == 64)
		return (struct rf_number){1ULL << 63 | quiet << 62, sign | (uint64_t)t->greatest};
	return (struct rf_number){sign | (uint64_t)t->greatest << (t->bits - 1) | quiet << (t->bits - 2), 0};
}

static struct rf_number zero(const struct format *t, int negative)
{
	uint64_t sign = (uint64_t)negative << t->sign;
	return t->bits == 64 ? (struct rf_number){0, sign} : (struct rf_number){sign, 0};
}

static struct rf_number too_large(const struct format *t, int negative)
{
	errno = ERANGE;
	return special(t, negative, 0);
}

static struct rf_number too_small(const struct format *t, int negative)
{
	errno = ERANGE;
	return zero(t, negative);
}

/* The number nearest to m times 2 to the power of e and what lies below m; m's first bit is set. */
static struct rf_number pack(const struct format *t, int negative, uint64_t m, int e, enum rest rest)
{
	int drop = 64 - t->bits;
	int biased = e + drop - t->lowest + 1;
	if (biased < 1) {
		drop += 1 - biased;
		biased = 1;
	}
	if (drop > 65)
		return too_small(t, negative);
	u128 whole = (u128)m << 2 | rest, half = (u128)1 << (drop + 1), cut = whole & (2 * half - 1);
	u128 kept = whole >> (drop + 2);
	kept += cut > half || (cut == half && (kept & 1));
	if (kept >> t->bits) {
		kept >>= 1;
		biased++;
	}
	int normal = (int)(kept >> (t->bits - 1));
	if (!normal && cut)
		errno = ERANGE;
	if (biased >= t->greatest)
		return too_large(t, negative);
	uint64_t sign = (uint64_t)negative << t->sign, exponent = normal ? (uint64_t)biased : 0;
	if (t->bits == 64)
		return (struct rf_number){(uint64_t)kept, sign | exponent};
	return (struct rf_number){sign | exponent << (t->bits - 1) | ((uint64_t)kept & ((1ULL << (t->bits - 1)) - 1)), 0};
}

static struct rf_number pack_integer(const struct format *t, int negative, uint64_t m)
{
	int zeros = __builtin_clzll(m);
	return pack(t, negative, m << zeros, -zeros, NOTHING);
}

static int is_digit(int c) { return c - '0' < 10U; }

static struct rf_number nothing(FILE *f)
{
	shlim(f, 0);
	return (struct rf_number){0, 0};
}

static long long exponent(FILE *f, int pok)
{
	int c = shgetc(f), negative = c == '-';
	if (c == '+' || c == '-') {
		c = shgetc(f);
		if (!is_digit(c) && pok)
			shunget(f);
	}
	if (!is_digit(c)) {
		shunget(f);
		return LLONG_MIN;
	}
	long long value = 0;
	for (; is_digit(c); c = shgetc(f))
		if (value < LLONG_MAX / 100)
			value = 10 * value + (c - '0');
	shunget(f);
	return negative ? -value : value;
}

/* Decimal digits, nine in a word: a ring of words from `first` up to before `end`, with `point` digits before the point. */
enum { WORDS = 2048, MASK = WORDS - 1, BILLION = 1000000000 };
struct decimal {
	uint32_t word[WORDS];
	int first, end, point;
};

static const uint32_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, BILLION};

/* Exact numbers only, and one operation: what arithmetic gives is the nearest then. */
static int quick(int prec, uint64_t m, int e, struct rf_number *result)
{
	static const double d[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
		1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	static const float s[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};
	if (prec == 1 && m <= 1ULL << 53 && e >= -22 && e <= 22) {
		double x = (double)(int64_t)m;
		x = e < 0 ? x / d[-e] : x * d[e];
		memcpy(&result->low, &x, sizeof x);
		return 1;
	}
	if (prec == 0 && m <= 1U << 24 && e >= -10 && e <= 10) {
		float x = (float)(int32_t)m;
		x = e < 0 ? x / s[-e] : x * s[e];
		memcpy(&result->low, &x, sizeof x);
		return 1;
	}
	return 0;
}

/* Divides by 2 to the power of `by`, at most 9; what does not fit at the end is kept as a bit of the last word. */
static void halve(struct decimal *x, int by)
{
	uint32_t carry = 0, each = BILLION >> by;
	for (int k = x->first; k != x->end; k = (k + 1) & MASK) {
		uint32_t low = x->word[k] & ((1U << by) - 1);
		x->word[k] = (x->word[k] >> by) + carry;
		carry = each * low;
		if (k == x->first && !x->word[k]) {
			x->first = (x->first + 1) & MASK;
			x->point -= 9;
		}
	}
	if (!carry)
		return;
	if (((x->end + 1) & MASK) != x->first) {
		x->word[x->end] = carry;
		x->end = (x->end + 1) & MASK;
	} else {
		x->word[(x->end - 1) & MASK] |= 1;
	}
}

/* Multiplies by 2 to the power of 29. */
static void raise(struct decimal *x)
{
	uint32_t carry = 0;
	for (int k = (x->end - 1) & MASK;; k = (k - 1) & MASK) {
		uint64_t product = ((uint64_t)x->word[k] << 29) + carry;
		carry = (uint32_t)(product / BILLION);
		x->word[k] = (uint32_t)(product % BILLION);
		if (k == ((x->end - 1) & MASK) && k != x->first && !x->word[k])
			x->end = k;
		if (k == x->first)
			break;
	}
	if (!carry)
		return;
	x->point += 9;
	x->first = (x->first - 1) & MASK;
	if (x->first == x->end) {
		x->end = (x->end - 1) & MASK;
		x->word[(x->end - 1) & MASK] |= x->word[x->end];
	}
	x->word[x->first] = carry;
}

/* The point between two words: divides by the power of ten that is missing, which moves digits into the next word. */
static void align(struct decimal *x)
{
	int over = x->point % 9;
	if (over < 0)
		over += 9;
	if (!over)
		return;
	uint32_t ten = tens[9 - over], carry = 0;
	for (int k = x->first, begin = k, end = x->end; k != end; k++) {
		uint32_t low = x->word[k] % ten;
		x->word[k] = x->word[k] / ten + carry;
		carry = BILLION / ten * low;
		if (k == begin && !x->word[k]) {
			begin = x->first = (x->first + 1) & MASK;
			x->point -= 9;
		}
	}
	if (carry)
		x->word[x->end++] = carry;
	x->point += 9 - over;
}

/* The three words at the front, of which there may be fewer. */
static u128 front(const struct decimal *x)
{
	u128 v = 0;
	int k = x->first, left = 1;
	for (int i = 0; i < 3; i++) {
		left = left && k != x->end;
		v = v * BILLION + (left ? x->word[k] : 0);
		k = (k + left) & MASK;
	}
	return v;
}

static enum rest behind_front(const struct decimal *x)
{
	int k = x->first, words = (x->end - x->first) & MASK;
	if (words <= 3)
		return NOTHING;
	uint32_t next = x->word[(k + 3) & MASK];
	/* The last word is not 0, unless it is the only one: dividing leaves none behind, and multiplying takes them away. */
	int more = words > 4;
	if (next == BILLION / 2)
		return more ? ABOVE_HALF : HALF;
	return next > BILLION / 2 ? ABOVE_HALF : next || more ? BELOW_HALF : NOTHING;
}

static int bits_of(u128 v)
{
	uint64_t high = (uint64_t)(v >> 64), low = (uint64_t)v;
	return high ? 128 - __builtin_clzll(high) : 64 - __builtin_clzll(low);
}

static struct rf_number decimal(FILE *f, int c, int prec, int negative, int pok)
{
	const struct format *t = &formats[prec];
	struct decimal x;
	long long point = 0, digits = 0;
	int used = 0, in_word = 0, significant = 0, any = 0, pointed = 0;

	for (; c == '0'; c = shgetc(f))
		any = 1;
	if (c == '.') {
		pointed = 1;
		for (c = shgetc(f); c == '0'; c = shgetc(f), point--)
			any = 1;
	}
	x.word[0] = 0;
	for (; is_digit(c) || c == '.'; c = shgetc(f)) {
		if (c == '.') {
			if (pointed)
				break;
			pointed = 1;
			point = digits;
			continue;
		}
		digits++;
		any = 1;
		if (used >= WORDS - 3) {
			/* More digits than can decide anything: that there are any is kept. */
			if (c != '0') {
				significant = INT_MAX;
				x.word[WORDS - 4] |= 1;
			}
			continue;
		}
		if (c != '0')
			significant = (int)digits;
		x.word[used] = (in_word ? x.word[used] * 10 : 0) + (uint32_t)(c - '0');
		if (++in_word == 9) {
			used++;
			in_word = 0;
		}
	}
	if (!pointed)
		point = digits;

	if (any && (c | 32) == 'e') {
		long long e = exponent(f, pok);
		if (e == LLONG_MIN) {
			if (!pok)
				return nothing(f);
			shunget(f);
			e = 0;
		}
		point += e;
	} else if (c >= 0) {
		shunget(f);
	}
	if (!any) {
		errno = EINVAL;
		return nothing(f);
	}

	if (!x.word[0])
		return zero(t, negative);
	if (point > -t->lowest / 2)
		return too_large(t, negative);
	if (point < t->lowest - 128)
		return too_small(t, negative);

	if (in_word) {
		x.word[used] *= tens[9 - in_word];
		used++;
	}
	if (significant <= 18) {
		uint64_t m = x.word[0];
		if (significant <= 9)
			m /= tens[9 - significant];
		else
			m = m * tens[significant - 9] + x.word[1] / tens[18 - significant];
		int e = (int)point - significant;
		struct rf_number result = {0, 0};
		if (quick(prec, m, e, &result)) {
			result.low |= (uint64_t)negative << t->sign;
			return result;
		}
		if (e == 0)
			return pack_integer(t, negative, m);
	}

	x.first = 0;
	x.end = used;
	x.point = (int)point;
	while (!x.word[x.end - 1])
		x.end--;
	align(&x);
	/* An integer of 64 bits before the point, the last of three words: scaled by a power of two, exactly. */
	int e = 0;
	while (x.point < 27 || (x.point == 27 && x.word[x.first] < 18)) {
		raise(&x);
		e -= 29;
	}
	for (;;) {
		int by = x.point > 27 ? 9 : bits_of(front(&x)) - 64;
		if (by <= 0)
			break;
		by = by < 9 ? by : 9;
		halve(&x, by);
		e += by;
	}
	return pack(t, negative, (uint64_t)front(&x), e, behind_front(&x));
}

static struct rf_number hexadecimal(FILE *f, int prec, int negative, int pok)
{
	const struct format *t = &formats[prec];
	uint64_t m = 0;
	unsigned next = 0, more = 0;
	long long point = 0, digits = 0, e = 0;
	int any = 0, pointed = 0;

	int c = shgetc(f);
	for (; c == '0'; c = shgetc(f))
		any = 1;
	if (c == '.') {
		pointed = 1;
		for (c = shgetc(f); c == '0'; c = shgetc(f), point--)
			any = 1;
	}
	for (; is_digit(c) || (c | 32) - 'a' < 6U || c == '.'; c = shgetc(f)) {
		if (c == '.') {
			if (pointed)
				break;
			pointed = 1;
			point = digits;
			continue;
		}
		unsigned digit = (unsigned)(is_digit(c) ? c - '0' : (c | 32) - 'a' + 10);
		any = 1;
		if (digits < 16)
			m = m << 4 | digit;
		else if (digits == 16)
			next = digit;
		else
			more |= digit;
		digits++;
	}
	if (!any) {
		shunget(f);
		if (!pok) {
			shlim(f, 0);
		} else {
			shunget(f);
			if (pointed)
				shunget(f);
		}
		return zero(t, negative);
	}
	if (!pointed)
		point = digits;
	if ((c | 32) == 'p') {
		e = exponent(f, pok);
		if (e == LLONG_MIN) {
			if (!pok)
				return nothing(f);
			shunget(f);
			e = 0;
		}
	} else {
		shunget(f);
	}
	if (!m)
		return zero(t, negative);
	e += 4 * (point - (digits < 16 ? digits : 16));
	if (e > -t->lowest)
		return too_large(t, negative);
	if (e < t->lowest - 128)
		return too_small(t, negative);
	int zeros = __builtin_clzll(m);
	if (digits > 16) {
		/* The first digit has a bit, so at most three of the seventeenth digit's come in. */
		m = m << zeros | next >> (4 - zeros);
		next = next << zeros & 15;
	} else {
		m <<= zeros;
	}
	enum rest rest = next >> 3 ? ((next & 7) || more ? ABOVE_HALF : HALF) : next || more ? BELOW_HALF : NOTHING;
	return pack(t, negative, m, (int)e - zeros, rest);
}

/* How many characters of a word come next, in any case; the first that differs has been read. */
static int word(FILE *f, int *c, const char *name)
{
	int i = 0;
	while (name[i] && (*c | 32) == name[i]) {
		i++;
		if (name[i])
			*c = shgetc(f);
	}
	return i;
}

static struct rf_number refused(FILE *f)
{
	shunget(f);
	errno = EINVAL;
	return nothing(f);
}

/* Behind "nan": a word in parentheses, or nothing. */
static struct rf_number not_a_number(FILE *f, struct rf_number nan, int pok)
{
	if (shgetc(f) != '(') {
		shunget(f);
		return nan;
	}
	for (size_t read = 1;; read++) {
		int c = shgetc(f);
		if (is_digit(c) || c - 'A' < 26U || c - 'a' < 26U || c == '_')
			continue;
		if (c == ')')
			return nan;
		if (!pok)
			return refused(f);
		shunget(f);
		while (read--)
			shunget(f);
		return nan;
	}
}

struct rf_number __floatscan(FILE *f, int prec, int pok)
{
	const struct format *t = &formats[prec];
	int c;
	while (isspace((c = shgetc(f))))
		;
	int negative = c == '-';
	if (c == '+' || c == '-')
		c = shgetc(f);

	int matched = word(f, &c, "infinity");
	if (matched == 3 || matched == 8 || (matched > 3 && pok)) {
		if (matched != 8) {
			shunget(f);
			for (; pok && matched > 3; matched--)
				shunget(f);
		}
		return special(t, negative, 0);
	}
	if (!matched) {
		matched = word(f, &c, "nan");
		if (matched == 3)
			return not_a_number(f, special(t, 0, 1), pok);
	}
	if (matched)
		return refused(f);

	if (c == '0') {
		c = shgetc(f);
		if ((c | 32) == 'x')
			return hexadecimal(f, prec, negative, pok);
		shunget(f);
		c = '0';
	}
	return decimal(f, c, prec, negative, pok);
}
