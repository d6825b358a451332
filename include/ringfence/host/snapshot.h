/* ringfence/host/snapshot.h - the state that new domains start from. */
#ifndef RINGFENCE_HOST_SNAPSHOT_H
#define RINGFENCE_HOST_SNAPSHOT_H

#include <ringfence/host/domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The state of an initialised domain. Domains of it: rf_domain_create_from_snapshot,
 * rf_pool_create_from_snapshot. */
typedef struct rf_snapshot rf_snapshot;

/* Makes two domains of `module`, runs `init` in each on the calling thread (0: done, all else: failed), and
 * keeps what they have in common. `init` must do the same both times, and leave nothing in the domain that
 * depends on time, chance, or on an address other than as a pointer. What `options` names is kept for the
 * domains of the snapshot; a policy has to stay open for them. `*snapshot` is NULL on failure.
 * Errors: RF_ERROR_SNAPSHOT says where two runs differ, or what failed; and as for rf_domain_create. */
rf_status rf_snapshot_create(rf_module *module, const rf_domain_options *options,
                             int (*init)(rf_domain *, void *context), void *context,
                             rf_snapshot **snapshot) RF_WARN_UNUSED;

/* Ends the handle. Domains and pools of the snapshot stay. NULL is fine. */
rf_status rf_snapshot_destroy(rf_snapshot *snapshot);

#ifdef __cplusplus
}
#endif
#endif
