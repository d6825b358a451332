/* ringfence/host/runtime.h - functions that come as text, call each other, are replaced and deleted.
 *
 *     rf_runtime *runtime;
 *     rf_function *twice;
 *     rf_value n = rf_value_i64(21), r = { RF_TYPE_I64, { 0 } };
 *     if (rf_runtime_create(NULL, 0, NULL, &runtime) != RF_OK ||
 *         rf_runtime_create_function(runtime, "twice", "long twice(long n) { return 2 * n; }", &twice) != RF_OK ||
 *         rf_function_call(twice, &n, 1, &r) != RF_OK)
 *         fprintf(stderr, "%s\n", rf_error()->message);
 *
 * docs/text.md has the language, docs/functions.md the rules. Runtimes need the back end window. */
#ifndef RINGFENCE_HOST_RUNTIME_H
#define RINGFENCE_HOST_RUNTIME_H

#include <ringfence/host/caller.h>
#include <ringfence/host/function.h>
#include <ringfence/host/options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A domain without modules, to which functions come as text. */
typedef struct rf_runtime rf_runtime;

/* A function of the host's that texts may call. `malloc` and `free` are always there.
 *   declaration  as a text has it: "double scale(double, int)". A text that declares it otherwise is refused
 *   callback     what is called, with `context` */
typedef struct rf_built_in {
    const char *declaration;
    rf_callback callback;
    void *context;
} rf_built_in;

/* Makes a runtime without functions. Of `options`, which may be NULL, it takes limits, sizes and `cancel`. `*runtime` is NULL
 * on failure.
 * Errors: RF_ERROR_TEXT, RF_ERROR_TYPE: a declaration; RF_ERROR_ARGUMENT: options that it does not take; as for rf_domain_create. */
rf_status rf_runtime_create(const rf_built_in *built_ins, size_t count, const rf_domain_options *options,
                            rf_runtime **runtime) RF_WARN_UNUSED;

/* Ends a runtime with its functions, as rf_domain_destroy ends a domain. NULL is fine. */
rf_status rf_runtime_destroy(rf_runtime *runtime);

/* Compiles `text`, which defines the function `name`, has the code verified and adds it. What else it defines, unless static, becomes a
 * function of the runtime, too, and goes with this one. `function`, if not NULL, receives a handle, NULL on failure; it stays good
 * when the function is replaced or the runtime reset. rf_function_call converts arguments to the types of the text, and refuses
 * what does not fit with RF_ERROR_TYPE.
 * Errors: RF_ERROR_TEXT; RF_ERROR_EXISTS: a name is taken; RF_ERROR_IMPORT: it calls what is not there; RF_ERROR_TYPE: it has
 * another idea of a function's type; RF_ERROR_LIMIT. Nothing has changed then. */
rf_status rf_runtime_create_function(rf_runtime *runtime, const char *name, const char *text, rf_function **function);

/* Puts another text in the place of the one that `name` was created with. Calls that begin from now on are calls of the new one.
 * Errors: RF_ERROR_NO_FUNCTION; RF_ERROR_TYPE: the types have to stay; as for rf_runtime_create_function. */
rf_status rf_runtime_replace_function(rf_runtime *runtime, const char *name, const char *text);

/* Compiles `text` to object code: bytes that can be kept, sent and given to any runtime. `object` has room for `capacity` bytes;
 * `*size` receives how many there are. With NULL and 0 that is all that is done.
 * Errors: RF_ERROR_TEXT; RF_ERROR_TOO_LONG: they do not fit, `*size` tells what would. */
rf_status rf_runtime_compile(const char *text, void *object, size_t capacity, size_t *size);

/* As rf_runtime_create_function and rf_runtime_replace_function, of object code, which is trusted no more than a text.
 * Errors: RF_ERROR_TEXT also for bytes that are no object code, cut or damaged. */
rf_status rf_runtime_create_object(rf_runtime *runtime, const char *name, const void *object, size_t size,
                                   rf_function **function);
rf_status rf_runtime_replace_object(rf_runtime *runtime, const char *name, const void *object, size_t size);

/* A handle for a function of the runtime. Errors: RF_ERROR_NO_FUNCTION. */
rf_status rf_runtime_lookup_function(rf_runtime *runtime, const char *name, rf_function **function) RF_WARN_UNUSED;

/* Deletes a function, with those that came with it. Calls by handles fail from now on with RF_ERROR_NO_FUNCTION, and so do calls of
 * functions that call it. Calls in progress finish.
 * Errors: RF_ERROR_NO_FUNCTION, also for a function that came with another one. */
rf_status rf_runtime_delete_function(rf_runtime *runtime, const char *name);

/* Makes data as they were at first and the heap empty. Functions and handles stay. After a fault this is what makes the runtime take
 * calls again.
 * Errors: as for rf_domain_reset. */
rf_status rf_runtime_reset(rf_runtime *runtime);

/* The runtime's domain: its memory (rf_memory_alloc), usage, limits, interrupt. Belongs to the runtime: not to be destroyed or
 * reset through this handle. NULL on failure. */
rf_domain *rf_runtime_domain(rf_runtime *runtime);

#ifdef __cplusplus
}
#endif
#endif
