/* ringfence/host/usage.h - what a domain uses and has used. */
#ifndef RINGFENCE_HOST_USAGE_H
#define RINGFENCE_HOST_USAGE_H

#include <stddef.h>
#include <stdint.h>

/* Filled in by rf_domain_usage. Start from RF_USAGE_INIT; the struct may grow at its end. */
typedef struct rf_usage {
    size_t size;             /* sizeof(rf_usage), set by the caller */
    uint64_t memory;         /* bytes of heap, maps, host allocations and data of modules, now */
    uint64_t code;           /* bytes of code of rf_code_add, now */
    uint64_t calls;          /* calls from outside since it was made, constructors' included; nested ones
                                are not counted */
    uint64_t faults;         /* how often it has faulted since it was made; a fault that ends other threads'
                                calls too is one */
    uint64_t processor_time; /* ns in its own code, if counted; sampled once a millisecond */
    uint64_t descriptors;    /* that its policy has open for it */
    uint64_t resets;
    uint32_t lanes;          /* threads that have stacks in it */
    uint32_t active;         /* how many of them have a call in progress */
    uint64_t modules;        /* bytes of the window that modules of rf_domain_add_module take, now */
    uint64_t disk;           /* bytes that it has put on disk since it was made, as its policy counts */
    uint32_t blocked;        /* calls in progress that have to end and do not, because their thread blocks
                                the signal that ends them (rf_process_init): take it out of the thread's
                                mask. Later calls of the thread do that */
    uint32_t reserved;
} rf_usage;

#define RF_USAGE_INIT { sizeof(rf_usage), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

#endif
