/* ringfence/host/error.h - the calling thread's pending error. */
#ifndef RINGFENCE_HOST_ERROR_H
#define RINGFENCE_HOST_ERROR_H

#include <ringfence/host/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One function of a backtrace. Strings are NULL when unknown. */
typedef struct rf_frame {
    uint64_t address;     /* of the instruction */
    const char *function; /* name in the module */
    const char *file;     /* source file, if the module has debug information */
    uint32_t line;        /* 0 when unknown */
    uint32_t reserved;
} rf_frame;

/* What went wrong, in detail. Owned by the library; valid until the same thread's next rf_ function or
 * call into a domain. */
typedef struct rf_error_info {
    size_t size;            /* of this struct, as the library knows it */
    rf_status status;
    int32_t code;           /* exit status, or reason of an abort; otherwise 0 */
    const char *message;    /* one line for a person; never NULL */
    uint64_t address;       /* faults: the address that was accessed, 0 if none applies */
    uint64_t instruction;   /* faults: address of the instruction, 0 if unknown */
    const char *function;   /* faults: function of the module, or NULL */
    const char *file;       /* faults: source file, or NULL */
    uint32_t line;          /* faults: source line, or 0 */
    uint32_t frame_count;
    const rf_frame *frames; /* faults: backtrace of the module's frames, innermost first */
    const char *public_message; /* one line that a server may show to its users: no addresses, no paths, nothing
                               that host functions said; never NULL */
} rf_error_info;

/* The calling thread's pending error, or NULL if there is none. An error is pending until
 * rf_error_clear, a successful rf_domain_reset or the next failure on this thread. Costs a few
 * nanoseconds when there is none. */
const rf_error_info *rf_error(void);

/* Forgets the calling thread's pending error. */
void rf_error_clear(void);

#ifdef __cplusplus
}
#endif
#endif
