/* For WebAssembly, whose toolchain has no setjmp: an error ends the program. */
#include "pnglibconf.h"
#undef PNG_SETJMP_SUPPORTED
