/* The module of passed.h. */
#include "passed.h"
#include <string.h>

#define DEFINE(S) \
    S S##_echo(S t) { return t; } \
    S S##_between(S *out, char a, S s, double b, S t, float c) { \
        *out = s; \
        return a == 'f' && b == 2.5 && c == 1.25f ? t : *(S *)memset(out, 0, sizeof *out); \
    } \
    S S##_crowded(S *out, long a, long b, long c, long d, S s, long e, S t, short f) { \
        *out = s; \
        return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == -6 ? t : *(S *)memset(out, 0, sizeof *out); \
    } \
    S S##_floating(double a, double b, double c, double d, double e, double f, double g, S s, float h, S t, S *out) { \
        *out = s; \
        return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 ? t : *(S *)memset(out, 0, sizeof *out); \
    }
PASSED_SHAPES(DEFINE)

/* Under the names of the header, by the registers. */
unsigned long seen(unsigned long word) __asm__("passed_seen");
unsigned long seen(unsigned long word) { return word; }
unsigned long seen_floating(double word, double more) __asm__("passed_seen_floating");
unsigned long seen_floating(double word, double more) {
    unsigned long bits;
    memcpy(&bits, &word, sizeof bits);
    return more == 2.5 ? bits : 0;
}

passed_complex passed_crash(passed_complex s) {
    *(volatile int *)0 = 1;
    return s;
}
passed_large passed_crash_large(passed_large s) {
    *(volatile int *)0 = 1;
    return s;
}
