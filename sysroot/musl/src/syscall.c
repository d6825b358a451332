#include <errno.h>

/* What the System V ABI lets a call change: a gate clears it. */
#define CLOBBERED                                                                                            \
	"rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",   \
		"xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

__attribute__((visibility("hidden"))) long __rf_syscall6(long a, long b, long c, long d, long e, long f, long number)
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

__attribute__((visibility("hidden"))) long __rf_syscall5(long a, long b, long c, long d, long e, long number)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = 0;

	__asm__ volatile("call __rf_syscall"
			 : "+a"(number), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9)
			 :
			 : CLOBBERED);
	return number;
}
