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
    if (length < sizeof copy && rf_memory_read(rf_caller_domain(NULL), text, copy, length) == RF_OK && !strcmp(copy, "hello from inside"))
        noted = length;
}

#define SYM(result, name, parameters) result (*name) parameters = RF_DLSYM(m, result, name, parameters)

static void opening(const char *path) {
    CHECK(rf_dlopen(NULL, 0) == NULL && rf_error() && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK(rf_dlopen("/nonexistent/x.rf", 0) == NULL && rf_error()->status == RF_ERROR_FILE);
    CHECK(strstr(rf_error()->message, "/nonexistent/x.rf") != NULL);
    CHECK(rf_dlopen("/nonexistent/\xff\xfe", 0) == NULL && rf_error()->status == RF_ERROR_FILE); /* any bytes */
    CHECK(rf_dlopen("/proc/self/exe", 0) == NULL && rf_error()->status == (HAS(FENCE) ? RF_ERROR_FORMAT : RF_ERROR_FILE));
    CHECK(rf_dlopen(path, 1 << 20) == NULL && rf_error()->status == RF_ERROR_ARGUMENT);
    /* Nothing was provided yet: the import is named. */
    CHECK(rf_dlopen(path, 0) == NULL && rf_error()->status == RF_ERROR_IMPORT);
    CHECK(strstr(rf_error()->message, "host_") != NULL);
    CHECK_STATUS(rf_dlprovide(NULL, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_dlprovide("host_add", (void (*)(void))host_add), RF_ERROR_TYPE);
    CHECK(strstr(rf_error()->message, "int host_add(int, int)") != NULL); /* what to write */
    CHECK_STATUS(rf_dlprovide("int host_add(int, itn)", (void (*)(void))host_add), RF_ERROR_TYPE);
    CHECK(strstr(rf_error()->message, "column 19: itn") != NULL);
    CHECK_STATUS(rf_dlprovide("long host_eight(long, long, long, long, long, long, long)", (void (*)(void))host_eight), RF_ERROR_TYPE);
    CHECK(RF_DLPROVIDE(int, host_add, (int, int), host_add) == RF_OK);
    CHECK(RF_DLPROVIDE(double, host_mix, (int, double, long, float), host_mix) == RF_OK);
    CHECK(RF_DLPROVIDE(long, host_eight, (long, long, long, long, long, long), host_eight) == RF_OK);
    CHECK(RF_DLPROVIDE(void, host_note, (const char *, size_t), host_note) == RF_OK);
    rf_error_clear();
    CHECK(rf_error() == NULL);
}

/* A function without its type is an error that says what to write, unless somebody asks for the leak. */
static void untyped(void *m) {
    CHECK(rf_dlsym(m, "add") == NULL && rf_error()->status == RF_ERROR_TYPE);
    CHECK(strstr(rf_error()->message, "RF_DLSYM(handle, int, add, (int, int))") != NULL);
    CHECK(rf_dlsym(m, "int add(int, struct point)") == NULL && rf_error()->status == RF_ERROR_TYPE);
    CHECK(strstr(rf_error()->message, "column 14") != NULL);
    int (*add)(int, int) = (int (*)(int, int))(uintptr_t)rf_dlsym(m, RF_UNTYPED "add");
    CHECK(add && add(2, 3) == 5);
    long (*eight)(long, ...) = (long (*)(long, ...))(uintptr_t)rf_dlsym_args(m, RF_UNTYPED "eight", 16);
    CHECK(eight && eight(1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L) == 87654321);
    CHECK(rf_dlsym_args(m, RF_UNTYPED "eight", RF_STACK_ARGS_MAX + 8) == NULL && rf_error()->status == RF_ERROR_TOO_LONG);
    CHECK(rf_dlsym_args(m, "eight", 16) == NULL && rf_error()->status == RF_ERROR_TYPE);
    CHECK(rf_dlsym_args(m, "int add(int, int)", 16) == NULL && rf_error()->status == RF_ERROR_ARGUMENT);
}

static void calling(void *m) {
    SYM(int, add, (int, int));
    SYM(long, six, (long, long, long, long, long, long));
    SYM(double, mixed, (int, double, long, float, unsigned char));
    SYM(float, half, (float));
    SYM(_Bool, is_odd, (unsigned long));
    SYM(signed char, narrow, (signed char));
    SYM(void, nothing, (void));
    SYM(int, call_host_add, (int, int));
    SYM(double, call_host_mix, (void));
    SYM(void, call_host_note, (void));
    SYM(int, add_many, (int));
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
    CHECK(noted == 17 || !HAS(CALLER));
    CHECK(add_many(1000) == 1000);
    SYM(long, eight, (long, long, long, long, long, long, long, long));
    CHECK(eight && eight(1, 2, 3, 4, 5, 6, 7, 8) == 87654321);
    SYM(double, ten_doubles, (double, double, double, double, double, double, double, double, double, double));
    CHECK(ten_doubles(1, 1, 1, 1, 1, 1, 1, 1, 1, 1) == 55);
    SYM(unsigned short, wide, (unsigned short));
    CHECK(wide(65535) == 0 && wide(7) == 8);
    untyped(m);
    CHECK(rf_dlsym(m, "int host_add(int, int)") == NULL && rf_error()->status == RF_ERROR_NO_FUNCTION);
    CHECK(rf_dlsym(m, "ad") == NULL && rf_dlsym(m, "") == NULL && rf_dlsym(m, NULL) == NULL);
    CHECK(rf_dlsym(m, "int counter(void)") == NULL && rf_error()->status == RF_ERROR_NO_FUNCTION);
    CHECK(rf_dlsym(NULL, "add") == NULL && rf_error()->status == RF_ERROR_HANDLE);
    CHECK(rf_dlsym(&failures, "add") == NULL && rf_error()->status == RF_ERROR_HANDLE);
    int *counter = (int *)rf_dlsym(m, "counter"), value = 0;
    CHECK(counter && rf_memory_read(rf_dldomain(m), counter, &value, sizeof value) == RF_OK && value == 7);
    rf_error_clear();
}

static void failing(void *m) {
    if (!HAS(FAULTS))
        return;
    SYM(int, wild_read, (int *));
    SYM(int, divide, (int, int));
    SYM(int, add, (int, int));
    CHECK(wild_read((int *)(uintptr_t)0x1234) == 0);
    const rf_error_info *e = rf_error();
    CHECK(e && e->status == RF_FAULT_ACCESS);
    CHECK(e && e->function && !strcmp(e->function, "wild_read"));
    CHECK(e && e->file && strstr(e->file, "basic.c") && e->line > 0);
    CHECK(e && (e->address & 0xFFFFFFFF) == 0x1234 && e->frame_count >= 1);
    /* The domain refuses, and says what came first. */
    CHECK(add(1, 1) == 0 && rf_error() && rf_error()->status == RF_ERROR_FAULTED);
    CHECK(strstr(rf_error()->message, "the first failure: ") && strstr(rf_error()->message, "bad read at"));
    CHECK(rf_error()->function && !strcmp(rf_error()->function, "wild_read"));
    CHECK(!strcmp(rf_error()->public_message, "failed before: basic.rf: bad read in wild_read"));
    CHECK((rf_error()->address & 0xFFFFFFFF) == 0x1234 && rf_error()->frame_count >= 1);
    CHECK_STATUS(rf_domain_state(rf_dldomain(m)), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_domain_reset(rf_dldomain(m)), RF_OK);
    rf_error_clear();
    CHECK(add(1, 1) == 2 && rf_error() == NULL);
    CHECK(divide(1, 0) == 0 && rf_error() && rf_error()->status == RF_FAULT_DIVIDE);
    CHECK(!strcmp(rf_status_name(RF_FAULT_DIVIDE), "RF_FAULT_DIVIDE"));
    CHECK_STATUS(rf_domain_reset(rf_dldomain(m)), RF_OK);
    rf_error_clear();
}

static void closing(void *m, const char *path) {
    SYM(int, add, (int, int));
    void *second = rf_dlopen(path, 0);
    int (*other)(int, int) = RF_DLSYM(second, int, add, (int, int));
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
