/* ringfence/host/limit.h - limits that a domain reaches. */
#ifndef RINGFENCE_HOST_LIMIT_H
#define RINGFENCE_HOST_LIMIT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_domain rf_domain;

/* A limit that a domain has reached. */
typedef enum rf_limit {
    RF_LIMIT_MEMORY = 1,     /* wants `wanted` bytes more than `used`; raised, the request is tried once
                                more. rf_domain_reset puts the limit back */
    RF_LIMIT_CALL_TIME,      /* a call took longer than `limit` ns; it has ended. Cannot be raised */
    RF_LIMIT_PROCESSOR_TIME, /* `used` ns; the call has ended. Raised, calls after the next
                                rf_domain_reset go on */
    RF_LIMIT_FAULTS,         /* rf_domain_reset after `used` faults; raised, it goes on */
    RF_LIMIT_DESCRIPTORS,    /* of the policy. Cannot be raised */
    RF_LIMIT_CALLS,          /* a call after `used` of them; raised, it begins */
    RF_LIMIT_LANES,          /* another thread wants to enter; raised, up to 63, it does */
    RF_LIMIT_DISK            /* of the policy: a call would put `wanted` bytes more than `used` on disk.
                                Raised, it is tried again */
} rf_limit;

/* What rf_domain_options.on_limit is told. Units are the limit's. */
typedef struct rf_limit_hit {
    rf_domain *domain; /* NULL while it is being made; belongs to the library */
    int32_t what;      /* an rf_limit */
    int32_t reserved;
    uint64_t wanted, used, limit;
} rf_limit_hit;

#ifdef __cplusplus
}
#endif
#endif
