/* ringfence/host/function.h - functions of domains, looked up once and called often. */
#ifndef RINGFENCE_HOST_FUNCTION_H
#define RINGFENCE_HOST_FUNCTION_H

#include <ringfence/host/status.h>
#include <ringfence/host/value.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_domain rf_domain;

/* One exported function of one domain. Ends with the domain at the latest. */
typedef struct rf_function rf_function;

/* Looks up the exported function `name`. `*function` is NULL on failure.
 * Errors: RF_ERROR_NO_FUNCTION, RF_ERROR_LIMIT (handles). */
rf_status rf_function_create(rf_domain *domain, const char *name, rf_function **function) RF_WARN_UNUSED;

/* Looks up a function of the module that was added under the name `module`. rf_function_create and rf_dlsym
 * find it too, behind those of the modules before it.
 * Errors: RF_ERROR_NO_OBJECT: there is no such module; RF_ERROR_NO_FUNCTION. */
rf_status rf_function_create_in(rf_domain *domain, const char *module, const char *name,
                                rf_function **function) RF_WARN_UNUSED;

/* Ends the handle; the function stays. NULL is fine. */
rf_status rf_function_destroy(rf_function *function);

/* Calls the function: `count` arguments, up to 14 in registers, further ones on the domain's stack. `result`
 * may be NULL; otherwise set result->type to what the function returns before the call. A wrong number or
 * type of arguments gives the module wrong values; it endangers nothing outside the domain. On failure
 * *result is zeroed.
 * Errors: every RF_FAULT_…; RF_ERROR_FAULTED, RF_ERROR_LIMIT, RF_ERROR_NESTING, RF_ERROR_TOO_LONG,
 * RF_ERROR_NO_FUNCTION (removed meanwhile); RF_ERROR_ARGUMENT for an unknown type.
 *
 *     rf_value r = { RF_TYPE_I32, { 0 } };
 *     rf_value a[] = { rf_value_i32(2), rf_value_i32(3) };
 *     if (rf_function_call(add, a, 2, &r) != RF_OK) fprintf(stderr, "%s\n", rf_error()->message);
 */
rf_status rf_function_call(rf_function *function, const rf_value *arguments, size_t count, rf_value *result);

/* The function's address in its domain's window, to be passed to the domain; NULL on failure. */
void *rf_function_address(rf_function *function);

#ifdef __cplusplus
}
#endif
#endif
