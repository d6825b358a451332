/* ringfence/host/group.h - domains that are given rights to regions together. See region.h for `actor`. */
#ifndef RINGFENCE_HOST_GROUP_H
#define RINGFENCE_HOST_GROUP_H

#include <ringfence/host/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_domain rf_domain;
typedef struct rf_group rf_group;

/* A group of domains, owned by `owner` (NULL: the host). Domains join one that is `open` (not 0) at their own
 * wish (as `actor`). `*group` is NULL on failure. */
rf_status rf_group_create(rf_domain *owner, int open, rf_group **group) RF_WARN_UNUSED;

/* Ends the handle. A group that the host owns ends; one that a domain owns lives as long as that. NULL is
 * fine. */
rf_status rf_group_destroy(rf_group *group);

/* Lets `domain` in. Errors: RF_ERROR_RIGHTS, RF_ERROR_LIMIT. */
rf_status rf_group_admit(rf_group *group, rf_domain *actor, rf_domain *domain);

/* Takes `domain` out. Errors: RF_ERROR_RIGHTS, also if it is not in. */
rf_status rf_group_expel(rf_group *group, rf_domain *actor, rf_domain *domain);

#ifdef __cplusplus
}
#endif
#endif
