/* Numbers with a fraction, as their bits. What reads and writes them in text counts in integers only, so that a module has
 * x87 code only if it uses long double itself: calls into a window with x87 code cost twice as much. */
#ifndef RF_FLOATSCAN_H
#define RF_FLOATSCAN_H
#include <features.h>
#include <stdint.h>
#include <stdio.h>
#include <wchar.h>

/* A float's or a double's bits in `low`; or a long double's fraction there, and its sign and exponent in `high`. */
struct rf_number {
	uint64_t low, high;
};

/* A long double as an argument without a name: passed in memory because a member is not aligned. */
struct __attribute__((packed, aligned(16))) rf_long_double {
	uint64_t fraction;
	uint16_t exponent;
	char tail;
	uint32_t rest;
	char end;
};
_Static_assert(sizeof(struct rf_long_double) == 16, "as large as a long double");

/* Reads a float (0), a double (1) or a long double (2); `pok`: what was read in vain can be put back. */
hidden struct rf_number __floatscan(FILE *, int, int);
hidden struct rf_number __rf_strtox(const char *, char **, int);
hidden struct rf_number __rf_wcstox(const wchar_t *, wchar_t **, int);

hidden struct rf_number __rf_widen(double);
/* Writes a long double as printf's conversion `t` says. Width, precision (negative: none given) and flags as vfprintf.c has them;
 * returns the length, or -1 if it is more than an int holds. */
hidden int __rf_fmt_fp(FILE *, struct rf_number, int, int, int, int);
#endif
