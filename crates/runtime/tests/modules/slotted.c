/* Calls functions of other domains and looks how that went. */
extern long other(long a, long b);
extern double scaled(double x, long n);
extern int __rf_call_status(void);
extern void __rf_exit(int status);

struct outcome { long value, status; };

struct outcome attempt(long a, long b)
{
    struct outcome o;
    o.value = other(a, b);
    o.status = __rf_call_status();
    return o;
}

/* As two registers of different kinds. */
long attempt_scaled(double x, long n, double *value)
{
    *value = scaled(x, n);
    return __rf_call_status();
}

/* Down and up again between two domains. */
long descend(long n, long unused)
{
    (void)unused;
    if (n <= 0)
        return 0;
    long below = other(n - 1, 0);
    return __rf_call_status() ? -1000 - __rf_call_status() : below + 1;
}

/* Goes on whatever happens. */
long persist(long n)
{
    long failed = 0;
    for (long i = 0; i < n; i++) {
        other(i, 0);
        failed += __rf_call_status() != 0;
    }
    return failed;
}

/* Until another thread changes `stop`. */
volatile long stop, done;
long hammer(long sevens, long nines)
{
    long bad = 0;
    while (!stop) {
        struct outcome o = attempt(1, 1);
        if (o.status ? o.value != 0 || o.status != 3 : o.value != sevens && o.value != nines)
            bad++;
        done++;
    }
    return bad;
}

volatile long entered;
long count_in(long a, long b) { entered++; return a + b + 5; }
long sevens(long a, long b) { return a + b + 5; }
long nines(long a, long b) { return a + b + 7; }
long leave(long a, long b) { __rf_exit((int)(a + b)); return 0; }
long crash(long a, long b) { return *(volatile long *)8 + a + b; }
long wait_for(long a, long b)
{
    entered = 1;
    while (!stop) {
    }
    return a + b;
}
