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

/* An argument of all calls of a batch. */
typedef struct rf_column {
    const void *array; /* in the domain's memory: an element of value.type for each call; NULL: `value` for all */
    rf_value value;
} rf_column;

/* Calls the function `count` times in one crossing, each time with the next element of the arrays, and stores what it
 * returns in the array `results` of the domain's memory, whose elements have the type `type`; RF_TYPE_VOID: the function
 * returns nothing. Up to six integers and eight floating-point numbers pass. The loop runs in the domain and takes some
 * nanoseconds for an element; the first batch of some types adds it to the domain as rf_code_add would. Limits hold for
 * the batch as for one call. `*done`, if not NULL, receives how many calls have returned: of a fault it is the element where it
 * happened, as the domain's memory tells; results of those before have been stored.
 * Errors: as rf_function_call and rf_code_add; RF_ERROR_RANGE: an array does not lie in the domain; RF_ERROR_TOO_LONG.
 *
 *     rf_column columns[] = { { prices, { RF_TYPE_F64, { 0 } } }, { NULL, rf_value_i32(3) } };
 *     if (rf_function_call_batch(scale, 1000, columns, 2, RF_TYPE_F64, results, &done) != RF_OK)
 *         fprintf(stderr, "element %zu: %s\n", done, rf_error()->message);
 */
rf_status rf_function_call_batch(rf_function *function, size_t count, const rf_column *columns, size_t column_count,
                                 rf_type type, void *results, size_t *done);

/* The function's address in its domain's window, to be passed to the domain; NULL on failure. */
void *rf_function_address(rf_function *function);

/* The function as a pointer of its type, called as those of rf_dlsym are, with the rules of <ringfence/host/dl.h>: the way for calls that
 * take nanoseconds, also to functions that were added later or came as text. `prototype` is the type as rf_dlsym takes it,
 * "int inc(int)", whose name does not matter here; NULL on failure. Good as long as the domain; after rf_code_remove, or a reset of
 * the function's runtime, calls return 0 with RF_ERROR_NO_FUNCTION.
 * Errors: RF_ERROR_TYPE: no type is told, or a text has another one; RF_ERROR_NO_FUNCTION. */
void *rf_function_pointer(rf_function *function, const char *prototype) RF_WARN_UNUSED;

/* The same with its type: int (*inc)(int) = RF_FUNCTION_POINTER(f, int, inc, (int)); */
#define RF_FUNCTION_POINTER(function, result, name, parameters) \
    ((result (*) parameters)(uintptr_t)rf_function_pointer((function), #result " " #name #parameters))

#ifdef __cplusplus
}
#endif
#endif
