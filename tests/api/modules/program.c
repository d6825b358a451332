/* A program for tests/api/policy.c. What it does, its first argument says. Freestanding: it makes its system calls through the
 * gate itself, so that the tests see exactly the calls that they expect. */
#include <stddef.h>

#define CLOBBERED \
    "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

static long call(long n, long a, long b, long c) {
    register long r10 __asm__("r10") = 0;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    __asm__ volatile("call __rf_syscall" : "+a"(n), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9) : : CLOBBERED);
    return n;
}

enum { READ, WRITE, OPEN, CLOSE, NANOSLEEP = 35, GETPID = 39, SOCKET = 41, CONNECT, GETCWD = 79, UNLINK = 87, EXIT_GROUP = 231, CLOCK = 228,
       GETRANDOM = 318 };

static size_t length(const char *s) {
    size_t n = 0;
    while (s[n])
        n++;
    return n;
}

static void say(int fd, const char *s) { call(WRITE, fd, (long)s, (long)length(s)); }

static int echo(void) {
    char b[64];
    long n, sum = 0;
    while ((n = call(READ, 0, (long)b, sizeof b)) > 0)
        sum += call(WRITE, 1, (long)b, n);
    return n < 0 ? (int)-n : (int)sum;
}

/* For each right one letter, if it is there. */
static int rights(char **args, char **envp) {
    char b[64];
    struct { short family; unsigned char port[2], address[4]; char zero[8]; } to = { 2, { 0, 1 }, { 127, 0, 0, 1 }, { 0 } };
    long socket, fd = call(OPEN, (long)args[2], 0, 0);
    if (fd >= 0)
        say(1, "r");
    if (call(OPEN, (long)args[3], 01101, 0600) >= 0)
        say(1, "w");
    if (call(CLOCK, 0, (long)b, 0) == 0)
        say(1, "c");
    if (call(GETRANDOM, (long)b, 8, 0) == 8)
        say(1, "x");
    socket = call(SOCKET, 2, 1, 0);
    /* nobody listens at port 1: refused by the host, not by the policy */
    if (socket >= 0 && call(CONNECT, socket, (long)&to, sizeof to) == -111)
        say(1, "n");
    for (; *envp; envp++)
        say(1, *envp);
    return 0;
}

static int descriptors(char **args) {
    long n = 0, fd;
    while ((fd = call(OPEN, (long)args[2], 0, 0)) >= 0)
        n++;
    return fd == -24 ? (int)n : 200;
}

static void spin(void) {
    for (;;)
        ;
}

int __rf_main(int argc, char **argv, char **envp, unsigned long *auxv) {
    long minute[2] = { 60, 0 };
    char path[256];
    (void)auxv;
    switch (argc > 1 ? argv[1][0] : 0) {
    case 'e': return echo();
    case 'r': return rights(argv, envp);
    case 'd': return descriptors(argv);
    case 'w': return call(GETCWD, (long)path, sizeof path, 0) > 0 ? (say(1, path), 0) : 1;
    case 'p': return (int)call(GETPID, 0, 0, 0);
    case 'x': return (int)call(EXIT_GROUP, 300, 0, 0);
    case 'u': return (int)-call(UNLINK, (long)"/x", 0, 0);
    case 'o': say(1, "out"), say(2, "err"); return 0;
    case 's': return (int)call(NANOSLEEP, (long)minute, 0, 0);
    case 't': return (int)-call(56, 0x10100, (long)spin, 0);
    case 'f': return *(volatile int *)16;
    case 'l': for (long n = 0;; n++) if (call(WRITE, 1, (long)"0123456789abcdef", 16) == -28) return (int)n;
    default: return argc;
    }
}
