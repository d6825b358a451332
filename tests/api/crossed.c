/* Two copies of the library in one process, and a program that mixes them up: handles, functions and regions of one are given to the
 * other, in plain code, in host functions, in signal handlers and in forked children. A second copy that finds the first one's mark
 * refuses everything; one that is blind for it (`unmarked`) takes what is not its own for wrong, or for its own of that number. In both
 * cases nothing crashes, every failure is a status, and each copy's domains stay their own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <ringfence.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#undef CHECK
#define CHECK(cond) ((cond) ? (void)0 : (void)(fprintf(stderr, "crossed.c:%d: %s is false\n", __LINE__, #cond), failures++))

enum { DEPTH = 30, THREADS = 4, ROUNDS = 200, INTERRUPTIONS = 50 };

/* What the program uses of the library, one of each copy. */
#define USED(X)                                                                                                          \
    X(dlopen_with) X(dlsym) X(dlclose) X(dldomain) X(dlprovide) X(error) X(call_status) X(call_save) X(call_restore)     \
    X(domain_reset) X(domain_destroy) X(domain_interrupt) X(domain_call) X(domain_set_time_limit) X(memory_alloc)        \
    X(function_create) X(function_call) X(function_pointer) X(function_destroy) X(region_create) X(region_create_from_fd) \
    X(region_give) X(region_rights) X(region_address) X(region_host_address) X(region_destroy) X(process_init)

typedef int (*binary)(int, int);
typedef int (*reads)(const int *);
typedef void (*writes)(int *, int);
typedef int (*spins)(unsigned long);

struct copy {
#define DECLARE(name) __typeof__(&rf_##name) name;
    USED(DECLARE)
    void *module;
    rf_domain *domain;
    rf_function *function;
    rf_region *region;
    binary add, call_host_add;
    reads read;
    writes write;
    spins spin_for;
};

static struct copy first, second;
static const char *path;
static int unmarked;

static void find(struct copy *c, void *library) {
    if (!library)
        exit((fprintf(stderr, "%s\n", dlerror()), 1));
#define FIND(name)                                            \
    if (!(*(void **)&c->name = dlsym(library, "rf_" #name))) \
        exit((fprintf(stderr, "%s\n", dlerror()), 1));
    USED(FIND)
}

static uint64_t gs(void) {
    uint64_t base;
    __asm__ volatile("rdgsbase %0" : "=r"(base));
    return base;
}

/* What the host function does before it adds. */
static __thread int (*deed)(int, int);
static int host_add(int a, int b) { return deed ? deed(a, b) : a + b; }
static void nothing(void) {}

static int opens(struct copy *c) {
    static const char *const others[] = {"void host_mix(void)", "void host_eight(void)", "void host_note(void)"};
    int provided = c->dlprovide("int host_add(int, int)", (void (*)(void))host_add) == RF_OK;
    for (int i = 0; i < 3; i++)
        provided &= c->dlprovide(others[i], nothing) == RF_OK;
    c->module = c->dlopen_with(path, 0, NULL);
    if (!provided || !c->module)
        return 0;
    c->domain = c->dldomain(c->module);
    c->add = (binary)(uintptr_t)c->dlsym(c->module, "int add(int, int)");
    c->call_host_add = (binary)(uintptr_t)c->dlsym(c->module, "int call_host_add(int, int)");
    c->read = (reads)(uintptr_t)c->dlsym(c->module, "int wild_read(const int *)");
    c->write = (writes)(uintptr_t)c->dlsym(c->module, "void wild_write(int *, int)");
    c->spin_for = (spins)(uintptr_t)c->dlsym(c->module, "int spin_for(unsigned long)");
    return c->add && c->call_host_add && c->read && c->write && c->spin_for &&
           c->function_create(c->domain, "add", &c->function) == RF_OK && c->region_create(4096, NULL, &c->region) == RF_OK;
}

/* All that the second copy can be asked to do with what is the first one's. How often it did. */
static int misuse(void) {
    rf_value two[2] = {rf_value_i32(2), rf_value_i32(3)}, result = rf_value_i32(0);
    rf_region *region = NULL;
    rf_function *function = NULL;
    int done = 0;
    done += second.dlsym(first.module, "int add(int, int)") != NULL;
    done += second.dldomain(first.module) != NULL;
    done += second.dlclose(first.module) == 0;
    done += second.dlopen_with(path, 0, NULL) != NULL;
    done += second.domain_reset(first.domain) == RF_OK;
    done += second.domain_interrupt(first.domain) == RF_OK;
    done += second.domain_set_time_limit(first.domain, 1) == RF_OK;
    done += second.domain_destroy(first.domain) == RF_OK;
    done += second.domain_call(first.domain, "add", two, 2, &result) == RF_OK;
    done += second.memory_alloc(first.domain, 16) != NULL;
    done += second.function_create(first.domain, "add", &function) == RF_OK;
    done += second.function_call(first.function, two, 2, &result) == RF_OK;
    done += second.function_pointer(first.function, "int add(int, int)") != NULL;
    done += second.function_destroy(first.function) == RF_OK;
    done += second.region_create(4096, NULL, &region) == RF_OK;
    done += second.region_create(4096, first.domain, &region) == RF_OK;
    done += second.region_give(first.region, NULL, first.domain, RF_RIGHTS_WRITE) == RF_OK;
    done += second.region_rights(first.region, first.domain) >= 0;
    done += second.region_host_address(first.region) != NULL;
    done += second.region_destroy(first.region) == RF_OK;
    /* Addresses in place of handles. */
    done += second.domain_reset((rf_domain *)(uintptr_t)first.add) == RF_OK;
    done += second.region_destroy((rf_region *)first.region_host_address(first.region)) == RF_OK;
    second.call_restore(second.call_save());
    done += second.process_init(NULL) == RF_OK;
    return done;
}

static volatile int misused, inside, interruptions;

static int misuse_and_add(int a, int b) {
    misused += misuse();
    return a + b;
}

static void misuse_in_handler(int signal) {
    (void)signal;
    inside += gs() != 0;
    interruptions++;
    misused += misuse();
}

static int in_child(int (*work)(void)) {
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(work());
    }
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int refuses_in_child(void) { return misuse() == 0 && first.add(2, 3) == 5 && first.call_host_add(2, 3) == 6 ? 0 : 1; }
static int refuses_in_child_of_callback(int a, int b) {
    deed = NULL;
    misused += in_child(refuses_in_child) != 0;
    return a + b;
}

static void often(long microseconds) {
    struct itimerval timer = {.it_value = {.tv_usec = microseconds}, .it_interval = {.tv_usec = microseconds}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* The second copy knows of the first. */
static void refused(void) {
    CHECK(misuse() == 0);
    CHECK(second.error() && second.error()->status == RF_ERROR_UNSUPPORTED && strstr(second.error()->message, "another copy"));
    deed = misuse_and_add;
    CHECK(first.call_host_add(2, 3) == 6 && misused == 0);
    deed = refuses_in_child_of_callback;
    CHECK(first.call_host_add(2, 3) == 6 && misused == 0);
    deed = NULL;
    CHECK(in_child(refuses_in_child) == 0);
    struct sigaction action = {.sa_handler = misuse_in_handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    often(2000);
    for (int round = 0; inside < INTERRUPTIONS && round < 20000; round++)
        CHECK(first.spin_for(100000) == 1);
    often(0);
    CHECK(inside >= INTERRUPTIONS && misused == 0);
}

/* From one copy's domain to the other's and back, as deep as is told, and then something else. */
static __thread int left, mixed;
static __thread void (*bottom)(void);
static int other(int a, int b) {
    if (left-- == 0) {
        deed = NULL;
        if (bottom)
            bottom();
        deed = other;
        return a + b;
    }
    uint64_t before = gs();
    int sum = (left & 1 ? first : second).call_host_add(a, b);
    mixed += gs() != before;
    return sum;
}

/* The sum, with one more for each level. */
static int from_one_to_the_other(int depth, void (*work)(void)) {
    left = depth, mixed = 0, bottom = work;
    deed = other;
    int sum = first.call_host_add(20, 1);
    deed = NULL;
    return mixed ? -1 : sum;
}

static void crash_in_both(void) {
    first.read(NULL);
    second.read(NULL);
}

static int as_new(struct copy *c) {
    int told = c->add(1, 1) == 0 && c->call_status() == RF_ERROR_FAULTED && c->error();
    return told && c->domain_reset(c->domain) == RF_OK && c->add(1, 1) == 2 && c->call_host_add(1, 1) == 3;
}

static void *in_thread(void *wrong) {
    for (int i = 0; i < ROUNDS; i++)
        if (from_one_to_the_other(i % DEPTH, NULL) != 22 + i % DEPTH)
            ++*(int *)wrong;
    return NULL;
}

static int works_in_child(void) {
    if (from_one_to_the_other(DEPTH, NULL) != 22 + DEPTH)
        return 1;
    first.read(NULL), second.read(NULL);
    return as_new(&first) && as_new(&second) ? 0 : 2;
}
/* Under calls of both, where no domain can be reset. */
static int works_under_calls(void) {
    int sums = first.add(2, 3) == 5 && second.add(2, 3) == 5 && first.call_host_add(2, 3) == 6 && second.call_host_add(2, 3) == 6;
    int busy = first.domain_reset(first.domain) == RF_ERROR_BUSY && second.domain_reset(second.domain) == RF_ERROR_BUSY;
    first.read(NULL);
    int faults = first.call_status() == RF_FAULT_ACCESS && second.add(2, 3) == 5;
    second.read(NULL);
    return sums && busy && faults && second.call_status() == RF_FAULT_ACCESS ? 0 : 1;
}
static void fork_at_the_bottom(void) { misused += in_child(works_under_calls) != 0; }

static void limits_of_both(void) {
    struct copy *both[] = {&first, &second};
    for (int i = 0; i < 2; i++) {
        struct copy *c = both[i], *o = both[!i];
        CHECK(c->domain_set_time_limit(c->domain, 20 * 1000 * 1000) == RF_OK);
        CHECK(c->spin_for(1UL << 60) == 0 && c->call_status() == RF_FAULT_TIME);
        CHECK(o->add(2, 2) == 4);
        CHECK(c->domain_reset(c->domain) == RF_OK && c->domain_set_time_limit(c->domain, 0) == RF_OK && c->add(2, 2) == 4);
    }
}

/* The limit is of the first call into the domain, and ends that one, too. */
static void limits_at_the_bottom(void) {
    struct copy *both[] = {&first, &second};
    for (int i = 0; i < 2; i++) {
        CHECK(both[i]->domain_set_time_limit(both[i]->domain, 20 * 1000 * 1000) == RF_OK);
        CHECK(both[i]->spin_for(1UL << 60) == 0 && both[i]->call_status() == RF_FAULT_TIME);
        CHECK(both[i]->domain_set_time_limit(both[i]->domain, 0) == RF_OK);
    }
}

/* One file, a region in each copy, and rights of two kinds. */
static void regions_of_both(void) {
    int file = memfd_create("crossed", MFD_ALLOW_SEALING);
    rf_region *mine = NULL, *theirs = NULL;
    CHECK(file >= 0 && ftruncate(file, 4096) == 0);
    CHECK(first.region_create_from_fd(file, 4096, RF_RIGHTS_WRITE, &mine) == RF_OK);
    CHECK(second.region_create_from_fd(file, 4096, RF_RIGHTS_READ, &theirs) == RF_OK);
    CHECK(first.region_give(mine, NULL, first.domain, RF_RIGHTS_WRITE) == RF_OK);
    CHECK(second.region_give(theirs, NULL, second.domain, RF_RIGHTS_READ) == RF_OK);
    int *in_first = first.region_address(mine, first.domain), *in_second = second.region_address(theirs, second.domain);
    first.write(in_first, 77);
    CHECK(first.call_status() == RF_OK && second.read(in_second) == 77);
    second.write(in_second, 78);
    CHECK(second.call_status() == RF_FAULT_ACCESS && first.read(in_first) == 77);
    /* The other window's address means the own window's. */
    CHECK(as_new(&second));
    second.write(in_first, 79);
    CHECK(first.read(in_first) == 77);
    if (second.call_status() != RF_OK)
        CHECK(as_new(&second));
    CHECK(first.region_destroy(mine) == RF_OK && second.region_destroy(theirs) == RF_OK);
    close(file);
}

/* The second copy is blind. */
static void mixed_up(void) {
    /* Of the first there is more than of the second: what the second does not know is no handle of it. */
    void *more = first.dlopen_with(path, 0, NULL);
    CHECK(more && second.dlsym(more, "int add(int, int)") == NULL && second.error()->status == RF_ERROR_HANDLE);
    CHECK(second.dlclose(more) == -1 && second.domain_reset(more) == RF_ERROR_HANDLE && first.dlclose(more) == 0);
    CHECK(second.function_pointer((rf_function *)first.domain, "int add(int, int)") == NULL);
    CHECK(second.region_rights(first.region, (rf_domain *)first.region) == -1);

    CHECK(from_one_to_the_other(DEPTH, NULL) == 22 + DEPTH);
    limits_of_both();
    CHECK(from_one_to_the_other(DEPTH, limits_at_the_bottom) == 0);
    CHECK(as_new(&first) && as_new(&second));
    regions_of_both();
    /* A fault of each under calls of both: all of them end, and no other. */
    CHECK(from_one_to_the_other(DEPTH, crash_in_both) == 0);
    CHECK(as_new(&first) && as_new(&second));
    CHECK(in_child(works_in_child) == 0);
    CHECK(from_one_to_the_other(DEPTH, fork_at_the_bottom) == 22 + DEPTH && misused == 0);
    int wrong[THREADS] = {0};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, in_thread, &wrong[i]) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0 && wrong[i] == 0);

    /* The same number is a handle of each: the second ends its own. */
    CHECK(first.domain == second.domain && second.domain_destroy(first.domain) == RF_OK);
    CHECK(second.add(2, 3) == 0 && second.call_status() == RF_ERROR_HANDLE);
    CHECK(second.domain_destroy(first.domain) == RF_ERROR_HANDLE);
}

int main(int argc, char **argv) {
    if (argc < 4)
        return fprintf(stderr, "usage: crossed FIRST SECOND MODULE [namespace] [unmarked]\n"), 2;
    path = argv[3];
    int namespace = 0;
    for (int i = 4; i < argc; i++) {
        namespace |= !strcmp(argv[i], "namespace");
        unmarked |= !strcmp(argv[i], "unmarked");
    }
    find(&first, dlopen(argv[1], RTLD_NOW | RTLD_LOCAL));
    find(&second, namespace ? dlmopen(LM_ID_NEWLM, argv[2], RTLD_NOW | RTLD_LOCAL) : dlopen(argv[2], RTLD_NOW | RTLD_LOCAL));
    CHECK(first.dlsym != second.dlsym);
    if (!opens(&first))
        return fprintf(stderr, "%s\n", first.error() ? first.error()->message : "no function"), 1;
    if (unmarked && !opens(&second))
        return fprintf(stderr, "%s\n", second.error() ? second.error()->message : "no function"), 1;
    unmarked ? mixed_up() : refused();
    /* The first never noticed. */
    rf_value two[2] = {rf_value_i32(2), rf_value_i32(3)}, result = rf_value_i32(0);
    CHECK(first.add(2, 3) == 5 && first.call_host_add(2, 3) == 6);
    CHECK(first.function_call(first.function, two, 2, &result) == RF_OK);
    CHECK(first.region_give(first.region, NULL, first.domain, RF_RIGHTS_WRITE) == RF_OK);
    CHECK(first.read(NULL) == 0 && first.error() && first.error()->status == RF_FAULT_ACCESS);
    CHECK(first.domain_reset(first.domain) == RF_OK && first.add(2, 3) == 5);
    CHECK(first.dlclose(first.module) == 0 && first.region_destroy(first.region) == RF_OK);
    return FINISH("crossed");
}
