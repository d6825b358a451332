/* Host functions that leave by longjmp: the calls that they leave are ended, nothing stays behind, and the domains go on. */
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <ringfence.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "check.h"

#define ROUNDS 10000
#define DEEP 20
#define THREADS 4

typedef int (*binary)(int, int);

/* What a thread's host functions do; each level has a place to jump to. */
struct plan {
    binary call[2];  /* of the domains, in turn */
    int deepest;     /* the level that jumps */
    int level;
    int to;          /* the level that it jumps to; 0 is main's */
    sigjmp_buf at[DEEP + 1];
    int marked;      /* the level that takes the jump inside of a host function */
    int caught;
    int blocking;    /* whether it jumps with all signals blocked, as out of a handler */
};
static _Thread_local struct plan plan;

static int host_add(int a, int b) {
    struct plan *p = &plan;
    if (p->deepest == 0)
        return a + b;
    int level = ++p->level;
    if (level == p->deepest) {
        if (p->blocking) {
            sigset_t all;
            sigfillset(&all);
            pthread_sigmask(SIG_BLOCK, &all, NULL);
        }
        siglongjmp(p->at[p->to], 1);
    }
    int result = -1;
    if (level == p->marked) {
        /* Again and again in one call out: what its nested calls take is given back each time. */
        for (volatile int i = 0; i < ROUNDS; i++) {
            rf_mark mark = rf_call_mark();
            if (sigsetjmp(p->at[level], 0) == 0) {
                p->to = level;
                p->call[level % 2](a, b);
                failures++;
            } else {
                CHECK_STATUS(rf_call_unwind(mark), RF_OK);
                p->level = level;
                p->caught++;
            }
        }
        p->deepest = 0;
        result = p->call[level % 2](a, b);
    } else {
        result = p->call[level % 2](a, b);
    }
    return result + 1;
}

static int jump_in_callback;
static rf_caller *last_caller;
static sigjmp_buf callback_env;
static void host_callback(rf_caller *c, void *context) {
    (void)context;
    last_caller = c;
    rf_caller_return_f64(c, 1);
    if (jump_in_callback)
        siglongjmp(callback_env, 1);
}

static const rf_import imports[] = {
    RF_IMPORT_INIT(int, host_add, (int, int), host_add),
    RF_IMPORT_INIT_CALLBACK("host_mix", host_callback, NULL),
    RF_IMPORT_INIT_CALLBACK("host_eight", host_callback, NULL),
    RF_IMPORT_INIT_CALLBACK("host_note", host_callback, NULL),
};

static rf_domain *domains[2];
static binary out[2], add[2];
static int (*spin_for)(unsigned long);
static double (*mix)(void);

static rf_usage usage(rf_domain *d) {
    rf_usage u = RF_USAGE_INIT;
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    return u;
}

static void idle(void) {
    for (int i = 0; i < 2; i++) {
        rf_usage u = usage(domains[i]);
        CHECK(u.active == 0 && u.faults == 0);
        CHECK(add[i](20, 22) == 42 && rf_call_status() == RF_OK);
    }
}

/* Jumps from level `deepest` to main, so often. */
static void to_main(int deepest, int rounds) {
    struct plan *p = &plan;
    p->call[0] = out[0], p->call[1] = out[1];
    rf_mark mark = rf_call_mark();
    for (volatile int i = 0; i < rounds; i++) {
        p->level = 0, p->to = 0, p->marked = 0, p->deepest = deepest;
        if (sigsetjmp(p->at[0], 0) == 0) {
            out[0](1, 2);
            failures++;
        } else {
            CHECK_STATUS(rf_call_unwind(mark), RF_OK);
            p->deepest = 0;
            CHECK(out[0](1, 2) == 4 && rf_call_status() == RF_OK);
        }
    }
    p->deepest = 0;
}

/* The level `marked` catches what is thrown DEEP levels down, and its own call returns. */
static void to_the_middle(int marked) {
    struct plan *p = &plan;
    p->call[0] = out[0], p->call[1] = out[1];
    p->level = 0, p->caught = 0, p->marked = marked, p->deepest = DEEP;
    int result = out[0](1, 2);
    CHECK(rf_call_status() == RF_OK);
    CHECK(p->caught == ROUNDS);
    /* 3 by the innermost, and two more for each level. */
    CHECK(result == 4 + 2 * marked);
    p->deepest = 0;
}

static void *in_thread(void *unused) {
    to_main(3, ROUNDS / 5);
    to_the_middle(2);
    return unused;
}

static void callbacks(void) {
    rf_mark mark = rf_call_mark();
    for (volatile int i = 0; i < 100; i++) {
        jump_in_callback = 1;
        if (sigsetjmp(callback_env, 0) == 0) {
            mix();
            failures++;
        }
        CHECK_STATUS(rf_call_unwind(mark), RF_OK);
        rf_error_clear();
        rf_caller_return_int(last_caller, 1);
        CHECK(rf_error() && rf_error()->status == RF_ERROR_HANDLE);
        rf_error_clear();
        jump_in_callback = 0;
        CHECK(mix() == 1);
    }
}

static rf_mark inner_mark;
static int take_mark(int a, int b) {
    inner_mark = rf_call_mark();
    return a + b;
}

/* Marks of calls that have ended, and marks without a jump. */
static void stale(rf_module *module) {
    rf_domain *d = NULL;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    rf_import own[4];
    memcpy(own, imports, sizeof own);
    own[0] = (rf_import)RF_IMPORT_INIT(int, host_add, (int, int), take_mark);
    o.imports = own, o.import_count = 4;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    binary f = RF_DLSYM(d, int, call_host_add, (int, int));
    CHECK(f(1, 2) == 4);
    CHECK_STATUS(rf_call_unwind(inner_mark), RF_ERROR_ARGUMENT);
    rf_error_clear();
    CHECK_STATUS(rf_call_unwind(rf_call_mark()), RF_OK);
    CHECK(f(1, 2) == 4);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

/* A call that was left has no time any more that could run out. */
static void limits(void) {
    CHECK_STATUS(rf_domain_set_time_limit(domains[0], 20 * 1000 * 1000), RF_OK);
    to_main(2, 10);
    struct timespec longer = { 0, 60 * 1000 * 1000 };
    nanosleep(&longer, NULL);
    idle();
    CHECK(spin_for(1000) == 1);
    CHECK_STATUS(rf_domain_set_time_limit(domains[0], 0), RF_OK);
}

/* The jump left a part of the host that blocks all signals, and puts no mask back: calls still end by their limits. */
static void blocked(void) {
    sigset_t before, after;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    CHECK_STATUS(rf_domain_set_time_limit(domains[0], 500 * 1000 * 1000), RF_OK);
    plan.blocking = 1;
    to_main(1, 1);
    plan.blocking = 0;
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    CHECK(!sigismember(&after, SIGURG) && !sigismember(&after, SIGSEGV));
    CHECK(sigismember(&after, SIGUSR1));
    spin_for(1000ul * 1000 * 1000 * 1000);
    CHECK_STATUS(rf_call_status(), RF_FAULT_TIME);
    rf_error_clear();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    CHECK_STATUS(rf_domain_set_time_limit(domains[0], 0), RF_OK);
    CHECK_STATUS(rf_domain_reset(domains[0]), RF_OK);
}

int main(int argc, char **argv) {
    if (!HAS(UNWIND))
        return FINISH("unwind");
    rf_module *module = NULL;
    CHECK_STATUS(rf_module_create(argc > 1 ? argv[1] : "basic.rf", 0, &module), RF_OK);
    for (int i = 0; i < 2; i++) {
        rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
        o.imports = imports, o.import_count = 4;
        CHECK_STATUS(rf_domain_create(module, &o, &domains[i]), RF_OK);
        out[i] = RF_DLSYM(domains[i], int, call_host_add, (int, int));
        add[i] = RF_DLSYM(domains[i], int, add, (int, int));
    }
    spin_for = RF_DLSYM(domains[0], int, spin_for, (unsigned long));
    mix = RF_DLSYM(domains[0], double, call_host_mix, (void));

    to_main(1, 10);
    idle();
    uint64_t calls = usage(domains[0]).calls;
    size_t heap = mallinfo2().uordblks;
    to_main(1, ROUNDS);
    /* Each round is a call that is left, and one that returns. */
    CHECK(usage(domains[0]).calls == calls + 2 * ROUNDS);
    CHECK(mallinfo2().uordblks <= heap + 4096);
    to_main(DEEP, 100);
    idle();
    for (int marked = 1; marked < 4; marked++)
        to_the_middle(marked);
    idle();
    callbacks();
    stale(module);
    limits();

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, in_thread, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    idle();
    CHECK(usage(domains[0]).lanes <= 2);

    blocked();
    /* Nothing is busy: they can be reset, and they end. */
    for (int i = 0; i < 2; i++) {
        CHECK_STATUS(rf_domain_reset(domains[i]), RF_OK);
        CHECK(add[i](1, 2) == 3);
        CHECK_STATUS(rf_domain_destroy(domains[i]), RF_OK);
    }
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    return FINISH("unwind");
}
