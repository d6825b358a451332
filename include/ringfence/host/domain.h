/* ringfence/host/domain.h - domains: making, calling by name, control, what comes and goes while they live. */
#ifndef RINGFENCE_HOST_DOMAIN_H
#define RINGFENCE_HOST_DOMAIN_H

#include <ringfence/host/module.h>
#include <ringfence/host/options.h>
#include <ringfence/host/usage.h>
#include <ringfence/host/value.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A running instance of a module. */
typedef struct rf_domain rf_domain;
typedef struct rf_snapshot rf_snapshot;

/* ------------------------------------------------------------------------------------ making and ending */

/* Makes a domain and runs the module's constructors. `options` may be NULL. `*domain` is NULL on failure.
 * Errors: RF_ERROR_IMPORT, RF_ERROR_CONSTRUCTOR, RF_ERROR_LIMIT, RF_ERROR_UNSUPPORTED; RF_ERROR_ARGUMENT for
 * an option out of range; RF_ERROR_FILE and RF_ERROR_RIGHTS for a directory of the policy. */
rf_status rf_domain_create(rf_module *module, const rf_domain_options *options,
                           rf_domain **domain) RF_WARN_UNUSED;

/* A new domain in the snapshot's state, to which its rf_domain_reset returns. No constructors run. Errors as
 * for rf_domain_create. */
rf_status rf_domain_create_from_snapshot(rf_snapshot *snapshot, rf_domain **domain) RF_WARN_UNUSED;

/* Ends a domain; its destructors do not run (rf_dlclose runs them). Its function pointers and handles give
 * errors from now on. Calls that are in progress in other threads end with an error when they next leave the
 * domain's code (rf_domain_interrupt ends them at once); its memory goes when the last thread has left. NULL
 * is fine. */
rf_status rf_domain_destroy(rf_domain *domain);

/* --------------------------------------------------------------------------------------------- calling */

/* Calls the exported function `name`: rf_function_create and rf_function_call in one, with a look-up each
 * time. */
rf_status rf_domain_call(rf_domain *domain, const char *name, const rf_value *arguments, size_t count,
                         rf_value *result);

/* Calls a function pointer that the domain gave (a registered callback, say). The only safe way to call one:
 * it must be a function's entry inside the domain, or the call is refused with RF_ERROR_NO_FUNCTION. */
rf_status rf_domain_call_address(rf_domain *domain, const void *address, const rf_value *arguments,
                                 size_t count, rf_value *result);

/* Runs the program that the domain holds: its main, with the policy's arguments and environment. RF_OK when
 * it returned or called exit; *exit_status (may be NULL) then has the status. A fault or a limit is the
 * failure that rf_function_call would give. Each run needs a domain that is new or was reset.
 * Errors: RF_ERROR_NO_FUNCTION if the module has no main; RF_ERROR_ARGUMENT without a policy. */
rf_status rf_domain_run_program(rf_domain *domain, int *exit_status);

/* Moves the first bytes of what was captured of stream 1 or 2 (RF_STREAM_CAPTURE) to `to`, at most `capacity`,
 * and returns how many; 0 when there are none left, and on failure. Also while the domain runs. */
size_t rf_domain_take_captured(rf_domain *domain, int number, void *to, size_t capacity);

/* --------------------------------------------------------------------------------------------- control */

/* Puts the domain back to the state right after it was made, or to that of its last rf_domain_checkpoint:
 * memory, allocations, fault; and forgets the thread's pending error. Added code and modules go. Function
 * handles and pointers stay valid; addresses of rf_memory_alloc do not.
 * Errors: RF_ERROR_BUSY while a thread is inside; RF_ERROR_LIMIT after fault_limit faults;
 * RF_ERROR_CONSTRUCTOR. */
rf_status rf_domain_reset(rf_domain *domain);

/* Makes the present state the one that rf_domain_reset returns to: data, heap, thread-local variables of the
 * one thread that has been in the domain.
 * Errors: RF_ERROR_SNAPSHOT, RF_ERROR_BUSY or RF_ERROR_FAULTED if that cannot be; the message says why. */
rf_status rf_domain_checkpoint(rf_domain *domain);

/* Gives back what an idle domain does not need: the stacks of all threads that have no call in progress (some
 * 20 KiB and 8 mappings for each), and heap that a pool keeps for the next user. Data and allocations stay. A
 * thread's next call makes its stacks again, with fresh thread-local variables. `count`, if not NULL,
 * receives of how many threads. Also while calls run. */
rf_status rf_domain_trim(rf_domain *domain, size_t *count);

/* Ends whatever runs in the domain with RF_FAULT_INTERRUPT, soon; a call that is in a host function ends when
 * that returns. Nothing happens if nothing runs. Signal handlers set the word of rf_domain_options.cancel. */
rf_status rf_domain_interrupt(rf_domain *domain);

/* Time limit for each later call from the host into the domain, in nanoseconds; 0: none. It acts within
 * 2 ms. */
rf_status rf_domain_set_time_limit(rf_domain *domain, uint64_t nanoseconds);

/* For host functions that wait for others, a slow client for instance: what passes between the two does not count against the
 * time limit of the calling thread's call in `domain`. The domain's own code is always counted: the clock runs again, too, when
 * the host function returns to the domain or calls a function of it. Pauses do not nest. The limit that all constructors have
 * together goes on. Without a call in progress on this thread nothing happens. How long it waits, the host function bounds
 * itself.
 * Errors: RF_ERROR_UNSUPPORTED if the back end cannot (RF_FEATURE_PAUSES). */
rf_status rf_domain_pause_time(rf_domain *domain);
rf_status rf_domain_resume_time(rf_domain *domain);

/* RF_OK if the domain takes calls, RF_ERROR_FAULTED if it waits for rf_domain_reset, RF_ERROR_HANDLE. Leaves
 * rf_error as it is. */
rf_status rf_domain_state(rf_domain *domain);

/* Tells what the domain's process is locked in with; `docs/backends.md`, process. Fills in as much of
 * `confinement` as its size has.
 * Errors: RF_ERROR_UNSUPPORTED if the domain has no process of its own (RF_FEATURE_CONFINEMENT). */
rf_status rf_domain_confinement(rf_domain *domain, rf_confinement *confinement);

/* Fills in as much of `usage` as its size has. Counting costs calls nothing. */
rf_status rf_domain_usage(rf_domain *domain, rf_usage *usage);

/* ------------------------------------------------------------------------ calls from domain to domain */

/* Gives `domain` the function `function` of `callee` under the name of one of its slots, in place of what is
 * there, while both run. The callee is not kept alive: when it goes, calls fail.
 * Errors: RF_ERROR_IMPORT if there is no such slot, RF_ERROR_NO_FUNCTION. */
rf_status rf_domain_grant(rf_domain *domain, const char *slot, rf_domain *callee, const char *function);

/* Empties a slot. Calls in progress finish, calls that begin after this has returned fail.
 * Errors: RF_ERROR_IMPORT if there is no such slot. */
rf_status rf_domain_revoke(rf_domain *domain, const char *slot);

/* Takes all functions of `callee` from all domains that have any. */
rf_status rf_domain_revoke_all(rf_domain *callee);

/* ----------------------------------------------------------------- modules that come to a living domain
 *
 * A whole module, with data, thread-local variables, constructors and destructors, comes and goes under a
 * name, while other threads run in the domain. Modules of a domain call each other directly. Imports of the
 * new one are looked for among the exports of those that are there, in the order in which they came, then
 * among the host functions of the domain's options (those that its module needs, or all with `extensible`).
 * What is there already reaches new functions through addresses: a host function for looking them up, like
 * dlsym, returns rf_domain_find_symbol's result. rf_domain_reset takes all away; rf_domain_checkpoint and
 * rf_snapshot_create refuse. */

/* Adds the module under `name` and runs its constructors. The module's handle may be ended afterwards.
 * Errors: RF_ERROR_EXISTS: the name is taken, or the domain has this very module (create it once more for a
 * second one); RF_ERROR_IMPORT, RF_ERROR_LIMIT, RF_ERROR_UNSUPPORTED: see the message; RF_ERROR_CONSTRUCTOR:
 * a constructor failed, and the module is gone again. If that was a fault, the domain waits for
 * rf_domain_reset; otherwise nothing has changed. */
rf_status rf_domain_add_module(rf_domain *domain, const char *name, rf_module *module);

/* Runs the destructors of a module that was added, as rf_dlclose does, and takes it away: calls of its
 * functions fail from now on, as with rf_code_remove.
 * Errors: RF_ERROR_NO_OBJECT: there is none of that name. RF_ERROR_BUSY, and nothing has changed: it is on
 * the calling thread's stack, another module was resolved against it, or other threads stay in the domain for
 * longer than 100 us (if they came while its destructors ran, these do not run again at the next try).
 * RF_ERROR_CONSTRUCTOR: a destructor failed; the module is still there. */
rf_status rf_domain_remove_module(rf_domain *domain, const char *name);

/* Address in the domain's window of an exported function or variable of the module that was added under the
 * name `module`, or of any if `module` is NULL; NULL on failure. Errors: RF_ERROR_NO_OBJECT. */
void *rf_domain_find_symbol(rf_domain *domain, const char *module, const char *name);

/* Address of an object that the domain's module exports. `size` may be NULL; receives the size in bytes.
 * NULL on failure. Errors: RF_ERROR_NO_OBJECT. */
void *rf_domain_find_object(rf_domain *domain, const char *name, size_t *size);

#ifdef __cplusplus
}
#endif
#endif
