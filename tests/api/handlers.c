/* Calls from signal handlers that have interrupted the heap: every kind of fault, and what the interrupted code still wanted to
 * know. The heap and pthread's locks are this program's own here, and end it when they are used in a handler; another thread
 * holds the library's locks while it waits for the heap, so that a handler that waited for one of them would wait for ever. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <ringfence.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

#define HEAP_ROUNDS 2000
#define TIMER_ROUNDS 10000

/* The heap, with a lock that a handler can find taken by its own thread. */
void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t m);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t a, size_t n);
void __libc_free(void *p);

static atomic_int heap, waiting;
static _Thread_local volatile sig_atomic_t in_handler, armed;
static int (*true_lock)(pthread_mutex_t *);

static void forbid(const char *what, size_t length) {
    if (in_handler) {
        ssize_t written = write(2, what, length);
        (void)written;
        abort();
    }
}
#define FORBID(what) forbid(what " in a signal handler\n", sizeof what " in a signal handler\n" - 1)

static void heap_enter(void) {
    FORBID("the heap is used");
    if (atomic_exchange(&heap, 1)) {
        atomic_fetch_add(&waiting, 1);
        while (atomic_exchange(&heap, 1))
            sched_yield();
        atomic_fetch_sub(&waiting, 1);
    }
    if (armed) {
        armed = 0;
        raise(SIGUSR1);
    }
}
static void heap_leave(void) { atomic_store(&heap, 0); }

#define HEAP(call)         \
    void *p_;              \
    heap_enter();          \
    p_ = (call);           \
    heap_leave();          \
    return p_

void *malloc(size_t n) { HEAP(__libc_malloc(n)); }
void *calloc(size_t n, size_t m) { HEAP(__libc_calloc(n, m)); }
void *realloc(void *p, size_t n) { HEAP(__libc_realloc(p, n)); }
void *memalign(size_t a, size_t n) { HEAP(__libc_memalign(a, n)); }
void *aligned_alloc(size_t a, size_t n) { HEAP(__libc_memalign(a, n)); }
int posix_memalign(void **p, size_t a, size_t n) {
    heap_enter();
    *p = __libc_memalign(a, n);
    heap_leave();
    return *p ? 0 : ENOMEM;
}
void free(void *p) {
    heap_enter();
    __libc_free(p);
    heap_leave();
}
int pthread_mutex_lock(pthread_mutex_t *m) {
    FORBID("a lock is taken");
    return true_lock ? true_lock(m) : 0;
}

/* What is called in the handler. */
enum kind { READ, DIVIDE, TRAP, JUMP, DATA, CONTROL, KINDS };
static const rf_status expected[KINDS] = {RF_FAULT_ACCESS, RF_FAULT_DIVIDE, RF_FAULT_ILLEGAL,
                                          RF_FAULT_TARGET, RF_FAULT_STACK,  RF_FAULT_STACK};
static int (*wild_read)(int *), (*divide)(int, int), (*recurse_data)(void), (*recurse_control)(int),
    (*jump_to)(uint64_t), (*add)(int, int), (*other_add)(int, int), (*other_divide)(int, int),
    (*limited_spin)(unsigned long);
static void (*trap)(void), (*spin_and_tell)(int *);
static volatile sig_atomic_t kind, ready, limited, patient;
static volatile int told, told_before;

/* Stacks that are full take a while to clean. */
static int kind_of(int round) { return round % 100 < 98 ? round % DATA : DATA + round % 2; }

static rf_status call(int what) {
    switch (what) {
    case READ: wild_read((int *)(uintptr_t)0x1234); break;
    case DIVIDE: divide(1, 0); break;
    case TRAP: trap(); break;
    case DATA: recurse_data(); break;
    case CONTROL: recurse_control(0); break;
    default: jump_to(0x123456); break;
    }
    return rf_call_status();
}

static void handler(int signal) {
    (void)signal;
    in_handler = 1;
    int e = errno;
    uint64_t saved = rf_call_save();
    told_before = add(2, 3) == 5 ? (int)rf_call_status() : -1;
    /* Now and then until the other thread waits for the heap, with whatever it has. */
    for (int i = 0; patient && i < 200 && !atomic_load(&waiting); i++)
        sched_yield();
    if (limited) {
        limited_spin(~0ul);
        told = (int)rf_call_status();
    } else {
        told = (int)call(kind);
    }
    rf_call_restore(saved);
    errno = e;
    in_handler = 0;
}

/* By a timer, wherever it comes. */
static volatile sig_atomic_t rounds, refused, wrong;
static void on_timer(int signal) {
    (void)signal;
    in_handler = 1;
    uint64_t saved = rf_call_save();
    if (ready) {
        rf_status s = call(kind);
        if (s == RF_ERROR_NESTING) {
            refused++;
        } else {
            wrong += s != expected[kind];
            ready = 0;
            rounds++;
        }
    }
    rf_call_restore(saved);
    in_handler = 0;
}

/* Another thread, which holds the library's locks most of the time. */
static const char *path;
static atomic_int stop;
static void *churn(void *unused) {
    (void)unused;
    /* The timer's signals are for the other thread, which has lanes. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    while (!stop) {
        rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
        void *m = rf_dlopen_with(path, 0, &o);
        CHECK(m);
        int (*f)(int, int) = RF_DLSYM(m, int, add, (int, int));
        CHECK(f(1, 2) == 3);
        rf_domain_reset(rf_dldomain(m));
        rf_dlclose(m);
    }
    return NULL;
}

/* One that makes a lane and gives it back, and little else. */
static void *trim(void *unused) {
    (void)unused;
    void *m = rf_dlopen(path, 0);
    CHECK(m);
    int (*f)(int, int) = RF_DLSYM(m, int, add, (int, int));
    while (!stop && !failures) {
        CHECK(f(1, 2) == 3);
        CHECK_STATUS(rf_domain_trim(rf_dldomain(m), NULL), RF_OK);
    }
    rf_dlclose(m);
    return NULL;
}

static void *spinner(void *spins) {
    spin_and_tell(spins);
    CHECK_STATUS(rf_call_status(), RF_FAULT_ELSEWHERE);
    return NULL;
}

static int host_add(int a, int b) { return a + b; }
static double host_mix(int a, double x, long b, float y) { return a + x + (double)b + (double)y; }
static long host_eight(long a, long b, long c, long d, long e, long f) { return a + b + c + d + e + f; }
static void host_note(const char *text, size_t n) { (void)text, (void)n; }

static void arm(void) {
    void *volatile p;
    armed = 1;
    p = malloc(32);
    free(p);
}

int main(int argc, char **argv) {
    (void)argc;
    true_lock = (int (*)(pthread_mutex_t *))(uintptr_t)dlsym(RTLD_NEXT, "pthread_mutex_lock");
    path = argv[1];
    if (!HAS(HANDLERS) || !HAS(FAULTS))
        return FINISH("handlers");
    CHECK_STATUS(RF_DLPROVIDE(int, host_add, (int, int), host_add), RF_OK);
    CHECK_STATUS(RF_DLPROVIDE(double, host_mix, (int, double, long, float), host_mix), RF_OK);
    CHECK_STATUS(RF_DLPROVIDE(long, host_eight, (long, long, long, long, long, long), host_eight), RF_OK);
    CHECK_STATUS(RF_DLPROVIDE(void, host_note, (const char *, size_t), host_note), RF_OK);
    void *m = rf_dlopen(path, 0), *other = rf_dlopen(path, 0);
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.time_limit = 5000000;
    void *slow = rf_dlopen_with(path, 0, &o);
    CHECK(m && other && slow);
    if (failures)
        return FINISH("handlers");
    wild_read = RF_DLSYM(m, int, wild_read, (int *));
    divide = RF_DLSYM(m, int, divide, (int, int));
    trap = RF_DLSYM(m, void, trap, (void));
    recurse_data = RF_DLSYM(m, int, recurse_data, (void));
    recurse_control = RF_DLSYM(m, int, recurse_control, (int));
    jump_to = RF_DLSYM(m, int, jump_to, (uint64_t));
    add = RF_DLSYM(m, int, add, (int, int));
    spin_and_tell = RF_DLSYM(m, void, spin_and_tell, (int *));
    other_add = RF_DLSYM(other, int, add, (int, int));
    other_divide = RF_DLSYM(other, int, divide, (int, int));
    limited_spin = RF_DLSYM(slow, int, spin_for, (unsigned long));
    CHECK(add(1, 1) == 2 && other_add(1, 1) == 2 && limited_spin(1) == 1);

    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_handler = on_timer;
    sigaction(SIGALRM, &action, NULL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, churn, NULL) == 0);

    /* In the heap, every kind in turn. */
    for (int i = 0; i < HEAP_ROUNDS && !failures; i++) {
        kind = kind_of(i);
        int asks = i % 97 == 0;
        patient = i % 64 == 0;
        if (asks)
            other_divide(1, 0);
        arm();
        CHECK(told_before == RF_OK && told == (int)expected[kind]);
        /* What the interrupted code wanted to know is still there. */
        CHECK_STATUS(rf_call_status(), asks ? RF_FAULT_DIVIDE : RF_OK);
        if (asks) {
            const rf_error_info *e = rf_error();
            CHECK(e && e->status == RF_FAULT_DIVIDE && e->function && !strcmp(e->function, "divide"));
            CHECK_STATUS(rf_domain_reset(rf_dldomain(other)), RF_OK);
            CHECK(add(1, 2) == 0 && rf_call_status() == RF_ERROR_FAULTED);
            e = rf_error();
            CHECK(e && e->status == RF_ERROR_FAULTED && strstr(e->message, "the first failure: "));
            CHECK(e && e->frame_count > 0);
            rf_error_clear();
        }
        CHECK_STATUS(rf_domain_reset(rf_dldomain(m)), RF_OK);
    }

    stop = 1;
    pthread_join(thread, NULL);

    /* A limit of time ends calls although the other thread, which waits for the heap, has the lock of all lanes. */
    stop = 0;
    CHECK(pthread_create(&thread, NULL, trim, NULL) == 0);
    patient = limited = 1;
    for (int i = 0; i < 60 && !failures; i++) {
        arm();
        CHECK(told == RF_FAULT_TIME);
        CHECK_STATUS(rf_domain_reset(rf_dldomain(slow)), RF_OK);
    }
    patient = limited = 0;
    stop = 1;
    pthread_join(thread, NULL);

    /* A limit of time, and a call of another thread that has to end. */
    for (int i = 0; i < 10 && !failures; i++) {
        limited = 1;
        arm();
        limited = 0;
        CHECK(told == RF_FAULT_TIME);
        CHECK_STATUS(rf_domain_reset(rf_dldomain(slow)), RF_OK);
        pthread_t inside;
        /* Until its call runs: one that begins after the fault is refused. */
        int spinning = 0, *spins = rf_memory_alloc(rf_dldomain(m), sizeof *spins);
        CHECK(pthread_create(&inside, NULL, spinner, spins) == 0);
        while (!spinning && !failures)
            CHECK_STATUS(rf_memory_read(rf_dldomain(m), spins, &spinning, sizeof spinning), RF_OK);
        kind = DIVIDE;
        arm();
        CHECK(told == RF_FAULT_DIVIDE);
        pthread_join(inside, NULL);
        CHECK_STATUS(rf_domain_reset(rf_dldomain(m)), RF_OK);
    }

    /* By a timer: in the C library's own heap, in the library, and in another domain, where calls are refused. */
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    struct itimerspec often = {{0, 50000}, {0, 50000}};
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0 && timer_settime(timer, 0, &often, NULL) == 0);
    unsigned sum = 0;
    while (rounds < TIMER_ROUNDS && !failures) {
        kind = kind_of(rounds);
        ready = 1;
        while (ready) {
            void *volatile p = __libc_malloc(100);
            __libc_free(p);
            sum += (unsigned)other_add(3, 4);
            CHECK(sum % 7 == 0 && rf_call_status() == RF_OK);
            sum = 0;
        }
        CHECK_STATUS(rf_domain_reset(rf_dldomain(m)), RF_OK);
    }
    timer_delete(timer);
    CHECK(wrong == 0);
    CHECK(add(20, 22) == 42);
    printf("refused inside a domain: %d times\n", (int)refused);
    return FINISH("handlers");
}
