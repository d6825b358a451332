/* The trio that feels like the dynamic linker, and what its function pointers do when things go wrong. */
#include <ringfence.h>
#include <stdint.h>

#include "check.h"

static int host_add(int a, int b) { return a + b; }
static double host_mix(int a, double x, long b, float y) { return a + x + (double)b + y; }
static long host_eight(long a, long b, long c, long d, long e, long f) { return a + b + c + d + e + f; }
static size_t noted;
static void host_note(const char *text, size_t length) {
    char copy[64] = "";
    if (length < sizeof copy && rf_read(rf_caller_domain(NULL), text, copy, length) == RF_OK && !strcmp(copy, "hello from inside"))
        noted = length;
}

#define SYM(type, name) __typeof__(type) name = (type)rf_dlsym(m, #name)

static void opening(const char *path) {
    CHECK(rf_dlopen(NULL, 0) == NULL && rf_error() && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK(rf_dlopen("/nonexistent/x.rf", 0) == NULL && rf_error()->status == RF_ERROR_FILE);
    CHECK(strstr(rf_error()->message, "/nonexistent/x.rf") != NULL);
    CHECK(rf_dlopen("/nonexistent/\xff\xfe", 0) == NULL && rf_error()->status == RF_ERROR_FILE); /* any bytes */
    CHECK(rf_dlopen("/proc/self/exe", 0) == NULL && rf_error()->status == RF_ERROR_FORMAT);
    CHECK(rf_dlopen(path, 1 << 20) == NULL && rf_error()->status == RF_ERROR_ARGUMENT);
    /* Nothing was provided yet: the import is named. */
    CHECK(rf_dlopen(path, 0) == NULL && rf_error()->status == RF_ERROR_IMPORT);
    CHECK(strstr(rf_error()->message, "host_") != NULL);
    CHECK_STATUS(rf_provide(NULL, NULL), RF_ERROR_ARGUMENT);
    CHECK(rf_provide("host_add", (void (*)(void))host_add) == RF_OK);
    CHECK(rf_provide("host_mix", (void (*)(void))host_mix) == RF_OK);
    CHECK(rf_provide("host_eight", (void (*)(void))host_eight) == RF_OK);
    CHECK(rf_provide("host_note", (void (*)(void))host_note) == RF_OK);
    rf_clear_error();
    CHECK(rf_error() == NULL);
}

static void calling(void *m) {
    SYM(int (*)(int, int), add);
    SYM(long (*)(long, long, long, long, long, long), six);
    SYM(double (*)(int, double, long, float, unsigned char), mixed);
    SYM(float (*)(float), half);
    SYM(_Bool (*)(unsigned long), is_odd);
    SYM(signed char (*)(signed char), narrow);
    SYM(void (*)(void), nothing);
    SYM(int (*)(int, int), call_host_add);
    SYM(double (*)(void), call_host_mix);
    SYM(void (*)(void), call_host_note);
    SYM(int (*)(int), add_many);
    CHECK(add(2, 3) == 5 && add(-2, 1) == -1);
    CHECK(six(1, 2, 3, 4, 5, 6) == 654321);
    CHECK(mixed(1, 2.5, 3, 4.25f, 250) == 1 + 5.0 + 3 + 17 + 250);
    CHECK(half(3.0f) == 1.5f);
    CHECK(is_odd(3) && !is_odd(4));
    CHECK(narrow(-128) == 127);
    nothing();
    CHECK(call_host_add(20, 21) == 42);
    CHECK(call_host_mix() == 1 + 2.5 + 3 + 4.5);
    call_host_note();
    CHECK(noted == 17);
    CHECK(add_many(1000) == 1000);
    long (*eight)(long, ...) = (long (*)(long, ...))rf_dlsym_args(m, "eight", 16);
    CHECK(eight && eight(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L) == 87654321);
    CHECK(rf_dlsym_args(m, "eight", RF_STACK_ARGS_MAX + 8) == NULL && rf_error()->status == RF_ERROR_TOO_LONG);
    CHECK(rf_dlsym(m, "host_add") == NULL && rf_error()->status == RF_ERROR_NO_FUNCTION);
    CHECK(rf_dlsym(m, "ad") == NULL && rf_dlsym(m, "") == NULL && rf_dlsym(m, NULL) == NULL);
    CHECK(rf_dlsym(NULL, "add") == NULL && rf_error()->status == RF_ERROR_HANDLE);
    CHECK(rf_dlsym(&failures, "add") == NULL && rf_error()->status == RF_ERROR_HANDLE);
    int *counter = (int *)rf_dlsym(m, "counter"), value = 0;
    CHECK(counter && rf_read(rf_dldomain(m), counter, &value, sizeof value) == RF_OK && value == 7);
    rf_clear_error();
}

static void failing(void *m) {
    SYM(int (*)(int *), wild_read);
    SYM(int (*)(int, int), divide);
    SYM(int (*)(int, int), add);
    CHECK(wild_read((int *)(uintptr_t)0x1234) == 0);
    const rf_error_info *e = rf_error();
    CHECK(e && e->status == RF_FAULT_ACCESS);
    CHECK(e && e->function && !strcmp(e->function, "wild_read"));
    CHECK(e && e->file && strstr(e->file, "basic.c") && e->line > 0);
    CHECK(e && (e->address & 0xFFFFFFFF) == 0x1234 && e->frame_count >= 1);
    /* The domain refuses, the error stays. */
    CHECK(add(1, 1) == 0 && rf_error() && rf_error()->status == RF_ERROR_FAULTED);
    CHECK_STATUS(rf_domain_state(rf_dldomain(m)), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_reset(rf_dldomain(m)), RF_OK);
    rf_clear_error();
    CHECK(add(1, 1) == 2 && rf_error() == NULL);
    CHECK(divide(1, 0) == 0 && rf_error() && rf_error()->status == RF_FAULT_DIVIDE);
    CHECK(!strcmp(rf_status_name(RF_FAULT_DIVIDE), "RF_FAULT_DIVIDE"));
    CHECK_STATUS(rf_reset(rf_dldomain(m)), RF_OK);
    rf_clear_error();
}

static void closing(void *m, const char *path) {
    SYM(int (*)(int, int), add);
    void *second = rf_dlopen(path, 0);
    int (*other)(int, int) = (int (*)(int, int))rf_dlsym(second, "add");
    CHECK(other && other(4, 4) == 8);
    CHECK(rf_dlclose(m) == 0);
    CHECK(add(1, 1) == 0 && rf_error() && rf_error()->status == RF_ERROR_HANDLE);
    CHECK(rf_dlclose(m) == -1 && rf_error()->status == RF_ERROR_HANDLE);
    CHECK(rf_dlsym(m, "add") == NULL && rf_dldomain(m) == NULL);
    CHECK(other(5, 5) == 10 && rf_error() && rf_error()->status == RF_ERROR_HANDLE); /* pending until cleared */
    CHECK(rf_dlclose(second) == 0 && rf_dlclose(NULL) == -1);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: dl MODULE\n"), 2;
    opening(argv[1]);
    void *m = rf_dlopen(argv[1], 0);
    CHECK(m != NULL);
    if (m) {
        calling(m);
        failing(m);
        closing(m, argv[1]);
    }
    return FINISH("dl");
}
