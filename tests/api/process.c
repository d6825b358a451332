/* What may happen to a domain in a process of its own, and to its host: an error that says so, and no process that stays behind. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <ringfence.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static int host_add(int a, int b) { return a + b; }
static void note(rf_caller *c, void *context) {
    (void)context;
    rf_caller_return_int(c, 0);
}
static const rf_import imports[] = { RF_IMPORT_INIT(int, host_add, (int, int), host_add), RF_IMPORT_INIT_CALLBACK("host_mix", note, NULL),
                                     RF_IMPORT_INIT_CALLBACK("host_eight", note, NULL), RF_IMPORT_INIT_CALLBACK("host_note", note, NULL) };
static rf_module *module;

static rf_status create(rf_domain **d) {
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4, o.backend = RF_BACKEND_PROCESS;
    return rf_domain_create(module, &o, d);
}
static rf_domain *make(void) {
    rf_domain *d = NULL;
    CHECK_STATUS(create(&d), RF_OK);
    return d;
}
static rf_status add(rf_domain *d) {
    rf_value a[] = { rf_value_i32(2), rf_value_i32(3) }, r = { RF_TYPE_I32, { 0 } };
    rf_status s = rf_domain_call(d, "add", a, 2, &r);
    return s == RF_OK && r.as.i32 != 5 ? RF_ERROR_INTERNAL : s;
}

static void nap(void) { nanosleep(&(struct timespec){ 0, 5000000 }, NULL); }

/* The state of a process, '-' if there is none; its parent. */
static char state_of(int pid, int *parent) {
    char name[64], state = '-';
    snprintf(name, sizeof name, "/proc/%d/stat", pid);
    FILE *f = fopen(name, "r");
    if (f && fscanf(f, "%*d (%*[^)]) %c %d", &state, parent) != 2)
        state = '-';
    if (f)
        fclose(f);
    return state;
}

/* The one worker that a process has; 0 if there is none. */
static int worker_of(int host) {
    DIR *d = opendir("/proc");
    struct dirent *e;
    int found = 0;
    while (d && (e = readdir(d))) {
        int pid = atoi(e->d_name), parent = 0;
        if (pid <= 0 || state_of(pid, &parent) == '-' || parent != host)
            continue;
        char name[64], line[256] = "";
        snprintf(name, sizeof name, "/proc/%d/cmdline", pid);
        FILE *f = fopen(name, "r");
        if (f && fread(line, 1, sizeof line - 1, f) && strstr(line, "ringfence-worker"))
            found = pid;
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return found;
}

/* That a process ends, or has ended and waits for its parent to ask. */
static int ends(int pid) {
    int parent;
    for (int i = 0; i < 6000; i++) {
        char state = state_of(pid, &parent);
        if (state == '-' || state == 'Z' || state == 'X')
            return 1;
        nap();
    }
    return 0;
}

static void no_worker(void) {
    rf_domain *d = (rf_domain *)&module;
    char *before = getenv("RINGFENCE_WORKER");
    before = before ? strdup(before) : NULL;
    setenv("RINGFENCE_WORKER", "/nonexistent/worker", 1);
    CHECK_STATUS(create(&d), RF_ERROR_UNSUPPORTED);
    CHECK(d == NULL && strstr(rf_error()->message, "RINGFENCE_WORKER") && strstr(rf_error()->message, "/nonexistent/worker"));
    setenv("RINGFENCE_WORKER", "/bin/false", 1);
    CHECK_STATUS(create(&d), RF_ERROR_UNSUPPORTED);
    CHECK(d == NULL && strstr(rf_error()->message, "process"));
    if (before)
        setenv("RINGFENCE_WORKER", before, 1);
    else
        unsetenv("RINGFENCE_WORKER");
    free(before);
    CHECK(worker_of(getpid()) == 0);
}

static void *spins(void *d) { return (void *)(intptr_t)rf_domain_call(d, "spin", NULL, 0, NULL); }

/* Killed in the middle of a call, and between calls. */
static void killed(void) {
    rf_domain *d = make();
    pthread_t t;
    void *status = NULL;
    CHECK_STATUS(add(d), RF_OK);
    for (int i = 0; i < 3; i++) {
        int worker = worker_of(getpid());
        CHECK(worker > 0);
        rf_usage u = RF_USAGE_INIT;
        CHECK(pthread_create(&t, NULL, spins, d) == 0);
        do {
            nap();
            CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
        } while (u.active == 0);
        kill(worker, SIGKILL);
        pthread_join(t, &status);
        CHECK((intptr_t)status == RF_ERROR_FAULTED);
        CHECK_STATUS(add(d), RF_ERROR_FAULTED);
        CHECK(strstr(rf_error()->message, "signal 9"));
        CHECK_STATUS(rf_domain_state(d), RF_ERROR_FAULTED);
        CHECK_STATUS(rf_domain_reset(d), RF_OK);
        CHECK(ends(worker) && worker_of(getpid()) != worker);
        CHECK_STATUS(add(d), RF_OK);
    }
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK(worker_of(getpid()) == 0);
}

/* One place for each thread, and so many. */
static pthread_barrier_t all;
static void *adds(void *d) {
    rf_status s = add(d);
    pthread_barrier_wait(&all);
    return (void *)(intptr_t)s;
}
static void full(void) {
    enum { THREADS = 70 };
    rf_domain *d = make();
    pthread_t t[THREADS];
    int refused = 0;
    pthread_barrier_init(&all, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&t[i], NULL, adds, d) == 0);
    for (int i = 0; i < THREADS; i++) {
        void *status = NULL;
        pthread_join(t[i], &status);
        CHECK((intptr_t)status == RF_OK || (intptr_t)status == RF_ERROR_LIMIT);
        refused += (intptr_t)status == RF_ERROR_LIMIT;
    }
    CHECK(refused >= THREADS - 63);
    CHECK_STATUS(add(d), RF_OK);
    rf_value many[400];
    for (int i = 0; i < 400; i++)
        many[i] = rf_value_i32(i);
    CHECK_STATUS(rf_domain_call(d, "nothing", many, 400, NULL), RF_ERROR_TOO_LONG);
    CHECK_STATUS(add(d), RF_OK);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

/* The worker stays the parent's; the child makes its own. */
static void forks(void) {
    rf_domain *d = make();
    CHECK_STATUS(add(d), RF_OK);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        rf_domain *own = NULL;
        CHECK_STATUS(add(d), RF_ERROR_FAULTED);
        CHECK(strstr(rf_error()->message, "forked"));
        CHECK(rf_domain_reset(d) != RF_OK);
        CHECK_STATUS(create(&own), RF_OK);
        CHECK_STATUS(add(own), RF_OK);
        CHECK_STATUS(rf_domain_destroy(own), RF_OK);
        CHECK_STATUS(rf_domain_destroy(d), RF_OK);
        _exit(failures != 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK_STATUS(add(d), RF_OK);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

/* A host that ends in some way, with a call in progress, or closes all that it has open. Its worker ends too. */
enum way { KILLED, EXECS, EXITS, CLOSES };
static void host_ends(enum way way) {
    int told[2], parent;
    CHECK(pipe(told) == 0);
    fflush(NULL);
    pid_t host = fork();
    if (host == 0) {
        rf_domain *d = make();
        pthread_t t;
        int worker = worker_of(getpid());
        rf_usage u = RF_USAGE_INIT;
        if (way != CLOSES)
            pthread_create(&t, NULL, spins, d);
        while (way != CLOSES && rf_domain_usage(d, &u) == RF_OK && u.active == 0)
            nap();
        if (way == CLOSES) {
            /* All but what it tells by. Calls go on without descriptors. */
            int to = dup2(told[1], 3);
            syscall(SYS_close_range, 4, ~0u, 0);
            told[1] = to;
            if (add(d) != RF_OK)
                worker = -1;
        }
        if (write(told[1], &worker, sizeof worker) != sizeof worker)
            _exit(1);
        if (way == EXECS)
            execl("/bin/sleep", "sleep", "600", (char *)NULL);
        if (way == EXITS)
            _exit(0);
        for (;;)
            pause();
    }
    int worker = 0;
    close(told[1]);
    CHECK(read(told[0], &worker, sizeof worker) == sizeof worker && worker > 0);
    close(told[0]);
    if (way == KILLED || way == CLOSES)
        kill(host, SIGKILL);
    if (!ends(worker)) {
        fprintf(stderr, "way %d: the worker goes on\n", way);
        failures++;
    }
    if (way == EXECS)
        CHECK(state_of(host, &parent) != '-');
    kill(host, SIGKILL);
    CHECK(waitpid(host, NULL, 0) == host);
    CHECK(ends(worker));
}

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: process MODULE\n"), 2;
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_OK);
    no_worker();
    killed();
    full();
    forks();
    for (int way = KILLED; way <= CLOSES; way++)
        host_ends((enum way)way);
    CHECK(worker_of(getpid()) == 0);
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    return FINISH("process");
}
