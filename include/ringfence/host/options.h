/* ringfence/host/options.h - how a domain is made. */
#ifndef RINGFENCE_HOST_OPTIONS_H
#define RINGFENCE_HOST_OPTIONS_H

#include <ringfence/host/backend.h>
#include <ringfence/host/import.h>
#include <ringfence/host/limit.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_arena rf_arena;
typedef struct rf_policy rf_policy;

/* By which operands the code of a domain may reach memory: rf_domain_options.addressing. */
typedef enum rf_addressing {
    RF_ADDRESSING_ANY = 0,    /* through gs, or through r14 where the verifier sees that r11 is small */
    RF_ADDRESSING_SEGMENT = 1 /* through gs only (ringfence cc --addressing=segment) */
} rf_addressing;

/* How to make a domain. Start from RF_DOMAIN_OPTIONS_INIT; 0 means the default everywhere. The struct may
 * grow at its end: `size` tells which of it the program knows, and a field that is set but unknown to an
 * older library is RF_ERROR_ARGUMENT. All that it names is copied, the policy too.
 *
 * From time_limit on, an option has the same name here, in Rust (DomainOptions) and on the command line
 * (--time-limit); docs/options.md has defaults and ranges. A value out of range is RF_ERROR_ARGUMENT. */
typedef struct rf_domain_options {
    size_t size;              /* sizeof(rf_domain_options) */
    const rf_import *imports; /* copied; names too */
    size_t import_count;
    const rf_slot *slots;     /* copied; names too */
    size_t slot_count;
    const rf_policy *policy;  /* answers the domain's system calls; NULL: memory and exit only */
    /* Called when a limit is reached, besides the error that somebody gets for it; NULL: nobody is asked.
     * It returns the limit that holds from now on, 0 to leave it as it is. It runs on the thread that
     * reached the limit, on several at once if several do, may use the domain's memory, and must not leave
     * by longjmp, a C++ exception or pthread_exit, nor wait for calls of the domain to end. When a call has
     * run out of time it must not call domains. What it does itself reaches limits unasked. */
    uint64_t (*on_limit)(const rf_limit_hit *hit, void *context);
    void *on_limit_context;
    uint64_t time_limit;           /* ns that a call may take, or all constructors together */
    uint64_t processor_time;       /* ns in the domain's own code, over all its life; UINT64_MAX: counted,
                                      not limited */
    uint64_t call_limit;           /* calls from outside, constructors included; later ones fail with
                                      RF_ERROR_LIMIT */
    uint64_t fault_limit;          /* after so many faults rf_domain_reset fails with RF_ERROR_LIMIT */
    uint64_t memory_limit;         /* bytes of data, heap, maps, host allocations and stacks together; stacks
                                      count in full from a thread's first call on */
    uint64_t code_limit;           /* bytes of code that rf_code_add takes */
    uint64_t module_limit;         /* bytes of images of modules of rf_domain_add_module */
    uint64_t max_lanes;            /* threads that may have stacks in the domain */
    uint64_t data_stack;           /* bytes of data stack of each lane */
    uint64_t control_stack;        /* bytes of control stack of each lane */
    uint64_t thread_local_reserve; /* bytes of each lane for variables of modules that come later */
    uint64_t processors;           /* processors that the domain is told of */
    uint64_t extensible;           /* 1: code and modules that come later may use vector registers even if
                                      the module has none, and modules may import any of `imports` and
                                      `slots`, needed so far or not */
    uint64_t backend;              /* what keeps the domain from the host: an rf_backend */
    uint64_t addressing;           /* by which operands code may reach memory: an rf_addressing. A module with
                                      others is RF_ERROR_REJECTED */
    uint64_t x87;                  /* 1: code and modules that come later may use the x87 unit (long double)
                                      even if the module does not; calls take some ten ns longer */
    uint64_t idle_heap;            /* bytes of heap that stay with the domain, zeroed, when it goes back to its
                                      pool; if more was in use, all of it is given back */
    /* While it is not 0, calls end with RF_FAULT_INTERRUPT within some milliseconds; NULL: there is none. A
     * signal handler may set it; whoever set it puts it back. It stays for as long as the domain. */
    const volatile int *cancel;
    rf_arena *arena; /* whose objects it may be given rights to (arena.h); all its modules are then of
                        --isolation=words. NULL: none */
} rf_domain_options;

#ifdef __cplusplus
#define RF_DOMAIN_OPTIONS_INIT \
    { sizeof(rf_domain_options), nullptr, 0, nullptr, 0, nullptr, nullptr, nullptr, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, nullptr, nullptr }
#else
#define RF_DOMAIN_OPTIONS_INIT { .size = sizeof(rf_domain_options) }
#endif

#ifdef __cplusplus
}
#endif
#endif
