/* x87 code: the gates keep the unit for the host. */
extern long host_add(long a, long b);
long double longer(long double x) { return x * 3.0L; }
long double third(long x) { return (long double)x / 3.0L; }
long double between(long x)
{
    long double y = (long double)x / 3.0L;
    long z = host_add((long)(y * 3.0L), 1);
    return y + z;
}
/* Leaves the unit as nobody should: full, flags set. */
void dirty(void)
{
    __asm__ volatile("fldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz\n\tfldz");
}
void dirty_out(void)
{
    dirty();
    host_add(1, 2);
    dirty();
}
/* The same, and never comes back by itself. */
void dirty_forever(void)
{
    dirty();
    for (;;)
        __asm__ volatile("");
}
void dirty_calls_forever(void)
{
    for (;;) {
        dirty();
        host_add(1, 2);
    }
}
void crash(void)
{
    dirty();
    __builtin_trap();
}
