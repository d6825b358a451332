/* A program that never heard of Ringfence at link time: it opens the library by name, uses it, and goes on. */
#include <dlfcn.h>
#include <ringfence.h>

#include "check.h"
#undef CHECK
#define CHECK(cond) ((cond) ? (void)0 : (void)(fprintf(stderr, "foreign.c:%d: %s is false\n", __LINE__, #cond), failures++))

static int host_add(int a, int b) { return a + b; }
static void nothing(void) {}

int main(int argc, char **argv) {
    if (argc < 3)
        return fprintf(stderr, "usage: foreign LIBRARY MODULE\n"), 2;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fprintf(stderr, "%s\n", dlerror()), 1;
    void *(*open_)(const char *, int) = (void *(*)(const char *, int))dlsym(library, "rf_dlopen");
    void *(*sym)(void *, const char *) = (void *(*)(void *, const char *))dlsym(library, "rf_dlsym");
    int (*close_)(void *) = (int (*)(void *))dlsym(library, "rf_dlclose");
    const rf_error_info *(*error)(void) = (const rf_error_info *(*)(void))dlsym(library, "rf_error");
    rf_status (*provide)(const char *, void (*)(void)) = (rf_status (*)(const char *, void (*)(void)))dlsym(library, "rf_dlprovide");
    if (!open_ || !sym || !close_ || !error || !provide)
        return fprintf(stderr, "a function is missing\n"), 1;
    CHECK(provide("int host_add(int, int)", (void (*)(void))host_add) == RF_OK);
    CHECK(provide("void host_mix(void)", nothing) == RF_OK && provide("void host_eight(void)", nothing) == RF_OK && provide("void host_note(void)", nothing) == RF_OK);
    void *m = open_(argv[2], 0);
    if (!m)
        return fprintf(stderr, "%s\n", error()->message), 1;
    int (*call_host_add)(int, int) = (int (*)(int, int))sym(m, "int call_host_add(int, int)");
    int (*wild_read)(int *) = (int (*)(int *))sym(m, "int wild_read(int *)");
    CHECK(call_host_add(20, 21) == 42);
    CHECK(wild_read(NULL) == 0 && error() && error()->status == RF_FAULT_ACCESS);
    CHECK(close_(m) == 0);
    CHECK(call_host_add(1, 1) == 0 && error() && error()->status == RF_ERROR_HANDLE);
    return FINISH("foreign");
}
