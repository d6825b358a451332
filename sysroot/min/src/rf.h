/* The runtime's stubs that this library calls: see docs/abi.md. */
#ifndef RF_MIN_RF_H
#define RF_MIN_RF_H

_Noreturn void __rf_abort(int reason);
_Noreturn void __rf_exit(int status);
long __rf_syscall_c(long number, long a, long b, long c, long d, long e, long f);

/* What abort tells the host about its reason. */
enum { RF_ABORT_ABORT = 0, RF_ABORT_ASSERT = 1 };

enum { RF_SYS_write = 1, RF_SYS_mmap = 9 };

#endif
