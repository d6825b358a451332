/* ringfence/host/module.h - verified modules. (What a module's own source includes is
 * ringfence/module.h.) */
#ifndef RINGFENCE_HOST_MODULE_H
#define RINGFENCE_HOST_MODULE_H

#include <ringfence/host/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A verified module, of which any number of domains can be made. */
typedef struct rf_module rf_module;

/* Flags of rf_module_create, rf_module_create_from_bytes and rf_dlopen. */
enum {
    RF_LOAD_ALLOW_INTEGRITY = 1, /* accept modules whose loads are not confined (--isolation=integrity) */
    RF_LOAD_UNFENCED = 2,        /* the file is an ordinary shared object, which is not verified: for domains
                                    with RF_BACKEND_NONE, and for no others */
    RF_LOAD_ALLOW_WORDS = 4      /* accept modules that reach objects of an arena (--isolation=words) */
};

/* Reads, checks and verifies the module in the file `path`. None of its code has run afterwards.
 *   path    as in open(2); no search path
 *   flags   0, or of RF_LOAD_ALLOW_INTEGRITY, RF_LOAD_UNFENCED and RF_LOAD_ALLOW_WORDS
 *   module  receives the handle, NULL on failure
 * Errors: RF_ERROR_FILE, RF_ERROR_FORMAT, RF_ERROR_REJECTED, RF_ERROR_UNSUPPORTED, RF_ERROR_LIMIT;
 * RF_ERROR_ARGUMENT for unknown flags. */
rf_status rf_module_create(const char *path, int flags, rf_module **module) RF_WARN_UNUSED;

/* The same from `length` bytes in memory, which are copied before they are checked. `name` is for
 * messages and may be NULL. */
rf_status rf_module_create_from_bytes(const void *bytes, size_t length, const char *name, int flags,
                                      rf_module **module) RF_WARN_UNUSED;

/* What a symbol of a module is. */
typedef enum rf_symbol_kind {
    RF_SYMBOL_KIND_FUNCTION = 0,
    RF_SYMBOL_KIND_OBJECT = 1,      /* a variable */
    RF_SYMBOL_KIND_THREAD_LOCAL = 2 /* a variable of each thread's own */
} rf_symbol_kind;

/* A symbol that a module exports or imports. */
typedef struct rf_symbol {
    const char *name; /* as in the source; valid until the visitor returns */
    rf_symbol_kind kind;
    int imported; /* 0: the module has it; 1: who makes a domain of the module has to give it */
    int weak;     /* 1: an import that may be left out */
    uint64_t size; /* in bytes, as the module claims; 0 for imports */
} rf_symbol;

/* Gets one symbol; 0 to go on, anything else to end the visit. `context` is rf_module_visit's. */
typedef int (*rf_symbol_visitor)(void *context, const rf_symbol *symbol);

/* Calls `visit` for each symbol that the module exports, then for each that it imports, in the file's
 * order. May be called by several threads; the visitor may call any function of this library.
 * Errors: RF_ERROR_HANDLE; RF_ERROR_ARGUMENT without a visitor; RF_ERROR_LIMIT without memory. */
rf_status rf_module_visit(const rf_module *module, rf_symbol_visitor visit, void *context);

/* Ends the handle. Domains, snapshots and pools of the module live on. NULL is fine. */
rf_status rf_module_destroy(rf_module *module);

#ifdef __cplusplus
}
#endif
#endif
