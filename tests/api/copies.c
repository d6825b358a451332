/* The escape by two copies of the library in one process, tried: a signal handler on the same stack interrupts a domain of the first
 * copy and enters one of the second, whose gates write `gs`. Either the second refuses to work, or (`unmarked`: a copy that was made
 * blind for the first one's mark) the first copy's domain goes on with its own `gs`, and neither sees a store of the other. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ringfence.h>
#include <signal.h>
#include <stdint.h>
#include <sys/time.h>

#include "check.h"
#undef CHECK
#define CHECK(cond) ((cond) ? (void)0 : (void)(fprintf(stderr, "copies.c:%d: %s is false\n", __LINE__, #cond), failures++))

enum { INTERRUPTIONS = 200, OUTER = 200000, INNER = 3000 };

typedef uint64_t (*work_function)(uint64_t, uint64_t);
typedef uint64_t (*crash_function)(void);

struct copy {
    void *(*open)(const char *, int);
    void *(*sym)(void *, const char *);
    rf_domain *(*domain)(void *);
    rf_status (*reset)(rf_domain *);
    const rf_error_info *(*error)(void);
    rf_status (*init)(const rf_process_options *);
    void *module;
    work_function work;
    crash_function crash;
};

static void *find(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found)
        exit((fprintf(stderr, "%s\n", dlerror()), 1));
    return found;
}

static struct copy copy(void *library) {
    if (!library)
        exit((fprintf(stderr, "%s\n", dlerror()), 1));
    struct copy c = {0};
    *(void **)&c.open = find(library, "rf_dlopen");
    *(void **)&c.sym = find(library, "rf_dlsym");
    *(void **)&c.domain = find(library, "rf_dldomain");
    *(void **)&c.reset = find(library, "rf_domain_reset");
    *(void **)&c.error = find(library, "rf_error");
    *(void **)&c.init = find(library, "rf_process_init");
    return c;
}

static int opens(struct copy *c, const char *path) {
    c->module = c->open(path, 0);
    if (!c->module)
        return 0;
    c->work = (work_function)(uintptr_t)c->sym(c->module, "unsigned long work(unsigned long, unsigned long)");
    c->crash = (crash_function)(uintptr_t)c->sym(c->module, "unsigned long crash(void)");
    return c->work && c->crash;
}

static struct copy first, second;
static const char *path;
static int unmarked;
static uint64_t inner;
static volatile int interruptions, inside, changed, leaked;

static uint64_t gs(void) {
    uint64_t base;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    return base;
}

/* On the stack of what it interrupts. A value of `gs` that is not the host's says that a domain was interrupted. */
static void handler(int signal) {
    (void)signal;
    uint64_t before = gs();
    interruptions++;
    inside += before != 0;
    if (!unmarked) {
        if (second.init(NULL) == RF_OK || opens(&second, path))
            leaked++;
    } else {
        if (second.work(7, INNER) != inner)
            leaked++;
        if (interruptions % 16 == 0) {
            second.crash();
            if (!second.error() || second.reset(second.domain(second.module)) != RF_OK)
                leaked++;
        }
    }
    changed += gs() != before;
}

int main(int argc, char **argv) {
    if (argc < 4)
        return fprintf(stderr, "usage: copies FIRST SECOND MODULE [namespace] [unmarked]\n"), 2;
    path = argv[3];
    int namespace = 0;
    for (int i = 4; i < argc; i++) {
        namespace |= !strcmp(argv[i], "namespace");
        unmarked |= !strcmp(argv[i], "unmarked");
    }
    first = copy(dlopen(argv[1], RTLD_NOW | RTLD_LOCAL));
    second = copy(namespace ? dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW | RTLD_LOCAL) : dlopen(argv[2], RTLD_NOW | RTLD_LOCAL));
    CHECK(first.open != second.open);
    if (!opens(&first, path))
        return fprintf(stderr, "%s\n", first.error() ? first.error()->message : "no function"), 1;
    if (unmarked && !opens(&second, path))
        return fprintf(stderr, "%s\n", second.error() ? second.error()->message : "no function"), 1;

    uint64_t outer = first.work(5, OUTER);
    if (unmarked) {
        inner = second.work(7, INNER);
        CHECK(inner == first.work(7, INNER));
    }
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {.it_value = {.tv_usec = 300}, .it_interval = {.tv_usec = 300}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int rounds = 0; inside < INTERRUPTIONS && rounds < 100000; rounds++) {
        CHECK(first.work(5, OUTER) == outer);
        if (rounds % 16 == 0) { /* its own faults are still its own */
            first.crash();
            CHECK(first.error() && strstr(first.error()->message, "bad read"));
            CHECK(first.reset(first.domain(first.module)) == RF_OK);
        }
        if (failures)
            break;
    }
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
    CHECK(inside >= INTERRUPTIONS);
    CHECK(changed == 0);
    CHECK(leaked == 0);
    CHECK(first.work(5, OUTER) == outer);
    return FINISH("copies");
}
