/* Any system call, for tests of the policy that say in the host what is to be asked. Freestanding. */
#define CLOBBERED \
    "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

long system_call(long n, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("call __rf_syscall" : "+a"(n), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9) : : CLOBBERED);
    return n;
}

/* Calls again and again, as long as it is told to wait: EINTR and EAGAIN. */
long insist(long n, long a, long b, long c, long d, long e, long f) {
    for (;;) {
        long r = system_call(n, a, b, c, d, e, f);
        if (r != -4 && r != -11)
            return r;
    }
}

/* One call, `count` times: what it costs. The last result. */
long repeat(long count, long n, long a, long b, long c) {
    long r = 0;
    while (count-- > 0)
        r = system_call(n, a, b, c, 0, 0, 0);
    return r;
}

/* Memory as the module itself sees it. */
long load(const volatile long *at) {
    return *at;
}

void store(volatile long *at, long value) {
    *at = value;
}
