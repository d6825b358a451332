/* Comes to a domain of `basic` while it lives, and goes again. Freestanding. */
#include <ringfence/module.h>

RF_IMPORT(long, bump, (void))
RF_IMPORT_DATA(int, counter)
RF_IMPORT(void *, host_find, (const char *name))

static long calls = 40;
static _Thread_local long local = 5;

__attribute__((constructor)) static void begin(void) { counter += 100; }
__attribute__((destructor)) static void end(void) { counter = -1; }

RF_EXPORT long plugged(void) {
    long r = bump();
    return r * 1000 + ++calls + ++local;
}

/* As with dlsym: of whatever module the domain has. */
RF_EXPORT long call_by_name(const char *name, int a, int b) {
    int (*f)(int, int) = (int (*)(int, int))host_find(name);
    return f ? f(a, b) : -1;
}
