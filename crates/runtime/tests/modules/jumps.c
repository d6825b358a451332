/* setjmp and longjmp, used well and badly. */
typedef unsigned long buffer[8];
extern int __rf_setjmp(buffer) __attribute__((returns_twice));
extern void __rf_longjmp(buffer, int) __attribute__((noreturn));
extern long host_enter(long x);

static buffer one, two;
static volatile long trace;

__attribute__((noipa)) static void dive(int n, int value)
{
    volatile char room[64];
    room[n & 63] = 1;
    if (n == 0)
        __rf_longjmp(one, value);
    dive(n - 1, value);
    trace += room[0];
}

/* Comes back with every value in turn. */
long rounds(long n)
{
    volatile long sum = 0;
    volatile long kept = 77;
    int v = __rf_setjmp(one);
    sum += v;
    if (v < n)
        dive(v * 3, v + 1);
    return sum * 100 + kept;
}

long zero_is_one(void)
{
    int v = __rf_setjmp(one);
    if (v)
        return v;
    dive(2, 0);
    return -1;
}

__attribute__((noipa)) static long remember(void)
{
    return __rf_setjmp(one) ? 1000 : 1;
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
    __rf_longjmp(two, 1);
}

long bad_pointer(void)
{
    unsigned long *volatile nowhere = (unsigned long *)8;
    __rf_longjmp(nowhere, 1);
}

/* Many in one frame, many frames, one after the other. */
long many(long n)
{
    volatile long sum = 0;
    for (volatile long i = 0; i < n; i++) {
        if (__rf_setjmp(one) == 0)
            dive(i % 5, 1);
        else
            sum++;
        if (__rf_setjmp(two) == 0)
            sum++;
    }
    return sum;
}

__attribute__((noipa)) static long inner(long n)
{
    volatile long r = 0;
    if (n == 0)
        __rf_longjmp(two, 3);
    if (__rf_setjmp(one))
        return -100;
    r = inner(n - 1);
    return r + 1;
}

long outer(long n)
{
    if (__rf_setjmp(two))
        return 42;
    return inner(n);
}

/* The host calls `cross_inner` in between. */
long cross(void)
{
    if (__rf_setjmp(one))
        return 1;
    return host_enter(0);
}
long cross_inner(void) { __rf_longjmp(one, 1); }

long fault_inside(void)
{
    if (__rf_setjmp(one))
        return 1;
    __builtin_trap();
}

double floating(double x)
{
    double y = x;
    if (__rf_setjmp(one) == 0)
        dive(1, 1);
    return y * 2;
}

__attribute__((noipa)) static long after(long x)
{
    return x + 1;
}

/* Leaves by a tail call: the hook of its record would never run. gcc does not know what it calls. */
long tail(long x)
{
    int (*volatile set)(unsigned long *) = __rf_setjmp;
    if (set(one))
        return 0;
    return after(x);
}
