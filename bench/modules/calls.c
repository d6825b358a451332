/* What the call benchmarks call. */
#include <stdint.h>

extern int64_t host_add(int64_t a, int64_t b);

/* a module's worth of data, so that making and resetting a domain has something to do */
uint8_t ballast[1 << 20] = {1};

void nothing(void)
{
}

int64_t add(int64_t a, int64_t b)
{
    return a + b;
}

int64_t call_back(int64_t a, int64_t b)
{
    return host_add(a, b) + 1;
}

/* vector registers, as nearly every module has: a gate leaves them alone only where no code names one */
double scale(double x)
{
    return x * 3.0;
}

void fault(void)
{
    *(volatile int *)16 = 0;
}

/* touches `pages` pages of data */
void dirty(int64_t pages)
{
    for (int64_t i = 0; i < pages; i++)
        ballast[(i * 4096) & ((1 << 20) - 1)]++;
}

void reverse(uint8_t *s, uint64_t length)
{
    for (uint8_t *end = s + length; s < end--; s++) {
        uint8_t c = *s;
        *s = *end;
        *end = c;
    }
}
