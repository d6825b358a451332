/* Modules of rf_dlopen that make system calls: under a policy for all of them, under one of their own, and under none. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <ringfence.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static int one(void) { return 1; }
static int two(void) { return 2; }

#define SYM(result, name, parameters) result (*name) parameters = RF_DLSYM(m, result, name, parameters)

static char in[64], out[64], directory[] = "/tmp/rf-dlpolicy-XXXXXX";

static rf_policy *policy_of(rf_rights rights) {
    rf_policy *p = NULL;
    CHECK_STATUS(rf_policy_create(&p), RF_OK);
    CHECK_STATUS(rf_policy_dir(p, directory, "/data", rights), RF_OK);
    CHECK_STATUS(rf_policy_stdout(p, RF_STREAM_CAPTURE), RF_OK);
    CHECK_STATUS(rf_policy_clocks(p, 1), RF_OK);
    return p;
}

static void granted(void *m, int number) {
    char text[64] = "";
    SYM(int, reverse, (void));
    SYM(int, confined, (void));
    SYM(int, say, (int));
    SYM(long, now, (void));
    SYM(int, number_of_host, (void));
    CHECK(reverse() == 5);
    FILE *f = fopen(out, "r");
    CHECK(f && fread(text, 1, sizeof text, f) == 5 && strcmp(text, "olleh") == 0);
    if (f)
        fclose(f);
    CHECK(unlink(out) == 0);
    CHECK(confined() == 1);
    CHECK(say(12) == 10);
    memset(text, 0, sizeof text);
    CHECK(rf_domain_take_captured(rf_dldomain(m), 1, text, sizeof text - 1) == 10 && strcmp(text, "number 12\n") == 0);
    long t = now();
    CHECK(t >= (long)time(NULL) - 2 && t <= (long)time(NULL) + 2);
    CHECK(number_of_host() == number);
}

static void denied(void *m) {
    SYM(int, reverse, (void));
    SYM(int, say, (int));
    SYM(long, now, (void));
    CHECK(reverse() < 0 && say(1) < 0 && now() < 0 && rf_error() == NULL); /* errors of the module, not of the call */
    rf_domain_take_captured(rf_dldomain(m), 1, out, 0);
    CHECK(rf_error() && rf_error()->status == RF_ERROR_ARGUMENT);
    rf_error_clear();
}

/* Closing runs what the module has for its end, and writes its streams out; a fault there is an error of rf_dlclose. */
static void ending(const char *path) {
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    rf_policy *p = policy_of(RF_RIGHTS_WRITE);
    o.policy = p;
    for (int fault = 0; fault < 2; fault++) {
        char text[64] = "";
        void *m = rf_dlopen_with(path, 0, &o);
        CHECK(m != NULL);
        int (*log_to)(int) = RF_DLSYM(m, int, log_to, (int));
        CHECK(log_to(fault) == 0);
        rf_error_clear();
        CHECK(rf_dlclose(m) == -fault);
        CHECK(fault == (rf_error() && rf_error()->status == RF_ERROR_CONSTRUCTOR && strstr(rf_error()->message, "destructor") &&
                        strcmp(rf_error()->function, "at_end") == 0));
        CHECK(rf_dlclose(m) == -1 && rf_error()->status == RF_ERROR_HANDLE);
        FILE *f = fopen(out, "r");
        size_t length = f ? fread(text, 1, sizeof text, f) : 99;
        CHECK(length == (fault ? 0 : 15) && strcmp(text, fault ? "" : "begin\nend of 1\n") == 0);
        if (f)
            fclose(f);
    }
    /* A domain that is destroyed ends as a killed process does. */
    void *m = rf_dlopen_with(path, 0, &o);
    int (*log_to)(int) = RF_DLSYM(m, int, log_to, (int));
    CHECK(m && log_to(0) == 0);
    CHECK_STATUS(rf_domain_destroy(rf_dldomain(m)), RF_OK);
    FILE *f = fopen(out, "r");
    CHECK(f && fgetc(f) == EOF);
    if (f)
        fclose(f);
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
    CHECK(unlink(out) == 0);
}

/* dlpolicy FILES.rf */
int main(int argc, char **argv) {
    if (!HAS(POLICY))
        return FINISH("dlpolicy");
    CHECK(argc == 2 && mkdtemp(directory));
    snprintf(in, sizeof in, "%s/in.txt", directory);
    snprintf(out, sizeof out, "%s/out.txt", directory);
    FILE *f = fopen(in, "w");
    CHECK(f && fputs("hello", f) >= 0 && fclose(f) == 0);
    CHECK(RF_DLPROVIDE(int, own_number, (void), one) == RF_OK);
    rf_error_clear();

    /* No policy: the module loads, and its calls fail. */
    void *m = rf_dlopen(argv[1], 0);
    CHECK(m != NULL);
    denied(m);

    /* One for all; what comes later, to the policy or in its place, does not concern domains that are there. */
    rf_policy *p = policy_of(RF_RIGHTS_WRITE);
    CHECK_STATUS(rf_dlprovide_policy(p), RF_OK);
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
    void *all = rf_dlopen(argv[1], 0), *again = rf_dlopen_with(argv[1], 0, NULL);
    CHECK(all && again);
    granted(all, 1);
    granted(again, 1);

    /* One's own goes before it, and so do imports; what is not named is there still. */
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    p = policy_of(RF_RIGHTS_READ);
    o.policy = p;
    void *reader = rf_dlopen_with(argv[1], 0, &o);
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
    CHECK(reader != NULL);
    int (*reverse)(void) = RF_DLSYM(reader, int, reverse, (void));
    CHECK(reverse() == -EROFS);
    const rf_import own = RF_IMPORT_INIT(int, own_number, (void), two);
    o = (rf_domain_options)RF_DOMAIN_OPTIONS_INIT;
    o.imports = &own;
    o.import_count = 1;
    void *with = rf_dlopen_with(argv[1], 0, &o);
    CHECK(with != NULL);
    granted(with, 2);

    /* Taken back. */
    CHECK_STATUS(rf_dlprovide_policy(NULL), RF_OK);
    void *last = rf_dlopen(argv[1], 0);
    CHECK(last != NULL);
    denied(last);
    granted(all, 1);
    CHECK(rf_dlclose(m) == 0 && rf_dlclose(all) == 0 && rf_dlclose(again) == 0 && rf_dlclose(reader) == 0);
    CHECK(rf_dlclose(with) == 0 && rf_dlclose(last) == 0);

    ending(argv[1]);

    /* Mistakes. */
    CHECK_STATUS(rf_dlprovide_policy(p), RF_ERROR_HANDLE);
    CHECK(rf_dlopen_with(NULL, 0, NULL) == NULL && rf_error()->status == RF_ERROR_ARGUMENT);
    o = (rf_domain_options)RF_DOMAIN_OPTIONS_INIT;
    o.policy = p;
    CHECK(rf_dlopen_with(argv[1], 0, &o) == NULL && rf_error()->status == RF_ERROR_HANDLE);
    o.size = 3;
    CHECK(rf_dlopen_with(argv[1], 0, &o) == NULL && rf_error()->status == RF_ERROR_ARGUMENT);
    o = (rf_domain_options)RF_DOMAIN_OPTIONS_INIT;
    p = policy_of(RF_RIGHTS_READ);
    CHECK_STATUS(rf_policy_dir(p, "/nonexistent", "/x", RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_dlprovide_policy(p), RF_OK);
    CHECK(rf_dlopen(argv[1], 0) == NULL && rf_error()->status == RF_ERROR_FILE && strstr(rf_error()->message, "/nonexistent"));
    CHECK_STATUS(rf_policy_destroy(p), RF_OK);
    CHECK(unlink(in) == 0 && rmdir(directory) == 0);
    return FINISH("dlpolicy");
}
