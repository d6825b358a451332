/* What a module's source says about itself: what it needs from outside, and what it offers.
 *
 * Compile with `ringfence cc`. The header needs no library and may be included by C and C++.
 * An ordinary compiler takes it too: then RF_IMPORT is a plain declaration. */

#ifndef RINGFENCE_MODULE_H
#define RINGFENCE_MODULE_H

#ifdef __cplusplus
#define RF_C_LINKAGE extern "C"
#else
#define RF_C_LINKAGE extern
#endif

#ifdef __ringfence__
/* The name goes into a section that the link reads and drops. */
#define RF_DECLARE_IMPORT_(text) \
	__asm__(".pushsection .rf.imports,\"e\",@progbits\n\t.asciz \"" text "\"\n\t.popsection");
#else
#define RF_DECLARE_IMPORT_(text)
#endif

/* A function that the host, or another module of the domain, provides:
 *
 *     RF_IMPORT(int, read_row, (long row, char *into, unsigned long size))
 *
 * Calls of it leave the domain through a gate. Stands outside of functions, no semicolon needed. */
#define RF_IMPORT(result, name, parameters) \
	RF_DECLARE_IMPORT_(#name)           \
	RF_C_LINKAGE result name parameters;

/* A data object that another module of the same domain provides. Hosts do not share data this way. */
#define RF_IMPORT_DATA(type, name)    \
	RF_DECLARE_IMPORT_("=" #name) \
	RF_C_LINKAGE type name;

/* Makes a definition visible to the host even under -fvisibility=hidden. */
#ifdef __cplusplus
#define RF_EXPORT extern "C" __attribute__((visibility("default"), used))
#else
#define RF_EXPORT __attribute__((visibility("default"), used))
#endif

/* The module's domain stops here; the host gets an error that carries `reason`. */
RF_C_LINKAGE void __rf_abort(int reason) __attribute__((noreturn));

/* How the last call of another domain's function went, on this thread. Such a call that fails returns 0 (or what the host has
 * set for it); a module that does not ask here is ended instead, unless the host has said otherwise. */
RF_C_LINKAGE int __rf_call_status(void);
enum {
	RF_CALL_OK = 0,      /* it succeeded, or there was none */
	RF_CALL_FAULT = 1,   /* the other domain failed during the call */
	RF_CALL_TIME = 2,    /* it took too long, or was interrupted */
	RF_CALL_REVOKED = 3, /* the host has revoked the function, or not handed it out yet */
	RF_CALL_GONE = 4,    /* the other domain is gone */
	RF_CALL_FAULTED = 5, /* the other domain failed earlier and was not reset */
	RF_CALL_EXIT = 6,    /* the other domain asked to exit */
	RF_CALL_REFUSED = 7  /* the other domain cannot be entered now */
};

/* Destroys the calling thread's thread_local C++ objects, as the end of a thread does natively. Of the libc: for a function that the host
 * calls when one of its threads is done with the module. */
RF_C_LINKAGE void __rf_thread_exit(void);

/* The call from the host ends here, with an exit status. */
RF_C_LINKAGE void __rf_exit(int status) __attribute__((noreturn));

#endif
