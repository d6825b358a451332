/* The module of tests/bind. */
#include "kinds.h"
#include <stdlib.h>
#include <string.h>

struct kinds {
    char name[32];
    enum kinds_color color;
    const char *kept;
    size_t kept_length;
    void *context;
    kinds_visit visit;
};

const int kinds_data = 7;
static int live;

kinds *kinds_create(const char *name, enum kinds_color color) {
    kinds *k = calloc(1, sizeof *k);
    live++;
    strncpy(k->name, name ? name : "nobody", sizeof k->name - 1);
    k->color = color;
    return k;
}
void kinds_destroy(kinds *k) { kinds_free(k); }
const char *kinds_name(kinds *k) { return k->name; }
char *kinds_upper(kinds *k, const char *text) {
    char *upper = strdup(text);
    live++;
    for (char *c = upper; *c; c++)
        *c -= *c >= 'a' && *c <= 'z' ? 32 : 0;
    strncpy(k->name, upper, sizeof k->name - 1);
    return upper;
}
void kinds_free(void *memory) {
    live -= memory != NULL;
    free(memory);
}
int kinds_live(void) { return live; }
int kinds_sum(const int *values, size_t count) {
    int sum = 0;
    while (count--)
        sum += *values++;
    return sum;
}
int kinds_fill(unsigned char *buffer, int size, int with) { return memset(buffer, with, (size_t)size) == buffer; }
int kinds_split(int number, int *tens, int *ones) {
    int before = *tens;
    *tens = number / 10;
    if (ones)
        *ones = number % 10;
    return before;
}
int kinds_find(const char *text, char c, const char **place) {
    *place = strchr(text, c);
    return *place != NULL;
}
int kinds_make(kinds **made) {
    *made = kinds_create("made", KINDS_NONE);
    return 0;
}
const void *kinds_bytes(kinds *k, int *length) {
    *length = (int)strlen(k->name);
    return k->name;
}
void kinds_keep(kinds *k, const char *data, size_t length) {
    k->kept = data;
    k->kept_length = length;
}
int kinds_kept(kinds *k, size_t at) { return at < k->kept_length ? k->kept[at] : -1; }
int kinds_visit_all(kinds *k, kinds_visit visit, void *context) {
    static const unsigned char data[] = { 1, 0, 255 };
    if (visit == KINDS_ANY)
        return -1;
    int sum = visit(context, "one", data, 3);
    return sum + visit(context, k->name, NULL, 0);
}
void *kinds_context(kinds *k, void *context) {
    void *before = k->context;
    k->context = context;
    return before;
}
double kinds_call_many(kinds_many many) { return many(1, 2.5, 3, 4.5f, 5, 6, 7, 8, 9); }
void kinds_register(kinds *k, kinds_visit visit, void *context) {
    k->visit = visit;
    k->context = context;
}
int kinds_ring(kinds *k) { return k->visit(k->context, k->name, NULL, 0); }
int kinds_words(int (*each)(void *context, int count, char **words), void *context) {
    char *words[] = { "some", NULL, "words" };
    return each(context, 3, words);
}
long kinds_apply(struct kinds_options *o, int value) {
    static kinds_point own = { 7, 8, 9 };
    o->sum += value + (long)strlen(o->title) + o->origin->x++;
    o->color = KINDS_GREEN;
    o->flags ^= 0xFF;
    if (o->check)
        return o->check(o, value);
    o->origin = &own;
    return -1;
}
void kinds_move(kinds_point *p, int dx, int dy) {
    p->x += dx;
    p->y += dy;
    p->weight *= 2;
}
void kinds_scale(unsigned char **rows, int count, int width, int by) {
    for (int y = 0; y < count; y++)
        for (int x = 0; x < width; x++)
            rows[y][x] = (unsigned char)((x + y) * by);
}
float kinds_mix(float a, double b, long double c, signed char d, unsigned short e) {
    return (float)(a + b + (double)c + d + e);
}
long kinds_eight(long a, long b, long c, long d, long e, long f, long g, long h) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}
int kinds_crash(int *where) { return *(volatile int *)16 + *where; }
int kinds_crash_or(int *where) { return kinds_crash(where); }
const char *kinds_forged(void) { return (const char *)0x123456789; }
int kinds_print(FILE *to, kinds *k) { return fputs(k->name, to); }
int kinds_vprint(const char *format, va_list list) { return vprintf(format, list); }
int kinds_printf(const char *format, ...) { return (int)strlen(format); }
kinds_point kinds_by_value(kinds_point p) { return p; }
kinds_visit kinds_visitor(kinds *k) { return k->visit; }
