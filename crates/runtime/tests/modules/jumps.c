/* setjmp and longjmp, used well and badly. */
typedef unsigned long buffer[9];
extern int setjmp(buffer) __attribute__((returns_twice));
extern void __rf_resume(buffer) __attribute__((noreturn));
extern long host_enter(long x);

/* As the libc has it. */
static inline __attribute__((noreturn)) void longjmp(unsigned long *to, int value)
{
    to[2] = value ? value : 1;
    __rf_resume(to);
}

static buffer one, two;
static volatile long trace;

__attribute__((noipa)) static void dive(int n, int value)
{
    volatile char room[64];
    room[n & 63] = 1;
    if (n == 0)
        longjmp(one, value);
    dive(n - 1, value);
    trace += room[0];
}

/* Comes back with every value in turn. */
long rounds(long n)
{
    volatile long sum = 0;
    volatile long kept = 77;
    int v = setjmp(one);
    sum += v;
    if (v < n)
        dive(v * 3, v + 1);
    return sum * 100 + kept;
}

long zero_is_one(void)
{
    int v = setjmp(one);
    if (v)
        return v;
    dive(2, 0);
    return -1;
}

__attribute__((noipa)) static long remember(void)
{
    return setjmp(one) ? 1000 : 1;
}

/* The frame is gone. */
long dead(void)
{
    long r = remember();
    dive(3, 5);
    return r;
}

long never_set(void)
{
    longjmp(two, 1);
}

long bad_pointer(void)
{
    unsigned long *volatile nowhere = (unsigned long *)8;
    __rf_resume(nowhere);
}

/* Many in one frame, many frames, one after the other. */
long many(long n)
{
    volatile long sum = 0;
    for (volatile long i = 0; i < n; i++) {
        if (setjmp(one) == 0)
            dive(i % 5, 1);
        else
            sum++;
        if (setjmp(two) == 0)
            sum++;
    }
    return sum;
}

__attribute__((noipa)) static long inner(long n)
{
    volatile long r = 0;
    if (n == 0)
        longjmp(two, 3);
    if (setjmp(one))
        return -100;
    r = inner(n - 1);
    return r + 1;
}

long outer(long n)
{
    if (setjmp(two))
        return 42;
    return inner(n);
}

/* The host calls `cross_inner` in between. */
long cross(void)
{
    if (setjmp(one))
        return 1;
    return host_enter(0);
}
long cross_inner(void) { longjmp(one, 1); }

long fault_inside(void)
{
    if (setjmp(one))
        return 1;
    __builtin_trap();
}

double floating(double x)
{
    double y = x;
    if (setjmp(one) == 0)
        dive(1, 1);
    return y * 2;
}

__attribute__((noipa)) static long after(long x)
{
    return x + 1;
}

/* Leaves by a tail call too. */
long tail(long x)
{
    if (x > 5)
        return after(x);
    int v = setjmp(one);
    if (v == 0)
        dive(3, 9);
    return v;
}
