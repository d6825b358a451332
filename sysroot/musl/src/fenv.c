/* The floating-point environment: what can be read and raised by arithmetic works; what would change MXCSR or the x87
 * control word, which belong to the host, fails. */
#include <fenv.h>

/* The verifier accepts no access to MXCSR, so the register is taken to be as the ABI wants it at a program's start, and
 * of the exceptions only the x87 unit's are seen. */
static unsigned mxcsr(void) { return 0x1F80; }

static unsigned x87_status(void)
{
	unsigned short v;
	__asm__ volatile("fnstsw %0" : "=a"(v));
	return v;
}

int fetestexcept(int mask) { return (int)((mxcsr() | x87_status()) & (unsigned)mask & FE_ALL_EXCEPT); }

int feclearexcept(int mask) { return fetestexcept(mask) ? -1 : 0; }

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

int fegetround(void) { return (int)(mxcsr() >> 3 & 0xC00); }
int __fesetround(int mode) { return mode == fegetround() ? 0 : -1; }

int fegetenv(fenv_t *env)
{
	*env = (fenv_t){.__status_word = (unsigned short)x87_status(), .__mxcsr = mxcsr()};
	return 0;
}

int fesetenv(const fenv_t *env)
{
	if (env == FE_DFL_ENV)
		return fetestexcept(FE_ALL_EXCEPT) ? -1 : 0;
	return ((mxcsr() ^ env->__mxcsr) | (x87_status() ^ env->__status_word)) & FE_ALL_EXCEPT ? -1 : 0;
}
