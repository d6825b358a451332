/* What the tests of the interfaces call: arguments of every kind, memory, and one fault of each kind. Freestanding. */
#include <ringfence/module.h>
#include <stddef.h>
#include <stdint.h>

/* Objects. */
int counter = 7;
const char banner[] = "hello from inside";
uint64_t zeroes[1024];

void nothing(void) {}
int add(int a, int b) { return a + b; }
long bump(void) { return ++counter; }

/* Arguments. */
long six(long a, long b, long c, long d, long e, long f) {
    return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}
long eight(long a, long b, long c, long d, long e, long f, long g, long h) {
    return six(a, b, c, d, e, f) + 1000000 * g + 10000000 * h;
}
double mixed(int a, double x, long b, float y, unsigned char c) { return a + x * 2 + b + y * 4 + c; }
double ten_doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j) {
    return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10;
}
float half(float x) { return x / 2; }
_Bool is_odd(unsigned long x) { return x & 1; }
signed char narrow(signed char c) { return (signed char)(c - 1); }
unsigned short wide(unsigned short c) { return (unsigned short)(c + 1); }

/* Memory. */
uint32_t checksum(const unsigned char *p, size_t n) {
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + p[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}
size_t upper(char *s) {
    size_t n = 0;
    for (; *s; s++, n++)
        if (*s >= 'a' && *s <= 'z')
            *s = (char)(*s - 32);
    return n;
}
struct point {
    int32_t x, y;
    double weight;
    struct point *next;
};
double total_weight(const struct point *p) {
    double sum = 0;
    for (; p; p = p->next)
        sum += p->weight * p->x * p->y;
    return sum;
}
const char *where_is_banner(void) { return banner; }
uint64_t *where_are_zeroes(void) { return zeroes; }
void *echo_pointer(void *p) { return p; }

/* Host functions. */
RF_IMPORT(int, host_add, (int a, int b))
RF_IMPORT(double, host_mix, (int a, double x, long b, float y))
RF_IMPORT(long, host_eight, (long a, long b, long c, long d, long e, long f, long g, long h))
RF_IMPORT(void, host_note, (const char *text, size_t length))
int call_host_add(int a, int b) { return host_add(a, b) + 1; }
double call_host_mix(void) { return host_mix(1, 2.5, 3, 4.5f); }
long call_host_eight(void) { return host_eight(1, 2, 3, 4, 5, 6, 7, 8); }
void call_host_note(void) { host_note(banner, sizeof banner - 1); }
int add_many(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum = host_add(sum, 1);
    return sum;
}

/* Function pointers in both directions. */
static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
typedef int (*unary)(int);
unary pick(int n) { return n == 2 ? twice : n == 3 ? thrice : NULL; }
int apply(unary f, int x) { return f(x); }

/* Thread-local state. */
static _Thread_local int per_thread = 100;
int bump_thread(void) { return ++per_thread; }

/* Faults. The tests name these lines through the markers in the comments. */
__attribute__((noinline)) int wild_read(const int *p) {
    return *p; /* line: wild_read */
}
void wild_write(int *p, int v) {
    *p = v; /* line: wild_write */
}
int divide(int a, int b) {
    return a / b; /* line: divide */
}
void trap(void) {
    __builtin_trap(); /* line: trap */
}
static volatile int sink;
__attribute__((noinline)) static int deep(int n) {
    volatile char big[256];
    big[n & 255] = (char)n;
    if (n != -1)
        sink = deep(n + 1);
    return big[3] + 1;
}
int recurse_data(void) { return deep(0); }
__attribute__((noinline)) int recurse_control(int n) {
    if (n != -1)
        sink = recurse_control(n + 1);
    return sink + 1;
}
void spin(void) {
    for (volatile int stop = 0; !stop;) {
    }
}
int spin_for(unsigned long rounds) {
    volatile unsigned long i;
    for (i = 0; i < rounds; i++) {
    }
    return 1;
}
int jump_to(uint64_t address) { return ((unary)(uintptr_t)address)(1); }
static int inner(const int *p) {
    return wild_read(p) + 1;
}
__attribute__((noinline)) int outer(const int *p) { return inner(p) + 1; }
/* Spins, and tells that it does. */
void spin_and_tell(volatile int *spins) {
    for (;;)
        *spins = 1;
}
