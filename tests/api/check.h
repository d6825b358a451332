/* The least that a test needs: CHECK prints what failed and where, and the program's exit status tells. */
#ifndef CHECK_H
#define CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

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
