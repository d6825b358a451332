/* ringfence/host/caller.h - callbacks: what a host function sees of the call that a domain makes. */
#ifndef RINGFENCE_HOST_CALLER_H
#define RINGFENCE_HOST_CALLER_H

#include <ringfence/host/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_domain rf_domain;

/* A call out of a domain. Good until the callback that got it returns, on its thread only; any other
 * pointer is RF_ERROR_HANDLE in rf_error, and the function does nothing. */
typedef struct rf_caller rf_caller;

/* A callback of the general form. It reads its arguments with rf_caller_arg_…, returns through
 * rf_caller_return_…, and fails with rf_caller_fail. It runs on the thread that called the domain, on
 * several at once if several do, and may call into domains again. It must not leave by a C++ exception
 * or pthread_exit, and by longjmp only to where rf_call_unwind follows. */
typedef void (*rf_callback)(rf_caller *caller, void *context);

/* The n-th integer (or pointer) argument, and the n-th floating-point argument, each counted from 0 among
 * its kind: of f(int a, double x, int b), b is integer 1 and x is float 0. Integers from the 7th on, and
 * floats from the 9th on, lie on the stack: rf_caller_arg_stack. 0 beyond. Narrow integers: cast to the
 * declared type; the upper bits are the module's. */
uint64_t rf_caller_arg_int(const rf_caller *caller, unsigned n);
double rf_caller_arg_f64(const rf_caller *caller, unsigned n);
float rf_caller_arg_f32(const rf_caller *caller, unsigned n);

/* The n-th 8-byte word of arguments on the stack; 0 if it cannot be read. */
uint64_t rf_caller_arg_stack(const rf_caller *caller, unsigned n);

/* Sets the result. The last one of a kind counts; without any the module sees 0. */
void rf_caller_return_int(rf_caller *caller, uint64_t value);
void rf_caller_return_f64(rf_caller *caller, double value);
void rf_caller_return_f32(rf_caller *caller, float value);

/* Ends the domain's call, when the callback returns, with RF_FAULT_HOST and this message (copied). */
void rf_caller_fail(rf_caller *caller, const char *message);

/* The domain that calls. Inside plain functions (rf_import.function) pass NULL: the innermost domain that
 * called out on this thread. NULL if there is none. Belongs to the library: not to be destroyed through
 * this handle. */
rf_domain *rf_caller_domain(const rf_caller *caller);

#ifdef __cplusplus
}
#endif
#endif
