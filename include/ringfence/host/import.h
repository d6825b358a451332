/* ringfence/host/import.h - what the host gives to a domain. */
#ifndef RINGFENCE_HOST_IMPORT_H
#define RINGFENCE_HOST_IMPORT_H

#include <ringfence/host/caller.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One function that the host gives to a domain. Set exactly one of `function` and `callback`.
 *   name      with a function its prototype, "int host_add(int, int)", by the rules of rf_dlsym; with a
 *             callback the name only
 *   function  a C function, called with the module's arguments in registers as they are (up to 6 integers,
 *             8 floats; no stack arguments). The fastest form. Its arguments are the module's to choose:
 *             whatever it does with them must be safe for every value, on any thread. Of its registers
 *             the module sees the result.
 *   callback  the general form, with `context` */
typedef struct rf_import {
    const char *name;
    void (*function)(void);
    rf_callback callback;
    void *context;
} rf_import;

/* Initialisers of an rf_import. The first lets the compiler compare the type with the function's:
 * RF_IMPORT_INIT(int, host_add, (int, int), add). */
#define RF_IMPORT_INIT(result, name, parameters, function) \
    { #result " " #name #parameters, RF_AS_(result, parameters, function), NULL, NULL }
#define RF_IMPORT_INIT_PROTOTYPE(prototype, function) { (prototype), (void (*)(void))(function), NULL, NULL }
#define RF_IMPORT_INIT_CALLBACK(name, callback, context) { (name), NULL, (callback), (context) }

/* `function` if it has that type; else the compiler complains. */
#define RF_AS_(result, parameters, function) ((void (*)(void))(1 ? (function) : (result (*) parameters)0))

/* In front of a function's name, in place of a type: rf_dlsym(m, RF_UNTYPED "add"),
 * RF_IMPORT_INIT_PROTOTYPE(RF_UNTYPED "host_add", f). For types that a prototype cannot tell. SUCH A
 * FUNCTION LEAKS: with each call, the module gets the argument registers that the function does not use as
 * the program's compiler left them, after each return from such an import also rdx, xmm0 and xmm1,
 * addresses of the program included. Only for modules that may see these. Passes up to 6 integers and 8
 * float or double; structs of up to 16 bytes; nothing on the stack. */
#define RF_UNTYPED "untyped "

/* A function pointer for the domain's own code: the host function that was given to the domain under `name` (an
 * rf_import's, without its type). Each call of it is a call of the host function, good for as long as the domain,
 * resets included. With rf_domain_options.extensible functions that no module needs have one. NULL on failure.
 * Errors: RF_ERROR_NO_FUNCTION: the domain has none of that name; RF_ERROR_UNSUPPORTED (RF_FEATURE_CODE). */
void *rf_import_address(rf_domain *domain, const char *name);

/* What becomes of a domain whose call of another domain failed. */
typedef enum rf_on_failure {
    RF_ON_FAILURE_TELL = 0, /* the call returns 0, and __rf_call_status tells why; a domain that does not
                               use that function is ended */
    RF_ON_FAILURE_RETURN,   /* the call returns rf_slot.value, and __rf_call_status tells why */
    RF_ON_FAILURE_END       /* the calling domain's own call ends with an error */
} rf_on_failure;

/* An import that takes functions of other domains, given with rf_domain_grant. Until then calls of it
 * fail. Only arguments and results in registers pass. */
typedef struct rf_slot {
    const char *name;
    uint8_t ints, floats;               /* arguments: up to 6 and 8 */
    uint8_t int_results, float_results; /* results: up to 2 and 2 */
    rf_on_failure on_failure;
    uint64_t value;
} rf_slot;

#ifdef __cplusplus
}
#endif
#endif
