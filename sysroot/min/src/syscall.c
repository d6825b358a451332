#include "rf.h"

void __rf_syscall(void);

/* The gate takes a call as the kernel does: number in rax, arguments in rdi rsi rdx r10 r8 r9. As the target of
 * a call, so what the System V ABI lets a function change is gone afterwards. */
long __rf_syscall_c(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;

	__asm__ volatile("call __rf_syscall"
			 : "+a"(number), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9)
			 :
			 : "rcx", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
			   "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return number;
}
