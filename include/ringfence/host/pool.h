/* ringfence/host/pool.h - clean domains, handed out and taken back. */
#ifndef RINGFENCE_HOST_POOL_H
#define RINGFENCE_HOST_POOL_H

#include <ringfence/host/domain.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_snapshot rf_snapshot;

/* Domains of one kind that wait to be used. */
typedef struct rf_pool rf_pool;

/* A pool that keeps up to `most` domains while nobody uses them, and makes more when it has none: of a
 * module, or of a snapshot. What `options` names is kept as for rf_snapshot_create. `*pool` is NULL on
 * failure. No domain is made yet. */
rf_status rf_pool_create(rf_module *module, const rf_domain_options *options, size_t most,
                         rf_pool **pool) RF_WARN_UNUSED;
rf_status rf_pool_create_from_snapshot(rf_snapshot *snapshot, size_t most, rf_pool **pool) RF_WARN_UNUSED;

/* Ends the pool and the domains that wait in it. Those in use stay; they end with rf_domain_destroy. NULL is
 * fine. */
rf_status rf_pool_destroy(rf_pool *pool);

/* A clean domain, under a new handle. Errors as for rf_domain_create, if one has to be made. */
rf_status rf_pool_take(rf_pool *pool, rf_domain **domain) RF_WARN_UNUSED;

/* Takes a domain back: its handle and those of its functions end, pointers from rf_dlsym must not be used any
 * more, and it is made like new: memory, rights to regions, functions granted to it and by it, captured
 * output. A domain that somebody still uses is ended instead.
 * Errors: RF_ERROR_ARGUMENT if it is not from this pool. */
rf_status rf_pool_give(rf_pool *pool, rf_domain *domain);

#ifdef __cplusplus
}
#endif
#endif
