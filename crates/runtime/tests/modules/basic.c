/* What the tests of the runtime call. Compiled with `ringfence cc`. */
typedef unsigned long u64;

int counter = 5;
int *pointer = &counter;
static int zeroed[1024];
_Thread_local int per_thread = 7;
_Thread_local long per_thread_zero;
const char *const words[] = {"zero", "one", "two"};
static int constructed;

extern long host_add(long a, long b);
extern void host_call(long (*f)(long), long x);
extern long host_enter(long x);
extern long host_stack(long a, long b, long c, long d, long e, long f, long g, long h);
extern double host_scale(double x, long n);

__attribute__((constructor)) static void construct(void) { constructed = 41 + 1; }

int get_constructed(void) { return constructed; }
void nothing(void) {}
long add(long a, long b) { return a + b; }
int increment(void) { return ++*pointer; }
int next_zeroed(int i) { return zeroed[i]++; }
int thread_local_next(void) { return per_thread++ + (int)per_thread_zero; }
char word(int i, int j) { return words[i][j]; }
double mix(double a, float b, long c) { return a + b * (double)c; }
struct pair { long a, b; };
struct pair swap(long a, long b) { struct pair p = {b, a}; return p; }
struct dpair { double a, b; };
struct dpair dswap(double a, double b) { struct dpair p = {b, a}; return p; }
long sum10(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

long call_out(long a, long b) { return host_add(a, b) + 1; }
double call_scale(double x, long n) { return host_scale(x, n) + 0.5; }
long call_stack(long x) { return host_stack(1, 2, 3, 4, 5, 6, 7 + x, 8 + x); }
/* host → A → host → A → …: the host calls `nest` again with x - 1. */
long nest(long x) { volatile long local = x; return x <= 0 ? 100 : host_enter(x - 1) + local; }

int read_at(const int *p) { return *p; }
void write_at(int *p, int v) { *p = v; }
int divide(int a, int b) { return a / b; }
void illegal(void) { __builtin_trap(); }
void trap(void) { __asm__ volatile("int3"); }
long forever(void)
{
    for (volatile long i = 0;; i++) {
    }
}
long spin(long n)
{
    volatile long i;
    for (i = 0; i < n; i++) {
    }
    return i;
}
__attribute__((noinline)) long recurse(long n)
{
    if (n == 0)
        return 0;
    long r = recurse(n - 1);
    __asm__ volatile("" : "+r"(r)); /* or gcc makes it a loop */
    return r + n;
}
static volatile int signals;
volatile int *signals_place(void) { return &signals; }
/* Goes one frame deeper whenever the host has counted a signal, but for the first `fast` frames. */
__attribute__((noinline)) long creep(long fast)
{
    for (int now = signals; fast <= 0 && signals == now;) {
    }
    long r = creep(fast - 1);
    __asm__ volatile("" : "+r"(r));
    return r + 1;
}
__attribute__((noinline)) long deep(long n)
{
    volatile char room[4096];
    room[n & 4095] = (char)n;
    return n < 0 ? 0 : deep(n + 1) + room[(n + 1) & 4095];
}
void jump_to(void (*f)(void)) { f(); }
long through(long (*f)(long, long), long a, long b) { return f(a, b) + 1; }
long call_host_with(long (*f)(long), long x) { host_call(f, x); return x; }
__attribute__((noipa)) static int inner(int *p) { return *p + 1; }
__attribute__((noipa)) int outer(int *p) { return inner(p) + 1; }
void out_forever(void)
{
    for (;;)
        host_add(1, 2);
}
u64 stack_address(void)
{
    volatile int x = 0;
    return (u64)&x;
}
/* The two that never end, and tell that they have begun. */
volatile int begun;
void announced(void)
{
    begun = 1;
    forever();
}
void out_announced(void)
{
    begun = 1;
    out_forever();
}
