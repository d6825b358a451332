/* ringfence/host/backend.h - what keeps domains from the host. */
#ifndef RINGFENCE_HOST_BACKEND_H
#define RINGFENCE_HOST_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What keeps a domain from the host: rf_domain_options.backend. docs/backends.md has what each can do;
 * what one cannot is RF_ERROR_UNSUPPORTED. */
typedef enum rf_backend {
    RF_BACKEND_WINDOW = 0,  /* a window of the host's own address space */
    RF_BACKEND_PROCESS = 1, /* the same in a process of its own */
    RF_BACKEND_NONE = 2     /* nothing: an ordinary shared object (RF_LOAD_UNFENCED), as with dlopen */
} rf_backend;

/* What some back ends have and others have not: the rows of the table in docs/backends.md. */
typedef enum rf_feature {
    RF_FEATURE_FAULTS = 0,       /* crashes and endless loops end the call, not the process */
    RF_FEATURE_INTERRUPT = 1,    /* rf_domain_interrupt, rf_domain_options.cancel */
    RF_FEATURE_LIMITS = 2,       /* limits and sizes of rf_domain_options, rf_domain_set_time_limit */
    RF_FEATURE_ON_LIMIT = 3,     /* rf_domain_options.on_limit */
    RF_FEATURE_POLICY = 4,       /* rf_domain_options.policy */
    RF_FEATURE_PLAIN = 5,        /* plain C functions as imports: RF_IMPORT_INIT, rf_dlprovide */
    RF_FEATURE_GRANTS = 6,       /* slots, rf_domain_grant */
    RF_FEATURE_REGIONS = 7,      /* rf_region, rf_group */
    RF_FEATURE_CODE = 8,         /* rf_code_add */
    RF_FEATURE_MODULES = 9,      /* rf_domain_add_module */
    RF_FEATURE_CHECKPOINTS = 10, /* rf_domain_checkpoint */
    RF_FEATURE_SNAPSHOTS = 11,   /* rf_snapshot_create */
    RF_FEATURE_CONFINEMENT = 12, /* rf_domain_confinement */
    RF_FEATURE_CALLER = 13,      /* rf_caller_domain(NULL), in plain C functions */
    RF_FEATURE_UNWIND = 14,      /* rf_call_mark, rf_call_unwind */
    RF_FEATURE_FENCE = 15,       /* modules of ringfence cc */
    RF_FEATURE_HANDLERS = 16,    /* calls from signal handlers, whatever these have interrupted */
    RF_FEATURE_PAUSES = 17,      /* rf_domain_pause_time */
    RF_FEATURE_FILE_MAPS = 18,   /* shared maps of files, by rf_domain_options.policy */
    RF_FEATURE_PROCESSES = 19,   /* rf_policy_processes */
    RF_FEATURE_WORDS = 20        /* rights to single words: of Rust's interface only */
} rf_feature;

/* 1 if domains of the back end have the feature, 0 if what needs it is RF_ERROR_UNSUPPORTED there, -1 for
 * numbers that this library does not know (RF_ERROR_ARGUMENT). */
int rf_backend_offers(rf_backend backend, rf_feature feature);

/* What the process of a domain is locked in with, besides the verifier: 1 or 0. Filled in by
 * rf_domain_confinement. Start from RF_CONFINEMENT_INIT; the struct may grow at its end. */
typedef struct rf_confinement {
    size_t size;           /* sizeof(rf_confinement), set by the caller */
    uint32_t system_calls; /* a filter leaves it the system calls that computing takes; always */
    uint32_t namespaces;   /* it has empty ones of its own: network, mounts, names between processes */
    uint32_t landlock;     /* Landlock keeps it from opening any file */
    uint32_t reserved;
} rf_confinement;

#define RF_CONFINEMENT_INIT { sizeof(rf_confinement), 0, 0, 0, 0 }

#ifdef __cplusplus
}
#endif
#endif
