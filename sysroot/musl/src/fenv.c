/* The floating-point environment: what can be read and raised by arithmetic works; what would change MXCSR or the x87
 * control word, which belong to the host, fails. Rounding is to nearest. What looks at the x87 unit is in fenv_x87.c. */
#include <fenv.h>

static void force(float x) { __asm__ volatile("" : : "x"(x)); }
static float opaque(float x)
{
	__asm__("" : "+x"(x));
	return x;
}

int feraiseexcept(int mask)
{
	if (mask & FE_INVALID)
		force(opaque(0.0f) / opaque(0.0f));
	if (mask & FE_DIVBYZERO)
		force(opaque(1.0f) / opaque(0.0f));
	if (mask & FE_OVERFLOW)
		force(opaque(__FLT_MAX__) * opaque(__FLT_MAX__));
	if (mask & FE_UNDERFLOW)
		force(opaque(__FLT_MIN__) * opaque(__FLT_MIN__));
	if (mask & FE_INEXACT)
		force(opaque(1.0f) / opaque(3.0f));
	return 0;
}

int fegetround(void) { return FE_TONEAREST; }
int __fesetround(int mode) { return mode == FE_TONEAREST ? 0 : -1; }
