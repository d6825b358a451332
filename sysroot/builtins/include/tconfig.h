/* Stands in for what gcc's build generates before it compiles libgcc: this one target, no more. */
#ifndef RF_TCONFIG_H
#define RF_TCONFIG_H

#define IN_LIBGCC2 1
#define BITS_PER_UNIT 8
#define UNITS_PER_WORD 8
#define MIN_UNITS_PER_WORD 8
#define HAVE_CC_TLS 1
#define DWARF2_UNWIND_INFO 1
#define hidden __attribute__((__visibility__("hidden")))
#define ATTRIBUTE_UNUSED __attribute__((__unused__))

#endif
