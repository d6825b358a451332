/* ringfence/host/version.h - which library this is. */
#ifndef RINGFENCE_HOST_VERSION_H
#define RINGFENCE_HOST_VERSION_H

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the library that is loaded, such as "0.1.0". Never NULL; lives for ever.
 * Signals: may be called from a signal handler. */
const char *rf_version(void);

#ifdef __cplusplus
}
#endif
#endif
