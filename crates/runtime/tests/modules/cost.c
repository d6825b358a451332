/* For examples/call_cost.rs: nothing but calls, and about a megabyte of image. */
extern long host_add(long a, long b);
long add(long a, long b) { return a + b; }
long out(long a, long b) { return host_add(a, b) + 1; }
void crash(void) { __builtin_trap(); }
void forever(void)
{
    for (;;)
        __asm__ volatile("");
}
static const char constants[800 << 10] = {1};
static char variables[200 << 10] = {1};
const void *const pointers[64] = {constants, variables};
void *writable[64] = {variables};
