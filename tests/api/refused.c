/* Each allocation of a host's work with the library fails in turn, once or from there on: every function gives RF_OK or an error with a
 * message, nothing ends the process, and what was made is gone when it is given back. `refused MODULE [STEP]` tries each STEPth place. */
#define _GNU_SOURCE
#include <errno.h>
#include <ringfence.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

/* The place that fails; how many there were; blocks that are in use. */
static long place, seen, live;
static int sticky;

static int refuses(void) {
    long now = __atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED);
    return place && (now == place || (sticky && now > place));
}
static void *counted(void *at) {
    if (at == NULL)
        errno = ENOMEM;
    else
        __atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
    return at;
}
void *malloc(size_t n) { return counted(refuses() ? NULL : __libc_malloc(n)); }
void *calloc(size_t n, size_t each) { return counted(refuses() ? NULL : __libc_calloc(n, each)); }
void *aligned_alloc(size_t to, size_t n) { return counted(refuses() ? NULL : __libc_memalign(to, n)); }
void *memalign(size_t to, size_t n) { return aligned_alloc(to, n); }
int posix_memalign(void **at, size_t to, size_t n) { return (*at = aligned_alloc(to, n)) ? 0 : ENOMEM; }
void *realloc(void *old, size_t n) {
    if (old == NULL)
        return malloc(n);
    if (refuses()) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(old, n);
}
void free(void *at) {
    if (at)
        __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
    __libc_free(at);
}

static int host_add(int a, int b) { return a + b; }
static void nothing(void) {}
static const rf_import imports[] = { RF_IMPORT_INIT(int, host_add, (int, int), host_add), RF_IMPORT_INIT(void, host_mix, (void), nothing),
                                     RF_IMPORT_INIT(void, host_eight, (void), nothing), RF_IMPORT_INIT(void, host_note, (void), nothing) };

static int errors;

/* Whether it worked; an error has to say why. */
static int good(rf_status status) {
    if (status == RF_OK)
        return 1;
    const rf_error_info *e = rf_error();
    if (e == NULL || e->message == NULL || *e->message == 0) {
        fprintf(stderr, "place %ld: %s without a message\n", place, rf_status_name(status));
        failures++;
    }
    errors++;
    return 0;
}

static void calls(rf_domain *d) {
    rf_function *f = NULL;
    rf_value a[] = { rf_value_i32(2), rf_value_i32(3) }, r = { RF_TYPE_I32, { 0 } };
    if (good(rf_function_create(d, "add", &f))) {
        if (good(rf_function_call(f, a, 2, &r)))
            CHECK(r.as.i32 == 5);
        CHECK_STATUS(rf_function_destroy(f), RF_OK);
    }
    /* A fault, its report, what is told later, and the reset. */
    rf_value zero[] = { rf_value_i32(1), rf_value_i32(0) };
    if (!good(rf_domain_call(d, "divide", zero, 2, &r))) {
        good(rf_domain_call(d, "add", a, 2, &r));
        good(rf_domain_reset(d));
    }
}

static void memory(rf_domain *d) {
    char text[16];
    void *at = rf_memory_alloc(d, 100);
    if (at == NULL) {
        errors++;
        return;
    }
    good(rf_memory_write(d, at, "hello", 6));
    good(rf_memory_read_string(d, at, text, sizeof text, NULL));
    good(rf_memory_free(d, at));
}

static void later(rf_domain *d, const char *path) {
    /* marker; leal (%rdi,%rsi), %eax; ret */
    static const unsigned char sum[] = { 0x0F, 0x1F, 0x84, 0, 0xFF, 0xFF, 0x9A, 0x62, 0x8D, 0x04, 0x37, 0xC3 };
    rf_function *f = NULL;
    rf_module *again = NULL;
    if (good(rf_code_add(d, "sum", sum, sizeof sum, 0, &f))) {
        CHECK_STATUS(rf_function_destroy(f), RF_OK);
        good(rf_code_remove(d, "sum"));
    }
    if (good(rf_module_create(path, 0, &again))) {
        if (good(rf_domain_add_module(d, "again", again)))
            good(rf_domain_remove_module(d, "again"));
        CHECK_STATUS(rf_module_destroy(again), RF_OK);
    }
}

static void work(const char *path) {
    rf_module *m = NULL;
    rf_domain *d = NULL;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    rf_usage u = RF_USAGE_INIT;
    o.imports = imports, o.import_count = 4, o.extensible = 1;
    if (!good(rf_module_create(path, 0, &m)))
        return;
    if (good(rf_domain_create(m, &o, &d))) {
        calls(d);
        memory(d);
        later(d, path);
        good(rf_domain_usage(d, &u));
        good(rf_domain_trim(d, NULL));
        good(rf_domain_destroy(d));
    }
    CHECK_STATUS(rf_module_destroy(m), RF_OK);
}

/* Twice the work, first with failures: by how many blocks it grows what is kept. (Function pointers that are given back are kept for a
 * while, so that stale ones fail.) */
static long growth(const char *path, long at, int for_good) {
    long before = live;
    place = at, sticky = for_good, seen = 0;
    work(path);
    place = 0;
    work(path);
    return live - before;
}

/* In a process of its own: one place. */
static int child(const char *path, long at, int for_good) {
    growth(path, at, for_good);
    growth(path, at, for_good);
    long without = growth(path, 0, 0), with = growth(path, at, for_good);
    if (with > without) {
        fprintf(stderr, "place %ld: %ld blocks are left, and %ld without a failure\n", at, with, without);
        failures++;
    }
    return failures != 0;
}

/* How many places there are, and that all is well without failures; also in a process of its own. */
static long count(const char *path) {
    long found = 0;
    int to[2];
    CHECK(pipe(to) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        work(path);
        CHECK(errors == 2); /* the fault, and the call that it refuses */
        _exit(failures || write(to[1], &seen, sizeof seen) != sizeof seen);
    }
    close(to[1]);
    CHECK(read(to[0], &found, sizeof found) == sizeof found);
    CHECK(waitpid(pid, NULL, 0) == pid);
    close(to[0]);
    return found < 10000 ? found : 10000;
}

int main(int argc, char **argv) {
    long step = argc > 2 ? atol(argv[2]) : 1, places = count(argv[1]);
    CHECK(places > 200);
    for (long at = 1; at <= places; at += step) {
        for (int for_good = 0; for_good < 2; for_good++) {
            int status = 0;
            pid_t pid = fork();
            failures = pid == 0 ? 0 : failures;
            if (pid == 0)
                _exit(child(argv[1], at, for_good));
            CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
            if (status != 0) {
                fprintf(stderr, "place %ld%s: status %#x\n", at, for_good ? " and all behind it" : "", (unsigned)status);
                failures++;
            }
        }
    }
    printf("each %ldth of %ld places\n", step, places);
    return FINISH("refused");
}
