/* ringfence/host/code.h - machine code that comes to a living domain.
 *
 * Code is one or more functions of machine code, position-independent, without relocations (so without
 * symbols, weak ones too), data or jump tables, that obey the verifier's rules. It comes and goes under a
 * name, while other threads run in the domain. rf_domain_reset takes all away. */
#ifndef RINGFENCE_HOST_CODE_H
#define RINGFENCE_HOST_CODE_H

#include <ringfence/host/function.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Verifies `length` bytes of code and adds a copy under `name`; `entry` is the offset in bytes of the
 * function that the name stands for. With a function marker there, the domain's own code can call it
 * through its address (rf_function_address). `*function` is NULL on failure, and nothing has changed.
 * Errors: RF_ERROR_EXISTS: the name is taken; RF_ERROR_REJECTED, RF_ERROR_LIMIT, RF_ERROR_UNSUPPORTED,
 * RF_ERROR_BUSY. */
rf_status rf_code_add(rf_domain *domain, const char *name, const void *code, size_t length, size_t entry,
                      rf_function **function) RF_WARN_UNUSED;

/* A handle for the function that the code of this name stands for. Errors: RF_ERROR_NO_FUNCTION. */
rf_status rf_code_find(rf_domain *domain, const char *name, rf_function **function) RF_WARN_UNUSED;

/* Removes code: calls of it fail from now on (rf_function_call with RF_ERROR_NO_FUNCTION, the domain's own
 * like any call to what is no function).
 * Errors: RF_ERROR_NO_FUNCTION; RF_ERROR_BUSY, and nothing has changed, while the code is on the calling
 * thread's stack, or while other threads stay in the domain for longer than 100 us. */
rf_status rf_code_remove(rf_domain *domain, const char *name);

#ifdef __cplusplus
}
#endif
#endif
