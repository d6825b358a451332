/* Raises the exceptions that soft-fp found, by arithmetic only: libgcc's version writes the x87 environment,
 * which fenced code may not. The denormal flag, which no portable program sees, is left out. */
enum { INVALID = 0x01, DIVZERO = 0x04, OVERFLOW = 0x08, UNDERFLOW = 0x10, INEXACT = 0x20 };

void __sfp_handle_exceptions(int) __attribute__((visibility("hidden")));

static float opaque(float x)
{
	__asm__("" : "+x"(x));
	return x;
}

static void force(float x) { __asm__ volatile("" : : "x"(x)); }

void __sfp_handle_exceptions(int which)
{
	if (which & INVALID)
		force(opaque(0.0f) / opaque(0.0f));
	if (which & DIVZERO)
		force(opaque(1.0f) / opaque(0.0f));
	if (which & OVERFLOW)
		force(opaque(__FLT_MAX__) * opaque(__FLT_MAX__));
	if (which & UNDERFLOW)
		force(opaque(__FLT_MIN__) * opaque(__FLT_MIN__));
	if (which & INEXACT)
		force(opaque(1.0f) / opaque(3.0f));
}
