/* ringfence.h - load native modules that nobody has to trust, and call them. Host side.
 *
 * A module is a file NAME.rf made by `ringfence cc`. Loading it checks its machine code; a domain is a
 * running instance of it inside its own window of 4 GiB in this process. Code in a domain can neither
 * read nor write nor run anything outside; its crashes and endless loops come back as errors.
 *
 * The short way feels like the dynamic linker (ringfence/host/dl.h):
 *
 *     void *m = rf_dlopen("./libadd.rf", 0);
 *     int (*add)(int, int) = RF_DLSYM(m, int, add, (int, int));
 *     int five = add(2, 3);
 *     if (rf_error()) fprintf(stderr, "%s\n", rf_error()->message);
 *     rf_dlclose(m);
 *
 * The checked way (rf_module_create, rf_domain_create, rf_function_call) reports every failure in its
 * result. C++ programs find typed wrappers in ringfence.hpp.
 *
 * Names
 *   - rf_NOUN_VERB is declared in ringfence/host/NOUN.h. Enumerators begin with their type's name, but
 *     rf_status's with RF_OK, RF_ERROR_ and RF_FAULT_.
 *   - Handles are made by rf_NOUN_create… and ended by rf_NOUN_destroy, all of them.
 *
 * Conventions
 *   - Functions that can fail return an rf_status, RF_OK = 0, or a pointer, NULL on failure. A failure also
 *     fills the calling thread's rf_error(); a success leaves it as it was. Each function names its errors;
 *     besides, any may give RF_ERROR_HANDLE for a handle, RF_ERROR_ARGUMENT for a NULL that it does not
 *     allow or text that is not UTF-8, RF_ERROR_LIMIT for too many handles, and RF_ERROR_INTERNAL.
 *   - Pointers into a domain are ordinary addresses; host and domain use the same numbers. Everything that
 *     comes out of a domain, pointers included, is chosen by code that may be hostile: check it before use,
 *     and copy it (rf_memory_read) before checking, since other threads of the domain can change its memory.
 *     Never dereference or call a pointer that a domain gave you; use rf_memory_read, rf_memory_write,
 *     rf_domain_call_address.
 *   - Sizes are in bytes, times in nanoseconds, unless it says otherwise.
 *   - Handles are checked: NULL, ended and made-up handles give RF_ERROR_HANDLE, not a crash.
 *   - Strings are UTF-8, paths any bytes. What a function gets is copied unless it says otherwise.
 *   - Threads: every function may be called from any thread at any time, except where it says otherwise. A
 *     domain may be entered by many threads at once (the module must then be written for threads).
 *   - Signals: no function may be called from a signal handler, except where it says so.
 *   - Structs with a `size` field may grow in later versions: set it, through the _INIT macro, and leave the
 *     rest 0.
 */
#ifndef RINGFENCE_H
#define RINGFENCE_H

#if defined(__cplusplus) && __cplusplus < 201103L
#error "ringfence.h needs C++11 or newer"
#endif

#include <ringfence/host/arena.h>
#include <ringfence/host/backend.h>
#include <ringfence/host/call.h>
#include <ringfence/host/caller.h>
#include <ringfence/host/code.h>
#include <ringfence/host/dl.h>
#include <ringfence/host/domain.h>
#include <ringfence/host/error.h>
#include <ringfence/host/function.h>
#include <ringfence/host/group.h>
#include <ringfence/host/import.h>
#include <ringfence/host/limit.h>
#include <ringfence/host/memory.h>
#include <ringfence/host/module.h>
#include <ringfence/host/options.h>
#include <ringfence/host/overview.h>
#include <ringfence/host/policy.h>
#include <ringfence/host/pool.h>
#include <ringfence/host/process.h>
#include <ringfence/host/region.h>
#include <ringfence/host/rights.h>
#include <ringfence/host/runtime.h>
#include <ringfence/host/snapshot.h>
#include <ringfence/host/status.h>
#include <ringfence/host/usage.h>
#include <ringfence/host/value.h>
#include <ringfence/host/version.h>

#endif /* RINGFENCE_H */
