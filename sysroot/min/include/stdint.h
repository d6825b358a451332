/* gcc's own definitions, without the detour through a hosted header. */
#include <stdint-gcc.h>
