/* Many threads in one domain, one domain for each thread, errors per thread, interrupts, a host with handlers of its own,
 * fork. */
#define _GNU_SOURCE
#include <pthread.h>
#include <ringfence.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void stub(rf_caller *c, void *context) {
    (void)context;
    rf_caller_return_int(c, rf_caller_arg_int(c, 0) + rf_caller_arg_int(c, 1));
}
static const rf_import imports[] = {
    RF_IMPORT_INIT_CALLBACK("host_add", stub, NULL), RF_IMPORT_INIT_CALLBACK("host_mix", stub, NULL),
    RF_IMPORT_INIT_CALLBACK("host_eight", stub, NULL), RF_IMPORT_INIT_CALLBACK("host_note", stub, NULL),
};
static rf_module *module;
static rf_domain *shared;

static rf_domain *make(void) {
    rf_domain *d = NULL;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    return d;
}

static void *many_calls(void *argument) {
    int (*bump)(void) = RF_DLSYM(shared, int, bump_thread, (void));
    int (*add_many)(int) = RF_DLSYM(shared, int, add_many, (int));
    long wrong = 0;
    for (int i = 1; i <= 2000; i++)
        wrong += bump() != 100 + i;
    for (int i = 0; i < 200; i++)
        wrong += add_many(i) != i;
    wrong += rf_error() != NULL;
    (void)argument;
    return (void *)wrong;
}

/* Each thread breaks a domain of its own and sees its own error only. */
static void *own_error(void *argument) {
    long wrong = 0, which = (long)argument;
    rf_domain *d = make();
    int (*divide)(int, int) = RF_DLSYM(d, int, divide, (int, int));
    int (*wild_read)(int *) = RF_DLSYM(d, int, wild_read, (int *));
    for (int i = 0; i < 20; i++) {
        rf_error_clear();
        if (which & 1)
            divide(1, 0);
        else
            wild_read(NULL);
        usleep(200);
        wrong += !rf_error() || rf_error()->status != (which & 1 ? RF_FAULT_DIVIDE : RF_FAULT_ACCESS);
        wrong += rf_domain_reset(d) != RF_OK || rf_error() != NULL;
    }
    wrong += rf_domain_destroy(d) != RF_OK;
    return (void *)wrong;
}

static void *spin(void *argument) {
    (void)argument;
    return (void *)(long)(rf_domain_call(shared, "spin", NULL, 0, NULL) != RF_FAULT_INTERRUPT);
}

/* Handles go wrong under the feet of callers, with no effect but errors. */
static atomic_int stop;
static rf_domain *_Atomic moving;
static void *use_moving(void *argument) {
    (void)argument;
    while (!stop) {
        rf_value a[] = { rf_value_i32(1), rf_value_i32(2) }, r = { RF_TYPE_I32, { 0 } };
        rf_status s = rf_domain_call(moving, "add", a, 2, &r);
        if (s == RF_OK ? r.as.i32 != 3 : s != RF_ERROR_HANDLE)
            return (void *)1;
    }
    return NULL;
}

/* A domain closed while a thread is inside, through a plain pointer that keeps nothing alive: the call ends, with its
 * result or an error, and the pointer gives errors from then on. */
static void *inside(void *argument) {
    int (*add_many)(int) = (int (*)(int))(uintptr_t)argument;
    rf_error_clear();
    for (int i = 0; i < 1000000; i++)
        if (add_many(1000) != 1000)
            return (void *)(long)!(rf_error() && (rf_error()->status == RF_ERROR_HANDLE || rf_error()->status == RF_ERROR_FAULTED ||
                                                  rf_error()->status == RF_FAULT_ELSEWHERE || rf_error()->status == RF_FAULT_INTERRUPT));
    return (void *)2;
}
static void close_under_a_call(void) {
    if (!HAS(FENCE))
        return;
    for (int i = 0; i < 30; i++) {
        pthread_t t[2];
        rf_domain *d = make();
        void *result, *f = rf_dlsym(d, "int add_many(int)");
        for (int k = 0; k < 2; k++)
            pthread_create(&t[k], NULL, inside, f);
        usleep(500 + 100 * i);
        CHECK_STATUS(rf_domain_destroy(d), RF_OK);
        for (int k = 0; k < 2; k++) {
            pthread_join(t[k], &result);
            CHECK(result == NULL);
        }
    }
}

/* The same at each thread's first call, which makes its lane: of two rivals one finds the domain, or finds it gone. */
static pthread_barrier_t start;
static void *first_call(void *argument) {
    int (*add_many)(int) = (int (*)(int))(uintptr_t)argument;
    rf_error_clear();
    pthread_barrier_wait(&start);
    return (void *)(long)(add_many(3) != 3 && !rf_error());
}
static void close_at_the_first_call(void) {
    if (!HAS(FENCE))
        return;
    for (int i = 0; i < 400; i++) {
        pthread_t t[3];
        rf_domain *d = make();
        void *result, *f = rf_dlsym(d, "int add_many(int)");
        pthread_barrier_init(&start, NULL, 4);
        for (int k = 0; k < 3; k++)
            pthread_create(&t[k], NULL, first_call, f);
        pthread_barrier_wait(&start);
        for (volatile int spin = 0; spin < i * 100; spin++)
            ;
        CHECK_STATUS(rf_domain_destroy(d), RF_OK);
        for (int k = 0; k < 3; k++) {
            pthread_join(t[k], &result);
            CHECK(result == NULL);
        }
        pthread_barrier_destroy(&start);
    }
}

/* Everything that only asks, from two threads, while the third one makes, resets and destroys what they ask about: an answer
 * or an error for a handle, nothing else. */
static rf_region *_Atomic moving_region;
static int among(rf_status s, rf_status a, rf_status b) { return s == RF_OK || s == a || s == b; }
#define WRONG(cond)                                                                                                    \
    do {                                                                                                               \
        if (cond) {                                                                                                    \
            if (!wrong++)                                                                                              \
                fprintf(stderr, "threads.c:%d: %s; rf_error: %s\n", __LINE__, #cond, rf_error() ? rf_error()->message : "none"); \
        }                                                                                                              \
    } while (0)
static void *ask(void *argument) {
    long wrong = 0, which = (long)argument, answers = 0;
    char line[4096];
    while (!stop) {
        rf_domain *d = moving;
        rf_region *r = moving_region;
        rf_usage u = RF_USAGE_INIT;
        size_t size = 0;
        rf_status s = rf_domain_usage(d, &u);
        WRONG(!among(s, RF_ERROR_HANDLE, RF_OK) || (s == RF_OK && u.lanes > 63));
        WRONG(!among(rf_domain_state(d), RF_ERROR_HANDLE, RF_ERROR_FAULTED));
        answers += s == RF_OK;
        void *counter = rf_domain_find_object(d, "counter", &size);
        int value = 0;
        if (counter) {
            WRONG(size != sizeof(int));
            s = rf_memory_read(d, counter, &value, sizeof value);
            WRONG(!among(s, RF_ERROR_HANDLE, RF_OK) || (s == RF_OK && value != 7));
            WRONG(rf_memory_contains(d, counter, 4) != 1 && rf_domain_state(d) != RF_ERROR_HANDLE);
        }
        rf_function *f = NULL;
        s = rf_function_create(d, "add", &f);
        WRONG(!among(s, RF_ERROR_HANDLE, RF_OK) || (s == RF_OK) != (f != NULL));
        if (f) {
            void *address = rf_function_address(f);
            WRONG(!address && rf_error()->status != RF_ERROR_HANDLE);
            WRONG(!among(rf_function_destroy(f), RF_ERROR_HANDLE, RF_OK));
        }
        int (*add)(int, int) = RF_DLSYM(d, int, add, (int, int));
        if (add) {
            rf_error_clear();
            WRONG(add(2, 3) != 5 && (!rf_error() || (rf_error()->status != RF_ERROR_HANDLE && rf_error()->status != RF_ERROR_BUSY &&
                                        rf_error()->status != RF_ERROR_FAULTED && rf_error()->status != RF_FAULT_ELSEWHERE)));
        }
        rf_domain *same = rf_dldomain(d);
        WRONG(rf_dlsym(d, "no_such") != NULL || (same && same != d));
        int rights = rf_region_rights(r, d);
        WRONG(rights < -1 || rights > RF_RIGHTS_WRITE);
        WRONG(rf_region_length(r) % 4096 != 0);
        char *host = (char *)rf_region_host_address(r);
        WRONG(host == NULL && rf_error()->status != RF_ERROR_HANDLE);
        void *in = rf_region_address(r, d);
        WRONG(in == NULL && rf_error()->status != RF_ERROR_HANDLE);
        WRONG(rf_overview_text(line, which & 1 ? sizeof line : 16) > 1 << 20);
        WRONG(rf_domain_take_captured(d, 1, line, sizeof line) != 0);
        WRONG(rf_caller_domain(NULL) != NULL);
    }
    return (void *)(wrong + !answers);
}
static void ask_about_what_moves(void) {
    if (!HAS(FAULTS) || !HAS(REGIONS))
        return;
    pthread_t t[2];
    stop = 0;
    moving = make();
    rf_region *first = NULL;
    CHECK_STATUS(rf_region_create(4096, NULL, &first), RF_OK);
    moving_region = first;
    for (long i = 0; i < 2; i++)
        CHECK(pthread_create(&t[i], NULL, ask, (void *)i) == 0);
    for (int i = 0; i < 150; i++) {
        rf_domain *old = moving;
        rf_region *region = NULL, *gone = moving_region;
        CHECK_STATUS(rf_region_create(4096 * (1 + i % 3), NULL, &region), RF_OK);
        CHECK_STATUS(rf_region_give(gone, NULL, old, i & 1 ? RF_RIGHTS_READ : RF_RIGHTS_WRITE), RF_OK);
        rf_status s = rf_domain_reset(old);
        CHECK(among(s, RF_ERROR_BUSY, RF_OK));
        rf_value a[] = { rf_value_i32(1), rf_value_i32(0) };
        CHECK_STATUS(rf_domain_call(old, "divide", a, 2, NULL), RF_FAULT_DIVIDE);
        usleep(200);
        moving = make();
        moving_region = region;
        CHECK_STATUS(rf_domain_destroy(old), RF_OK);
        CHECK_STATUS(rf_region_destroy(gone), RF_OK);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) {
        void *result = NULL;
        pthread_join(t[i], &result);
        CHECK(result == NULL);
    }
    CHECK_STATUS(rf_region_destroy(moving_region), RF_OK);
    CHECK_STATUS(rf_domain_destroy(moving), RF_OK);
    rf_error_clear();
}

static long run(int count, void *(*f)(void *)) {
    pthread_t threads[16];
    long wrong = 0;
    for (long i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, f, (void *)i))
            return 1000;
    for (int i = 0; i < count; i++) {
        void *result;
        pthread_join(threads[i], &result);
        wrong += (long)result;
    }
    return wrong;
}

static sigjmp_buf landing;
static volatile sig_atomic_t host_faults;
static void on_segv(int number, siginfo_t *info, void *context) {
    (void)number, (void)info, (void)context;
    host_faults++;
    siglongjmp(landing, 1);
}

static void own_handlers(void) {
    if (!HAS(FAULTS))
        return;
    /* The host's handler was there before the library's first domain (see main); a fault of host code still goes there. */
    if (!sigsetjmp(landing, 1))
        *(volatile int *)8 = 1;
    CHECK(host_faults == 1);
    rf_value a[] = { rf_value_i32(1), rf_value_i32(0) }, r = { RF_TYPE_I32, { 0 } };
    CHECK_STATUS(rf_domain_call(shared, "divide", a, 2, &r), RF_FAULT_DIVIDE);
    CHECK_STATUS(rf_domain_call(shared, "divide", a, 2, &r), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_domain_reset(shared), RF_OK);
    CHECK_STATUS(rf_domain_call(shared, "wild_read", NULL, 0, &r), RF_FAULT_ACCESS);
    CHECK_STATUS(rf_domain_reset(shared), RF_OK);
    if (!sigsetjmp(landing, 1))
        *(volatile int *)16 = 1;
    CHECK(host_faults == 2);
}

static void after_fork(void) {
    rf_value a[] = { rf_value_i32(2), rf_value_i32(3) }, r = { RF_TYPE_I64, { 0 } };
    CHECK_STATUS(rf_domain_call(shared, "bump", NULL, 0, &r), RF_OK);
    int64_t before = r.as.i64;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        /* The child may make domains of its own, whatever became of the old ones. */
        rf_domain *d = make();
        r.type = RF_TYPE_I32;
        int bad = rf_domain_call(d, "add", a, 2, &r) != RF_OK || r.as.i32 != 5;
        bad |= HAS(FAULTS) && rf_domain_call(d, "trap", NULL, 0, NULL) != RF_FAULT_ILLEGAL;
        _exit(bad || failures);
    }
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_STATUS(rf_domain_call(shared, "bump", NULL, 0, &r), RF_OK);
    CHECK(r.as.i64 == before + 1);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: threads MODULE\n"), 2;
    struct sigaction action = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &action, NULL);
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_OK);
    shared = make();
    CHECK(run(8, many_calls) == 0);
    CHECK(!HAS(FAULTS) || run(8, own_error) == 0);
    for (int i = 0; i < 3 && HAS(INTERRUPT); i++) {
        pthread_t t;
        void *result;
        pthread_create(&t, NULL, spin, NULL);
        do {
            usleep(3000);
            rf_domain_interrupt(shared);
        } while (pthread_tryjoin_np(t, &result));
        CHECK(result == NULL);
        CHECK_STATUS(rf_domain_reset(shared), RF_OK);
    }
    pthread_t users[2];
    moving = make();
    for (int i = 0; i < 2; i++)
        pthread_create(&users[i], NULL, use_moving, NULL);
    for (int i = 0; i < 100; i++) {
        rf_domain *old = moving;
        moving = make();
        CHECK_STATUS(rf_domain_destroy(old), RF_OK);
    }
    stop = 1;
    for (int i = 0; i < 2; i++) {
        void *result;
        pthread_join(users[i], &result);
        CHECK(result == NULL);
    }
    CHECK_STATUS(rf_domain_destroy(moving), RF_OK);
    ask_about_what_moves();
    close_under_a_call();
    close_at_the_first_call();
    own_handlers();
    after_fork();
    CHECK_STATUS(rf_domain_destroy(shared), RF_OK);
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    return FINISH("threads");
}
