#include <errno.h>

/* What the System V ABI lets a call change: a gate clears it. */
#define CLOBBERED                                                                                            \
	"rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",   \
		"xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* signal.c, if anything of it is linked. */
__attribute__((visibility("hidden"))) extern volatile int __rf_signals __attribute__((__weak__));
__attribute__((visibility("hidden"))) long __rf_interrupted(long a, long b, long c, long d, long e, long f, long number)
	__attribute__((__weak__));

__attribute__((visibility("hidden"))) long __rf_gate(long a, long b, long c, long d, long e, long f, long number)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("call __rf_syscall"
			 : "+a"(number), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9)
			 :
			 : CLOBBERED);
	return number;
}

static inline int looked_at(void) { return __builtin_expect(&__rf_signals && __rf_signals, 0); }

__attribute__((visibility("hidden"))) long __rf_syscall6(long a, long b, long c, long d, long e, long f, long number)
{
	if (looked_at())
		return __rf_interrupted(a, b, c, d, e, f, number);
	return __rf_gate(a, b, c, d, e, f, number);
}

__attribute__((visibility("hidden"))) long __rf_syscall5(long a, long b, long c, long d, long e, long number)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = 0;

	if (looked_at())
		return __rf_interrupted(a, b, c, d, e, 0, number);

	__asm__ volatile("call __rf_syscall"
			 : "+a"(number), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9)
			 :
			 : CLOBBERED);
	return number;
}
