/* Hosts that do what hosts do, or should not: one deed for each run, named on the command line. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <ringfence.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum deed { NOTHING, LONGJMP, VFORK, THREAD_EXIT } deed;
static jmp_buf back;
static char *self;

static int do_deed(int a, int b) {
    switch (deed) {
    case LONGJMP:
        longjmp(back, 1);
    case VFORK: {
        pid_t pid = vfork();
        if (pid == 0) {
            execl(self, self, "exec", (char *)NULL);
            _exit(9);
        }
        int status = 1;
        waitpid(pid, &status, 0);
        return status;
    }
    case THREAD_EXIT:
        pthread_exit(NULL);
    default:
        return a + b;
    }
}
static void unused(rf_caller *c, void *context) {
    (void)context;
    rf_caller_return_int(c, 0);
}
static const rf_import imports[] = {
    RF_IMPORT_INIT(int, host_add, (int, int), do_deed),
    RF_IMPORT_INIT_CALLBACK("host_mix", unused, NULL),
    RF_IMPORT_INIT_CALLBACK("host_eight", unused, NULL),
    RF_IMPORT_INIT_CALLBACK("host_note", unused, NULL),
};
static rf_module *module;

static rf_domain *make(void) {
    rf_domain *d = NULL;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    return d;
}

typedef int (*binary)(int, int);
static binary find(rf_domain *d, const char *name) {
    char prototype[64];
    snprintf(prototype, sizeof prototype, "int %s(int, int)", name);
    return (binary)(uintptr_t)rf_dlsym(d, prototype);
}

/* Each jump leaves a call open. That ends in an error, and in a domain that stays busy; others are not affected. */
static void jumps(void) {
    if (!HAS(UNWIND))
        return;
    rf_domain *d = make(), *other = make();
    binary out = find(d, "call_host_add"), elsewhere = find(other, "add");
    deed = LONGJMP;
    volatile int jumped = 0, done = 0;
    for (volatile int i = 0; i < 5000 && !done; i++) {
        if (setjmp(back) == 0) {
            rf_error_clear();
            out(1, 2);
            done = rf_error() != NULL;
        } else {
            jumped++;
        }
    }
    CHECK(jumped > 0 && done);
    CHECK(elsewhere(2, 3) == 5);
    deed = NOTHING;
    CHECK_STATUS(rf_domain_reset(d), RF_ERROR_BUSY);
    CHECK_STATUS(rf_domain_destroy(other), RF_OK);
}

static void processes(void) {
    rf_domain *d = make();
    binary out = find(d, "call_host_add");
    deed = VFORK;
    for (int i = 0; i < 3; i++)
        CHECK(out(1, 2) == 1);
    deed = NOTHING;
    CHECK(out(1, 2) == 4);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

static rf_domain *common;
static void *in_thread(void *argument) {
    binary add = find(common, "add"), divide = find(common, "divide");
    long wrong = add(2, 3) != 5;
    if (argument) {
        rf_error_clear();
        divide(1, 0);
        wrong += !rf_error() || rf_error()->status != RF_FAULT_DIVIDE;
        wrong += rf_domain_reset(common) != RF_OK;
    }
    return (void *)wrong;
}

/* More threads than a domain has lanes, one after the other, on the smallest stacks; their lanes come back. */
static void small_threads(void) {
    common = make();
    pthread_attr_t a;
    pthread_attr_init(&a);
    CHECK(pthread_attr_setstacksize(&a, PTHREAD_STACK_MIN + 16384) == 0);
    for (long i = 0; i < 200; i++) {
        pthread_t t;
        void *wrong = NULL;
        CHECK(pthread_create(&t, &a, in_thread, (void *)(uintptr_t)(i % 10 == 0 && HAS(FAULTS))) == 0);
        pthread_join(t, &wrong);
        CHECK(wrong == NULL);
    }
    CHECK_STATUS(rf_domain_destroy(common), RF_OK);
}

static void *leaves(void *argument) {
    find(common, "call_host_add")(1, 2);
    return argument;
}

/* The thread goes, and its lane with it. */
static void thread_exit(void) {
    if (!HAS(UNWIND))
        return;
    common = make();
    deed = THREAD_EXIT;
    pthread_t t;
    CHECK(pthread_create(&t, NULL, leaves, NULL) == 0);
    pthread_join(t, NULL);
    deed = NOTHING;
    CHECK(find(common, "add")(2, 3) == 5);
    CHECK_STATUS(rf_domain_reset(common), RF_OK);
    CHECK(find(common, "call_host_add")(2, 3) == 6);
}

static volatile int cancelled;
static void cancels(int signal) {
    (void)signal;
    cancelled = 1;
}

/* A signal of the program's choice, and a word that its handler of another one sets. */
static void init(void) {
    if (!HAS(INTERRUPT))
        return;
    rf_process_options i = RF_PROCESS_OPTIONS_INIT;
    i.tick_signal = SIGSEGV;
    CHECK_STATUS(rf_process_init(&i), RF_ERROR_ARGUMENT);
    i.tick_signal = SIGRTMIN + 1;
    CHECK_STATUS(rf_process_init(&i), RF_OK);
    CHECK_STATUS(rf_process_init(NULL), RF_OK);
    rf_domain *d = NULL;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4, o.cancel = &cancelled;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    i.tick_signal = SIGUSR1;
    CHECK_STATUS(rf_process_init(&i), RF_ERROR_ARGUMENT);
    struct sigaction action = {.sa_handler = cancels}, now;
    sigaction(SIGALRM, &action, NULL);
    CHECK(sigaction(SIGURG, NULL, &now) == 0 && now.sa_handler == SIG_DFL);
    void (*spin)(void) = (void (*)(void))(uintptr_t)rf_dlsym(d, "void spin(void)");
    for (int n = 0; n < 3; n++) {
        alarm(1);
        rf_error_clear();
        spin();
        CHECK(cancelled && rf_error() && rf_error()->status == RF_FAULT_INTERRUPT);
        cancelled = 0;
        CHECK_STATUS(rf_domain_reset(d), RF_OK);
        CHECK(find(d, "add")(2, 3) == 5);
    }
    rf_usage u = RF_USAGE_INIT;
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.blocked == 0 && u.faults == 3);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

int main(int argc, char **argv) {
    self = argv[0];
    const char *what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "exec"))
        return 0;
    rf_status s = rf_module_create(argc > 2 ? argv[2] : "basic.rf", 0, &module);
    if (!strcmp(what, "no-fsgsbase")) {
        CHECK(s != RF_OK && strstr(rf_error()->message, "FSGSBASE"));
        fprintf(stderr, "%s\n", rf_error()->message);
        return FINISH("hosts");
    }
    CHECK(s == RF_OK);
    if (!strcmp(what, "longjmp"))
        jumps();
    else if (!strcmp(what, "vfork"))
        processes();
    else if (!strcmp(what, "threads"))
        small_threads();
    else if (!strcmp(what, "pthread_exit"))
        thread_exit();
    else if (!strcmp(what, "init"))
        init();
    return FINISH("hosts");
}
