/* A library with every kind of parameter that a binding knows. */
#ifndef KINDS_H
#define KINDS_H
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#define KINDS_VERSION "1.2"
#define KINDS_MOST (1 << 4)
#define KINDS_ANY ((kinds_visit)-1)

typedef struct kinds kinds; /* opaque */
enum kinds_color { KINDS_RED, KINDS_GREEN = 5, KINDS_NONE = -1 };

typedef struct kinds_point {
    int x, y;
    double weight;
} kinds_point;

struct kinds_options {
    unsigned char flags;
    enum kinds_color color;
    const char *title;
    kinds_point *origin;
    int (*check)(struct kinds_options *options, int value);
    long sum;
};

typedef int (*kinds_visit)(void *context, const char *name, const unsigned char *data, int length);
typedef double (*kinds_many)(int a, double b, long c, float d, long e, long f, long g, long h, long i);

extern const int kinds_data;

kinds *kinds_create(const char *name, enum kinds_color color);
void kinds_destroy(kinds *k);
const char *kinds_name(kinds *k);
char *kinds_upper(kinds *k, const char *text); /* to be freed with kinds_free */
void kinds_free(void *memory);
int kinds_live(void); /* allocations that are not freed */
int kinds_sum(const int *values, size_t count);
int kinds_fill(unsigned char *buffer, int size, int with);
int kinds_split(int number, int *tens, int *ones);
int kinds_find(const char *text, char c, const char **place);
int kinds_make(kinds **made);
const void *kinds_bytes(kinds *k, int *length);
void kinds_keep(kinds *k, const char *data, size_t length);
int kinds_kept(kinds *k, size_t at);
int kinds_visit_all(kinds *k, kinds_visit visit, void *context);
void *kinds_context(kinds *k, void *context); /* the one before */
double kinds_call_many(kinds_many many);
void kinds_register(kinds *k, kinds_visit visit, void *context);
int kinds_ring(kinds *k);
int kinds_words(int (*each)(void *context, int count, char **words), void *context);
long kinds_apply(struct kinds_options *options, int value);
void kinds_move(kinds_point *point, int dx, int dy);
void kinds_scale(unsigned char **rows, int count, int width, int by);
float kinds_mix(float a, double b, long double c, signed char d, unsigned short e);
long kinds_eight(long a, long b, long c, long d, long e, long f, long g, long h);
int kinds_crash(int *where);
int kinds_crash_or(int *where);
const char *kinds_forged(void); /* an address that is nowhere */
int kinds_print(FILE *to, kinds *k);
int kinds_vprint(const char *format, va_list list);
int kinds_printf(const char *format, ...);
kinds_point kinds_by_value(kinds_point p);
kinds_visit kinds_visitor(kinds *k);
static inline int kinds_twice(int n) { return 2 * n; }
#endif
