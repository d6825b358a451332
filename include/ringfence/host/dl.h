/* ringfence/host/dl.h - the short way in, like the dynamic linker's.
 *
 *     void *m = rf_dlopen("./libadd.rf", 0);
 *     int (*add)(int, int) = RF_DLSYM(m, int, add, (int, int));
 *     int five = add(2, 3);
 *     if (rf_error()) fprintf(stderr, "%s\n", rf_error()->message);
 *     rf_dlclose(m);
 */
#ifndef RINGFENCE_HOST_DL_H
#define RINGFENCE_HOST_DL_H

#include <ringfence/host/domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Opens a module and makes one domain of it. NULL on failure: rf_error has the status that rf_module_create or
 * rf_domain_create would give.
 *   path   the file, as in open(2); no search path
 *   flags  0, or RF_LOAD_ALLOW_INTEGRITY
 * Imports are resolved against what rf_dlprovide gave before. System calls of the module (files, streams,
 * clocks) are answered by what rf_dlprovide_policy gave before; without it they fail, but for memory. */
void *rf_dlopen(const char *path, int flags) RF_WARN_UNUSED;

/* The same for one domain that gets something of its own: `options` as for rf_domain_create, a policy for
 * instance. Its imports come before those of rf_dlprovide, and its policy, if it has one, takes the place of
 * that of rf_dlprovide_policy. NULL: as rf_dlopen.
 *
 *     rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
 *     o.policy = policy;                  // rf_policy_create, rf_policy_dir, rf_policy_stdout, ...
 *     void *m = rf_dlopen_with("./plugin.rf", 0, &o);
 */
void *rf_dlopen_with(const char *path, int flags, const rf_domain_options *options) RF_WARN_UNUSED;

/* A pointer to the module's exported function or object, or NULL (RF_ERROR_TYPE, RF_ERROR_NO_FUNCTION,
 * RF_ERROR_TOO_LONG).
 * `name`  a function's prototype, "int add(int, int)", or an object's name, "table".
 *
 * A function's pointer is called in plain C syntax, cast to the function's type; RF_DLSYM does both. Rules:
 *   - The prototype is how the gate knows which registers, and which parts of them, carry something. All
 *     others it clears, so that the module does not see what the program's compiler left there, such as
 *     addresses. A function's name without a type is RF_ERROR_TYPE. A prototype that is wrong gives the
 *     module wrong values and endangers nothing.
 *   - Types: the integer and floating types of C, size_t and the like of stddef.h, int32_t and the like of
 *     stdint.h, bool, enum X, long double, and everything with a `*`. Not: structs by value, _Complex,
 *     __int128, variable arguments; other names that typedef made only with a `*`: write what they stand
 *     for. At most RF_STACK_ARGS_MAX bytes beyond 6 integers and 8 floats.
 *   - A fault cannot be reported in the result: the call returns 0 and rf_error() tells. The domain then
 *     refuses calls (each returns 0 with RF_ERROR_FAULTED) until rf_domain_reset. Prefer rf_function_call
 *     where that matters.
 *   - Pointer arguments must point into the domain (rf_memory_alloc): the module cannot read host memory.
 *   - Valid until rf_dlclose; after that a call returns 0 with RF_ERROR_HANDLE.
 * An object's address is inside the window: read it through rf_memory_read. */
void *rf_dlsym(void *handle, const char *name) RF_WARN_UNUSED;

/* The function `name` as a pointer of its type:
 *
 *     int (*add)(int, int) = RF_DLSYM(m, int, add, (int, int));
 */
#define RF_DLSYM(handle, result, name, parameters) \
    ((result (*) parameters)(uintptr_t)rf_dlsym((handle), #result " " #name #parameters))

/* Like rf_dlsym, for RF_UNTYPED functions with `stack_bytes` of arguments on the stack (8 for each word beyond
 * the registers; the size, rounded up to 8, of each struct over 16 bytes passed by value; 16 for each long
 * double). At most RF_STACK_ARGS_MAX, or RF_ERROR_TOO_LONG. */
void *rf_dlsym_args(void *handle, const char *name, size_t stack_bytes) RF_WARN_UNUSED;
#define RF_STACK_ARGS_MAX 128

/* Runs the module's destructors (functions with that attribute, then those given to atexit and destructors of
 * static C++ objects, as dlclose does; streams are written out), under the domain's limits, and ends the
 * domain as rf_domain_destroy does. No destructor runs while other threads are inside, nor after a fault or
 * an exit.
 * Returns 0, or -1 for something that is no open handle, and when a destructor failed (RF_ERROR_CONSTRUCTOR):
 * the handle is ended all the same. */
int rf_dlclose(void *handle);

/* The domain behind a handle of rf_dlopen, for the other functions; it is the same handle by its proper type,
 * ended with it. NULL on failure. The other way round, an rf_domain can be given to rf_dlsym. */
rf_domain *rf_dldomain(void *handle);

/* Gives a host function to the modules that are opened later by rf_dlopen in this process, under the name in
 * its prototype, "int host_add(int, int)". Modules get nothing else: an import that was not provided is an
 * error of rf_dlopen. See rf_import for what `function` must obey. Replaces an earlier function of that name;
 * NULL takes it away. Errors: RF_ERROR_TYPE. */
rf_status rf_dlprovide(const char *name, void (*function)(void));

/* The same, and lets the compiler compare: RF_DLPROVIDE(int, host_add, (int, int), add). */
#define RF_DLPROVIDE(result, name, parameters, function) \
    rf_dlprovide(#result " " #name #parameters, RF_AS_(result, parameters, function))

/* The policy of the modules that are opened later by rf_dlopen in this process; NULL: none, as at the start.
 * It is copied: changing or destroying it afterwards changes nothing. Each module has descriptors,
 * directories and captured output of its own; what cannot be put into force (a directory that is not there)
 * is an error of rf_dlopen. */
rf_status rf_dlprovide_policy(const rf_policy *policy);

#ifdef __cplusplus
}
#endif
#endif
