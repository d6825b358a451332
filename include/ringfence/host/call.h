/* ringfence/host/call.h - calls through plain function pointers (rf_dlsym): how the last one ended; and what may be
 * done in signal handlers.
 *
 * Signal handlers. Async-signal-safe, so that a handler may use them whatever it has interrupted, `malloc` included:
 *
 *   calls through pointers of rf_dlsym and RF_DLSYM, those that fail included
 *   rf_call_status, rf_call_save, rf_call_restore, rf_status_name
 *
 * and nothing else of this library. For such calls
 *
 *   - the thread has called a function of that domain before, outside of handlers, and again after rf_domain_trim;
 *   - the handler does not run on an alternate signal stack (SA_ONSTACK), and has not interrupted a domain's code: there the
 *     call fails with RF_ERROR_NESTING, and nothing has happened;
 *   - the domain has no call_limit, no on_limit and no on_callee_failure: those take locks, or run code of the host's. Host
 *     functions and policies that the domain calls are the host's to judge;
 *   - while another thread resets, trims or ends that domain, or adds or removes code, they wait for it;
 *   - the handler begins with rf_call_save and ends with rf_call_restore, as it does with errno.
 *
 *     static void on_alarm(int signal) {
 *         int e = errno;
 *         uint64_t saved = rf_call_save();
 *         tick(1);                                     // int (*tick)(int) = RF_DLSYM(...)
 *         if (rf_call_status() != RF_OK) failed = 1;   // a volatile sig_atomic_t
 *         rf_call_restore(saved);
 *         errno = e;
 *     }
 *
 * The rest of what is known of a failure in a handler, the domain tells afterwards: rf_error for the next call of it, which is
 * refused with RF_ERROR_FAULTED. */
#ifndef RINGFENCE_HOST_CALL_H
#define RINGFENCE_HOST_CALL_H

#include <ringfence/host/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the calling thread's last call into a domain ended: RF_OK if it returned. Failures of calls by
 * rf_function_call and of other functions are not told here but by what they return. Calling rf_error takes the failure over, and RF_OK is
 * told from then on.
 * Signals: may be called from a signal handler. */
rf_status rf_call_status(void);

/* For a signal handler that calls domains: keeps what the interrupted code has not asked for yet (rf_error, rf_call_status) from
 * being overwritten, until rf_call_restore is given what this returns. Pairs nest. In between rf_call_status tells of the handler's
 * own calls, and rf_error is not to be called.
 * Signals: may be called from a signal handler. */
uint64_t rf_call_save(void) RF_WARN_UNUSED;

/* Ends what rf_call_save has begun.
 * Signals: may be called from a signal handler. */
void rf_call_restore(uint64_t saved);

/* Errors that leave a host function by longjmp (PostgreSQL's ereport is one). Such a jump passes the gates, which put nothing in order:
 * the calls stay in progress, and their domains busy. The place that it jumps to ends them:
 *
 *     rf_mark mark = rf_call_mark();
 *     if (sigsetjmp(env, 0) == 0) {
 *         n = parse(text, length);                     // int (*parse)(...) = RF_DLSYM(...); a host function that it calls may jump
 *     } else {
 *         rf_call_unwind(mark);
 *         ...
 *     }
 *
 * Marks nest as the jumps' targets do, also in host functions that are called by a domain: calls that were in progress when the mark was
 * taken go on. What is ended has no result and no error. The domains have not faulted, and take calls at once, because such errors
 * are ordinary in these hosts; their locks, heaps and limits are as the host knows them. But a function of the module was left in the middle,
 * as longjmp leaves any function: what it had half done stays so, its C++ destructors have not run. A module that is not written for
 * that is reset (rf_domain_reset) before its next call.
 *
 * Only calls by pointers of rf_dlsym and RF_DLSYM, and the host functions and callbacks that they call, may be left so. All other functions of
 * this library (rf_function_call, rf_domain_create, rf_domain_reset, ...) keep memory and locks when they are left: use rf_caller_fail. No call of
 * this thread on another stack (a fiber's) is in progress. C++ exceptions do not pass gates: catch them in the host function, and jump or
 * rf_caller_fail. */
typedef struct rf_mark {
    uint64_t call;
    const struct rf_caller *caller;
} rf_mark;

/* Where the calling thread stands among its calls. Never fails; nothing has to be given back.
 * Signals: may be called from a signal handler. */
rf_mark rf_call_mark(void) RF_WARN_UNUSED;

/* Ends the calls that the thread has begun since the mark was taken and has left by a jump to where it was taken. None is an answer, too: RF_OK.
 * If there were any, the signals of faults and the one that ends calls are not blocked afterwards: the jump may have left a handler.
 * RF_ERROR_ARGUMENT: the call in whose host function the mark was taken has ended; nothing has happened.
 * RF_ERROR_UNSUPPORTED: a call of a domain in a process of its own was left (RF_FEATURE_UNWIND). It stays in progress there; destroy the
 * domain.
 * Signals: may be called from a signal handler, if it does not fail. */
rf_status rf_call_unwind(rf_mark mark);

#ifdef __cplusplus
}
#endif
#endif
