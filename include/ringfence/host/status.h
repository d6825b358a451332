/* ringfence/host/status.h - what a function of this interface returns. Included by ringfence.h, which
 * tells the conventions. */
#ifndef RINGFENCE_HOST_STATUS_H
#define RINGFENCE_HOST_STATUS_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RF_WARN_UNUSED __attribute__((warn_unused_result))
#else
#define RF_WARN_UNUSED
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What went wrong. The numbers are stable. The prefix tells the class: RF_ERROR_… the operation was
 * refused, RF_FAULT_… the domain's code failed. */
typedef enum rf_status {
    RF_OK = 0,
    /* The caller's mistakes. */
    RF_ERROR_ARGUMENT = 1,     /* a NULL or impossible argument */
    RF_ERROR_HANDLE = 2,       /* NULL, ended or made-up handle */
    RF_ERROR_NO_FUNCTION = 3,  /* there is no function of that name, or it was removed */
    RF_ERROR_NO_OBJECT = 4,    /* there is no object or added module of that name */
    RF_ERROR_RANGE = 5,        /* an address range that is not wholly inside the domain's window */
    RF_ERROR_ACCESS = 6,       /* inside the window, but not mapped, or not writable */
    RF_ERROR_TOO_LONG = 7,     /* a string without its end within the limit; too many arguments */
    RF_ERROR_FREE = 8,         /* not an address that rf_memory_alloc returned, or freed already */
    RF_ERROR_TYPE = 9,         /* a function without its type, or an unreadable prototype */
    /* The module file. */
    RF_ERROR_FILE = 16,        /* cannot be read */
    RF_ERROR_FORMAT = 17,      /* not a module, or damaged */
    RF_ERROR_REJECTED = 18,    /* the verifier found forbidden machine code */
    RF_ERROR_IMPORT = 19,      /* the module needs a function or object that nobody gives */
    RF_ERROR_UNSUPPORTED = 20, /* this processor or kernel lacks something; the message says what */
    RF_ERROR_LIMIT = 21,       /* out of windows, lanes, memory, mappings or handles; a set limit */
    RF_ERROR_CONSTRUCTOR = 22, /* a constructor or destructor of the module failed */
    RF_ERROR_SNAPSHOT = 23,    /* the domain's state cannot be kept; the message says why */
    RF_ERROR_TEXT = 24,        /* a function's text does not compile; the message shows each place, in several lines */
    /* Faults: the domain refuses further calls until rf_domain_reset. */
    RF_FAULT_ACCESS = 32,      /* access to memory that is not mapped, or not with that right */
    RF_FAULT_DIVIDE = 33,      /* integer division by zero or overflow */
    RF_FAULT_ILLEGAL = 34,     /* illegal instruction; __builtin_trap, "unreachable" code */
    RF_FAULT_STACK = 35,       /* stack exhausted */
    RF_FAULT_TIME = 36,        /* time limit exceeded */
    RF_FAULT_INTERRUPT = 37,   /* rf_domain_interrupt */
    RF_FAULT_MEMORY = 38,      /* memory limit exceeded */
    RF_FAULT_ABORT = 39,       /* the module called abort, or an assertion failed */
    RF_FAULT_EXIT = 40,        /* the module called exit; rf_error_info.code is the status */
    RF_FAULT_HOST = 41,        /* a host callback failed (rf_caller_fail), or panicked */
    RF_FAULT_TARGET = 42,      /* an indirect call or jump to something that is no function */
    RF_FAULT_ELSEWHERE = 43,   /* the domain faulted in another thread during this call */
    RF_FAULT_EXCEPTION = 44,   /* nobody caught a C++ exception; the message has its type */
    RF_FAULT_OTHER = 47,       /* any other; see the message */
    /* State. */
    RF_ERROR_FAULTED = 48,     /* the domain faulted before and has not been reset; the message and the
                                  backtrace are those of the first fault since its last reset */
    RF_ERROR_BUSY = 49,        /* not while a thread is inside the domain */
    RF_ERROR_NESTING = 50,     /* calls nested too deeply (100 of one domain, or less than 16 KiB of the
                                  thread's stack left): the domain is as it was; or a lane entered out of order */
    RF_ERROR_RIGHTS = 51,      /* the rules of shared memory or of a policy do not allow it */
    RF_ERROR_EXISTS = 52,      /* the name is taken */
    RF_ERROR_INTERNAL = 63     /* a defect in Ringfence; please report it */
} rf_status;

/* The name of a status, such as "RF_FAULT_ACCESS"; "unknown status" for other numbers. Never NULL; lives
 * for ever. Signals: may be called from a signal handler. */
const char *rf_status_name(rf_status status);

#ifdef __cplusplus
}
#endif
#endif
