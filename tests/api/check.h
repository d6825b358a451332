/* The least that a test needs: CHECK prints what failed and where, and the program's exit status tells. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

/* The rows of docs/backends.md, in the order of rf_feature. */
static const char *const feature_names[] = {
    "faults as error values",
    "ends of calls from outside (interrupt, cancel)",
    "limits and sizes (DomainOptions)",
    "functions that are told of limits (on_limit)",
    "policies for system calls",
    "plain C functions as imports",
    "functions of other domains (export, slot, grant)",
    "regions and groups",
    "code that is added later (add_code)",
    "modules that are added later (add_module)",
    "checkpoints",
    "snapshots",
    "process of its own (confinement)",
    "callers of plain C functions (current_tag)",
    "jumps over calls (mark, unwind)",
    "fence (modules of ringfence cc)",
    "calls from signal handlers",
    "pauses of the time limit (wait, pause_time)",
    "shared maps of files (MAP_SHARED)",
    "processes that a program makes (fork)",
    "rights to single words (arenas)",
};

/* The back end that the tests run on (tests/api/on.c). */
static inline rf_backend test_backend(void) {
    const char *name = getenv("RINGFENCE_TEST_BACKEND");
    return !name || !strcmp(name, "window") ? RF_BACKEND_WINDOW : !strcmp(name, "process") ? RF_BACKEND_PROCESS : RF_BACKEND_NONE;
}

/* Whether that back end lacks something. What is left out for it is noted, and compared with tests/backends.txt. */
static inline int lacks(rf_feature feature, const char *file, const char *function) {
    static const char *const backends[] = { "window", "process", "none" };
    const char *left_out = getenv("RINGFENCE_TEST_LEFT_OUT"), *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    rf_backend backend = test_backend();
    if (rf_backend_offers(backend, feature))
        return 0;
    FILE *f = left_out ? fopen(left_out, "a") : NULL;
    if (f) {
        fprintf(f, "%s %s:%s: %s\n", backends[backend], name, function, feature_names[feature]);
        fclose(f);
    }
    return 1;
}

/* What a part of a test needs of the back end; false where it is left out. tests/api/backends.c shows that what a back end lacks is
 * RF_ERROR_UNSUPPORTED there. */
#define HAS(feature) (!lacks(RF_FEATURE_##feature, __FILE__, __func__))

#define CHECK(cond)                                                                      \
    do {                                                                                 \
        if (!(cond)) {                                                                   \
            const rf_error_info *e_ = rf_error();                                        \
            fprintf(stderr, "%s:%d: %s is false; rf_error: %s\n", __FILE__, __LINE__, #cond, \
                    e_ ? e_->message : "none");                                          \
            failures++;                                                                  \
        }                                                                                \
    } while (0)

/* A call that must give exactly this status, and say so in rf_error too. */
#define CHECK_STATUS(call, wanted)                                                       \
    do {                                                                                 \
        rf_status got_ = (call);                                                         \
        if (got_ != (wanted)) {                                                          \
            fprintf(stderr, "%s:%d: %s gives %s, not %s\n", __FILE__, __LINE__, #call,   \
                    rf_status_name(got_), rf_status_name(wanted));                       \
            failures++;                                                                  \
        }                                                                                \
    } while (0)

#define FINISH(name) (failures ? (fprintf(stderr, "%s: %d failed\n", name, failures), 1) : (printf("%s: ok\n", name), 0))

#endif
