/* ringfence/host/process.h - what is decided for the whole process. */
#ifndef RINGFENCE_HOST_PROCESS_H
#define RINGFENCE_HOST_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include <ringfence/host/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is decided for the whole process. Start from RF_PROCESS_OPTIONS_INIT; 0 means the default. */
typedef struct rf_process_options {
    size_t size;         /* sizeof(rf_process_options) */
    int32_t tick_signal; /* the signal that makes a thread leave a domain whose call has to end; real-time
                            signals too. One that the program uses for nothing else, and does not block
                            while it is in domains. 0: SIGURG, or what was chosen before */
    int32_t reserved;
} rf_process_options;

#define RF_PROCESS_OPTIONS_INIT { sizeof(rf_process_options), 0, 0 }

/* Prepares the process; `options` may be NULL. Nobody has to: what is missing is done when the first domain is
 * made. Early, while there is one thread, it takes microseconds, and milliseconds later. A signal is chosen
 * before the first domain is made. A process that changes its user (a server's child) calls this before: resets
 * look at the process's page tables, which it may not open any more then, and are slower without.
 *
 * Handlers for SIGSEGV, SIGBUS, SIGILL, SIGFPE and SIGTRAP that the program installs after the library's get
 * the faults of modules, too, unless they pass them on to the handler before them. Call this again after
 * installing them: it takes these signals back, and passes on what is the program's. (The library looks by
 * itself when a domain is made and when a thread enters one for the first time.)
 *
 * A thread does not block these five signals while it calls domains: the kernel ends a process in which a fault
 * meets a blocked signal. The thread's first call takes them out of its mask; no later one looks.
 *
 * A process has one copy of the library, which is never unloaded.
 * Errors: RF_ERROR_UNSUPPORTED if another copy is at work, or the system lacks something; RF_ERROR_ARGUMENT
 * for a signal that cannot be, or that comes too late. */
rf_status rf_process_init(const rf_process_options *options);

#ifdef __cplusplus
}
#endif
#endif
