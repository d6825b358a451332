/* ringfence/host/memory.h - a domain's memory, as the host reads and writes it. */
#ifndef RINGFENCE_HOST_MEMORY_H
#define RINGFENCE_HOST_MEMORY_H

#include <ringfence/host/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_domain rf_domain;

/* `size` bytes of zeroed memory in the domain, aligned to 16; NULL on failure. It counts against the memory
 * limit. Errors: RF_ERROR_LIMIT. */
void *rf_memory_alloc(rf_domain *domain, size_t size) RF_WARN_UNUSED;

/* A copy of the string `text` in the domain's memory (rf_memory_free it); NULL on failure. */
void *rf_memory_alloc_string(rf_domain *domain, const char *text) RF_WARN_UNUSED;

/* Frees what rf_memory_alloc returned. NULL is fine. rf_domain_reset frees everything.
 * Errors: RF_ERROR_FREE. */
rf_status rf_memory_free(rf_domain *domain, void *address);

/* Copies `length` bytes from the domain's memory at `from` into the host's at `to`. Any `from` is fine: what
 * is not wholly inside the window is RF_ERROR_RANGE, what is not mapped RF_ERROR_ACCESS (part of `to` may
 * have been written). */
rf_status rf_memory_read(rf_domain *domain, const void *from, void *to, size_t length);

/* Copies `length` bytes from the host's memory at `from` into the domain's at `to`. Errors as for
 * rf_memory_read, RF_ERROR_ACCESS also for what is not writable. */
rf_status rf_memory_write(rf_domain *domain, void *to, const void *from, size_t length);

/* Copies the NUL-terminated string at `from` into `to`, `capacity` bytes long, NUL included. `length` may be
 * NULL; it receives the length without the NUL.
 * Errors: RF_ERROR_TOO_LONG when it does not fit (then `to` is the empty string), RF_ERROR_RANGE,
 * RF_ERROR_ACCESS. */
rf_status rf_memory_read_string(rf_domain *domain, const void *from, char *to, size_t capacity,
                                size_t *length);

/* 1 if the whole range lies in the domain's window, else 0. Says nothing about what is mapped there. Leaves
 * rf_error as it is. */
int rf_memory_contains(rf_domain *domain, const void *address, size_t length);

#ifdef __cplusplus
}
#endif
#endif
