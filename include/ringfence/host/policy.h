/* ringfence/host/policy.h - what a domain may ask of the operating system.
 *
 * A domain has no system calls of its own: its C library asks, and the policy of the domain answers. What is
 * not granted is denied with the errno that portable programs expect. A new policy grants nothing; build it
 * up, then make domains with it (rf_domain_options.policy). Each domain gets the policy as it is at that
 * moment, with descriptors, directories and captured output of its own; changing or destroying the policy
 * afterwards changes nothing for it. Limits of memory and time belong to the domain: rf_domain_options.
 *
 * rf_policy_OPTION sets the option that is called OPTION in Rust (Policy) and on the command line; see
 * docs/options.md.
 *
 *     rf_policy *p;
 *     rf_policy_create(&p);
 *     rf_policy_dir(p, "/srv/data", "/data", RF_RIGHTS_READ);
 *     rf_policy_stdout(p, RF_STREAM_CAPTURE);
 *     rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
 *     o.policy = p;
 *     rf_domain *d;
 *     int exit_status;
 *     if (rf_domain_create(module, &o, &d) == RF_OK && rf_domain_run_program(d, &exit_status) == RF_OK) ...
 */
#ifndef RINGFENCE_HOST_POLICY_H
#define RINGFENCE_HOST_POLICY_H

#include <ringfence/host/rights.h>
#include <ringfence/host/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rf_domain rf_domain;

/* What domains may ask of the operating system. */
typedef struct rf_policy rf_policy;

/* Makes a policy that grants nothing. `*policy` is NULL on failure. */
rf_status rf_policy_create(rf_policy **policy) RF_WARN_UNUSED;

/* Ends the handle. Domains that were made with it live on. NULL is fine. */
rf_status rf_policy_destroy(rf_policy *policy);

/* Grants the host's directory `host` and all below it under the absolute name `guest`: RF_RIGHTS_READ, or
 * RF_RIGHTS_WRITE for both. Neither symbolic links nor ".." lead out of it. The first one is where programs
 * start, but for rf_policy_cwd. It is opened when a domain is made: one that cannot be opened is then RF_ERROR_FILE, one of procfs,
 * sysfs and their like RF_ERROR_RIGHTS. Errors: RF_ERROR_ARGUMENT. */
rf_status rf_policy_dir(rf_policy *policy, const char *host, const char *guest, rf_rights rights);

/* Where programs start, an absolute guest name, in place of the first directory. Copied. UTF-8. It need not be there:
 * then a program starts in a directory that is gone. Errors: RF_ERROR_ARGUMENT if it does not begin with '/'. */
rf_status rf_policy_cwd(rf_policy *policy, const char *guest);

/* Where a standard stream goes. */
typedef enum rf_stream {
    RF_STREAM_CLOSED = 0,  /* not open; the default */
    RF_STREAM_NULL = 1,    /* reads end and writes vanish */
    RF_STREAM_INHERIT = 2, /* the host's own stream of that number, without a position */
    RF_STREAM_CAPTURE = 3, /* kept for rf_domain_take_captured; output and error only */
    RF_STREAM_POSITIONED = 4 /* as INHERIT; where it is a file, with its position, size, times, locks and maps */
} rf_stream;

/* Where standard input, output and error go. Errors: RF_ERROR_ARGUMENT. */
rf_status rf_policy_stdin(rf_policy *policy, rf_stream stream);
rf_status rf_policy_stdout(rf_policy *policy, rf_stream stream);
rf_status rf_policy_stderr(rf_policy *policy, rf_stream stream);

/* Standard input is these bytes, which are copied. */
rf_status rf_policy_stdin_bytes(rf_policy *policy, const void *bytes, size_t length);

/* How many bytes a captured stream may hold before writes fail with ENOSPC. The default is 64 MiB. */
rf_status rf_policy_capture_limit(rf_policy *policy, size_t bytes);

/* How many bytes a domain may put on disk from its start to its end: written to files, allocated for
 * them, jumped over; 4096 for each name, and for each write that does not go on from the last one.
 * Nothing gives any back, not even rf_domain_reset. Beyond it calls fail with EDQUOT, after on_limit was
 * asked (RF_LIMIT_DISK). The default is 1 GiB; UINT64_MAX is no limit. */
rf_status rf_policy_disk_limit(rf_policy *policy, uint64_t bytes);

/* A program's arguments, its name first; they replace earlier ones. Copied. UTF-8. */
rf_status rf_policy_args(rf_policy *policy, const char *const *args, size_t count);

/* Adds an environment variable. Copied. UTF-8. Errors: RF_ERROR_ARGUMENT if `name` is empty or has a '='. */
rf_status rf_policy_env(rf_policy *policy, const char *name, const char *value);

/* Whether (0 or 1) the time can be asked for and waited for. */
rf_status rf_policy_clocks(rf_policy *policy, int granted);

/* Whether (0 or 1) the kernel's random numbers can be had. */
rf_status rf_policy_randomness(rf_policy *policy, int granted);

/* How many descriptors a domain may have open, 3 to 65536. The default is 64. */
rf_status rf_policy_descriptors(rf_policy *policy, unsigned limit);

/* How many threads of its own a domain may have at a time (pthread_create, std::thread, thrd_create); 0, the
 * default: none. They are threads of this process, each a call into the domain: a fault in one ends all, and
 * rf_domain_reset says RF_ERROR_BUSY while one runs. rf_domain_run_program ends those that outlive main,
 * rf_domain_destroy all; rf_domain_interrupt too. */
rf_status rf_policy_threads(rf_policy *policy, unsigned limit);

/* How many processes a program may have besides its first at a time (fork); 0, the default: none. For rf_domain_run_program on the
 * back end window. Each is a copy of this process with one thread: it goes on with the program's call, ends where the program ends,
 * never comes back from rf_domain_run_program, and dies with the process that made it. What is left when main has ended is ended. For
 * hosts that run a program and nothing else: what other threads had locked stays locked in it, and waitpid(-1) finds it. */
rf_status rf_policy_processes(rf_policy *policy, unsigned limit);

/* Whether (0 or 1) symbolic links can be made where writing is granted; not by default. They lead the domain nowhere new, but everybody
 * else who follows one goes where the domain says, with rights of their own: open files there with O_NOFOLLOW. */
rf_status rf_policy_symlinks(rf_policy *policy, int granted);

/* Whether (0 or 1) a write to a pipe that nobody reads ends the program, as by SIGPIPE, unless it ignores that
 * signal; else, which is the default, the write fails with EPIPE. */
rf_status rf_policy_broken_pipes_end(rf_policy *policy, int end);

/* Lets domains connect to this address, "127.0.0.1:80" or "[::1]:80", by TCP or UDP; may be called several
 * times. Errors: RF_ERROR_ARGUMENT. */
rf_status rf_policy_connect(rf_policy *policy, const char *address);

/* Lets domains wait for connections at this address of the host's, by TCP (bind, listen, accept); port 0 is any that
 * is free; may be called several times. Errors: RF_ERROR_ARGUMENT. */
rf_status rf_policy_listen(rf_policy *policy, const char *address);

/* A system call that a domain makes, before anything is decided. */
typedef struct rf_syscall {
    size_t size;       /* of this struct, as the library knows it */
    uint64_t number;   /* x86-64 Linux */
    const char *name;  /* NULL for an unusual one */
    uint64_t args[6];  /* pointers are the domain's: rf_memory_read, rf_memory_write */
    rf_domain *domain; /* NULL while its constructors run; belongs to the library */
    int64_t result;    /* for the callback to set */
} rf_syscall;

/* A callback's answer. Anything else denies with EPERM. */
typedef enum rf_decision {
    RF_DECISION_POLICY = 0, /* the policy decides */
    RF_DECISION_DENY = 1,   /* denied, with the errno in call->result */
    RF_DECISION_RETURN = 2  /* the callback has done it itself: the domain gets call->result, -errno for a
                               failure */
} rf_decision;

/* Asks `decide` about each call first; NULL: no longer. It runs on the thread that calls, several at once if
 * several threads are inside, and must not leave by longjmp, a C++ exception or pthread_exit. */
rf_status rf_policy_callback(rf_policy *policy, rf_decision (*decide)(rf_syscall *call, void *context),
                             void *context);

/* Gives each call, with its result, to `print` as a line like strace's. As for rf_policy_callback. */
rf_status rf_policy_trace(rf_policy *policy, void (*print)(const char *line, void *context), void *context);

#ifdef __cplusplus
}
#endif
#endif
