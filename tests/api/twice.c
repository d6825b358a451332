/* Two copies of the library in one process: the second one refuses to work, and the first goes on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ringfence.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "check.h"
#undef CHECK
#define CHECK(cond) ((cond) ? (void)0 : (void)(fprintf(stderr, "twice.c:%d: %s is false\n", __LINE__, #cond), failures++))

struct copy {
    void *(*open)(const char *, int);
    void *(*sym)(void *, const char *);
    const rf_error_info *(*error)(void);
    rf_status (*provide)(const char *, void (*)(void));
};

static struct copy find(void *library) {
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    struct copy c;
    *(void **)&c.open = dlsym(library, "rf_dlopen");
    *(void **)&c.sym = dlsym(library, "rf_dlsym");
    *(void **)&c.error = dlsym(library, "rf_error");
    *(void **)&c.provide = dlsym(library, "rf_dlprovide");
    if (!c.open || !c.sym || !c.error || !c.provide)
        exit(1);
    return c;
}

static void nothing(void) {}

static struct copy second;
static const char *module;
static volatile int refused;

static int is_refused(void) {
    if (second.open(module, 0))
        return 0;
    const rf_error_info *e = second.error();
    if (e && strstr(e->message, "another copy"))
        return e->status == RF_ERROR_UNSUPPORTED;
    fprintf(stderr, "%s\n", e ? e->message : "no error");
    return 0;
}

/* Without SA_ONSTACK, in the middle of a domain of the first copy: entering one of the second would change `gs` under its feet. */
static void handler(int signal) {
    (void)signal;
    refused = is_refused() ? 1 : -1;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return fprintf(stderr, "usage: twice FIRST SECOND MODULE [namespace]\n"), 2;
    module = argv[3];
    struct copy first = find(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL));
    second = find(argc > 4 ? dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW | RTLD_LOCAL) : dlopen(argv[2], RTLD_NOW | RTLD_LOCAL));
    CHECK(first.open != second.open);
    static const char *const imports[] = {"int host_add(int, int)", "void host_mix(void)", "void host_eight(void)", "void host_note(void)"};
    for (int i = 0; i < 4; i++)
        CHECK(first.provide(imports[i], nothing) == RF_OK);
    void *m = first.open(module, 0);
    if (!m)
        return fprintf(stderr, "%s\n", first.error()->message), 1;
    int (*add)(int, int) = (int (*)(int, int))(uintptr_t)first.sym(m, "int add(int, int)");
    int (*spin)(unsigned long) = (int (*)(unsigned long))(uintptr_t)first.sym(m, "int spin_for(unsigned long)");
    CHECK(add && add(2, 3) == 5);
    CHECK(is_refused());
    CHECK(add(2, 3) == 5);

    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval soon = {.it_value = {.tv_usec = 1000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    while (!refused)
        CHECK(spin && spin(100000) == 1);
    CHECK(refused == 1);
    CHECK(add(2, 3) == 5);
    return FINISH("twice");
}
