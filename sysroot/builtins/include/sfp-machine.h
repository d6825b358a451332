/* Rounding is to nearest, always: fenced code cannot change it, nor read the register that says so. */
#include "config/i386/sfp-machine.h"
#undef FP_INIT_ROUNDMODE
#define FP_INIT_ROUNDMODE ((void)0)
#undef FP_TRAPPING_EXCEPTIONS
#define FP_TRAPPING_EXCEPTIONS 0
