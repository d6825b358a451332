/* ringfence/host/overview.h - who may do what to which region in this process. */
#ifndef RINGFENCE_HOST_OVERVIEW_H
#define RINGFENCE_HOST_OVERVIEW_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes who may do what to which region, and who owns and who is in which group, one region or group a line,
 * as far as `capacity` bytes go, NUL included. Returns the whole text's length without the NUL, 0 on failure;
 * `to` may be NULL if `capacity` is 0. All of it is of one moment.
 *     region 1 at 0x80000000, 4096 bytes, of host: codec.rf#1=rw viewer.rf#2=r
 *     group 1, open, of codec.rf#1: viewer.rf#2; region 1=r */
size_t rf_overview_text(char *to, size_t capacity);

/* The same as one JSON object; the host as an owner is null there:
 *     {"regions":[{"region":1,"offset":2147483648,"bytes":4096,"owner":null,
 *                  "rights":{"codec.rf#1":"rw","viewer.rf#2":"r"}}],
 *      "groups":[{"group":1,"owner":"codec.rf#1","open":true,"members":["viewer.rf#2"],"rights":{"1":"r"}}]} */
size_t rf_overview_json(char *to, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
