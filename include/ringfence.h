/* ringfence.h - load native modules that nobody has to trust, and call them. Host side.
 *
 * A module is a file NAME.rf made by `ringfence cc`. Loading it checks its machine code; a domain is a
 * running instance of it inside its own window of 4 GiB in this process. Code in a domain can neither
 * read nor write nor run anything outside; its crashes and endless loops come back as errors.
 *
 * The short way feels like the dynamic linker:
 *
 *     void *m = rf_dlopen("./libadd.rf", 0);
 *     int (*add)(int, int) = RF_DLSYM(m, int, add, (int, int));
 *     int five = add(2, 3);
 *     if (rf_error()) fprintf(stderr, "%s\n", rf_error()->message);
 *     rf_dlclose(m);
 *
 * The checked way (rf_module_open, rf_domain_create, rf_call) reports every failure in its result. C++ programs find typed
 * wrappers in ringfence.hpp.
 *
 * Conventions
 *   - Functions that can fail return an rf_status, RF_OK = 0, or a pointer, NULL on failure. A failure also
 *     fills the calling thread's rf_error(); a success leaves it as it was.
 *   - Pointers into a domain are ordinary addresses; host and domain use the same numbers. Everything that
 *     comes out of a domain, pointers included, is chosen by code that may be hostile: check it before use,
 *     and copy it (rf_read) before checking, since other threads of the domain can change its memory.
 *     Never dereference or call a pointer that a domain gave you; use rf_read, rf_write, rf_call_address.
 *   - Sizes are in bytes, times in nanoseconds, unless the name says otherwise.
 *   - Handles are checked: NULL, closed and made-up handles give RF_ERROR_HANDLE, not a crash.
 *   - Every function may be called from any thread at any time, except where it says otherwise. A domain may
 *     be entered by many threads at once (the module must then be written for threads).
 *   - Structs with a `size` field may grow in later versions: set it, through the _INIT macro, and zero the rest.
 */
#ifndef RINGFENCE_H
#define RINGFENCE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#if __cplusplus < 201103L
#error "ringfence.h needs C++11 or newer"
#endif
extern "C" {
#endif

#if defined(__GNUC__)
#define RF_WARN_UNUSED __attribute__((warn_unused_result))
#else
#define RF_WARN_UNUSED
#endif

/* ------------------------------------------------------------------------------------------------ errors */

/* What went wrong. Numbers are stable. */
typedef enum rf_status {
    RF_OK = 0,
    /* The caller's mistakes. */
    RF_ERROR_ARGUMENT = 1,     /* a NULL or impossible argument */
    RF_ERROR_HANDLE = 2,       /* NULL, closed or made-up handle */
    RF_ERROR_NO_FUNCTION = 3,  /* there is no function of that name, or it was unlinked */
    RF_ERROR_NO_OBJECT = 4,    /* the module exports no object of that name */
    RF_ERROR_RANGE = 5,        /* an address range that is not wholly inside the domain's window */
    RF_ERROR_ACCESS = 6,       /* inside the window, but not mapped, or not writable */
    RF_ERROR_TOO_LONG = 7,     /* a string without its end within the limit; too many arguments */
    RF_ERROR_FREE = 8,         /* not an address that rf_alloc returned, or freed already */
    RF_ERROR_TYPE = 9,         /* a function without its type, or a prototype that cannot be read; the message says where */
    /* The module file. */
    RF_ERROR_FILE = 16,        /* cannot be read */
    RF_ERROR_FORMAT = 17,      /* not a module, or damaged */
    RF_ERROR_REJECTED = 18,    /* the verifier found forbidden machine code */
    RF_ERROR_IMPORT = 19,      /* the module needs a function or object that nobody gives */
    RF_ERROR_UNSUPPORTED = 20, /* this processor or kernel lacks something; the message says what */
    RF_ERROR_LIMIT = 21,       /* out of windows, lanes, memory or mappings */
    RF_ERROR_CONSTRUCTOR = 22, /* a constructor or destructor of the module failed */
    RF_ERROR_SNAPSHOT = 23,    /* the domain's state cannot become an image; the message says why */
    /* Faults: the domain refuses further calls until rf_reset. */
    RF_FAULT_ACCESS = 32,      /* access to memory that is not mapped, or not with that right */
    RF_FAULT_DIVIDE = 33,      /* integer division by zero or overflow */
    RF_FAULT_ILLEGAL = 34,     /* illegal instruction; failed __builtin_trap, "unreachable" code */
    RF_FAULT_STACK = 35,       /* stack exhausted */
    RF_FAULT_TIME = 36,        /* time limit exceeded */
    RF_FAULT_INTERRUPT = 37,   /* rf_interrupt */
    RF_FAULT_MEMORY = 38,      /* memory limit exceeded */
    RF_FAULT_ABORT = 39,       /* the module called abort, or an assertion failed */
    RF_FAULT_EXIT = 40,        /* the module called exit; rf_error_info.code is the status */
    RF_FAULT_HOST = 41,        /* a host callback failed (rf_fail), or panicked */
    RF_FAULT_TARGET = 42,      /* an indirect call or jump to something that is no function */
    RF_FAULT_ELSEWHERE = 43,   /* the domain faulted in another thread during this call */
    RF_FAULT_EXCEPTION = 44,   /* nobody caught a C++ exception; the message has its type */
    RF_FAULT_OTHER = 47,       /* any other; see the message */
    /* State. */
    RF_ERROR_FAULTED = 48,     /* the domain faulted before and has not been reset */
    RF_ERROR_BUSY = 49,        /* not while a thread is inside the domain */
    RF_ERROR_NESTING = 50,     /* calls nested too deeply, or a lane entered out of order */
    RF_ERROR_RIGHTS = 51,      /* shared memory: the rules do not allow it; the message says which */
    RF_ERROR_EXISTS = 52,      /* the name is taken */
    RF_ERROR_INTERNAL = 63     /* a defect in Ringfence; please report it */
} rf_status;

/* One function of a backtrace, innermost first. Strings are NULL when unknown. */
typedef struct rf_frame {
    uint64_t address;     /* of the instruction */
    const char *function; /* name in the module */
    const char *file;     /* source file, if the module has debug information */
    uint32_t line;        /* 0 when unknown */
    uint32_t reserved;
} rf_frame;

/* What went wrong, in detail. Owned by the library; valid until the same thread's next rf_ call or call into
 * a domain. */
typedef struct rf_error_info {
    size_t size;          /* of this struct, as the library knows it */
    rf_status status;
    int32_t code;         /* exit status, or reason of an abort; otherwise 0 */
    const char *message;  /* one line for a person; never NULL */
    uint64_t address;     /* faults: the address that was accessed, 0 if none applies */
    uint64_t instruction; /* faults: address of the instruction, 0 if unknown */
    const char *function; /* faults: function of the module, or NULL */
    const char *file;     /* faults: source file, or NULL */
    uint32_t line;        /* faults: source line, or 0 */
    uint32_t frame_count;
    const rf_frame *frames; /* faults: backtrace of the module's frames */
} rf_error_info;

/* The calling thread's pending error, or NULL if there is none. Pending until rf_clear_error, rf_reset or
 * the next failure. Costs a few nanoseconds when there is none. */
const rf_error_info *rf_error(void);

/* Forgets the calling thread's pending error. */
void rf_clear_error(void);

/* The name of a status, such as "RF_FAULT_ACCESS"; never NULL. */
const char *rf_status_name(rf_status status);

/* Version of the library, such as "0.1.0". */
const char *rf_version(void);

/* ------------------------------------------------------------------- the trio like the dynamic linker's */

/* Opens a module and makes one domain of it.
 * `path`   the file, as in open(2); no search path.
 * `flags`  0, or RF_INTEGRITY to accept modules that are built with --isolation=integrity.
 * Imports are resolved against what rf_provide gave before. System calls of the module (files, streams, clocks) are answered by what
 * rf_provide_policy gave before; without it they fail, but for memory. Returns NULL on failure (see rf_error). */
void *rf_dlopen(const char *path, int flags) RF_WARN_UNUSED;

struct rf_domain_options;
struct rf_policy;

/* The same for one domain that gets something of its own: `options` as for rf_domain_create, a policy for instance. Its imports come
 * before those of rf_provide, and its policy, if it has one, takes the place of that of rf_provide_policy. NULL: as rf_dlopen.
 *
 *     rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
 *     o.policy = policy;                  // rf_policy_create, rf_policy_dir, rf_policy_stream, ...
 *     void *m = rf_dlopen_with("./plugin.rf", 0, &o);
 */
void *rf_dlopen_with(const char *path, int flags, const struct rf_domain_options *options) RF_WARN_UNUSED;

/* A pointer to the module's exported function or object, or NULL (see rf_error).
 * `name`  a function's prototype, "int add(int, int)", or an object's name, "table".
 *
 * A function's pointer is called in plain C syntax, cast to the function's type; RF_DLSYM does both. Rules:
 *   - The prototype is how the gate knows which registers, and which parts of them, carry something. All others it clears, so
 *     that the module does not see what the program's compiler left there, such as addresses. A function's name without a
 *     type is RF_ERROR_TYPE. A prototype that is wrong gives the module wrong values and endangers nothing.
 *   - Types: the integer and floating types of C, size_t and the like of stddef.h, int32_t and the like of stdint.h, bool, enum X,
 *     long double, and everything with a `*`. Not: structs by value, _Complex, __int128, variable arguments; other names that
 *     typedef made only with a `*`: write what they stand for. At most RF_STACK_ARGS_MAX bytes beyond 6 integers and 8 floats.
 *   - A fault cannot be reported in the result: the call returns 0 and rf_error() tells. The domain then refuses
 *     calls (each returns 0 with RF_ERROR_FAULTED) until rf_reset. Prefer rf_call where that matters.
 *   - Pointer arguments must point into the domain (rf_alloc): the module cannot read host memory.
 *   - Valid until rf_dlclose; after that a call returns 0 with RF_ERROR_HANDLE.
 * An object's address is inside the window: read it through rf_read. */
void *rf_dlsym(void *handle, const char *name) RF_WARN_UNUSED;

/* The function `name` as a pointer of its type:
 *
 *     int (*add)(int, int) = RF_DLSYM(m, int, add, (int, int));
 */
#define RF_DLSYM(handle, result, name, parameters) \
    ((result (*) parameters)(uintptr_t)rf_dlsym((handle), #result " " #name #parameters))

/* In front of a function's name, in place of a type: rf_dlsym(m, RF_UNTYPED "add"), RF_IMPORT(RF_UNTYPED "host_add", f). For types that
 * a prototype cannot tell. SUCH A FUNCTION LEAKS: with each call, the module gets the argument registers that the function does
 * not use as the program's compiler left them, after each return from such an import also rdx, xmm0 and xmm1, addresses of the
 * program included. Only for modules that may see these. Passes up to 6 integers and 8 float or double; structs of up to
 * 16 bytes; nothing on the stack. */
#define RF_UNTYPED "untyped "

/* Like rf_dlsym, for RF_UNTYPED functions with `stack_bytes` of arguments on the stack (8 for each word beyond the registers; the
 * size, rounded up to 8, of each struct over 16 bytes passed by value; 16 for each long double). At most RF_STACK_ARGS_MAX. */
void *rf_dlsym_args(void *handle, const char *name, size_t stack_bytes) RF_WARN_UNUSED;
#define RF_STACK_ARGS_MAX 128

/* Runs the module's destructors (functions with that attribute, then those given to atexit and destructors of static C++ objects, as
 * dlclose does; streams are written out), under the domain's limits, and closes a handle of rf_dlopen. Calls that are in progress in other
 * threads end with an error when they next leave the domain's code (rf_interrupt ends them at once), and no destructor runs then, nor
 * after a fault or an exit; the domain's memory goes when the last thread has left. rf_domain_destroy runs none.
 * Returns 0, or -1 for something that is no open handle, and when a destructor failed (RF_ERROR_CONSTRUCTOR): the handle is closed all the same. */
int rf_dlclose(void *handle);

/* Gives a host function to the modules that are opened later by rf_dlopen in this process, under the name in its prototype,
 * "int host_add(int, int)". Modules get nothing else: an import that was not provided is an error of rf_dlopen. See rf_import for
 * what `function` must obey. Replaces an earlier function of that name; NULL takes it away. */
rf_status rf_provide(const char *name, void (*function)(void));

/* The same, and lets the compiler compare: RF_PROVIDE(int, host_add, (int, int), add). */
#define RF_PROVIDE(result, name, parameters, function) \
    rf_provide(#result " " #name #parameters, RF_AS_(result, parameters, function))

/* `function` if it has that type; else the compiler complains. */
#define RF_AS_(result, parameters, function) ((void (*)(void))(1 ? (function) : (result (*) parameters)0))

/* The policy of the modules that are opened later by rf_dlopen in this process; NULL: none, as at the start. It is copied: changing or
 * closing it afterwards changes nothing. Each module has descriptors, directories and captured output of its own; what cannot be
 * put into force (a directory that is not there) is an error of rf_dlopen. */
rf_status rf_provide_policy(const struct rf_policy *policy);

/* --------------------------------------------------------------------------------------- the checked way */

typedef struct rf_module rf_module;     /* a verified module; any number of domains can be made of it */
typedef struct rf_domain rf_domain;     /* a running instance */
typedef struct rf_function rf_function; /* one exported function of one domain, looked up once */
typedef struct rf_caller rf_caller;     /* a call out of a domain, during a callback */
typedef struct rf_policy rf_policy;     /* what domains may ask of the operating system */

#define RF_INTEGRITY 1 /* flag: accept modules whose loads are not confined */

/* Reads, checks and verifies the module at `path`. `*module` is NULL on failure. */
rf_status rf_module_open(const char *path, int flags, rf_module **module) RF_WARN_UNUSED;

/* The same from `length` bytes in memory, which are copied. `name` is for messages; may be NULL. */
rf_status rf_module_open_bytes(const void *bytes, size_t length, const char *name, int flags,
                               rf_module **module) RF_WARN_UNUSED;

/* Gives the handle back. Domains made of the module live on. NULL is fine. */
rf_status rf_module_close(rf_module *module);

/* A callback of the general form. It reads its arguments with rf_arg_..., returns through rf_return_..., and fails with
 * rf_fail. It runs on the calling thread and may call into domains again. It must not leave by longjmp, a C++ exception
 * or pthread_exit. */
typedef void (*rf_callback)(rf_caller *caller, void *context);

/* One function that the host gives to a domain. Set exactly one of `function` and `callback`.
 *   name      with a function its prototype, "int host_add(int, int)", by the rules of rf_dlsym; with a callback the name only.
 *   function  a C function, called with the module's arguments in registers as they are (up to 6 integers, 8
 *             floats; no stack arguments). The fastest form. Its arguments are the module's to choose:
 *             whatever it does with them must be safe for every value. Of its registers the module sees the result.
 *   callback  the general form, with `context`. */
typedef struct rf_import {
    const char *name;
    void (*function)(void);
    rf_callback callback;
    void *context;
} rf_import;

/* RF_IMPORT_FUNCTION(int, host_add, (int, int), add): the compiler compares the type with the function's. */
#define RF_IMPORT_FUNCTION(result, name, parameters, function) \
    { #result " " #name #parameters, RF_AS_(result, parameters, function), NULL, NULL }
#define RF_IMPORT(prototype, function) { (prototype), (void (*)(void))(function), NULL, NULL }
#define RF_IMPORT_CALLBACK(name, callback, context) { (name), NULL, (callback), (context) }

/* What becomes of a domain whose call of another one failed. RF_TELL: the call returns 0, and __rf_call_status tells why; a domain
 * that does not link that function is ended. RF_RETURN: the call returns rf_slot.value, and __rf_call_status tells why.
 * RF_END: the calling domain's own call ends with an error. */
typedef enum rf_on_failure { RF_TELL = 0, RF_RETURN, RF_END } rf_on_failure;

/* An import that takes functions of other domains, given with rf_grant. Until then calls of it fail. Only arguments and results in
 * registers pass. */
typedef struct rf_slot {
    const char *name;
    uint8_t ints, floats;               /* arguments: up to 6 and 8 */
    uint8_t int_results, float_results; /* results: up to 2 and 2 */
    rf_on_failure on_failure;
    uint64_t value;
} rf_slot;

/* A limit that a domain has reached. */
typedef enum rf_limit {
    RF_LIMIT_MEMORY = 1,     /* wants `wanted` bytes more than `used`; raised, the request is tried once more. rf_reset puts it back */
    RF_LIMIT_CALL_TIME,      /* a call took longer than `limit` ns; it has ended. Cannot be raised */
    RF_LIMIT_PROCESSOR_TIME, /* `used` ns; the call has ended. Raised, calls after the next rf_reset go on */
    RF_LIMIT_FAULTS,         /* rf_reset after `used` faults; raised, it goes on */
    RF_LIMIT_DESCRIPTORS,    /* of the policy. Cannot be raised */
    RF_LIMIT_CALLS,          /* a call after `used` of them; raised, it begins */
    RF_LIMIT_LANES           /* another thread wants to enter; raised, up to 63, it does */
} rf_limit;

typedef struct rf_limit_hit {
    rf_domain *domain; /* NULL while it is being made */
    int32_t what;      /* an rf_limit */
    int32_t reserved;
    uint64_t wanted, used, limit;
} rf_limit_hit;

/* How to make a domain. Zero means the default everywhere. */
typedef struct rf_domain_options {
    size_t size;              /* sizeof(rf_domain_options) */
    const rf_import *imports; /* copied; names too */
    size_t import_count;
    uint64_t time_limit_ns;   /* for each call from the host; 0: none */
    uint64_t memory_limit;    /* heap, maps and host allocations together, in bytes; 0: none but the window */
    uint64_t stack_size;      /* data stack of each lane, in bytes; 0: the default */
    const rf_policy *policy;  /* answers the domain's system calls; NULL: memory and exit only */
    const rf_slot *slots;     /* copied; names too */
    size_t slot_count;
    uint64_t processor_time_ns; /* in the domain's own code, over all its life; 0: not counted; UINT64_MAX: counted */
    uint64_t fault_limit;     /* after so many faults rf_reset fails with RF_ERROR_LIMIT; 0: never */
    uint64_t link_limit;      /* most bytes of code that rf_link takes, up to 16 MiB; 0: the default, 1 MiB */
    uint64_t linkable;        /* 1: code and modules that come later may use vector registers even if the module has none, and
                                 modules may import any of `imports` and `slots`, needed so far or not */
    uint64_t module_limit;    /* most bytes of images of rf_module_add; 0: the default, 64 MiB */
    uint64_t thread_local_reserve; /* bytes of each lane for their thread-local variables, up to 1 MiB; 0: 1 KiB, 8 if linkable */
    /* Called when a limit is reached, besides the error that somebody gets for it; NULL: nobody is asked. It returns the limit
     * that holds from now on, 0 to leave it as it is. It runs on the thread that reached the limit, on several at once if several do,
     * may use the domain's memory, and must not leave by longjmp, a C++ exception or pthread_exit, nor wait for calls of the
     * domain to end. When a call has run out of time it must not call domains. What it does itself reaches limits unasked. */
    uint64_t (*on_limit)(const rf_limit_hit *hit, void *context);
    void *limit_context;
    uint64_t call_limit;      /* most calls from outside, constructors included; later ones fail with RF_ERROR_LIMIT; 0: no limit */
    uint64_t max_lanes;       /* how many threads may have stacks in the domain, up to 63; 0: 63 */
} rf_domain_options;

#ifdef __cplusplus
#define RF_DOMAIN_OPTIONS_INIT { sizeof(rf_domain_options), nullptr, 0, 0, 0, 0, nullptr, nullptr, 0, 0, 0, 0, 0, 0, 0, nullptr, nullptr, 0, 0 }
#else
#define RF_DOMAIN_OPTIONS_INIT { .size = sizeof(rf_domain_options) }
#endif

/* Makes a domain and runs the module's constructors. `options` may be NULL. `*domain` is NULL on failure. */
rf_status rf_domain_create(rf_module *module, const rf_domain_options *options, rf_domain **domain) RF_WARN_UNUSED;

/* Ends a domain. Its function pointers and handles give errors from now on; calls in progress end as with rf_dlclose.
 * NULL is fine. */
rf_status rf_domain_destroy(rf_domain *domain);

/* The domain behind a handle of rf_dlopen, for the functions below; it is the same handle by its proper type, closed with
 * it. NULL on failure. The other way round, an rf_domain can be given to rf_dlsym. */
rf_domain *rf_dldomain(void *handle);

/* An argument or a result. */
typedef enum rf_type { RF_VOID = 0, RF_I32, RF_U32, RF_I64, RF_U64, RF_PTR, RF_F32, RF_F64 } rf_type;

typedef struct rf_value {
    rf_type type;
    union {
        int32_t i32;
        uint32_t u32;
        int64_t i64;
        uint64_t u64;
        void *ptr; /* an address; of the domain, when it comes from one */
        float f32;
        double f64;
    } as;
} rf_value;

static inline rf_value rf_i32(int32_t v) { rf_value r; r.type = RF_I32; r.as.u64 = 0; r.as.i32 = v; return r; }
static inline rf_value rf_u32(uint32_t v) { rf_value r; r.type = RF_U32; r.as.u64 = 0; r.as.u32 = v; return r; }
static inline rf_value rf_i64(int64_t v) { rf_value r; r.type = RF_I64; r.as.i64 = v; return r; }
static inline rf_value rf_u64(uint64_t v) { rf_value r; r.type = RF_U64; r.as.u64 = v; return r; }
static inline rf_value rf_p(const void *v) { rf_value r; r.type = RF_PTR; r.as.u64 = (uint64_t)(uintptr_t)v; return r; }
static inline rf_value rf_f32(float v) { rf_value r; r.type = RF_F32; r.as.u64 = 0; r.as.f32 = v; return r; }
static inline rf_value rf_f64(double v) { rf_value r; r.type = RF_F64; r.as.f64 = v; return r; }

/* Looks up an exported function once, for many calls. `*function` is NULL on failure. */
rf_status rf_function_get(rf_domain *domain, const char *name, rf_function **function) RF_WARN_UNUSED;

/* Gives the handle back. NULL is fine. */
rf_status rf_function_put(rf_function *function);

/* Calls a function: `count` arguments of any number (further ones go onto the domain's stack). `result` may be NULL;
 * otherwise set result->type to what the function returns before the call. A wrong number or type of arguments gives the
 * module wrong values; it endangers nothing outside the domain. On failure *result is zeroed.
 *
 *     rf_value r = { RF_I32, { 0 } };
 *     rf_value a[] = { rf_i32(2), rf_i32(3) };
 *     if (rf_call(add, a, 2, &r) != RF_OK) fprintf(stderr, "%s\n", rf_error()->message);
 */
rf_status rf_call(rf_function *function, const rf_value *arguments, size_t count, rf_value *result);

/* The same by name: one look-up more. */
rf_status rf_call_name(rf_domain *domain, const char *name, const rf_value *arguments, size_t count, rf_value *result);

/* Calls a function pointer that the domain gave (a registered callback, say). The only safe way to call one: it must be
 * a function's entry inside the domain, or the call is refused. */
rf_status rf_call_address(rf_domain *domain, const void *address, const rf_value *arguments, size_t count,
                          rf_value *result);

/* ------------------------------------------------------------------------------------------ a domain's memory */

/* `size` bytes of zeroed memory in the domain, aligned to 16; NULL on failure. It counts against the memory limit. */
void *rf_alloc(rf_domain *domain, size_t size) RF_WARN_UNUSED;

/* Frees what rf_alloc returned. NULL is fine. rf_reset frees everything. */
rf_status rf_free(rf_domain *domain, void *address);

/* Copies `length` bytes from the domain's memory at `from` into the host's at `to`. Any `from` is fine: what is not wholly
 * inside the window is RF_ERROR_RANGE, what is not mapped RF_ERROR_ACCESS (part of `to` may have been written). */
rf_status rf_read(rf_domain *domain, const void *from, void *to, size_t length);

/* Copies `length` bytes from the host's memory at `from` into the domain's at `to`. */
rf_status rf_write(rf_domain *domain, void *to, const void *from, size_t length);

/* Copies the NUL-terminated string at `from` into `to`, `capacity` bytes long, NUL included. RF_ERROR_TOO_LONG when it
 * does not fit (then `to` is the empty string). `length` may be NULL; it receives the length without the NUL. */
rf_status rf_read_string(rf_domain *domain, const void *from, char *to, size_t capacity, size_t *length);

/* A copy of the string `text` in the domain's memory (rf_free it); NULL on failure. */
void *rf_alloc_string(rf_domain *domain, const char *text) RF_WARN_UNUSED;

/* 1 if the whole range lies in the domain's window, else 0. Says nothing about what is mapped there. */
int rf_ptr_check(rf_domain *domain, const void *address, size_t length);

/* Address and size of an exported object. `size` may be NULL. NULL on failure. */
void *rf_object(rf_domain *domain, const char *name, size_t *size);

/* ------------------------------------------------------------------------------------------------ control */

/* Puts the domain back to the state right after rf_domain_create, or to that of its last rf_snapshot: memory, allocations, fault. Function handles and
 * pointers stay valid; addresses of rf_alloc do not. RF_ERROR_BUSY while a thread is inside. */
rf_status rf_reset(rf_domain *domain);

/* Gives back what an idle domain does not need: the stacks of all threads that have no call in progress (some 20 KiB and 8
 * mappings for each), and heap that a pool keeps for the next user. Data and allocations stay. A thread's next call makes its
 * stacks again, with fresh thread-local variables. `count`, if not NULL: of how many threads. From any thread, while calls run. */
rf_status rf_trim(rf_domain *domain, size_t *count);

/* Makes the present state the one that rf_reset returns to: data, heap, thread-local variables of the one thread that has been
 * in the domain. RF_ERROR_SNAPSHOT, RF_ERROR_BUSY or RF_ERROR_FAULTED if that cannot be; the message says why. */
rf_status rf_snapshot(rf_domain *domain);

/* Ends whatever runs in the domain with RF_FAULT_INTERRUPT, soon; from any thread, and from signal handlers not. */
rf_status rf_interrupt(rf_domain *domain);

/* Time limit for each later call from the host into the domain, in nanoseconds; 0: none. It acts within 2 ms. */
rf_status rf_time_limit(rf_domain *domain, uint64_t nanoseconds);

/* RF_OK if the domain takes calls, RF_ERROR_FAULTED if it waits for rf_reset, RF_ERROR_HANDLE. Sets no rf_error. */
rf_status rf_domain_state(rf_domain *domain);

/* -------------------------------------------------------------------------------- calls from domain to domain */

/* Gives `domain` the function `function` of `callee` under the name of one of its slots, in place of what is there, while both run.
 * The callee is not kept alive: when it goes, calls fail. RF_ERROR_IMPORT if there is no such slot, RF_ERROR_NO_FUNCTION. */
rf_status rf_grant(rf_domain *domain, const char *slot, rf_domain *callee, const char *function);

/* Empties a slot. Calls in progress finish, calls that begin after rf_revoke has returned fail. RF_ERROR_IMPORT. */
rf_status rf_revoke(rf_domain *domain, const char *slot);

/* Takes all functions of `callee` from all domains that have any. */
rf_status rf_revoke_all(rf_domain *callee);

/* ------------------------------------------------------------------------------------------ images and pools */

typedef struct rf_image rf_image; /* the state that new domains start from */
typedef struct rf_pool rf_pool;   /* clean domains, handed out and taken back */

/* Makes two domains of `module`, runs `init` in each (0: done, all else: failed), and makes an image of what they have in common.
 * `init` must do the same both times, and leave nothing in the domain that depends on time, chance, or on an address other
 * than as a pointer: RF_ERROR_SNAPSHOT says where two runs differ. What `options` names is kept for the domains of the image; a policy
 * has to stay open for them. `*image` is NULL on failure. */
rf_status rf_image_create(rf_module *module, const rf_domain_options *options, int (*init)(rf_domain *, void *context),
                          void *context, rf_image **image) RF_WARN_UNUSED;

/* A new domain in the image's state, to which its rf_reset returns. Ends with rf_domain_destroy. */
rf_status rf_image_domain(rf_image *image, rf_domain **domain) RF_WARN_UNUSED;

/* Gives the handle back. Domains and pools of the image stay. NULL is fine. */
rf_status rf_image_close(rf_image *image);

/* A pool that keeps up to `most` domains while nobody uses them, and makes more when it has none: of a module, or of an image. What
 * `options` names is kept as for rf_image_create. */
rf_status rf_pool_create(rf_module *module, const rf_domain_options *options, size_t most, rf_pool **pool) RF_WARN_UNUSED;
rf_status rf_pool_of_image(rf_image *image, size_t most, rf_pool **pool) RF_WARN_UNUSED;

/* A clean domain, under a new handle. */
rf_status rf_pool_take(rf_pool *pool, rf_domain **domain) RF_WARN_UNUSED;

/* Takes a domain back: its handle and those of its functions end, pointers from rf_dlsym must not be used any more, and it is made
 * like new: memory, rights to regions, functions granted to it and by it, captured output. A domain that somebody still uses is
 * ended instead. RF_ERROR_ARGUMENT if it is not from this pool. */
rf_status rf_pool_give(rf_pool *pool, rf_domain *domain);

/* Ends the pool and the domains that wait in it. Those in use stay; they end with rf_domain_destroy. NULL is fine. */
rf_status rf_pool_close(rf_pool *pool);

/* ------------------------------------------------------------------------------------------------ policy
 *
 * A domain has no system calls of its own: its C library asks, and the policy of the domain answers. What is not granted is
 * denied with the errno that portable programs expect. A new policy grants nothing; build it up, then make domains with it
 * (rf_domain_options.policy). Each domain gets the policy as it is at that moment, with descriptors, directories and
 * captured output of its own; changing or closing the policy afterwards changes nothing for it. Limits of memory and time
 * belong to the domain: rf_domain_options.
 *
 *     rf_policy *p;
 *     rf_policy_create(&p);
 *     rf_policy_dir(p, "/srv/data", "/data", RF_READ);
 *     rf_policy_stream(p, 1, RF_STREAM_CAPTURE);
 *     rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
 *     o.policy = p;
 *     rf_domain *d;
 *     int exit_status;
 *     if (rf_domain_create(module, &o, &d) == RF_OK && rf_run_program(d, &exit_status) == RF_OK) ...
 */

/* Rights to a directory, or to memory. RF_WRITE includes reading. */
typedef enum rf_rights { RF_NONE = 0, RF_READ = 1, RF_WRITE = 2 } rf_rights;

/* Makes a policy that grants nothing. `*policy` is NULL on failure. */
rf_status rf_policy_create(rf_policy **policy) RF_WARN_UNUSED;

/* Gives the handle back. Domains that were made with it live on. NULL is fine. */
rf_status rf_policy_close(rf_policy *policy);

/* Grants the host's directory `host` and all below it under the absolute name `guest`: RF_READ, or RF_WRITE for both.
 * Neither symbolic links nor ".." lead out of it. The first one is where programs start. It is opened when a domain is made:
 * one that cannot be opened is then RF_ERROR_FILE, one of procfs, sysfs and their like RF_ERROR_RIGHTS. */
rf_status rf_policy_dir(rf_policy *policy, const char *host, const char *guest, rf_rights rights);

/* Where a standard stream goes: not open (the default); reads end and writes vanish; the host's own stream of that
 * number; kept for rf_captured (1 and 2 only). */
typedef enum rf_stream { RF_STREAM_CLOSED = 0, RF_STREAM_NULL = 1, RF_STREAM_INHERIT = 2, RF_STREAM_CAPTURE = 3 } rf_stream;

/* Sets standard stream 0, 1 or 2. */
rf_status rf_policy_stream(rf_policy *policy, int number, rf_stream stream);

/* Standard input is these bytes, which are copied. */
rf_status rf_policy_input(rf_policy *policy, const void *bytes, size_t length);

/* How many bytes a captured stream may hold before writes fail with ENOSPC. The default is 64 MiB. */
rf_status rf_policy_capture_limit(rf_policy *policy, size_t bytes);

/* A program's arguments, its name first; they replace earlier ones. Copied. UTF-8. */
rf_status rf_policy_args(rf_policy *policy, const char *const *args, size_t count);

/* Adds an environment variable. Copied. UTF-8. */
rf_status rf_policy_env(rf_policy *policy, const char *name, const char *value);

/* Whether (0 or 1) the time can be asked for and waited for. */
rf_status rf_policy_clocks(rf_policy *policy, int granted);

/* Whether (0 or 1) the kernel's random numbers can be had. */
rf_status rf_policy_randomness(rf_policy *policy, int granted);

/* How many descriptors a domain may have open, 3 to 65536. The default is 64. */
rf_status rf_policy_descriptors(rf_policy *policy, unsigned limit);

/* How many threads of its own a domain may have at a time (pthread_create, std::thread, thrd_create); 0, the default: none. They
 * are threads of this process, each a call into the domain: a fault in one ends all, and rf_reset says RF_ERROR_BUSY while one
 * runs. rf_run_program ends those that outlive main, rf_domain_destroy all; rf_interrupt too. */
rf_status rf_policy_threads(rf_policy *policy, unsigned limit);

/* Lets domains connect to this address, "127.0.0.1:80" or "[::1]:80", by TCP or UDP; may be called several times. */
rf_status rf_policy_connect(rf_policy *policy, const char *address);

/* A system call that a domain makes, before anything is decided. */
typedef struct rf_syscall {
    size_t size;       /* of this struct, as the library knows it */
    uint64_t number;   /* x86-64 Linux */
    const char *name;  /* NULL for an unusual one */
    uint64_t args[6];  /* pointers are the domain's: rf_read, rf_write */
    rf_domain *domain; /* NULL while its constructors run; belongs to the library */
    int64_t result;    /* for the callback to set */
} rf_syscall;

/* A callback's answer: the policy decides; denied, with the errno in call->result; the callback has done it itself, and the
 * domain gets call->result (-errno for a failure). Anything else denies with EPERM. */
typedef enum rf_decision { RF_BY_POLICY = 0, RF_DENY = 1, RF_DONE = 2 } rf_decision;

/* Asks `decide` about each call first; NULL: no longer. It runs on the thread that calls, several at once if several threads
 * are inside, and must not leave by longjmp, a C++ exception or pthread_exit. */
rf_status rf_policy_callback(rf_policy *policy, rf_decision (*decide)(rf_syscall *call, void *context), void *context);

/* Gives each call, with its result, to `print` as a line like strace's. As for rf_policy_callback. */
rf_status rf_policy_trace(rf_policy *policy, void (*print)(const char *line, void *context), void *context);

/* Runs the program that the domain holds: its main, with the policy's arguments and environment. RF_OK when it returned or
 * called exit; *exit_status (may be NULL) then has the status. A fault or a limit is the failure that rf_call would give. Each
 * run needs a domain that is new or was reset. RF_ERROR_NO_FUNCTION if the module has no main. */
rf_status rf_run_program(rf_domain *domain, int *exit_status);

/* Moves the first bytes of what was captured of stream 1 or 2 to `to`, at most `capacity`, and returns how many; 0 when
 * there are none left. From any thread, also while the domain runs. */
size_t rf_captured(rf_domain *domain, int number, void *to, size_t capacity);

/* What a domain uses and has used. Reading it costs calls nothing. */
typedef struct rf_usage {
    size_t size;                /* sizeof(rf_usage), set by the caller */
    uint64_t memory;            /* bytes of heap, maps, host allocations and data of added modules, now */
    uint64_t linked;            /* bytes of linked code, now */
    uint64_t calls;             /* calls from outside since it was made, constructors' included; nested ones are not counted */
    uint64_t faults;            /* calls that ended with a fault since it was made */
    uint64_t processor_time_ns; /* in its own code, if counted; sampled once a millisecond */
    uint64_t descriptors;       /* that its policy has open for it */
    uint64_t resets;
    uint32_t lanes;             /* threads that have stacks in it */
    uint32_t active;            /* how many of them have a call in progress */
    uint64_t modules;           /* bytes of the window that modules of rf_module_add take, now */
} rf_usage;

#define RF_USAGE_INIT { sizeof(rf_usage), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* Fills in as much of `usage` as its size has. */
rf_status rf_domain_usage(rf_domain *domain, rf_usage *usage);

/* ---------------------------------------------------------------------- code that comes to a living domain
 *
 * Code is one or more functions of machine code, position-independent, without relocations (so without symbols, weak ones too), data or jump tables, that obey
 * the verifier's rules. It comes and goes under a name, while other threads run in the domain. rf_reset takes all away. */

/* Verifies `length` bytes of code and links a copy under `name`; `entry` is the offset of the function that the name stands for.
 * With a function marker there, the domain's own code can call it through its address (rf_function_address). RF_ERROR_EXISTS:
 * the name is taken. `*function` is NULL on failure, and nothing has changed. */
rf_status rf_link(rf_domain *domain, const char *name, const void *code, size_t length, size_t entry,
                  rf_function **function) RF_WARN_UNUSED;

/* Finds linked code by its name. */
rf_status rf_lookup(rf_domain *domain, const char *name, rf_function **function) RF_WARN_UNUSED;

/* Unlinks code: calls of it fail from now on (rf_call with RF_ERROR_NO_FUNCTION, the domain's own like any call to what is no
 * function). RF_ERROR_BUSY, and nothing has changed, while the code is on the calling thread's stack, or while other threads
 * stay in the domain for longer than 100 us. */
rf_status rf_unlink(rf_domain *domain, const char *name);

/* ------------------------------------------------------------------- modules that come to a living domain
 *
 * A whole module, with data, thread-local variables, constructors and destructors, comes and goes under a name, while other threads run
 * in the domain. Modules of a domain call each other directly. Imports of the new one are looked for among the exports of those that
 * are there, in the order in which they came, then among the host functions of the domain's options (those that its module
 * needs, or all with `linkable`). What is there already reaches new functions through addresses: a host function for
 * looking them up, like dlsym, returns rf_module_symbol's result. rf_reset takes all away; rf_snapshot and images refuse. */

/* Adds the module under `name` and runs its constructors. The handle may be closed afterwards. RF_ERROR_EXISTS: the name is taken,
 * or the domain has this very module (open its file once more for a second one); RF_ERROR_IMPORT, RF_ERROR_LIMIT,
 * RF_ERROR_UNSUPPORTED: see the message; RF_ERROR_CONSTRUCTOR: a constructor failed, and the module is gone again. If that was a fault, the domain
 * waits for rf_reset; otherwise nothing has changed. */
rf_status rf_module_add(rf_domain *domain, const char *name, rf_module *module);

/* Runs the destructors of a module that was added, as rf_dlclose does, and takes it away: calls of its functions fail from now on, as with rf_unlink.
 * RF_ERROR_NO_OBJECT: there is none of that name. RF_ERROR_BUSY, and nothing has changed: it is on the calling thread's
 * stack, another module was linked against it, or other threads stay in the domain for longer than 100 us (if they came while its
 * destructors ran, these do not run again at the next try). RF_ERROR_CONSTRUCTOR: a destructor failed; the module is still there. */
rf_status rf_module_remove(rf_domain *domain, const char *name);

/* Finds a function of the module that was added under the name `module`. rf_function_get and rf_dlsym find it too, behind those of
 * the modules before it. RF_ERROR_NO_OBJECT: there is no such module; RF_ERROR_NO_FUNCTION. */
rf_status rf_module_function(rf_domain *domain, const char *module, const char *name, rf_function **function) RF_WARN_UNUSED;

/* Address in the domain's window of an exported function or variable of that module, or of any if `module` is NULL; NULL on failure. */
void *rf_module_symbol(rf_domain *domain, const char *module, const char *name);

/* A function's address in its domain's window, to be passed to the domain; NULL on failure. */
void *rf_function_address(rf_function *function);

/* ---------------------------------------------------------------------------------- memory shared between domains
 *
 * A region is memory that any number of domains map, each with its own rights, at the same offset in every window.
 * Rights change at any time, also while domains run; a domain that uses what it just lost faults. `actor` is
 * the domain on whose behalf something is asked for, NULL for the host itself, who may do everything. Others: only the owner of
 * a region gives rights away, never more than it has, and only the owner of a group decides who is in it. */

typedef struct rf_region rf_region;
typedef struct rf_group rf_group;

/* `length` bytes of zeroed shared memory, owned by `owner` (NULL: the host). Nobody but its owner has rights to it yet. */
rf_status rf_region_create(uint64_t length, rf_domain *owner, rf_region **region) RF_WARN_UNUSED;

/* The first `length` bytes of a memory file (memfd_create with MFD_ALLOW_SEALING), which is sealed against shrinking. The
 * descriptor stays the caller's. Nobody gets more than `most`. */
rf_status rf_region_from_fd(int fd, uint64_t length, rf_rights most, rf_region **region) RF_WARN_UNUSED;

/* Gives the handle back. A region that the host owns is freed; one that a domain owns lives as long as that. NULL is fine. */
rf_status rf_region_close(rf_region *region);

/* Takes the region from all domains. The handle, and the host's view, stay until rf_region_close. */
rf_status rf_region_free(rf_region *region, rf_domain *actor);

/* Sets what `domain` may do; RF_NONE takes back what was given to it. What it owns or has through a group stays. */
rf_status rf_region_give(rf_region *region, rf_domain *actor, rf_domain *domain, rf_rights rights);

/* Sets what all members of a group may do, present and future. */
rf_status rf_region_give_group(rf_region *region, rf_domain *actor, rf_group *group, rf_rights rights);

/* What `domain` may do, all taken together: an rf_rights, or -1 on failure. */
int rf_region_rights(rf_region *region, rf_domain *domain);

/* The region's address in the domain's window, whether it has rights to it or not. NULL on failure. */
void *rf_region_in(rf_region *region, rf_domain *domain);

/* The host's own view, mapped until the last handle goes. Domains write it at any time: copy before checking. */
void *rf_region_host(rf_region *region);

/* Length in bytes, 0 on failure. */
uint64_t rf_region_length(rf_region *region);

/* A group of domains, owned by `owner` (NULL: the host). Domains join an open one at their own wish (as `actor`). */
rf_status rf_group_create(rf_domain *owner, int open, rf_group **group) RF_WARN_UNUSED;

/* Gives the handle back. A group that the host owns ends; one that a domain owns lives as long as that. NULL is fine. */
rf_status rf_group_close(rf_group *group);

/* Lets `domain` in, or takes it out. */
rf_status rf_group_admit(rf_group *group, rf_domain *actor, rf_domain *domain);
rf_status rf_group_expel(rf_group *group, rf_domain *actor, rf_domain *domain);

/* Writes who may do what to which region in this process, and who owns and who is in which group, one region or group a line, as far as
 * `capacity` bytes go, NUL included. Returns the whole text's length without the NUL; `to` may be NULL if `capacity` is 0.
 *     region 1 at 0x80000000, 4096 bytes, of host: codec.rf#1=rw viewer.rf#2=r
 *     group 1, open, of codec.rf#1: viewer.rf#2; region 1=r
 * rf_matrix_json writes the same as one JSON object; the host as an owner is null there:
 *     {"regions":[{"region":1,"offset":2147483648,"bytes":4096,"owner":null,"rights":{"codec.rf#1":"rw","viewer.rf#2":"r"}}],
 *      "groups":[{"group":1,"owner":"codec.rf#1","open":true,"members":["viewer.rf#2"],"rights":{"1":"r"}}]} */
size_t rf_matrix(char *to, size_t capacity);
size_t rf_matrix_json(char *to, size_t capacity);

/* --------------------------------------------------------------------------------------------- in callbacks */

/* The n-th integer (or pointer) argument, and the n-th floating-point argument, each counted from 0 among its kind: of
 * f(int a, double x, int b), b is integer 1 and x is float 0. Integers from the 7th on, and floats from the 9th
 * on, lie on the stack: rf_arg_stack. Narrow integers: cast to the declared type; the upper bits are the module's. */
uint64_t rf_arg_int(const rf_caller *caller, unsigned n);
double rf_arg_f64(const rf_caller *caller, unsigned n);
float rf_arg_f32(const rf_caller *caller, unsigned n);
/* The n-th 8-byte word of arguments on the stack; 0 if it cannot be read. */
uint64_t rf_arg_stack(const rf_caller *caller, unsigned n);

/* Sets the result. The last one of a kind counts; without any the module sees 0. */
void rf_return_int(rf_caller *caller, uint64_t value);
void rf_return_f64(rf_caller *caller, double value);
void rf_return_f32(rf_caller *caller, float value);

/* Ends the domain's call, when the callback returns, with RF_FAULT_HOST and this message (copied). */
void rf_fail(rf_caller *caller, const char *message);

/* The domain that calls. Inside plain functions (rf_import.function) pass NULL: the innermost domain that called out on
 * this thread, or NULL. Belongs to the library: not to be destroyed through this handle. */
rf_domain *rf_caller_domain(const rf_caller *caller);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* RINGFENCE_H */
