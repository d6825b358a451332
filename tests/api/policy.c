/* Policies and programs: what is granted works, what is not is denied, and everything that can be wrong about asking. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <pthread.h>
#include <ringfence.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static rf_module *module;

static rf_policy *policy_for(const char *what) {
    rf_policy *p = NULL;
    const char *args[] = { "program", what };
    CHECK_STATUS(rf_policy_create(&p), RF_OK);
    CHECK_STATUS(rf_policy_args(p, args, 2), RF_OK);
    return p;
}

static rf_domain *domain_with(rf_policy *p, uint64_t time_limit) {
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    rf_domain *d = NULL;
    o.policy = p;
    o.time_limit = time_limit;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    return d;
}

/* Runs with the policy, which it closes; what was written to standard output comes to `out`. */
static int run(rf_policy *p, char *out, size_t capacity) {
    rf_domain *d = domain_with(p, 0);
    int status = -1;
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
    CHECK_STATUS(rf_domain_run_program(d, &status), RF_OK);
    if (out)
        out[rf_domain_take_captured(d, 1, out, capacity - 1)] = 0;
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    return status;
}

static void streams(void) {
    char out[4096];
    rf_policy *p = policy_for("echo");
    CHECK_STATUS(rf_policy_stdin_bytes(p, "some words", 10), RF_OK);
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    CHECK(run(p, out, sizeof out) == 10 && strcmp(out, "some words") == 0);

    p = policy_for("echo"); /* nothing granted: EBADF */
    CHECK(run(p, NULL, 0) == EBADF);

    p = policy_for("echo");
    CHECK_STATUS(rf_policy_stdin(p, RF_STREAM_NULL), RF_OK);
    CHECK(run(p, NULL, 0) == 0);

    /* Inherited: through pipes that take the place of the host's own. */
    int in[2], old = dup(0);
    CHECK(pipe(in) == 0 && write(in[1], "piped", 5) == 5 && close(in[1]) == 0 && dup2(in[0], 0) == 0);
    p = policy_for("echo");
    CHECK_STATUS(rf_policy_stdin(p, RF_STREAM_INHERIT), RF_OK);
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    CHECK(run(p, out, sizeof out) == 5 && strcmp(out, "piped") == 0);
    CHECK(dup2(old, 0) == 0 && close(old) == 0 && close(in[0]) == 0);

    /* Two streams apart, taken in pieces, and each domain of one policy with its own. */
    p = policy_for("out");
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    CHECK_STATUS(rf_policy_stderr(p, RF_STREAM_CAPTURE), RF_OK);
    rf_domain *d = domain_with(p, 0), *e = domain_with(p, 0);
    int status = 1;
    CHECK_STATUS(rf_domain_run_program(d, &status), RF_OK);
    CHECK(status == 0);
    CHECK(rf_domain_take_captured(d, 1, out, 2) == 2 && memcmp(out, "ou", 2) == 0);
    CHECK(rf_domain_take_captured(d, 1, out, 2) == 1 && out[0] == 't');
    CHECK(rf_domain_take_captured(d, 1, out, 2) == 0);
    CHECK(rf_domain_take_captured(d, 2, out, sizeof out) == 3 && memcmp(out, "err", 3) == 0);
    CHECK(rf_domain_take_captured(e, 1, out, sizeof out) == 0);
    rf_error_clear();
    CHECK(rf_domain_take_captured(e, 0, out, sizeof out) == 0 && rf_error() && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK(rf_domain_take_captured(e, 3, out, sizeof out) == 0 && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK(rf_domain_take_captured(e, 1, NULL, 3) == 0 && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_domain_run_program(e, NULL), RF_OK);
    CHECK_STATUS(rf_domain_reset(e), RF_OK);
    CHECK_STATUS(rf_domain_run_program(e, NULL), RF_OK);
    CHECK(rf_domain_take_captured(e, 1, out, sizeof out) == 6 && memcmp(out, "outout", 6) == 0);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_domain_destroy(e), RF_OK);
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);

    p = policy_for("limit");
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    CHECK_STATUS(rf_policy_capture_limit(p, 40), RF_OK);
    CHECK(run(p, out, sizeof out) == 3 && strcmp(out, "0123456789abcdef0123456789abcdef01234567") == 0);
}

static void rights(const char *directory) {
    char out[256], host[512], old[512];
    const char *args[] = { "program", "rights", "/d/file", "/d/new" };
    snprintf(old, sizeof old, "%s/file", directory);
    snprintf(host, sizeof host, "%s/new", directory);
    FILE *f = fopen(old, "w");
    CHECK(f && fclose(f) == 0);

    rf_policy *p = policy_for("rights");
    CHECK_STATUS(rf_policy_args(p, args, 4), RF_OK);
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    rf_policy *q = p;
    CHECK(run(q, out, sizeof out) == 0 && strcmp(out, "") == 0);

    p = policy_for("rights");
    CHECK_STATUS(rf_policy_args(p, args, 4), RF_OK);
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    CHECK_STATUS(rf_policy_dir(p, directory, "/d", RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_policy_connect(p, "127.0.0.1:2"), RF_OK);
    CHECK_STATUS(rf_policy_clocks(p, 1), RF_OK);
    CHECK_STATUS(rf_policy_clocks(p, 0), RF_OK);
    CHECK(run(p, out, sizeof out) == 0 && strcmp(out, "r") == 0);
    CHECK(access(host, F_OK) == -1);

    p = policy_for("rights");
    CHECK_STATUS(rf_policy_args(p, args, 4), RF_OK);
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    CHECK_STATUS(rf_policy_dir(p, directory, "/d", RF_RIGHTS_WRITE), RF_OK);
    CHECK_STATUS(rf_policy_clocks(p, 1), RF_OK);
    CHECK_STATUS(rf_policy_randomness(p, 1), RF_OK);
    CHECK_STATUS(rf_policy_connect(p, "127.0.0.1:1"), RF_OK);
    CHECK_STATUS(rf_policy_env(p, "A", "1"), RF_OK);
    CHECK_STATUS(rf_policy_env(p, "B", "2=2"), RF_OK);
    CHECK(run(p, out, sizeof out) == 0 && strcmp(out, "rwcxnA=1B=2=2") == 0);
    CHECK(access(host, F_OK) == 0 && unlink(host) == 0);

    p = policy_for("where");
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    CHECK_STATUS(rf_policy_dir(p, directory, "/d", RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_policy_dir(p, directory, "/e", RF_RIGHTS_READ), RF_OK);
    CHECK(run(p, out, sizeof out) == 0 && strcmp(out, "/d") == 0);
    p = policy_for("where");
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    CHECK_STATUS(rf_policy_dir(p, directory, "/d", RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_policy_dir(p, directory, "/e", RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_policy_cwd(p, "/e"), RF_OK);
    CHECK(run(p, out, sizeof out) == 0 && strcmp(out, "/e") == 0);

    p = policy_for("descriptors");
    args[1] = "descriptors";
    CHECK_STATUS(rf_policy_args(p, args, 3), RF_OK);
    CHECK_STATUS(rf_policy_dir(p, directory, "/d", RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_policy_descriptors(p, 9), RF_OK);
    CHECK(run(p, NULL, 0) == 9);
    CHECK(unlink(old) == 0);
}

struct seen {
    int calls;
    long pid;
    rf_domain *domain;
    char line[128];
};

static rf_decision decide(rf_syscall *call, void *context) {
    struct seen *seen = context;
    seen->calls++;
    seen->domain = call->domain;
    if (call->size < sizeof *call || !call->name)
        return RF_DECISION_POLICY;
    if (strcmp(call->name, "getpid") == 0) {
        call->result = seen->pid;
        return RF_DECISION_RETURN;
    }
    if (strcmp(call->name, "unlink") == 0) {
        char name[8];
        CHECK_STATUS(rf_memory_read_string(call->domain, (void *)(uintptr_t)call->args[0], name, sizeof name, NULL), RF_OK);
        CHECK(strcmp(name, "/x") == 0);
        call->result = EBUSY;
        return RF_DECISION_DENY;
    }
    return call->number == 0 ? (rf_decision)77 : RF_DECISION_POLICY;
}

static void print(const char *line, void *context) {
    struct seen *seen = context;
    snprintf(seen->line, sizeof seen->line, "%s", line);
}

static void callbacks(void) {
    struct seen seen = { 0, 42, NULL, "" };
    rf_policy *p = policy_for("pid");
    CHECK_STATUS(rf_policy_callback(p, decide, &seen), RF_OK);
    rf_domain *d = domain_with(p, 0);
    int status = -1;
    CHECK_STATUS(rf_domain_run_program(d, &status), RF_OK);
    CHECK(status == 42 && seen.calls == 1 && seen.domain == d);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_policy_callback(p, NULL, NULL), RF_OK);
    CHECK(run(p, NULL, 0) == 1 && seen.calls == 1);

    p = policy_for("unlink");
    CHECK_STATUS(rf_policy_callback(p, decide, &seen), RF_OK);
    CHECK_STATUS(rf_policy_trace(p, print, &seen), RF_OK);
    CHECK(run(p, NULL, 0) == EBUSY && seen.calls == 2);
    CHECK(strcmp(seen.line, "unlink(\"/x\") = -1 EBUSY (Device or resource busy)") == 0);

    p = policy_for("echo"); /* an answer that is none */
    CHECK_STATUS(rf_policy_callback(p, decide, &seen), RF_OK);
    CHECK(run(p, NULL, 0) == EPERM);
}

static void disk(const char *directory) {
    rf_usage u = RF_USAGE_INIT;
    const char *args[] = { "program", "rights", "/d/none", "/d/new" };
    rf_policy *p = policy_for("rights");
    CHECK_STATUS(rf_policy_args(p, args, 4), RF_OK);
    CHECK_STATUS(rf_policy_dir(p, directory, "/d", RF_RIGHTS_WRITE), RF_OK);
    CHECK_STATUS(rf_policy_disk_limit(p, 4095), RF_OK); /* a name takes 4096 */
    rf_domain *d = domain_with(p, 0);
    CHECK_STATUS(rf_domain_run_program(d, NULL), RF_OK);
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.disk == 0);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_policy_disk_limit(p, UINT64_MAX), RF_OK);
    d = domain_with(p, 0);
    CHECK_STATUS(rf_domain_run_program(d, NULL), RF_OK);
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.disk >= 4096);
    char made[512];
    snprintf(made, sizeof made, "%s/new", directory);
    CHECK(unlink(made) == 0);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
    CHECK_STATUS(rf_policy_disk_limit(NULL, 1), RF_ERROR_HANDLE);
}

static void threads(void) {
    rf_usage u = RF_USAGE_INIT;
    CHECK(run(policy_for("thread"), NULL, 0) == EAGAIN);
    rf_policy *p = policy_for("thread");
    CHECK_STATUS(rf_policy_threads(p, 1), RF_OK);
    rf_domain *d = domain_with(p, 0);
    int status = -1;
    CHECK_STATUS(rf_domain_run_program(d, &status), RF_OK); /* and the thread, which would not end, has ended */
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(status == 0 && u.active == 0);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
}

static void *interrupt(void *domain) {
    struct timespec t = { 0, 30000000 };
    nanosleep(&t, NULL);
    CHECK_STATUS(rf_domain_interrupt(domain), RF_OK);
    return NULL;
}

static void ends(void) {
    int status = -1;
    CHECK(run(policy_for("x"), NULL, 0) == 300); /* what _exit was given; the shell's eight bits are the host's business */
    rf_domain *d = domain_with(policy_for("fault"), 0);
    CHECK_STATUS(rf_domain_run_program(d, &status), RF_FAULT_ACCESS);
    CHECK(status == -1 && rf_error()->address && rf_error()->function && strcmp(rf_error()->function, "__rf_main") == 0);
    CHECK_STATUS(rf_domain_run_program(d, &status), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);

    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    rf_policy *p = policy_for("sleep");
    CHECK_STATUS(rf_policy_clocks(p, 1), RF_OK);
    d = domain_with(p, 30000000);
    CHECK_STATUS(rf_domain_run_program(d, NULL), RF_FAULT_TIME);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    d = domain_with(p, 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, interrupt, d) == 0);
    CHECK_STATUS(rf_domain_run_program(d, NULL), RF_FAULT_INTERRUPT);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(end.tv_sec - begin.tv_sec < 30); /* of two sleeps of a minute */
}

static void mistakes(const char *library) {
    rf_policy *p = policy_for("x"), *bad = (rf_policy *)(uintptr_t)0xdeadbeef;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    rf_domain *d;
    int status;
    CHECK_STATUS(rf_policy_create(NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_dir(p, NULL, "/x", RF_RIGHTS_READ), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_dir(p, "/tmp", NULL, RF_RIGHTS_READ), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_dir(p, "/tmp", "x", RF_RIGHTS_READ), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_dir(p, "/tmp", "/x", RF_RIGHTS_NONE), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_dir(bad, "/tmp", "/x", RF_RIGHTS_READ), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_policy_cwd(p, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_cwd(p, "d"), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_cwd(bad, "/d"), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_policy_stdin(p, RF_STREAM_CAPTURE), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_stdout(p, (rf_stream)9), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_stdin_bytes(p, NULL, 3), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_args(p, NULL, 3), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_env(p, "A=", "b"), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_env(p, "", "b"), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_env(p, "A", NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_env(p, "A", "\xff"), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_descriptors(p, 2), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_connect(p, "localhost:80"), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_trace(p, NULL, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_policy_threads(NULL, 1), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_policy_clocks(NULL, 1), RF_ERROR_HANDLE);

    o.policy = bad;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_ERROR_HANDLE);
    o.policy = p;
    CHECK_STATUS(rf_policy_dir(p, "/nonexistent", "/x", RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_ERROR_FILE);
    CHECK(d == NULL && strstr(rf_error()->message, "/nonexistent"));
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
    CHECK_STATUS(rf_policy_destroy(p), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_policy_destroy(NULL), RF_OK);
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_ERROR_HANDLE);
    p = policy_for("x");
    o.policy = p;
    CHECK_STATUS(rf_policy_dir(p, "/proc", "/x", RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);

    /* A domain without a policy, and a module without a main. */
    CHECK_STATUS(rf_domain_create(module, NULL, &d), RF_OK);
    CHECK_STATUS(rf_domain_run_program(d, &status), RF_ERROR_ARGUMENT);
    CHECK(rf_domain_take_captured(d, 1, &status, 4) == 0 && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    rf_module *plain;
    p = policy_for("x");
    o.policy = p;
    CHECK_STATUS(rf_module_create(library, 0, &plain), RF_OK);
    CHECK_STATUS(rf_domain_create(plain, &o, &d), RF_OK);
    CHECK_STATUS(rf_domain_run_program(d, &status), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_module_destroy(plain), RF_OK);
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
    CHECK_STATUS(rf_domain_run_program(NULL, &status), RF_ERROR_HANDLE);
}

/* policy PROGRAM.rf PLAIN.rf */
int main(int argc, char **argv) {
    char directory[] = "/tmp/rf-policy-XXXXXX";
    if (!HAS(POLICY))
        return FINISH("policy");
    CHECK(argc == 3 && mkdtemp(directory));
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_OK);
    streams();
    rights(directory);
    disk(directory);
    callbacks();
    threads();
    ends();
    mistakes(argv[2]);
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    CHECK(rmdir(directory) == 0);
    return FINISH("policy");
}
