/* Preloaded before a test of the C interface: what it makes, it makes with the back end that RINGFENCE_TEST_BACKEND names. The
 * test says nothing of it, and runs on all of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <ringfence.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static rf_backend backend(void) {
    const char *name = getenv("RINGFENCE_TEST_BACKEND");
    if (name && strcmp(name, "process") == 0)
        return RF_BACKEND_PROCESS;
    if (name && strcmp(name, "none") == 0)
        return RF_BACKEND_NONE;
    return RF_BACKEND_WINDOW;
}

static int flags_of(int flags) { return backend() == RF_BACKEND_NONE ? flags | RF_LOAD_UNFENCED : flags; }

/* Options of any version, large enough to name a back end. */
union room {
    rf_domain_options options;
    char bytes[4096];
};

static const rf_domain_options *chosen(const rf_domain_options *given, union room *room) {
    if (given && (given->size > sizeof *room || given->size < offsetof(rf_domain_options, addressing)))
        return given; /* to be refused */
    room->options = (rf_domain_options)RF_DOMAIN_OPTIONS_INIT;
    if (given)
        memcpy(room->bytes, given, given->size);
    room->options.backend = backend();
    return &room->options;
}

#define NEXT(type, name, ...)                                     \
    type (*next)(__VA_ARGS__) = NULL;                             \
    *(void **)&next = dlsym(RTLD_NEXT, name);                     \
    if (!next)                                                    \
        abort()

rf_status rf_module_create(const char *path, int flags, rf_module **module) {
    NEXT(rf_status, "rf_module_create", const char *, int, rf_module **);
    return next(path, flags_of(flags), module);
}

rf_status rf_module_create_from_bytes(const void *bytes, size_t length, const char *name, int flags, rf_module **module) {
    NEXT(rf_status, "rf_module_create_from_bytes", const void *, size_t, const char *, int, rf_module **);
    return next(bytes, length, name, flags_of(flags), module);
}

rf_status rf_domain_create(rf_module *module, const rf_domain_options *options, rf_domain **domain) {
    union room room;
    NEXT(rf_status, "rf_domain_create", rf_module *, const rf_domain_options *, rf_domain **);
    return next(module, chosen(options, &room), domain);
}

void *rf_dlopen_with(const char *path, int flags, const rf_domain_options *options) {
    union room room;
    NEXT(void *, "rf_dlopen_with", const char *, int, const rf_domain_options *);
    return next(path, flags_of(flags), chosen(options, &room));
}

void *rf_dlopen(const char *path, int flags) { return rf_dlopen_with(path, flags, NULL); }

rf_status rf_snapshot_create(rf_module *module, const rf_domain_options *options, int (*init)(rf_domain *, void *), void *context,
                             rf_snapshot **snapshot) {
    union room room;
    NEXT(rf_status, "rf_snapshot_create", rf_module *, const rf_domain_options *, int (*)(rf_domain *, void *), void *, rf_snapshot **);
    return next(module, chosen(options, &room), init, context, snapshot);
}

rf_status rf_pool_create(rf_module *module, const rf_domain_options *options, size_t idle, rf_pool **pool) {
    union room room;
    NEXT(rf_status, "rf_pool_create", rf_module *, const rf_domain_options *, size_t, rf_pool **);
    return next(module, chosen(options, &room), idle, pool);
}
