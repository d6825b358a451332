/* Replaces musl's: a module has no system call instruction. Calls go to the runtime's gate, which takes them
 * in the kernel's registers; thunks of ours put them there (src/syscall.c). The number comes last, so that
 * the first arguments already are where the kernel's convention wants them. No vDSO: it is not in the window. */
#define __SYSCALL_LL_E(x) (x)
#define __SYSCALL_LL_O(x) (x)

__attribute__((__visibility__("hidden"))) long __rf_syscall5(long a, long b, long c, long d, long e, long number);
__attribute__((__visibility__("hidden"))) long __rf_syscall6(long a, long b, long c, long d, long e, long f,
							    long number);

static __inline long __syscall0(long n) { return __rf_syscall5(0, 0, 0, 0, 0, n); }
static __inline long __syscall1(long n, long a) { return __rf_syscall5(a, 0, 0, 0, 0, n); }
static __inline long __syscall2(long n, long a, long b) { return __rf_syscall5(a, b, 0, 0, 0, n); }
static __inline long __syscall3(long n, long a, long b, long c) { return __rf_syscall5(a, b, c, 0, 0, n); }
static __inline long __syscall4(long n, long a, long b, long c, long d) { return __rf_syscall5(a, b, c, d, 0, n); }
static __inline long __syscall5(long n, long a, long b, long c, long d, long e)
{
	return __rf_syscall5(a, b, c, d, e, n);
}
static __inline long __syscall6(long n, long a, long b, long c, long d, long e, long f)
{
	return __rf_syscall6(a, b, c, d, e, f, n);
}

#define IPC_64 0
