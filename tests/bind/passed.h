/* Structs of 16 bytes or less, which travel in registers by the types of their fields, and what is near them. */
#ifndef PASSED_H
#define PASSED_H

enum passed_color { PASSED_RED, PASSED_GREEN };

typedef struct passed_char { char a; } passed_char;
typedef struct passed_hole { char a; int b; } passed_hole;
typedef struct passed_three { char a[3]; } passed_three;
typedef struct passed_odd { unsigned char a[13]; } passed_odd;
typedef struct passed_long { long a; } passed_long;
typedef struct passed_two { long a; int b; } passed_two;
typedef struct passed_float { float a; } passed_float;
typedef struct passed_floats { float a, b; } passed_floats;
typedef struct passed_vector { float a, b, c; } passed_vector;
typedef struct passed_double { double a; } passed_double;
typedef struct passed_complex { double a, b; } passed_complex;
typedef struct passed_mixed { int a; float b; } passed_mixed;
typedef struct passed_int_double { int a; double b; } passed_int_double;
typedef struct passed_double_int { double a; short b; } passed_double_int;
typedef struct passed_float_hole { float a; double b; } passed_float_hole;
typedef struct passed_pointer { const char *a; enum passed_color b; } passed_pointer;
typedef struct passed_bits { unsigned a : 3, b : 20; int c : 9; long d : 40; } passed_bits;
typedef struct passed_float_bits { double a; float b; unsigned c : 5; } passed_float_bits;
typedef struct passed_nested { passed_floats a; struct { passed_char b; short c[2]; }; } passed_nested;
typedef struct passed_array { short a[2][3]; } passed_array;
typedef union passed_union { float a; int b; } passed_union;
typedef union passed_union_bits { float a; int b : 7; } passed_union_bits;
typedef union passed_floating { double a; float b[3]; } passed_floating;
typedef struct passed_large { long a; float b; double c; char d; } passed_large;

#define PASSED_SHAPES(X) \
    X(passed_char) X(passed_hole) X(passed_three) X(passed_odd) X(passed_long) X(passed_two) X(passed_float) X(passed_floats) \
    X(passed_vector) X(passed_double) X(passed_complex) X(passed_mixed) X(passed_int_double) X(passed_double_int) \
    X(passed_float_hole) X(passed_pointer) X(passed_bits) X(passed_float_bits) X(passed_nested) X(passed_array) \
    X(passed_union) X(passed_union_bits) X(passed_floating) X(passed_large)

/* Each writes `s` and returns `t` if the numbers are those that a test sends. Registers for integers, or for both, run out. */
#define PASSED_FUNCTIONS(S) \
    S S##_echo(S t); \
    S S##_between(S *out, char a, S s, double b, S t, float c); \
    S S##_crowded(S *out, long a, long b, long c, long d, S s, long e, S t, short f); \
    S S##_floating(double a, double b, double c, double d, double e, double f, double g, S s, float h, S t, S *out);
PASSED_SHAPES(PASSED_FUNCTIONS)

/* What arrives in the registers of these. */
unsigned long passed_seen(passed_hole s);
unsigned long passed_seen_floating(passed_float_hole s);
passed_complex passed_crash(passed_complex s);
passed_large passed_crash_large(passed_large s);

/* These do not pass. */
typedef struct __attribute__((packed)) passed_packed { char a; int b; } passed_packed;
typedef struct passed_long_double { long double a; } passed_long_double;
typedef struct passed_unnamed { float a; int : 32; } passed_unnamed;
typedef float passed_lanes __attribute__((vector_size(8)));
typedef struct passed_lane { passed_lanes a; float b __attribute__((vector_size(8))); } passed_lane;
typedef struct passed_imaginary { _Complex float a; } passed_imaginary;
int passed_by_packed(passed_packed s);
int passed_by_long_double(passed_long_double s);
int passed_by_unnamed(passed_unnamed s);
int passed_by_lane(passed_lane s);
int passed_by_imaginary(passed_imaginary s);
#endif
