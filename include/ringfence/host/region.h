/* ringfence/host/region.h - memory shared between domains.
 *
 * A region is memory that any number of domains map, each with its own rights, at the same offset in every
 * window. Rights change at any time, also while domains run; a domain that uses what it just lost faults.
 * `actor` is the domain on whose behalf something is asked for, NULL for the host itself, who may do
 * everything. Others: only the owner of a region gives rights away, never more than it has, and only the
 * owner of a group decides who is in it; anything else is RF_ERROR_RIGHTS. */
#ifndef RINGFENCE_HOST_REGION_H
#define RINGFENCE_HOST_REGION_H

#include <ringfence/host/rights.h>
#include <ringfence/host/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_domain rf_domain;
typedef struct rf_group rf_group;
typedef struct rf_region rf_region;

/* `length` bytes of zeroed shared memory, owned by `owner` (NULL: the host). Nobody but its owner has rights
 * to it yet. `*region` is NULL on failure. Errors: RF_ERROR_ARGUMENT (length), RF_ERROR_LIMIT. */
rf_status rf_region_create(uint64_t length, rf_domain *owner, rf_region **region) RF_WARN_UNUSED;

/* The first `length` bytes of a memory file (memfd_create with MFD_ALLOW_SEALING), which is sealed against
 * shrinking. The descriptor stays the caller's. Nobody gets more than `most`.
 * Errors: RF_ERROR_ARGUMENT: no such descriptor, too short, or not sealable; RF_ERROR_LIMIT. */
rf_status rf_region_create_from_fd(int fd, uint64_t length, rf_rights most, rf_region **region) RF_WARN_UNUSED;

/* Ends the handle. A region that the host owns is freed; one that a domain owns lives as long as that. NULL is
 * fine. */
rf_status rf_region_destroy(rf_region *region);

/* Takes the region from all domains, for good. The handle, and the host's view, stay until
 * rf_region_destroy. */
rf_status rf_region_free(rf_region *region, rf_domain *actor);

/* Sets what `domain` may do; RF_RIGHTS_NONE takes back what was given to it. What it owns or has through a
 * group stays. */
rf_status rf_region_give(rf_region *region, rf_domain *actor, rf_domain *domain, rf_rights rights);

/* Sets what all members of a group may do, present and future. */
rf_status rf_region_give_group(rf_region *region, rf_domain *actor, rf_group *group, rf_rights rights);

/* What `domain` may do, all taken together: an rf_rights, or -1 on failure. */
int rf_region_rights(rf_region *region, rf_domain *domain);

/* The region's address in the domain's window, whether it has rights to it or not. NULL on failure. */
void *rf_region_address(rf_region *region, rf_domain *domain);

/* The host's own view, mapped until the last handle goes. Domains write it at any time: copy before
 * checking. NULL on failure. */
void *rf_region_host_address(rf_region *region);

/* Length in bytes, 0 on failure. */
uint64_t rf_region_length(rf_region *region);

#ifdef __cplusplus
}
#endif
#endif
